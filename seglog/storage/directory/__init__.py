"""The files of a store as its folders show them, and what each one states before records are read.

Holds geometry (the lengths of files) and what it is inferred from, the files of log, queues and index, files
under wrong names, and the signs of a log that is gone as a whole.

Called by surveys, audits, checks and repairs.
Truth: the files themselves; ``lengths.conf`` and ``broker.conf`` are claims that files can disprove.
"""

from seglog.storage.directory.broker_conf import BATCH_FILE as BATCH_FILE
from seglog.storage.directory.broker_conf import INDEX_ENTRIES as INDEX_ENTRIES
from seglog.storage.directory.broker_conf import INDEX_SLOTS as INDEX_SLOTS
from seglog.storage.directory.broker_conf import LENGTHS_FILE as LENGTHS_FILE
from seglog.storage.directory.broker_conf import MAX_CONF_BYTES as MAX_CONF_BYTES
from seglog.storage.directory.broker_conf import QUEUE_FILE as QUEUE_FILE
from seglog.storage.directory.broker_conf import SEGMENT as SEGMENT
from seglog.storage.directory.broker_conf import broker_settings as broker_settings
from seglog.storage.directory.broker_conf import load_lengths as load_lengths
from seglog.storage.directory.broker_conf import read_broker_conf as read_broker_conf
from seglog.storage.directory.broker_conf import read_lengths as read_lengths
from seglog.storage.directory.broker_conf import write_lengths as write_lengths
from seglog.storage.directory.broker_topics import TOPICS_FILE as TOPICS_FILE
from seglog.storage.directory.broker_topics import configured_kinds as configured_kinds
from seglog.storage.directory.broker_topics import known_topics as known_topics
from seglog.storage.directory.directory_listing import Listing as Listing
from seglog.storage.directory.directory_listing import check_is_store as check_is_store
from seglog.storage.directory.directory_listing import demand_store as demand_store
from seglog.storage.directory.directory_listing import list_store as list_store
from seglog.storage.directory.directory_listing import no_queue_length as no_queue_length
from seglog.storage.directory.directory_listing import no_store as no_store
from seglog.storage.directory.geometry import DEFAULT_SEGMENT_BYTES as DEFAULT_SEGMENT_BYTES
from seglog.storage.directory.geometry import MAX_SEGMENT_BYTES as MAX_SEGMENT_BYTES
from seglog.storage.directory.geometry import MIN_SEGMENT_BYTES as MIN_SEGMENT_BYTES
from seglog.storage.directory.geometry import NOTHING_KNOWN as NOTHING_KNOWN
from seglog.storage.directory.geometry import FileSizes as FileSizes
from seglog.storage.directory.geometry import StoreGeometry as StoreGeometry
from seglog.storage.directory.geometry import check_geometry as check_geometry
from seglog.storage.directory.geometry import infer_file_size as infer_file_size
from seglog.storage.directory.index_files import IndexFile as IndexFile
from seglog.storage.directory.index_files import checked_division as checked_division
from seglog.storage.directory.index_files import hashes_at as hashes_at
from seglog.storage.directory.index_files import index_division as index_division
from seglog.storage.directory.index_files import list_index_files as list_index_files
from seglog.storage.directory.index_files import load_index_file as load_index_file
from seglog.storage.directory.lengths import last_units as last_units
from seglog.storage.directory.lengths_check import disproved_lengths as disproved_lengths
from seglog.storage.directory.log_facts import MOST_RECORD_BYTES as MOST_RECORD_BYTES
from seglog.storage.directory.log_files import LogFile as LogFile
from seglog.storage.directory.log_files import LogReader as LogReader
from seglog.storage.directory.log_files import has_data as has_data
from seglog.storage.directory.log_files import last_data_end as last_data_end
from seglog.storage.directory.log_files import list_log_files as list_log_files
from seglog.storage.directory.log_files import place_log_files as place_log_files
from seglog.storage.directory.log_gone import demand_log as demand_log
from seglog.storage.directory.log_paths import CONF_FILE as CONF_FILE
from seglog.storage.directory.log_paths import LOG_PATHS as LOG_PATHS
from seglog.storage.directory.log_paths import READ_ONLY_PATHS as READ_ONLY_PATHS
from seglog.storage.directory.log_paths import LogPaths as LogPaths
from seglog.storage.directory.log_paths import stated_log_paths as stated_log_paths
from seglog.storage.directory.log_places import OneLog as OneLog
from seglog.storage.directory.log_root import LogRoot as LogRoot
from seglog.storage.directory.misnamed import as_stated as as_stated
from seglog.storage.directory.misnamed import check_names as check_names
from seglog.storage.directory.misnamed import find_misnamed as find_misnamed
from seglog.storage.directory.queue_files import QueueFiles as QueueFiles
from seglog.storage.directory.queue_files import folder_of_queue as folder_of_queue
from seglog.storage.directory.queue_files import list_queue as list_queue
from seglog.storage.directory.queue_files import list_queues as list_queues
from seglog.storage.directory.queue_files import numbered_files as numbered_files
from seglog.storage.directory.queue_files import queue_directory as queue_directory
from seglog.storage.directory.queue_files import read_units as read_units
from seglog.storage.directory.queue_files import read_units_left as read_units_left
from seglog.storage.directory.reading_root import ReadingRoot as ReadingRoot
from seglog.storage.directory.rocksdb_parts import SEPARATE_QUEUES as SEPARATE_QUEUES
from seglog.storage.directory.rocksdb_parts import RocksKind as RocksKind
from seglog.storage.directory.rocksdb_parts import RocksPart as RocksPart
from seglog.storage.directory.rocksdb_parts import RocksTable as RocksTable
from seglog.storage.directory.rocksdb_parts import demand_own_parts as demand_own_parts
from seglog.storage.directory.rocksdb_parts import demand_own_queues as demand_own_queues
from seglog.storage.directory.rocksdb_parts import demand_own_tables as demand_own_tables
from seglog.storage.directory.rocksdb_parts import find_rocksdb as find_rocksdb
from seglog.storage.directory.rocksdb_parts import is_rocksdb_file as is_rocksdb_file
from seglog.storage.directory.rocksdb_parts import not_read_text as not_read_text
from seglog.storage.directory.rocksdb_parts import parts_with as parts_with

"""The files of a store as its folders show them, and what each says of itself before records are read.

Holds geometry (the lengths of files) and what it is inferred from, the files of log, queues and index, files
under wrong names, and the signs of a log that is gone as a whole.

Called by surveys, audits, checks and repairs.
Truth: the files themselves; ``lengths.conf`` and ``broker.conf`` are claims that files can disprove.
"""

from __future__ import annotations

from seglog.storage.directory.broker_conf import (
    BATCH_FILE,
    INDEX_ENTRIES,
    INDEX_SLOTS,
    LENGTHS_FILE,
    QUEUE_FILE,
    SEGMENT,
    load_lengths,
    read_broker_conf,
    write_lengths,
)
from seglog.storage.directory.directory_listing import Listing, check_is_store, list_store, no_queue_length
from seglog.storage.directory.disproved_lengths import disproved_lengths
from seglog.storage.directory.geometry import (
    DEFAULT_SEGMENT_BYTES,
    MAX_SEGMENT_BYTES,
    NOTHING_KNOWN,
    FileSizes,
    StoreGeometry,
    infer_file_size,
)
from seglog.storage.directory.index_files import (
    IndexFile,
    checked_division,
    hashes_at,
    list_index_files,
    load_index_file,
)
from seglog.storage.directory.known_topics import TOPICS_FILE, configured_kinds, known_topics
from seglog.storage.directory.log_files import LogFile, LogReader, last_data_end
from seglog.storage.directory.log_gone import demand_log
from seglog.storage.directory.misnamed import as_stated, check_names, find_misnamed
from seglog.storage.directory.queue_files import (
    QueueFiles,
    list_queue,
    list_queues,
    queue_directory,
    read_units,
    read_units_left,
)
from seglog.storage.directory.reading_root import ReadingRoot

__all__ = [
    "BATCH_FILE",
    "DEFAULT_SEGMENT_BYTES",
    "INDEX_ENTRIES",
    "INDEX_SLOTS",
    "LENGTHS_FILE",
    "MAX_SEGMENT_BYTES",
    "NOTHING_KNOWN",
    "QUEUE_FILE",
    "SEGMENT",
    "TOPICS_FILE",
    "FileSizes",
    "IndexFile",
    "Listing",
    "LogFile",
    "LogReader",
    "QueueFiles",
    "ReadingRoot",
    "StoreGeometry",
    "as_stated",
    "check_is_store",
    "check_names",
    "checked_division",
    "configured_kinds",
    "demand_log",
    "disproved_lengths",
    "find_misnamed",
    "hashes_at",
    "infer_file_size",
    "known_topics",
    "last_data_end",
    "list_index_files",
    "list_queue",
    "list_queues",
    "list_store",
    "load_index_file",
    "load_lengths",
    "no_queue_length",
    "queue_directory",
    "read_broker_conf",
    "read_units",
    "read_units_left",
    "write_lengths",
]

"""The key index file: header, slots, entries, and the keys of a record in RocketMQ's order.

Pure: bytes to values and back.

Called by index, checks and repairs.
Truth: RocketMQ's sources and files, as each module names them.
"""

from seglog.storage.format.index.index import DEFAULT_INDEX_GEOMETRY as DEFAULT_INDEX_GEOMETRY
from seglog.storage.format.index.index import INDEX_ENTRY as INDEX_ENTRY
from seglog.storage.format.index.index import INDEX_HEADER as INDEX_HEADER
from seglog.storage.format.index.index import INDEX_SLOT as INDEX_SLOT
from seglog.storage.format.index.index import IndexGeometry as IndexGeometry
from seglog.storage.format.index.index import IndexHeader as IndexHeader
from seglog.storage.format.index.index import decode_index_header as decode_index_header
from seglog.storage.format.index.index import key_hash as key_hash
from seglog.storage.format.index.index_build import KEY_ROW as KEY_ROW
from seglog.storage.format.index.index_build import KeyRows as KeyRows
from seglog.storage.format.index.index_build import begin_index_file as begin_index_file
from seglog.storage.format.index.index_geometry import index_damage as index_damage
from seglog.storage.format.index.index_keys import record_keys as record_keys
from seglog.storage.format.index.index_keys import tag_key as tag_key
from seglog.storage.format.index.index_view import DEFAULT_QUERY_LIMIT as DEFAULT_QUERY_LIMIT
from seglog.storage.format.index.index_view import MAX_TIMESTAMP_MS as MAX_TIMESTAMP_MS
from seglog.storage.format.index.index_view import IndexView as IndexView

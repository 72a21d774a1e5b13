"""The key index file: header, slots, entries, and the keys of a record in RocketMQ's order.

Pure: bytes to values and back.

Called by index, checks and repairs.
Truth: RocketMQ's sources and files, as each module names them.
"""

from __future__ import annotations

from seglog.storage.format.index.index import (
    DEFAULT_INDEX_GEOMETRY,
    INDEX_ENTRY,
    INDEX_HEADER,
    INDEX_SLOT,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
    key_hash,
)
from seglog.storage.format.index.index_geometry import index_damage
from seglog.storage.format.index.index_keys import record_keys, tag_key
from seglog.storage.format.index.index_view import DEFAULT_QUERY_LIMIT, MAX_TIMESTAMP_MS, IndexView

__all__ = [
    "DEFAULT_INDEX_GEOMETRY",
    "DEFAULT_QUERY_LIMIT",
    "INDEX_ENTRY",
    "INDEX_HEADER",
    "INDEX_SLOT",
    "MAX_TIMESTAMP_MS",
    "IndexGeometry",
    "IndexHeader",
    "IndexView",
    "decode_index_header",
    "index_damage",
    "key_hash",
    "record_keys",
    "tag_key",
]

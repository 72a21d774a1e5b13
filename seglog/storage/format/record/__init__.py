"""The record of the commit log, and what is in it: properties, hosts, flags, tags, inner batches.

Pure: bytes to values and back, no files, no clock. One layout table per structure feeds struct, numpy dtype,
documentation and C header.

Called by every room that reads or writes records.
Truth: RocketMQ's sources and files, as each module names them.
"""

from __future__ import annotations

from seglog.storage.format.record import properties, sys_flag
from seglog.storage.format.record.flipped_bit import Bit, flipped
from seglog.storage.format.record.host import IPV4_BYTES, IPV6_BYTES, Host
from seglog.storage.format.record.inner_batch import BATCH_HEAD, BATCH_PROPERTIES
from seglog.storage.format.record.message import Message, decode_message, decode_message_id, inflate
from seglog.storage.format.record.properties import (
    CRC32,
    ENTRY_END,
    NAME_END,
    TTL,
    ends_with_record_crc,
    find_property,
)
from seglog.storage.format.record.put_properties import all_properties, encode_all_properties
from seglog.storage.format.record.record import (
    CRC_MASK,
    DELAY_LEVELS_S,
    FILLER,
    FILLER_BYTES,
    FLAG_AT,
    HEAD_V4,
    HEADS,
    HOST_BITS,
    MAGIC_AT,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    PHY_OFFSET_AT,
    RECORD_MAGIC,
    SYS_FLAG_AT,
    Damage,
    RecordRow,
    delay_ms,
    encode_record,
    examine,
    head_layout,
    topic_field,
    unit_tags_code,
)
from seglog.storage.format.record.sys_flag import (
    BORN_HOST_V6,
    COMPRESSED,
    COMPRESSION_LZ4,
    COMPRESSION_MASK,
    COMPRESSION_ZSTD,
    INNER_BATCH,
    MULTI_TAGS,
    STORE_HOST_V6,
    TRANSACTION_MASK,
    takes_queue_offset,
)
from seglog.storage.format.record.tags import java_string_hash, stored_tags_code, tags_code
from seglog.storage.format.record.tombstone import FILLER_TOPIC, LOST_FLAG, is_tombstone

__all__ = [
    "BATCH_HEAD",
    "BATCH_PROPERTIES",
    "BORN_HOST_V6",
    "COMPRESSED",
    "COMPRESSION_LZ4",
    "COMPRESSION_MASK",
    "COMPRESSION_ZSTD",
    "CRC32",
    "CRC_MASK",
    "DELAY_LEVELS_S",
    "ENTRY_END",
    "FILLER",
    "FILLER_BYTES",
    "FILLER_TOPIC",
    "FLAG_AT",
    "HEADS",
    "HEAD_V4",
    "HOST_BITS",
    "INNER_BATCH",
    "IPV4_BYTES",
    "IPV6_BYTES",
    "LOST_FLAG",
    "MAGIC_AT",
    "MAGIC_BLANK",
    "MAGIC_V1",
    "MAGIC_V2",
    "MIN_RECORD_BYTES",
    "MULTI_TAGS",
    "NAME_END",
    "PHY_OFFSET_AT",
    "RECORD_MAGIC",
    "STORE_HOST_V6",
    "SYS_FLAG_AT",
    "TRANSACTION_MASK",
    "TTL",
    "Bit",
    "Damage",
    "Host",
    "Message",
    "RecordRow",
    "all_properties",
    "decode_message",
    "decode_message_id",
    "delay_ms",
    "encode_all_properties",
    "encode_record",
    "ends_with_record_crc",
    "examine",
    "find_property",
    "flipped",
    "head_layout",
    "inflate",
    "is_tombstone",
    "java_string_hash",
    "properties",
    "stored_tags_code",
    "sys_flag",
    "tags_code",
    "takes_queue_offset",
    "topic_field",
    "unit_tags_code",
]

"""The record of the commit log, and what is in it: properties, hosts, flags, tags, inner batches.

Pure: bytes to values and back, no files, no clock. One layout table per structure feeds struct, numpy dtype,
documentation and C header.

Called by every room that reads or writes records.
Truth: RocketMQ's sources and files, as each module names them.
"""

from seglog.storage.format.record import properties as properties
from seglog.storage.format.record import sys_flag as sys_flag
from seglog.storage.format.record.compression import MAX_INFLATED_BYTES as MAX_INFLATED_BYTES
from seglog.storage.format.record.compression import inflate as inflate
from seglog.storage.format.record.compression import join_bounded as join_bounded
from seglog.storage.format.record.flipped_bit import flipped as flipped
from seglog.storage.format.record.host import IPV4_BYTES as IPV4_BYTES
from seglog.storage.format.record.host import IPV6_BYTES as IPV6_BYTES
from seglog.storage.format.record.host import Host as Host
from seglog.storage.format.record.inner_batch import BATCH_HEAD as BATCH_HEAD
from seglog.storage.format.record.inner_batch import BATCH_PROPERTIES as BATCH_PROPERTIES
from seglog.storage.format.record.inner_batch import iter_batch as iter_batch
from seglog.storage.format.record.message import Message as Message
from seglog.storage.format.record.message import decode_message as decode_message
from seglog.storage.format.record.message import decode_message_id as decode_message_id
from seglog.storage.format.record.own_names import SYSTEM_NAMES as SYSTEM_NAMES
from seglog.storage.format.record.placeholder import PLACEHOLDER_FLAG as PLACEHOLDER_FLAG
from seglog.storage.format.record.placeholder import PLACEHOLDER_MARK as PLACEHOLDER_MARK
from seglog.storage.format.record.placeholder import (
    PLACEHOLDER_PROPERTIES_BYTES as PLACEHOLDER_PROPERTIES_BYTES,
)
from seglog.storage.format.record.placeholder import PLACEHOLDER_PROPERTY as PLACEHOLDER_PROPERTY
from seglog.storage.format.record.placeholder import is_placeholder as is_placeholder
from seglog.storage.format.record.properties import CRC32 as CRC32
from seglog.storage.format.record.properties import ENTRY_END as ENTRY_END
from seglog.storage.format.record.properties import NAME_END as NAME_END
from seglog.storage.format.record.properties import TTL as TTL
from seglog.storage.format.record.properties import ends_with_record_crc as ends_with_record_crc
from seglog.storage.format.record.properties import find_property as find_property
from seglog.storage.format.record.put_properties import all_properties as all_properties
from seglog.storage.format.record.put_properties import encode_all_properties as encode_all_properties
from seglog.storage.format.record.record import CRC_MASK as CRC_MASK
from seglog.storage.format.record.record import DELAY_LEVELS_S as DELAY_LEVELS_S
from seglog.storage.format.record.record import FILLER as FILLER
from seglog.storage.format.record.record import FILLER_BYTES as FILLER_BYTES
from seglog.storage.format.record.record import FLAG_AT as FLAG_AT
from seglog.storage.format.record.record import HEAD_V4 as HEAD_V4
from seglog.storage.format.record.record import HEADS as HEADS
from seglog.storage.format.record.record import HOST_BITS as HOST_BITS
from seglog.storage.format.record.record import MAGIC_AT as MAGIC_AT
from seglog.storage.format.record.record import MAGIC_BLANK as MAGIC_BLANK
from seglog.storage.format.record.record import MAGIC_V1 as MAGIC_V1
from seglog.storage.format.record.record import MAGIC_V2 as MAGIC_V2
from seglog.storage.format.record.record import MIN_RECORD_BYTES as MIN_RECORD_BYTES
from seglog.storage.format.record.record import PHY_OFFSET_AT as PHY_OFFSET_AT
from seglog.storage.format.record.record import RECORD_MAGIC as RECORD_MAGIC
from seglog.storage.format.record.record import SYS_FLAG_AT as SYS_FLAG_AT
from seglog.storage.format.record.record import Damage as Damage
from seglog.storage.format.record.record import RecordRow as RecordRow
from seglog.storage.format.record.record import delay_ms as delay_ms
from seglog.storage.format.record.record import encode_record as encode_record
from seglog.storage.format.record.record import examine as examine
from seglog.storage.format.record.record import head_layout as head_layout
from seglog.storage.format.record.record import topic_field as topic_field
from seglog.storage.format.record.record import unit_tags_code as unit_tags_code
from seglog.storage.format.record.sys_flag import BORN_HOST_V6 as BORN_HOST_V6
from seglog.storage.format.record.sys_flag import COMPRESSED as COMPRESSED
from seglog.storage.format.record.sys_flag import COMPRESSION_LZ4 as COMPRESSION_LZ4
from seglog.storage.format.record.sys_flag import COMPRESSION_MASK as COMPRESSION_MASK
from seglog.storage.format.record.sys_flag import COMPRESSION_ZSTD as COMPRESSION_ZSTD
from seglog.storage.format.record.sys_flag import INNER_BATCH as INNER_BATCH
from seglog.storage.format.record.sys_flag import MULTI_TAGS as MULTI_TAGS
from seglog.storage.format.record.sys_flag import NEED_UNWRAP as NEED_UNWRAP
from seglog.storage.format.record.sys_flag import STORE_HOST_V6 as STORE_HOST_V6
from seglog.storage.format.record.sys_flag import TRANSACTION_MASK as TRANSACTION_MASK
from seglog.storage.format.record.sys_flag import takes_queue_offset as takes_queue_offset
from seglog.storage.format.record.tags import java_string_hash as java_string_hash
from seglog.storage.format.record.tags import stored_tags_code as stored_tags_code
from seglog.storage.format.record.tags import tags_code as tags_code
from seglog.storage.format.record.tombstone import FILLER_TOPIC as FILLER_TOPIC
from seglog.storage.format.record.tombstone import LOST_FLAG as LOST_FLAG
from seglog.storage.format.record.tombstone import LostRecord as LostRecord
from seglog.storage.format.record.tombstone import encode_tombstone as encode_tombstone
from seglog.storage.format.record.tombstone import full_tombstone_bytes as full_tombstone_bytes
from seglog.storage.format.record.tombstone import is_tombstone as is_tombstone

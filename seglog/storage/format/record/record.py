"""The commit-log record: the tables of its bytes, and what makes a record valid.

A record is a fixed head, whose two host fields have 4 or 16 address bytes, and a tail of
``body · topic length · topic · properties length · properties``. V1 has one byte of topic length, V2
(topics longer than 127) two. Records follow each other without padding; where one does not fit with 8
bytes to spare, a BLANK filler ends the segment file.

Truth: this is it. Everything else in a store can be rebuilt from records that pass :func:`examine`.

Source: ``CommitLog.java checkMessageAndReturnSize``, ``MessageExtEncoder.java``. Beyond Java's checks a
record must be where its ``phy_offset`` says, a ``__CRC32#`` property must verify wherever it is present,
and properties without it must not hold the NULs that a torn write leaves, nor a part of another record.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from seglog.storage.format.layout import I16, I32, I64, U8, U32, Buffer, Field, Layout
from seglog.storage.format.names import MAX_TOPIC_BYTES, SCHEDULE_TOPIC
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.sys_flag import BORN_HOST_V6, STORE_HOST_V6
from seglog.storage.format.record.tags import tags_code

MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
MAGIC_BLANK: Final = 0xCBD43194
RECORD_MAGIC: Final = re.compile(
    b"|".join(re.escape(U32.pack(magic)) for magic in (MAGIC_V1, MAGIC_V2)), re.DOTALL
)
CRC_MASK: Final = 0x7FFF_FFFF

FILLER: Final = Layout(
    "End-of-file filler",
    "CommitLog.java DefaultAppendMessageCallback doAppend BLANK_MAGIC_CODE",
    (
        Field("size_bytes", "i32", "bytes", "everything that is left of the segment file"),
        Field("magic", "u32", "–", "0xCBD43194"),
    ),
)


def _head(born_address: str, store_address: str) -> Layout:
    return Layout(
        f"CommitLog record head ({born_address} born host, {store_address} store host)",
        "MessageExtEncoder.java encode",
        (
            Field("size_bytes", "i32", "bytes", "the whole record, this field and __CRC32# included"),
            Field("magic", "u32", "–", "0xDAA320A7 (V1) or 0xDAA320AB (V2)"),
            Field("body_crc", "u32", "–", "CRC-32 of the stored body, without its top bit; 0 without body"),
            Field("queue_id", "i32", "–", ""),
            Field("flag", "i32", "–", "the application's own, opaque"),
            Field("queue_offset", "i64", "messages", "index in the queue; 0 for PREPARED and ROLLBACK"),
            Field("phy_offset", "i64", "bytes from log start", "where this record is"),
            Field("sys_flag", "i32", "bits", "compression, transaction, address families, batches"),
            Field("born_timestamp_ms", "i64", "ms", "the client's clock"),
            Field("born_address", born_address, "–", "the client's address in network order"),
            Field("born_port", "i32", "–", ""),
            Field("store_timestamp_ms", "i64", "ms", "the broker's clock, set inside the append lock"),
            Field("store_address", store_address, "–", "the broker's address in network order"),
            Field("store_port", "i32", "–", ""),
            Field("reconsume_times", "i32", "–", "deliveries that failed"),
            Field(
                "prepared_transaction_offset", "i64", "bytes from log start", "the half message of a COMMIT"
            ),
            Field("body_bytes", "i32", "bytes", "size of the body that follows"),
        ),
    )


HEADS: Final = {
    0: _head("b4", "b4"),
    BORN_HOST_V6: _head("b16", "b4"),
    STORE_HOST_V6: _head("b4", "b16"),
    BORN_HOST_V6 | STORE_HOST_V6: _head("b16", "b16"),
}
"""Head of a record by ``sys_flag & HOST_BITS``."""
HOST_BITS: Final = BORN_HOST_V6 | STORE_HOST_V6

HEAD_V4: Final = HEADS[0]
SYS_FLAG_AT: Final = HEAD_V4.offsets["sys_flag"]
FLAG_AT: Final = HEAD_V4.offsets["flag"]
PHY_OFFSET_AT: Final = HEAD_V4.offsets["phy_offset"]
MAGIC_AT: Final = HEAD_V4.offsets["magic"]
MIN_RECORD_BYTES: Final = HEAD_V4.size_bytes + 3
"""IPv4, V1, nothing in it."""
FILLER_BYTES: Final = FILLER.size_bytes

_CRC_NAME: Final = props.CRC_NAME
_CRC_NAME_BITS: Final = int.from_bytes(_CRC_NAME)
MAX_NAME_FLIPS: Final = 8
"""Bits by which what stands where ``__CRC32#`` would be may differ from it and still be taken for it."""
_CRC_BYTES: Final = props.CRC_PROPERTY_BYTES
INNER_NAMES: Final = b"INNER_"
"""What INNER_NUM, INNER_BASE and INNER_MULTI_DISPATCH begin with."""
_DIGITS: Final = slice(-props.CRC_DIGITS - 1, -1)
"""Where the ``__CRC32#`` entry has its digits."""
_MAGICS: Final = frozenset((MAGIC_V1, MAGIC_V2))
_PICKED: Final = (
    "size_bytes",
    "magic",
    "body_crc",
    "queue_id",
    "queue_offset",
    "phy_offset",
    "sys_flag",
    "store_timestamp_ms",
    "body_bytes",
)
_UNPACK: Final = {bits: layout.picking(*_PICKED).unpack_from for bits, layout in HEADS.items()}
_UNPACK_V4: Final = _UNPACK[0]
_HEAD_V4_BYTES: Final = HEAD_V4.size_bytes
_HEAD_BYTES: Final = {bits: layout.size_bytes for bits, layout in HEADS.items()}


def head_layout(record: Buffer) -> Layout:
    """Returns the layout of a record's head, by the flags of its addresses."""
    return HEADS[I32.unpack_from(record, SYS_FLAG_AT)[0] & HOST_BITS]


def topic_field(topic: bytes) -> tuple[int, bytes]:
    """Returns the magic of a topic's records, and what they say of it: its length, and the topic."""
    if len(topic) > MAX_TOPIC_BYTES:
        return MAGIC_V2, I16.pack(len(topic)) + topic
    return MAGIC_V1, U8.pack(len(topic)) + topic


def encode_record(
    layout: Layout,
    head: Mapping[str, object],
    field: bytes,
    body: bytes,
    properties: bytes,
    *,
    record_crc: bool,
) -> bytes:
    """Returns a record of these parts; its sizes and checksums follow from them.

    Args:
        layout: Of its head.
        head: The other fields of it, by name.
        field: The topic behind its length.
        body: As it is stored.
        properties: Without ``__CRC32#``.
        record_crc: Whether to add that.
    """
    crc_bytes = _CRC_BYTES if record_crc else 0
    tail = field + I16.pack(len(properties) + crc_bytes) + properties
    own = {
        **head,
        "size_bytes": layout.size_bytes + len(body) + len(tail) + crc_bytes,
        "body_crc": zlib.crc32(body) & CRC_MASK,
        "body_bytes": len(body),
    }
    record = layout.struct.pack(*(own[name] for name in layout.offsets)) + body + tail
    return record + props.crc_property(zlib.crc32(record) & CRC_MASK) if record_crc else record


def store_time_of(record: Buffer) -> int:
    """Returns the store time in ms of a record that is whole."""
    return int(I64.unpack_from(record, head_layout(record).offsets["store_timestamp_ms"])[0])


class RecordRow(NamedTuple):
    """What queues and scans need of one valid record.

    Attributes:
        says_more: Whether its properties hold one of INNER_NUM, INNER_BASE and INNER_MULTI_DISPATCH, which
            say more about queues than the head does.
    """

    size_bytes: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp_ms: int
    topic: bytes
    tags_code: int
    body_at: int
    body_bytes: int
    properties_at: int
    properties_bytes: int
    says_more: bool


_new_row: Final = tuple.__new__
"""What ``RecordRow(...)`` comes down to, in a third of its time."""


class Damage(NamedTuple):
    """Why bytes are no valid record: a stable short word, and what was found instead of what."""

    kind: str
    expected: object
    found: object


def examine(buffer: memoryview, at: int, phy_offset: int, verify: bool = True) -> RecordRow | Damage:
    """Returns the record that starts at ``at``, or why there is none.

    A record that goes beyond the buffer is damage of the kind ``size``, unless the bytes in the buffer
    already prove that it is none: a damaged size must not make a scan read a whole segment.

    Args:
        buffer: Bytes of the log.
        at: Where in the buffer to look.
        phy_offset: Physical offset of that place.
        verify: Whether to compute checksums; everything else is always checked.
    """
    room = len(buffer) - at
    if room < MIN_RECORD_BYTES:
        return Damage("short", f"at least {MIN_RECORD_BYTES} bytes", room)
    # All but the last two fields are before the addresses, whose length varies.
    size, magic, body_crc, queue_id, queue_offset, own_offset, sys_flag, store_timestamp, body_size = (
        _UNPACK_V4(buffer, at)
    )
    if (
        magic not in _MAGICS
        or size < MIN_RECORD_BYTES
        or own_offset != phy_offset
        or queue_id < 0
        or queue_offset < 0
    ):
        return _head_damage(buffer, at, phy_offset)
    if size > room:
        return _examine_part(buffer, at)
    end = at + size
    body_at = at + _HEAD_V4_BYTES
    if hosts := sys_flag & HOST_BITS:
        body_at = at + _HEAD_BYTES[hosts]
        if body_at + 3 > end:
            return Damage("lengths", size, body_at + 3 - at)
        store_timestamp, body_size = _UNPACK[hosts](buffer, at)[-2:]
    topic_at = body_at + body_size + (1 if magic == MAGIC_V1 else 2)
    if body_size < 0 or topic_at + 2 > end:
        return Damage("lengths", size, f"body of {body_size}")
    topic_size = buffer[topic_at - 1] if magic == MAGIC_V1 else I16.unpack_from(buffer, topic_at - 2)[0]
    properties_at = topic_at + topic_size + 2
    if topic_size < 0 or properties_at > end:
        return Damage("lengths", size, f"topic of {topic_size}")
    properties_size = max(0, I16.unpack_from(buffer, properties_at - 2)[0])
    if properties_at + properties_size != end:
        return Damage("lengths", size, properties_at + properties_size - at)
    properties = buffer[properties_at:end].tobytes()
    if verify:
        damage = _verify(buffer, at, body_at, body_size, body_crc, properties, end)
        if damage is not None:
            return damage
    topic = buffer[topic_at : topic_at + topic_size].tobytes()
    return _new_row(
        RecordRow,
        (
            size,
            queue_id,
            queue_offset,
            sys_flag,
            store_timestamp,
            topic,
            unit_tags_code(topic, properties, store_timestamp),
            body_at - at,
            body_size,
            properties_at - at,
            properties_size,
            properties.find(INNER_NAMES) >= 0,
        ),
    )


def _head_damage(buffer: memoryview, at: int, phy_offset: int) -> Damage:
    """Says what is wrong with a record of which a field in front shows it."""
    size, magic, _crc, queue_id, queue_offset, own_offset, *_others = _UNPACK_V4(buffer, at)
    if magic not in _MAGICS:
        return Damage("magic", f"{MAGIC_V1:#x} or {MAGIC_V2:#x}", f"{magic:#x}")
    if size < MIN_RECORD_BYTES:
        return Damage("size", f"{MIN_RECORD_BYTES}..{len(buffer) - at}", size)
    if own_offset != phy_offset:
        return Damage("phy-offset", phy_offset, own_offset)
    return Damage("negative", "queue id and offset from 0", (queue_id, queue_offset))


def _examine_part(buffer: memoryview, at: int) -> Damage:
    """Says what is wrong with a record that goes beyond the buffer, whose front fields are right."""
    size, magic, _crc, _queue_id, _queue_offset, _own, sys_flag, _time, body_size = _UNPACK_V4(buffer, at)
    room = len(buffer) - at
    beyond = Damage("size", f"{MIN_RECORD_BYTES}..{room}", size)
    hosts = sys_flag & HOST_BITS
    parts = _HEAD_BYTES[hosts]
    if parts > room:
        return beyond
    if hosts:
        body_size = _UNPACK[hosts](buffer, at)[-1]
    parts += body_size + (1 if magic == MAGIC_V1 else 2)
    if body_size < 0 or parts > room:
        return beyond
    topic_at = at + parts
    topic_size = buffer[topic_at - 1] if magic == MAGIC_V1 else I16.unpack_from(buffer, topic_at - 2)[0]
    parts += topic_size + 2
    if topic_size < 0 or parts > room:
        return beyond
    parts += max(0, I16.unpack_from(buffer, at + parts - 2)[0])
    return beyond if parts == size else Damage("lengths", size, parts)


def _verify(
    buffer: memoryview, at: int, body_at: int, body_size: int, body_crc: int, properties: bytes, end: int
) -> Damage | None:
    tail = properties[-_CRC_BYTES:]
    has_name = tail.startswith(_CRC_NAME)
    # A name with a few bits flipped still says that there was a checksum: without it, damage to the rest of
    # the record would go unseen. Other text differs in three times as many bits.
    is_near = (int.from_bytes(tail[: len(_CRC_NAME)]) ^ _CRC_NAME_BITS).bit_count() <= MAX_NAME_FLIPS
    if is_near or tail[_DIGITS].isdigit():
        crc = zlib.crc32(buffer[at : end - _CRC_BYTES]) & CRC_MASK
        entry = props.crc_property(crc)
        # The right digits under another name: what was damaged is the name. No other property ends so.
        if tail != entry and (is_near or tail[_DIGITS] == entry[_DIGITS]):
            return Damage("record-crc", *_said_and_found(tail, crc))
    if not has_name and props.look_torn(properties):
        return Damage("torn-properties", "text", "NULs, or a __CRC32# out of its place")
    if body_size:
        crc = zlib.crc32(buffer[body_at : body_at + body_size]) & CRC_MASK
        if crc != body_crc:
            return Damage("body-crc", f"body CRC {body_crc:#x}", f"{crc:#x}")
    return None


def _said_and_found(tail: bytes, crc: int) -> tuple[str, str]:
    """Returns which CRC a record says, in its last property, and which its bytes have."""
    if tail.startswith(_CRC_NAME) and tail[_DIGITS].isdigit() and tail.endswith(b"\x02"):
        return f"record CRC {int(tail[_DIGITS][::-1]):#x}", f"{crc:#x}"  # least digit first
    return f"__CRC32# of {crc:#x} at the end", tail.decode("ascii", "backslashreplace")


def unit_tags_code(topic: bytes, properties: bytes, store_timestamp_ms: int) -> int:
    """Returns the tagsCode that RocketMQ's dispatch puts into the record's queue unit.

    In the delay topic it is the time of delivery; elsewhere the hash of the tag.
    """
    if topic == _SCHEDULE_TOPIC:
        level = delay_level(props.find_property(properties, b"DELAY"))
        if level > 0:
            return as_i64(store_timestamp_ms + delay_ms(level))
    # find, not `in`: that tries whether it is given a number first, and takes twice as long.
    if properties.find(b"TAGS\x01") < 0:
        return 0
    tag = props.find_property(properties, b"TAGS")
    return _tags_code(tag) if tag else 0


@lru_cache(maxsize=4096)
def _tags_code(tag: bytes) -> int:
    return tags_code(tag.decode("utf-8", "replace"))


_SCHEDULE_TOPIC: Final = SCHEDULE_TOPIC.encode()
DELAY_LEVELS_S: Final = (
    1,
    5,
    10,
    30,
    60,
    120,
    180,
    240,
    300,
    360,
    420,
    480,
    540,
    600,
    1200,
    1800,
    3600,
    7200,
)
"""Default ``messageDelayLevel``: 1s 5s 10s 30s, 1m to 10m, 20m 30m 1h 2h."""


def delay_level(value: bytes | None) -> int:
    """Returns the delay level of a DELAY property, capped at the highest; 0 if it is none."""
    if value is None or not value.isdigit():
        return 0
    digits = value.lstrip(b"0")
    # Never int() of a text of any length: it is refused beyond 4300 digits.
    return len(DELAY_LEVELS_S) if len(digits) > 2 else min(int(digits or b"0"), len(DELAY_LEVELS_S))


def as_i64(value: int) -> int:
    """Returns what Java's ``long`` holds of a sum that does not fit it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def delay_ms(level: int) -> int:
    """Returns how long messages of a delay level (1…18) wait."""
    return DELAY_LEVELS_S[level - 1] * 1000

"""Tombstones: records that take the place of lost ones, so that the log itself remembers what it lost.

A tombstone has the place, size, queue and queue offset of the record that was lost, and a body of zeros.
RocketMQ takes it for a message, so no program that opens the store gives the offset again, and everything
behind it keeps its place. Stretches of which no queue knows anything become fillers: ROLLBACK records, to
which RocketMQ gives neither offset nor queue nor index entry.

How readers tell them apart: :data:`LOST_FLAG` and a store host with port 0 in the record's head, which
every tombstone and filler has, however small it is. An application may use the flag, with a body of zeros
too; the store host is the address that the broker listens at, which no client sets, and no broker
listens at port 0. Where they fit, ``SEGLOG_LOST=1`` marks it for programs, and ``TAGS=SEGLOG_LOST`` makes
brokers leave tombstones out of what they send to consumers that asked for tags. It also gives the queue
unit the code :data:`LOST_TAGS_CODE`: bulk reads need look only at the heads of records with this code, none,
or one that is no hash of a tag: a broker sets such codes itself, and may have set it before the record was
lost.

Some of RocketMQ's own topics need more properties (:data:`_SYSTEM_PROPERTIES`): without a time the timer
would try for ever, and half messages without producer group would be checked for ever.

Source: tried on the real store; ``TimerMessageStore.java``, ``ScheduleMessageService.java``,
``TransactionalMessageServiceImpl.java``, ``MessageExtEncoder.java``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.format.names import HALF_TOPIC, MAX_TOPIC_BYTES, SCHEDULE_TOPIC
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import (
    HEAD_V4,
    HEADS,
    HOST_BITS,
    MIN_RECORD_BYTES,
    Damage,
    encode_record,
    examine,
    topic_field,
)
from seglog.storage.format.record.sys_flag import (
    COMPRESSED,
    COMPRESSION_MASK,
    INNER_BATCH,
    NEED_UNWRAP,
    TRANSACTION_ROLLBACK,
)
from seglog.storage.format.record.tags import tags_code
from seglog.storage.format.system_names import TIMER_TOPIC

LOST: Final = "SEGLOG_LOST"
LOST_FLAG: Final = 0x4C4F_5354
"""``flag`` of every tombstone and filler: "LOST" in ASCII."""
LOST_TAGS_CODE: Final = tags_code(LOST)
MIN_TAG_HASH: Final = -(1 << 31)
MAX_TAG_HASH: Final = (1 << 31) - 1
"""Tags have hashes of 32 bits; addresses in ConsumeQueueExt are below, times of delivery above."""
FILLER_TOPIC: Final = "SEGLOG_FILLER"
MAX_FILLER_BYTES: Final = 1 << 20
"""RocketMQ allocates the size of a record to check it."""

_MARKS: Final = (f"{LOST}\x011\x02".encode(), f"{props.TAGS}\x01{LOST}\x02".encode())
_REAL: Final = f"{props.REAL_TOPIC}\x01{LOST}\x02{props.REAL_QUEUE_ID}\x010\x02"
_SYSTEM_PROPERTIES: Final = {
    TIMER_TOPIC: "TIMER_OUT_MS\x01{store_timestamp_ms}\x02" + _REAL,
    SCHEDULE_TOPIC: _REAL,
    HALF_TOPIC: _REAL + f"PGROUP\x01{LOST}\x02{props.TRANSACTION_CHECK_TIMES}\x0199\x02",
}
_LEFT_OUT: Final = {props.TAGS.encode(), LOST.encode()}
_BODY_BITS: Final = COMPRESSED | COMPRESSION_MASK | NEED_UNWRAP | INNER_BATCH
"""What a record's flags say of its body."""
_LOCALHOST: Final = b"\x7f\x00\x00\x01"
_FLAG: Final = HEAD_V4.picking("flag").unpack_from
_NO_PORT: Final = 0
_STORE_PORT: Final = {bits: layout.picking("store_port").unpack_from for bits, layout in HEADS.items()}


@dataclass(frozen=True, slots=True)
class LostRecord:
    """What is known of a record that was lost.

    Attributes:
        topic: Its topic.
        queue_id: Its queue.
        queue_offset: Its place there; of an inner batch, that of its first message.
        phy_offset: Where it lay.
        size_bytes: How long it was.
        batch_size: Messages in it; above 1 it was an inner batch.
        further: LMQ queues that it appeared in too, and its offset in each.
        legible: Its own bytes, where everything about them adds up but a checksum.
    """

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    size_bytes: int
    batch_size: int = 1
    further: tuple[tuple[str, int], ...] = ()
    legible: bytes = field(default=b"", repr=False)

    @property
    def end(self) -> int:
        """Where it ended."""
        return self.phy_offset + self.size_bytes


def min_tombstone_bytes(topic: bytes, *, record_crc: bool = False) -> int:
    """Returns the size of the smallest record of a topic: without body and properties."""
    crc_bytes = props.CRC_PROPERTY_BYTES if record_crc else 0
    return MIN_RECORD_BYTES + len(topic) + (len(topic) > MAX_TOPIC_BYTES) + crc_bytes


def encode_tombstone(lost: LostRecord, store_timestamp_ms: int, *, record_crc: bool) -> bytes:
    """Returns a record of the same size that stands for a lost one.

    Args:
        lost: The lost record; not smaller than :func:`min_tombstone_bytes`.
        store_timestamp_ms: That of the record before it, never 0: RocketMQ's recovery passes over files
            that begin with such a record.
        record_crc: Whether to add ``__CRC32#``; left out where it does not fit.
    """
    if lost.legible:
        return _encode_legible(lost.legible, lost.phy_offset, record_crc=record_crc)
    topic = lost.topic.encode("utf-8", "surrogateescape")
    record_crc = record_crc and lost.size_bytes >= min_tombstone_bytes(topic, record_crc=True)
    return _encode(
        topic,
        lost.queue_id,
        lost.queue_offset,
        lost.phy_offset,
        lost.size_bytes,
        _properties(lost, topic, store_timestamp_ms, record_crc=record_crc),
        store_timestamp_ms,
        0,
        record_crc=record_crc,
    )


def _encode_legible(record: bytes, phy_offset: int, *, record_crc: bool) -> bytes:
    """Returns a tombstone that keeps the head and the properties of the record that it stands for.

    So a rotten message that waits in one of RocketMQ's own topics reaches its real one as a tombstone, and
    keys lead to it. What is left out would make readers trust the body, or take it for something else: its
    flags, its tag, and the delay level, which the tag's code of delayed messages is made from.
    """
    row = examine(memoryview(record), 0, phy_offset, verify=False)
    if isinstance(row, Damage):
        raise CorruptError("record-head", position_bytes=phy_offset, expected=row.expected, found=row.found)
    layout = HEADS[row.sys_flag & HOST_BITS]
    head = layout.decode(record)
    properties = record[row.properties_at :]
    has_crc = props.ends_with_record_crc(properties)
    left_out = _LEFT_OUT | ({props.DELAY.encode()} if row.topic == SCHEDULE_TOPIC.encode() else set())
    kept = b"".join(
        entry + b"\x02"
        for entry in props.without_crc_property(properties).split(b"\x02")
        if entry.find(b"\x01") > 0 and b"\0" not in entry and entry.partition(b"\x01")[0] not in left_out
    )
    topic = record[row.body_at + row.body_bytes : row.properties_at - 2]
    fixed_bytes = layout.size_bytes + len(topic) + 2
    room = min(len(record) - fixed_bytes, props.MAX_PROPERTIES_BYTES)
    crc_bytes = props.CRC_PROPERTY_BYTES
    with_crc = (record_crc or has_crc) and len(kept) + crc_bytes <= room
    crc_bytes = crc_bytes if with_crc else 0
    for mark in _MARKS:
        if len(kept) + len(mark) + crc_bytes <= room:
            kept += mark
    body = bytes(len(record) - fixed_bytes - len(kept) - crc_bytes)
    head["flag"] = LOST_FLAG
    head["store_port"] = _NO_PORT
    head["sys_flag"] = row.sys_flag & ~_BODY_BITS
    return encode_record(layout, head, topic, body, kept, record_crc=with_crc)


def full_tombstone_bytes(lost: LostRecord, store_timestamp_ms: int, *, record_crc: bool) -> int:
    """Returns the size of a tombstone without body that has all properties that it should have."""
    topic = lost.topic.encode("utf-8", "surrogateescape")
    least = min_tombstone_bytes(topic, record_crc=record_crc)
    roomy = replace(lost, size_bytes=least + props.MAX_PROPERTIES_BYTES)
    return least + len(_properties(roomy, topic, store_timestamp_ms, record_crc=record_crc))


def min_filler_bytes(*, record_crc: bool) -> int:
    """Returns the size of the smallest filler; a smaller gap is given to the tombstone behind it."""
    return min_tombstone_bytes(b"", record_crc=record_crc)


def encode_fillers(
    phy_offset: int, size_bytes: int, store_timestamp_ms: int, *, record_crc: bool
) -> Iterator[bytes]:
    """Yields records that take a stretch of which nothing is known, each of at most 1 MiB.

    Args:
        phy_offset: Where it starts.
        size_bytes: How long it is, at least :func:`min_filler_bytes`.
        store_timestamp_ms: As for tombstones.
        record_crc: Whether to add ``__CRC32#``.
    """
    least = min_filler_bytes(record_crc=record_crc)
    end = phy_offset + size_bytes
    while phy_offset < end:
        size = min(end - phy_offset, MAX_FILLER_BYTES)
        if 0 < end - phy_offset - size < least:
            size -= least
        topic = FILLER_TOPIC.encode() if size >= least + len(FILLER_TOPIC) else b""
        yield _encode(
            topic,
            0,
            0,
            phy_offset,
            size,
            b"",
            store_timestamp_ms,
            TRANSACTION_ROLLBACK,
            record_crc=record_crc,
        )
        phy_offset += size


def would_be_lost(flag: int, store_port: int, body: bytes | bytearray | memoryview) -> bool:
    """Returns whether a message with these would be taken for a tombstone."""
    return flag == LOST_FLAG and store_port == _NO_PORT and not any(body)


def has_lost_flag(record: memoryview) -> bool:
    """Returns whether the head of a record may be that of a tombstone; applications may use any flag."""
    return bool(_FLAG(record)[0] == LOST_FLAG)


def is_tombstone(record: memoryview) -> bool:
    """Returns whether a whole record is a tombstone or filler: marked, of no broker, a body of zeros."""
    if len(record) < MIN_RECORD_BYTES or not has_lost_flag(record):
        return False
    # Where it is was looked at when it was found; here only its parts are wanted.
    own_offset = HEAD_V4.picking("phy_offset").unpack_from(record)[0]
    row = examine(record, 0, own_offset, verify=False)
    if isinstance(row, Damage) or _STORE_PORT[row.sys_flag & HOST_BITS](record)[0] != _NO_PORT:
        return False
    return not any(record[row.body_at : row.body_at + row.body_bytes])


def tombstone_tags_code(lost: LostRecord, store_timestamp_ms: int, *, record_crc: bool) -> int:
    """Returns the code that dispatch puts into the queue unit of :func:`encode_tombstone`'s record."""
    topic = lost.topic.encode("utf-8", "surrogateescape")
    record_crc = record_crc and lost.size_bytes >= min_tombstone_bytes(topic, record_crc=True)
    has_tag = _properties(lost, topic, store_timestamp_ms, record_crc=record_crc).endswith(_MARKS[1])
    return LOST_TAGS_CODE if has_tag else 0


def _properties(lost: LostRecord, topic: bytes, store_timestamp_ms: int, *, record_crc: bool) -> bytes:
    """Returns as many of the properties as fit, those that queues are made from first."""
    room = lost.size_bytes - min_tombstone_bytes(topic, record_crc=record_crc)
    room = min(room, props.MAX_PROPERTIES_BYTES - props.CRC_PROPERTY_BYTES)
    entries: list[bytes] = []
    if lost.batch_size > 1:
        entries.append(
            f"{props.INNER_NUM}\x01{lost.batch_size}\x02{props.INNER_BASE}\x01{lost.queue_offset}\x02".encode()
        )
    if lost.further:
        names = ",".join(name for name, _offset in lost.further)
        offsets = ",".join(str(offset) for _name, offset in lost.further)
        entries.append(
            f"{props.INNER_MULTI_DISPATCH}\x01{names}\x02"
            f"{props.INNER_MULTI_QUEUE_OFFSET}\x01{offsets}\x02".encode()
        )
    if lost.topic in _SYSTEM_PROPERTIES:
        wanted = _SYSTEM_PROPERTIES[lost.topic].format(store_timestamp_ms=store_timestamp_ms)
        entries.append(wanted.encode())
    kept = b""
    for entry in (*entries, *_MARKS):
        if len(kept) + len(entry) <= room:
            kept += entry
    return kept


def _encode(
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    phy_offset: int,
    size_bytes: int,
    properties: bytes,
    store_timestamp_ms: int,
    sys_flag: int,
    *,
    record_crc: bool,
) -> bytes:
    """Returns a record of a given size, its body as many zeros as that takes."""
    magic, field = topic_field(topic)
    head = dict.fromkeys(HEAD_V4.offsets, 0) | {
        "magic": magic,
        "queue_id": queue_id,
        "flag": LOST_FLAG,
        "queue_offset": queue_offset,
        "phy_offset": phy_offset,
        "sys_flag": sys_flag,
        "born_address": _LOCALHOST,
        "store_timestamp_ms": store_timestamp_ms,
        "store_address": _LOCALHOST,
        "store_port": _NO_PORT,
    }
    body = bytes(size_bytes - min_tombstone_bytes(topic, record_crc=record_crc) - len(properties))
    return encode_record(HEAD_V4, head, field, body, properties, record_crc=record_crc)

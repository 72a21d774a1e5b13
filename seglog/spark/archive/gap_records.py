"""Records for queue offsets that are missing, so that the messages after them keep their offsets.

Messages that retention or a compaction removed are replaced by placeholders, as a compaction writes them
(:mod:`seglog.spark.compact.placeholders`). Lost messages are replaced by tombstones, as a repair writes them
(:mod:`seglog.storage.format.record.tombstone`), so that the restored store records the loss too. RocketMQ
serves both as empty messages. Their store time is that of a record next to the gap, so that store times in a
queue do not decrease; placeholders also have its other time and its hosts.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from seglog.storage.format.layout import I64, I64_ITEMS
from seglog.storage.format.record import (
    CRC_MASK,
    HEAD_V4,
    HOST_BITS,
    PLACEHOLDER_FLAG,
    PLACEHOLDER_PROPERTY,
    LostRecord,
    encode_record,
    encode_tombstone,
    full_tombstone_bytes,
    head_layout,
    topic_field,
)
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Bytes, Ints

_MARK: Final = f"{PLACEHOLDER_PROPERTY}\x011\x02".encode()
_QUEUE_OFFSET_AT: Final = HEAD_V4.offsets["queue_offset"]
_PIECE: Final = 1 << 14
"""Number of records that are made at a time."""
_BITS: Final = 64


def gap_record(head: bytes, topic: str, *, record_crc: bool) -> bytes:
    """Returns a placeholder for queue offset 0, at place 0 of the log.

    Args:
        head: Head of the record next to the gap.
        topic: Topic of the queue.
        record_crc: Whether the placeholder has a record CRC.
    """
    layout = head_layout(head)
    fields = layout.decode(memoryview(head))
    magic, field = topic_field(topic.encode())
    own = {
        "magic": magic,
        "flag": PLACEHOLDER_FLAG,
        "queue_offset": 0,
        "phy_offset": 0,
        "sys_flag": fields["sys_flag"] & HOST_BITS,
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
    }
    return encode_record(layout, {**fields, **own}, field, b"", _MARK, record_crc=record_crc)


def lost_record(head: bytes, topic: str, queue_id: int, *, record_crc: bool) -> bytes:
    """Returns a tombstone for queue offset 0, at place 0 of the log; it has no body.

    Args:
        head: Head of the record next to the gap.
        topic: Topic of the queue.
        queue_id: Queue id.
        record_crc: Whether the tombstone has a record CRC.
    """
    store_timestamp_ms = head_layout(head).decode(memoryview(head))["store_timestamp_ms"]
    lost = LostRecord(topic, queue_id, 0, 0, 0)
    size_bytes = full_tombstone_bytes(lost, store_timestamp_ms, record_crc=record_crc)
    return encode_tombstone(replace(lost, size_bytes=size_bytes), store_timestamp_ms, record_crc=record_crc)


def gap_batches(record: bytes, first: int, end: int) -> Iterator[tuple[Ints, pa.Array]]:
    """Yields the records of a gap, in batches: their queue offsets, and the records.

    Args:
        record: The result of :func:`gap_record` or :func:`lost_record`.
        first: First queue offset.
        end: Queue offset after the last one.
    """
    changes = _crc_changes(record) if props.ends_with_record_crc(record) else None
    for begin in range(first, end, _PIECE):
        offsets = np.arange(begin, min(begin + _PIECE, end))
        rows: Bytes = np.tile(np.frombuffer(record, np.uint8), (len(offsets), 1))
        rows[:, _QUEUE_OFFSET_AT : _QUEUE_OFFSET_AT + I64.size] = (
            offsets.astype(I64_ITEMS).view(np.uint8).reshape(-1, I64.size)
        )
        if changes is not None:
            _write_crcs(rows, record, offsets, changes)
        column = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(len(record)), len(offsets), [None, pa.py_buffer(np.ascontiguousarray(rows))]
        )
        yield offsets, column.cast(pa.binary())


def _crc_changes(record: bytes) -> Ints:
    """Returns the change of the record CRC by each bit of the queue offset: CRC-32 is linear."""
    covered = bytearray(record[: -props.CRC_PROPERTY_BYTES])
    plain = zlib.crc32(covered)
    found = []
    for bit in range(_BITS):
        at = _QUEUE_OFFSET_AT + I64.size - 1 - bit // 8
        covered[at] ^= 1 << bit % 8
        found.append(plain ^ zlib.crc32(covered))
        covered[at] ^= 1 << bit % 8
    return np.array(found, np.int64)


def _write_crcs(rows: Bytes, record: bytes, offsets: Ints, changes: Ints) -> None:
    crcs = np.full(len(offsets), zlib.crc32(record[: -props.CRC_PROPERTY_BYTES]), np.int64)
    for bit in range(int(offsets[-1]).bit_length()):
        crcs ^= np.where(offsets >> bit & 1, changes[bit], 0)
    digits = crcs[:, None] & CRC_MASK
    powers = 10 ** np.arange(props.CRC_DIGITS, dtype=np.int64)
    ends = rows.shape[1] - 1
    rows[:, ends - props.CRC_DIGITS : ends] = digits // powers % 10 + ord("0")

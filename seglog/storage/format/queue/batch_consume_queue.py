"""The unit of batch and compaction queues: 46 bytes that lead from a range of queue offsets to a record.

A unit of a batch queue stands for ``batch_size`` messages from ``base_queue_offset`` on, which share one
record. A compaction topic's queue (RocketMQ's SparseConsumeQueue) has the same unit for single messages;
its base offsets grow with gaps, and an end unit closes a file before it is full.

Truth: none for batch queues, they follow from the commit log. Compaction queues follow from the compaction
log beside them.

Source: ``store/.../BatchConsumeQueue.java CQ_STORE_UNIT_SIZE``,
``store/.../SparseConsumeQueue.java putEndPositionInfo``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.format.layout import Buffer, Field, Layout
from seglog.storage.format.record import properties as props

BATCH_UNIT: Final = Layout(
    "BatchConsumeQueue unit",
    "store/.../BatchConsumeQueue.java CQ_STORE_UNIT_SIZE",
    (
        Field("phy_offset", "i64", "bytes from log start", "where the record starts; -1 in an end unit"),
        Field("size_bytes", "i32", "bytes", "the whole record; 0 in an end unit"),
        Field("tags_code", "i64", "–", "Java hash of the tag"),
        Field("store_timestamp_ms", "i64", "ms", "of the record"),
        Field("base_queue_offset", "i64", "messages", "of the first message"),
        Field("batch_size", "i16", "messages", "1 for a record that is no batch; 0 in an end unit"),
        Field("compacted_offset", "i32", "–", "always -1"),
        Field("reserved", "i32", "–", "0"),
    ),
)

BATCH_UNIT_BYTES: Final = BATCH_UNIT.size_bytes
NO_COMPACTED_OFFSET: Final = -1
END_UNIT: Final = BATCH_UNIT.struct.pack(-1, 0, 0, 0, 0, 0, NO_COMPACTED_OFFSET, 0)
"""Closes a compaction queue's file that has room for one more unit; no reader takes it for a message."""

MAX_BATCH_SIZE: Final = 0x7FFF

BatchUnits = npt.NDArray[np.void]
_Ints = npt.NDArray[np.int64]


def view_batch_units(buffer: Buffer) -> BatchUnits:
    """Returns all whole units of a file as a read-only array that shares memory with ``buffer``.

    Returns:
        Array of shape ``(len(buffer) // 46,)`` and dtype ``BATCH_UNIT.dtype``.
    """
    units = np.frombuffer(buffer, BATCH_UNIT.dtype, len(buffer) // BATCH_UNIT_BYTES)
    units.flags.writeable = False
    return units


def batch_in_use(units: BatchUnits) -> npt.NDArray[np.bool_]:
    """Returns which units lead to messages: place and base from 0, size and batch size from 1."""
    used: npt.NDArray[np.bool_] = (
        (units["phy_offset"] >= 0)
        & (units["size_bytes"] > 0)
        & (units["base_queue_offset"] >= 0)
        & (units["batch_size"] > 0)
    )
    return used


def valid_batch_prefix(units: BatchUnits) -> int:
    """Returns how many leading units are in use; the first other one ends the file."""
    used = batch_in_use(units)
    return len(units) if used.all() else int(used.argmin())


def make_batch_units(
    phy_offset: _Ints,
    size_bytes: _Ints,
    tags_code: _Ints,
    store_timestamp_ms: _Ints,
    base_queue_offset: _Ints,
    batch_size: _Ints | int = 1,
) -> BatchUnits:
    """Returns units from columns of equal length; ``tobytes()`` of the result is what a file holds.

    Args:
        phy_offset: Bytes from the start of the commit log, or of the compaction log.
        size_bytes: Of the whole records.
        tags_code: Java hashes.
        store_timestamp_ms: Of the records.
        base_queue_offset: Of the first message of each record.
        batch_size: Messages in each record, 1 to :data:`MAX_BATCH_SIZE`.
    """
    units = np.empty(len(phy_offset), BATCH_UNIT.dtype)
    units["phy_offset"] = phy_offset
    units["size_bytes"] = size_bytes
    units["tags_code"] = tags_code
    units["store_timestamp_ms"] = store_timestamp_ms
    units["base_queue_offset"] = base_queue_offset
    units["batch_size"] = batch_size
    units["compacted_offset"] = NO_COMPACTED_OFFSET
    units["reserved"] = 0
    return units


def batch_range(properties: bytes, queue_offset: int) -> tuple[int, int]:
    """Returns base queue offset and number of messages of a record in a batch queue.

    Args:
        properties: As stored. Only a record with both INNER_BASE and INNER_NUM is a batch.
        queue_offset: The record's own, which is the base of any other record.

    Raises:
        CorruptError: The two properties are no numbers that a unit can hold.
    """
    base = props.find_property(properties, _BASE)
    count = props.find_property(properties, _COUNT)
    if base is None or count is None:
        return queue_offset, 1
    # Java's parseLong takes no more than 19 digits; int() has a limit of its own that raises ValueError.
    if base.isdigit() and count.isdigit() and len(base) <= _LONG_DIGITS and len(count) <= _LONG_DIGITS:
        first, number = int(base), int(count)
        if first <= _MAX_LONG and 1 <= number <= MAX_BATCH_SIZE:
            return first, number
    raise CorruptError(
        "inner-batch", expected=f"INNER_BASE from 0, INNER_NUM 1..{MAX_BATCH_SIZE}", found=(base, count)
    )


_BASE: Final = props.INNER_BASE.encode()
_COUNT: Final = props.INNER_NUM.encode()
_LONG_DIGITS: Final = 19
_MAX_LONG: Final = 0x7FFF_FFFF_FFFF_FFFF

"""Walks over records: from one to the next, and from damage to the next record that proves itself.

The native kernels walk over all valid records in one go. At the first other bytes the Python kernels
continue, which can describe every kind of damage.

Pure: works on a buffer that holds a stretch of one segment. The rows of all records are one structured array,
so that later steps (queues, audits) need no object per message.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.format.record.record import (
    FILLER,
    FILLER_BYTES,
    MAGIC_AT,
    MAGIC_BLANK,
    MIN_RECORD_BYTES,
    RECORD_MAGIC,
    Damage,
    examine,
)
from seglog.storage.format.record.sys_flag import (
    INNER_BATCH,
    TRANSACTION_MASK,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from seglog.storage.kernels import KERNELS, NATIVE

ROW: Final = np.dtype(
    [
        ("phy_offset", "i8"),
        ("queue_offset", "i8"),
        ("tags_code", "i8"),
        ("store_timestamp_ms", "i8"),
        ("size_bytes", "i4"),
        ("queue", "i4"),
        ("sys_flag", "i4"),
    ]
)
"""One record, in native byte order; ``queue`` indexes :attr:`QueueTable.names`."""

_PACK_ROW: Final = struct.Struct("".join([ROW[name].char for name in ROW.fields or ()])).pack
"""Packs one row: an array of packed rows takes a tenth of the time of an array of tuples."""

Rows = npt.NDArray[np.void]

NativeWalk: TypeAlias = Callable[
    [memoryview, int, bool, Callable[[bytes, int], int]], tuple[bytes, list[int], int]
]
NativeFind: TypeAlias = Callable[[memoryview, int, int, int], int]

native_walk: NativeWalk | None = None
native_find: NativeFind | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_walk, native_find = _native.walk, _native.find_record


class Stop(enum.Enum):
    """The reason why a walk ended."""

    END = "end"
    """The last record ends at the end of the segment."""
    BLANK = "blank"
    """A filler takes the rest of the segment."""
    ZERO = "zero"
    """Zeros: the log ends here, or a page was lost."""
    MORE = "more"
    """The next record ends behind the buffer, but not behind the segment."""
    DAMAGE = "damage"
    """Bytes that are no record."""


class QueueTable:
    """Numbers the queues that records belong to, in the order in which they appear."""

    def __init__(self) -> None:
        self.names: list[tuple[str, int]] = []
        self.numbers: dict[tuple[bytes, int], int] = {}

    def number(self, topic: bytes, queue_id: int) -> int:
        """Returns the number of a queue, a new one at its first record."""
        found = self.numbers.get((topic, queue_id))
        if found is None:
            found = self.numbers[topic, queue_id] = len(self.names)
            self.names.append((topic.decode("utf-8", "replace"), queue_id))
        return found

    def find(self, topic: bytes, queue_id: int) -> int | None:
        """Returns the number of a queue that had a record, None for any other."""
        return self.numbers.get((topic, queue_id))


def are_dispatched(rows: Rows) -> npt.NDArray[np.bool_]:
    """Returns which rows have a queue offset; PREPARED and ROLLBACK records, and so fillers, have none."""
    transaction = rows["sys_flag"] & TRANSACTION_MASK
    dispatched: npt.NDArray[np.bool_] = (transaction != TRANSACTION_PREPARED) & (
        transaction != TRANSACTION_ROLLBACK
    )
    return dispatched


def places(rows: Rows) -> npt.NDArray[np.bool_]:
    """Returns which rows have an offset of their own in a plain queue; inner batches are in batch queues."""
    placed: npt.NDArray[np.bool_] = are_dispatched(rows) & (rows["sys_flag"] & INNER_BATCH == 0)
    return placed


@dataclass(slots=True)
class WalkResult:
    """What a walk saw.

    Attributes:
        rows: ``(n,) ROW``, the valid records in log order.
        saying_more: Where in the buffer those of them are whose properties say more about queues.
        position: Where in the buffer the walk stopped.
        stop: Why.
        damage: What is wrong there, for :attr:`Stop.DAMAGE`.
    """

    rows: Rows
    saying_more: list[int]
    position: int
    stop: Stop
    damage: Damage | None = field(default=None)


def walk(
    buffer: memoryview, phy_offset: int, segment_end: int, queues: QueueTable, *, verify: bool = True
) -> WalkResult:
    """Walks records from the start of the buffer until something else than a whole record comes.

    Args:
        buffer: A stretch of one segment that starts with a record.
        phy_offset: Physical offset of its first byte.
        segment_end: Physical offset at which the segment file ends.
        queues: Numbers queues; new ones are added.
        verify: Whether to compute checksums.
    """
    rows: list[bytes] = []
    saying_more: list[int] = []
    position = 0
    if native_walk is not None:
        taken, saying_more, position = native_walk(buffer, phy_offset, verify, queues.number)
        rows.append(taken)
    # A writer may finish a record between the two looks at its place: then this continues with it.
    numbers = queues.numbers
    while True:
        row = examine(buffer, position, phy_offset + position, verify)
        if isinstance(row, Damage):
            stop, damage = _why(buffer, position, phy_offset, segment_end, row)
            return WalkResult(np.frombuffer(b"".join(rows), ROW), saying_more, position, stop, damage)
        size, queue_id, queue_offset, sys_flag, store_ms, topic, tags_code, _, _, _, _, says_more = row
        queue = numbers.get((topic, queue_id))
        if queue is None:
            queue = queues.number(topic, queue_id)
        rows.append(
            _PACK_ROW(phy_offset + position, queue_offset, tags_code, store_ms, size, queue, sys_flag)
        )
        if says_more:
            saying_more.append(position)
        position += size


def _why(
    buffer: memoryview, position: int, phy_offset: int, segment_end: int, damage: Damage
) -> tuple[Stop, Damage | None]:
    rest_of_segment = segment_end - phy_offset - position
    room = len(buffer) - position
    if rest_of_segment == 0:
        return Stop.END, None
    if room < FILLER_BYTES:
        if room < rest_of_segment:
            return Stop.MORE, None
        return (Stop.DAMAGE, damage) if any(buffer[position:]) else (Stop.ZERO, None)
    size, magic = FILLER.struct.unpack_from(buffer, position)
    if magic == MAGIC_BLANK:
        if size == rest_of_segment:
            return Stop.BLANK, None
        return Stop.DAMAGE, Damage("blank-size", rest_of_segment, size)
    if size == 0 and magic == 0:
        return Stop.ZERO, None
    if damage.kind == "short":
        return (Stop.MORE, None) if room < rest_of_segment else (Stop.DAMAGE, damage)
    if damage.kind != "magic" and not MIN_RECORD_BYTES <= size <= rest_of_segment:
        # Said of the segment, not of the buffer: what is found must not depend on how it is read.
        return Stop.DAMAGE, Damage("size", f"{MIN_RECORD_BYTES}..{rest_of_segment}", size)
    return (Stop.MORE, None) if damage.kind == "size" else (Stop.DAMAGE, damage)


def iter_resync(buffer: memoryview, phy_offset: int, start: int) -> Iterator[int]:
    """Yields the places at or after ``start`` where a whole record proves itself.

    A record proves itself by its magic, by lying where its own ``phy_offset`` says, by lengths that add
    up and by its checksums. Linear in the buffer: only the four magic bytes are searched for.

    Args:
        buffer: A stretch of one segment.
        phy_offset: Physical offset of its first byte.
        start: First place to consider.
    """
    found = next_record(buffer, phy_offset, start, len(buffer))
    while found is not None:
        yield found
        found = next_record(buffer, phy_offset, found + 1, len(buffer))


def next_record(buffer: memoryview, phy_offset: int, start: int, until: int) -> int | None:
    """Returns the first place in ``[start, until)`` where a whole record proves itself, None without one.

    Args:
        buffer: A stretch of one segment.
        phy_offset: Physical offset of its first byte.
        start: First place to consider.
        until: End of the places; the record may continue after it.

    Raises:
        TruncatedError: The buffer is a map, and a byte of it cannot be read any more.
    """
    if native_find is not None:
        at = native_find(buffer, phy_offset, start, until)
        return at if at >= 0 else None
    for found in RECORD_MAGIC.finditer(buffer, start + MAGIC_AT):
        at = found.start() - MAGIC_AT
        if at >= until or len(buffer) - at < MIN_RECORD_BYTES:
            return None
        if not isinstance(examine(buffer, at, phy_offset + at), Damage):
            return at
    return None

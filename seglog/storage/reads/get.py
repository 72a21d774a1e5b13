"""The rules of reading a queue: the nine statuses, the messages of a read, and the offset to continue at.

A read skips lost messages: records that cannot be read, tombstones, and queue offsets without a unit. It
continues behind them as if they did not exist, and returns their offsets as ``lost``. If nothing but lost
messages is left, the status is MESSAGE_WAS_REMOVING, or OFFSET_FOUND_NULL if no unit follows in the queue
file, and the next offset is behind them: a reader that continues there always reaches the end of the queue.

Source: ``DefaultMessageStore.java getMessage``. Differences: an unreadable record costs that record, where
Java skips to the next log file; tags are compared exactly unless the filter says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES, PRE_BLANK_BYTES, Units
from seglog.storage.format.ranges import ranges_of
from seglog.storage.format.record import MIN_RECORD_BYTES, Message
from seglog.storage.format.record.tombstone import (
    LOST_TAGS_CODE,
    MAX_TAG_HASH,
    MIN_TAG_HASH,
    has_lost_flag,
    is_tombstone,
)
from seglog.storage.kernels.calls.read_result import ReadResult, split
from seglog.storage.kernels.decode import iter_messages
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.reads.message_filter import MessageFilter

MAX_FILTER_BYTES: Final = 16000
"""``maxFilterMessageSize``: a filtered read examines at most this many bytes of units (800 units)."""
FIRST_LOOK: Final = 64
FIRST_LOOK_A_MESSAGE: Final = 4
"""Units that a filtered read examines first: at least 64, and 4 for each message wanted; usually enough."""
TOMBSTONE_CODES: Final = frozenset((0, LOST_TAGS_CODE))
"""Tags codes of tombstones: that of their own tag or, if the tag did not fit, 0. A broker may set others."""
MAX_TOTAL_BYTES: Final = 128 << 20
"""RocketMQ's own bound of one read."""


TagsCodes = Callable[[Units], npt.NDArray[np.int64]]


class Queue(Protocol):
    """A queue, as a read uses it."""

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message."""

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message."""

    @property
    def max_phy_offset(self) -> int:
        """End of the record of the last unit, as a physical offset; -1 before the first."""

    @property
    def units_per_file(self) -> int:
        """Units in each file."""

    def units(self, queue_offset: int, count: int) -> Units:
        """Returns up to ``count`` units from ``queue_offset`` on."""


class RecordSource(Protocol):
    """Reads records."""

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a record's bytes, None if they cannot be served."""


class Log(RecordSource, Protocol):
    """The log, as a read uses it."""

    def read_run(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns the bytes of neighbouring records; None if the caller must read them one by one."""


class GetResult(ReadResult):
    """The result of a read; treat it as read-only.

    Attributes:
        status: One of the nine statuses of a read.
        next_offset: Queue offset of the next read.
        min_offset: Minimum of the queue.
        max_offset: Maximum of the queue.
        runs: All records in as few stretches of memory as possible: records that are neighbours in the log,
            as those of a queue that alone is written to, are one stretch. A broker sends the runs as they
            are.
        records: Whole stored records, one by one. Runs and records are views of the log, which stay valid as
            long as they are held.
        lost: Queue offsets before ``next_offset`` whose messages were lost and were skipped, in order.
            Offsets that a filter rules out by the tags code of their unit are left out.
    """

    __slots__ = ()

    @property
    def repairable(self) -> tuple[range, ...]:
        """Queue offsets that were skipped like ``lost`` ones, but whose messages a repair brings back."""
        return ()

    @property
    def stepped_over(self) -> tuple[range, ...]:
        """Queue offsets that were skipped, lost or repairable, in order."""
        return self.lost

    @property
    def messages(self) -> list[Message]:
        """The records as messages, decoded on first use."""
        if self.decoded is None:
            self.decoded = list(iter_messages(self))
        return self.decoded

    def __iter__(self) -> Iterator[Message]:
        """Yields the messages, each decoded when its turn comes."""
        return iter_messages(self)

    @override
    def __eq__(self, other: object) -> bool:
        """Compares the results, however their records are divided into runs."""
        if not isinstance(other, GetResult):
            return NotImplemented
        return self._facts() == other._facts()

    __hash__ = None  # type: ignore[assignment]  # as any value that holds lists

    @override
    def __repr__(self) -> str:
        status, next_offset, low, high, records, lost, repairable = self._facts()
        told = f", repairable={repairable}" if repairable else ""
        return (
            f"GetResult(status={status}, next_offset={next_offset}, min_offset={low}, max_offset={high},"
            f" records=<{len(records)}>, lost={lost}{told})"
        )

    def _facts(
        self,
    ) -> tuple[GetStatus, int, int, int, list[memoryview], tuple[range, ...], tuple[range, ...]]:
        place = self.next_offset, self.min_offset, self.max_offset
        return self.status, *place, self.records, self.lost, self.repairable


class _WithRepairable(GetResult):
    """The result of a read that skipped messages which a repair brings back."""

    __slots__ = ("_repairable",)

    _repairable: tuple[range, ...]

    @classmethod
    def of(cls, found: GetResult, lost: tuple[range, ...], repairable: tuple[range, ...]) -> GetResult:
        """Returns the result with the skipped offsets divided into lost and repairable ones."""
        place = found.next_offset, found.min_offset, found.max_offset
        told = cls(found.status, *place, found.records, lost)
        told._repairable = repairable
        return told

    @property
    @override
    def repairable(self) -> tuple[range, ...]:
        return self._repairable

    @property
    @override
    def stepped_over(self) -> tuple[range, ...]:
        return tuple(sorted(self.lost + self._repairable, key=lambda one: one.start))


def without_repairable(found: GetResult, repairable: frozenset[int]) -> GetResult:
    """Returns the result with its repairable offsets moved from ``lost`` to ``repairable``."""
    lost, back = (
        ranges_of((offset, 1) for one in found.lost for offset in one if (offset in repairable) is is_back)
        for is_back in (False, True)
    )
    return _WithRepairable.of(found, lost, back) if back else found


def read_queue(
    queue: Queue | None,
    log: Log,
    queue_offset: int,
    max_count: int,
    wanted: MessageFilter | None,
    max_bytes: int,
    tags_codes: TagsCodes | None = None,
) -> GetResult:
    """Reads messages of one queue.

    Args:
        queue: The queue; None if no queue can have that name.
        log: The log of its records.
        queue_offset: First queue offset to read.
        max_count: Messages at most, 1 or more.
        wanted: The filter; None for all messages.
        max_bytes: Stored bytes at most; the first message is always returned whole.
        tags_codes: Returns the codes of units, for queues with units that hold addresses in ConsumeQueueExt.

    Returns:
        Messages of one queue file at most: a read ends at the end of the file in which it starts.
    """
    if queue is None:
        return GetResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
    low, high = queue.min_offset, queue.max_offset
    if high == 0:
        return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, low, high)
    if queue_offset < low:
        return GetResult(GetStatus.OFFSET_TOO_SMALL, low, low, high)
    if queue_offset == high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_ONE, high, low, high)
    if queue_offset > high:
        return GetResult(GetStatus.OFFSET_OVERFLOW_BADLY, high, low, high)
    file_end = min(high, queue_offset - queue_offset % queue.units_per_file + queue.units_per_file)
    if wanted is None:
        # The usual case first: every unit leads to a message, and no record needs to be looked at.
        length = min(max_count, file_end - queue_offset)
        units = queue.units(queue_offset, length)
        plain = _collect_runs(log, units.tolist(), max_bytes)
        if plain is not None:
            return GetResult(GetStatus.FOUND, queue_offset + len(plain[1]), low, high, plain[0], (), plain[1])
        looked = _look(log, units, max_count, None, max_bytes, tags_codes)
    else:
        length = min(max(MAX_FILTER_BYTES // CQ_UNIT_BYTES, max_count), file_end - queue_offset)
        first = min(length, max(FIRST_LOOK, FIRST_LOOK_A_MESSAGE * max_count))
        units = queue.units(queue_offset, first)
        looked = _look(log, units, max_count, wanted, max_bytes, tags_codes)
        if first < length and looked.examined == len(units):
            units = queue.units(queue_offset, length)
            looked = _look(log, units, max_count, wanted, max_bytes, tags_codes)
    rows, records, examined, missing = looked
    lost = ranges_of((queue_offset + index, 1) for index in missing)
    if records:
        places = [rows[index][:2] for index in records]
        runs, sizes = _joined(log, places, list(records.values()))
        return GetResult(GetStatus.FOUND, queue_offset + examined, low, high, runs, lost, sizes)
    if (
        not units["size_bytes"].any()
        and not queue.units(queue_offset, file_end - queue_offset)["size_bytes"].any()
    ):
        nothing = (range(queue_offset, file_end),)
        return GetResult(GetStatus.OFFSET_FOUND_NULL, file_end, low, high, lost=nothing)
    status = GetStatus.MESSAGE_WAS_REMOVING if missing else GetStatus.NO_MATCHED_MESSAGE
    return GetResult(status, queue_offset + examined, low, high, lost=lost)


class _Looked(NamedTuple):
    """The units as rows, their records by unit, the number of units examined, the units without message."""

    rows: list[tuple[int, int, int]]
    records: dict[int, memoryview]
    examined: int
    missing: list[int]


def _look(
    log: Log,
    units: Units,
    max_count: int,
    wanted: MessageFilter | None,
    max_bytes: int,
    tags_codes: TagsCodes | None,
) -> _Looked:
    chosen: Sequence[int] = range(len(units))
    passed: Sequence[bool] | None = None
    if wanted is not None:
        codes = units["tags_code"].astype(np.int64) if tags_codes is None else tags_codes(units)
        matching = wanted.matches_codes(codes)
        passed = matching.tolist()
        # A lost message may have had any tag: its unit is examined, so that the read reports it.
        chosen = np.flatnonzero(matching | (codes == LOST_TAGS_CODE) | ~is_message(units)).tolist()
    rows = units.tolist()
    return _Looked(rows, *_collect(log, rows, chosen, max_count, wanted, passed, max_bytes))


def leads_to_tombstone(record: memoryview, tags_code: int) -> bool:
    """Returns whether the record of a unit is a tombstone; decides quickly for messages.

    Args:
        record: The whole record.
        tags_code: Tags code of the unit.
    """
    may_be_lost = tags_code in TOMBSTONE_CODES or not MIN_TAG_HASH <= tags_code <= MAX_TAG_HASH
    return may_be_lost and has_lost_flag(record) and is_tombstone(record)


def _collect_runs(
    log: Log, units: list[tuple[int, int, int]], max_bytes: int
) -> tuple[list[memoryview], list[int]] | None:
    """Returns runs and the sizes of their records; None unless each unit leads to a message.

    The records are those that :func:`_collect` returns, but this function does not look at each of them.
    """
    places: list[tuple[int, int]] = []
    held_bytes = 0
    for phy_offset, size, _tags_code in units:
        if not MIN_RECORD_BYTES <= size < PRE_BLANK_BYTES or phy_offset < 0:
            return None
        held_bytes += size
        if held_bytes > max_bytes and places:
            break
        places.append((phy_offset, size))
    runs = _read_runs(log, places) if places else None
    if runs is None:
        return None
    sizes = [size for _phy_offset, size in places]
    codes = [tags_code for _phy_offset, _size, tags_code in units[: len(sizes)]]
    return None if _may_hold_tombstone(runs, sizes, codes) else (runs, sizes)


def _joined(
    log: Log, places: list[tuple[int, int]], records: list[memoryview]
) -> tuple[list[memoryview], list[int] | None]:
    """Returns records that were read one by one as runs, with their sizes."""
    runs = _read_runs(log, places)
    return (records, None) if runs is None else (runs, [size for _phy_offset, size in places])


def _read_runs(log: Log, places: list[tuple[int, int]]) -> list[memoryview] | None:
    """Returns the records at some places as runs; None if the log can only read them one by one."""
    stretches: list[tuple[int, int]] = []
    for phy_offset, size in places:
        if stretches and stretches[-1][1] == phy_offset:
            stretches[-1] = stretches[-1][0], phy_offset + size
        else:
            stretches.append((phy_offset, phy_offset + size))
    runs: list[memoryview] = []
    for start, end in stretches:
        run = log.read_run(start, end - start)
        if run is None:
            return None
        runs.append(run)
    return runs


def _may_hold_tombstone(runs: list[memoryview], sizes: list[int], codes: list[int]) -> bool:
    if TOMBSTONE_CODES.isdisjoint(codes) and min(codes) >= MIN_TAG_HASH and max(codes) <= MAX_TAG_HASH:
        return False
    records = split(runs, sizes)
    return any(
        (code in TOMBSTONE_CODES or not MIN_TAG_HASH <= code <= MAX_TAG_HASH) and has_lost_flag(record)
        for record, code in zip(records, codes, strict=True)
    )


def _collect(
    log: Log,
    units: list[tuple[int, int, int]],
    chosen: Sequence[int],
    max_count: int,
    wanted: MessageFilter | None,
    passed: Sequence[bool] | None,
    max_bytes: int,
) -> tuple[dict[int, memoryview], int, list[int]]:
    """Returns the records by unit, the number of units examined, and the units that lead to no message."""
    records: dict[int, memoryview] = {}
    held_bytes = 0
    missing: list[int] = []
    for index in chosen:
        phy_offset, size, tags_code = units[index]
        if records and (len(records) >= max_count or held_bytes + size > max_bytes):
            return records, index, missing
        record = log.read(phy_offset, size) if 0 < size < PRE_BLANK_BYTES and phy_offset >= 0 else None
        if record is None or leads_to_tombstone(record, tags_code):
            missing.append(index)
        elif wanted is None or passed is None or (passed[index] and wanted.matches(record)):
            records[index] = record
            held_bytes += size
    return records, len(units), missing

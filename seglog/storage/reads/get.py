"""The rules of reading a queue: which of nine things happens, what comes back, and where to continue.

A read steps over what was lost: records that cannot be read, tombstones, and queue offsets without unit. It
continues behind them as if they did not exist, and says which offsets those were. Where nothing else is left
the status is MESSAGE_WAS_REMOVING, or OFFSET_FOUND_NULL if no unit follows in the queue file, and the offset
to ask for next is behind them: a reader that continues there always gets to the end of the queue.

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
from seglog.storage.overlay.queue_overlay import is_message
from seglog.storage.reads.message_filter import MessageFilter

MAX_FILTER_BYTES: Final = 16000
"""``maxFilterMessageSize``: a filtered read looks at no more than this many bytes of units (800)."""
FIRST_LOOK: Final = 64
FIRST_LOOK_A_MESSAGE: Final = 4
"""Units that a filtered read looks at first, at least and for each message wanted: mostly they are enough."""
TOMBSTONE_CODES: Final = frozenset((0, LOST_TAGS_CODE))
"""A tombstone has its own tag or, where that did not fit, none; or a broker set the code of its unit."""
MAX_TOTAL_BYTES: Final = 128 << 20
"""RocketMQ's own bound of one read."""


TagsCodes = Callable[[Units], npt.NDArray[np.int64]]


class Queue(Protocol):
    """What a read needs of a queue."""

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message."""

    @property
    def max_offset(self) -> int:
        """Queue offset of the next message."""

    @property
    def max_phy_offset(self) -> int:
        """Where the record of the last unit ends, -1 before the first."""

    @property
    def units_per_file(self) -> int:
        """Units in each file."""

    def units(self, queue_offset: int, count: int) -> Units:
        """Returns up to ``count`` units from ``queue_offset`` on."""


class RecordSource(Protocol):
    """Where records are."""

    def read(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns a record's bytes, None if they cannot be served."""


class Log(RecordSource, Protocol):
    """What a read needs of the log."""

    def read_run(self, phy_offset: int, size_bytes: int) -> memoryview | None:
        """Returns the bytes of records that are neighbours; None if each must be asked for by itself."""


class GetResult(ReadResult):
    """What a read found; treat it as read-only.

    Attributes:
        status: Which of the nine things happened.
        next_offset: Queue offset to ask for next.
        min_offset: Of the queue.
        max_offset: Of the queue.
        runs: All records as few stretches of memory: records that are neighbours in the log, as those of a
            queue that is written to alone, come as one. Together they are what a broker sends.
        records: Whole stored records, one by one. Runs and records are views of the log, which stay valid as
            long as they are held.
        lost: Queue offsets before ``next_offset`` whose messages were lost and were stepped over, in order.
            Those that a filter rules out by the tags code in their unit are left out.
    """

    __slots__ = ()

    @property
    def repairable(self) -> tuple[range, ...]:
        """Queue offsets that were stepped over as ``lost`` ones are, and that a repair brings back."""
        return ()

    @property
    def stepped_over(self) -> tuple[range, ...]:
        """Queue offsets that were stepped over, lost or repairable, in order."""
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
        """Compares what was found, however it is cut into runs."""
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
    """A read that stepped over messages that a repair brings back."""

    __slots__ = ("_repairable",)

    _repairable: tuple[range, ...]

    @classmethod
    def of(cls, found: GetResult, lost: tuple[range, ...], repairable: tuple[range, ...]) -> GetResult:
        """Returns what was read, with what it stepped over parted."""
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
    """Returns what was read, with the repairable ones of the queue offsets that it stepped over."""
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
        queue: The queue; None if there can be none of that name.
        log: Where its records are.
        queue_offset: Where to start.
        max_count: Messages at most, 1 or more.
        wanted: Which messages; None for all.
        max_bytes: Stored bytes at most; the first message always comes whole.
        tags_codes: Returns the codes of units some of which hold addresses in ConsumeQueueExt.

    Returns:
        Messages of one queue file at most: a read does not go beyond the file that it starts in.
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
    """What some units lead to: their rows, records by unit, how many were examined, which lead to nothing."""

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
        # What was lost may have had any tag.
        chosen = np.flatnonzero(matching | (codes == LOST_TAGS_CODE) | ~is_message(units)).tolist()
    rows = units.tolist()
    return _Looked(rows, *_collect(log, rows, chosen, max_count, wanted, passed, max_bytes))


def leads_to_tombstone(record: memoryview, tags_code: int) -> bool:
    """Returns whether a record that a unit leads to is a tombstone; quick for others.

    Args:
        record: The whole record.
        tags_code: Of the unit.
    """
    may_be_lost = tags_code in TOMBSTONE_CODES or not MIN_TAG_HASH <= tags_code <= MAX_TAG_HASH
    return may_be_lost and has_lost_flag(record) and is_tombstone(record)


def _collect_runs(
    log: Log, units: list[tuple[int, int, int]], max_bytes: int
) -> tuple[list[memoryview], list[int]] | None:
    """Returns runs and the sizes of their records, None unless each unit leads to a message as usual.

    What it returns is what :func:`_collect` does, without looking at each record.
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
    """Returns records that were looked at one by one as runs, with their sizes."""
    runs = _read_runs(log, places)
    return (records, None) if runs is None else (runs, [size for _phy_offset, size in places])


def _read_runs(log: Log, places: list[tuple[int, int]]) -> list[memoryview] | None:
    """Returns the records at some places as runs, None if the log gives them one by one only."""
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
    """Returns the records by unit, how many units were examined, and which of them lead to no message."""
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

"""Plain reads in Python: the same as the native pull, for installations without it and for read-only stores.

If a queue is read sequentially, this module examines thousands of units ahead with a few numpy calls; each
pull then needs only the places of its first and last record. A read of a single message reads one unit and
one record. A read that is not plain is left to :func:`seglog.storage.reads.get.read_queue`.

The facts about examined units stay true, because a unit below the queue's maximum does not change while the
store is open.
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.consume_queue import PRE_BLANK_BYTES
from seglog.storage.format.record.record import FLAG_AT, MIN_RECORD_BYTES
from seglog.storage.format.record.tombstone import (
    LOST_FLAG,
    LOST_TAGS_CODE,
    MAX_TAG_HASH,
    MIN_TAG_HASH,
    has_lost_flag,
)
from seglog.storage.reads.get import MAX_TOTAL_BYTES, TOMBSTONE_CODES, GetResult
from seglog.storage.reads.message_filter import MessageFilter
from seglog.storage.reads.open_queues import OpenPlainQueue, StoreLog

DEFAULT_MAX_COUNT: Final = 32
RECHECK_S: Final = 0.001
"""The interval in which a read checks that its files were not cut."""
_ONE: Final = 1
_STRETCH_UNITS: Final = 4096
_STRETCH_BYTES: Final = 8 << 20
_MIN_STRETCH_UNITS: Final = 512
"""Looking ahead at fewer units costs more than it saves."""
_MAX_RUNS: Final = _STRETCH_UNITS // 16
"""If a stretch has more runs, knowing them saves too little."""
_FLAG_FIRST_BYTE: Final = LOST_FLAG >> 24

_Ints = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


class _Known:
    """A queue, and the facts about an examined stretch of it.

    Attributes:
        next_offset: Queue offset at which the last read ended.
        first: Queue offset of the first unit of the stretch.
        count: Number of its units.
        starts: Physical offset of each record.
        ends: End of each record in the log.
        sizes: Size of each record in bytes.
        run_ends: For each unit, the index behind the last unit of its run; 0 for a unit that is not plain.
        lookahead_useless_until: Queue offset below which looking ahead saves nothing.
    """

    __slots__ = (
        "count",
        "ends",
        "first",
        "lookahead_useless_until",
        "next_offset",
        "queue",
        "recheck_at_s",
        "run_ends",
        "sizes",
        "starts",
        "tail",
        "units_per_file",
    )

    def __init__(self, queue: OpenPlainQueue) -> None:
        self.queue = queue
        self.tail = queue.tail
        self.units_per_file = queue.units_per_file
        self.next_offset = -1
        self.first = self.count = 0
        self.starts = self.ends = self.sizes = self.run_ends = memoryview(b"")
        self.lookahead_useless_until = 0
        self.recheck_at_s = 0.0


class PlainReads:
    """Serves plain reads of one store.

    Args:
        log: The log.

    Attributes:
        native: None: these are Python's.
    """

    native = None

    def __init__(self, log: StoreLog) -> None:
        self._log = log
        self._queues: dict[tuple[str, int], _Known] = {}

    def add(self, topic: str, queue_id: int, queue: OpenPlainQueue) -> None:
        """Registers a queue of 20-byte units."""
        if (topic, queue_id) not in self._queues:
            self._queues[topic, queue_id] = _Known(queue)

    def know(self, _expression: str, _wanted: MessageFilter | None) -> None:
        """Does nothing: reads with filters are not plain here."""

    def record_at(self, _phy_offset: int) -> memoryview | None:
        """Returns None: the ordinary way reads single records."""
        return None

    def forget(self, log: StoreLog) -> None:
        """Forgets all queues, which may have been replaced, and uses another log from now on."""
        self._queues = {}
        self._log = log

    def close(self) -> None:
        """Leaves every read to the ordinary way from now on."""
        self._queues = {}

    def try_get(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_count: int,
        filter: str | MessageFilter | None,  # noqa: A002 - RocketMQ's own word for it
        max_bytes: int,
    ) -> GetResult | None:
        """Reads as ``MessageStore.get`` does; None for a read that is not plain."""
        try:
            known = self._queues.get((topic, queue_id))
        except TypeError:  # an argument of a wrong type; the ordinary way raises the right error
            known = None
        if (
            known is not None
            and filter is None
            and type(queue_offset) is int
            and type(queue_id) is int
            and (max_bytes is MAX_TOTAL_BYTES or (type(max_bytes) is int and max_bytes > 0))
        ):
            tail = known.tail
            low, high = tail.min_offset, tail.max_offset
            if low <= queue_offset < high:
                if (now_s := time.monotonic()) > known.recheck_at_s:
                    known.recheck_at_s = now_s + RECHECK_S
                    known.queue.recheck()
                    self._log.recheck()
                if max_count is _ONE:  # not ==, which True would pass
                    return self._one(known, queue_offset, low, high)
                if type(max_count) is int and max_count > 0:
                    return self._pull(known, queue_offset, max_count, max_bytes, low, high)
        return None

    def _one(self, known: _Known, queue_offset: int, low: int, high: int) -> GetResult | None:
        phy_offset, size, tags_code = known.queue.unit(queue_offset)
        if not MIN_RECORD_BYTES <= size < PRE_BLANK_BYTES or phy_offset < 0:
            return None
        record = self._log.read_run(phy_offset, size)
        may_be_lost = tags_code in TOMBSTONE_CODES or not MIN_TAG_HASH <= tags_code <= MAX_TAG_HASH
        if record is None or (may_be_lost and has_lost_flag(record)):
            return None
        return GetResult(GetStatus.FOUND, queue_offset + 1, low, high, (record,))

    def _pull(
        self, known: _Known, queue_offset: int, max_count: int, max_bytes: int, low: int, high: int
    ) -> GetResult | None:
        per_file = known.units_per_file
        end_offset = min(queue_offset + max_count, high, queue_offset - queue_offset % per_file + per_file)
        is_next = queue_offset == known.next_offset
        known.next_offset = end_offset
        index, stop = queue_offset - known.first, end_offset - known.first
        if index < 0 or stop > known.count:
            # Looking ahead pays only if this read continues where the last one ended.
            may_gain = is_next and end_offset > known.lookahead_useless_until
            if not may_gain or not self._look_ahead(known, queue_offset, high):
                return None
            index, stop = 0, end_offset - queue_offset
            if stop > known.count:
                return None
        run_ends = known.run_ends
        sizes = known.sizes[index:stop]
        if run_ends[index] >= stop:
            start = known.starts[index]
            size = known.ends[stop - 1] - start
            run = self._log.read_run(start, size) if size <= max_bytes else None
            if run is None:
                return None
            return GetResult(GetStatus.FOUND, end_offset, low, high, (run,), (), sizes)
        runs: list[memoryview] = []
        while index < stop:
            behind = min(run_ends[index], stop)
            start = known.starts[index]
            size = known.ends[behind - 1] - start if behind else 0
            max_bytes -= size
            run = self._log.read_run(start, size) if behind and max_bytes >= 0 else None
            if run is None:
                return None
            runs.append(run)
            index = behind
        return GetResult(GetStatus.FOUND, end_offset, low, high, runs, (), sizes)

    def _look_ahead(self, known: _Known, queue_offset: int, high: int) -> bool:
        """Examines the units from an offset on; returns whether pulls can use the facts."""
        per_file = known.units_per_file
        end = min(queue_offset + _STRETCH_UNITS, high, queue_offset - queue_offset % per_file + per_file)
        if end - queue_offset < _MIN_STRETCH_UNITS:
            return False
        units = known.queue.units(queue_offset, end - queue_offset)
        sizes = units["size_bytes"].astype(np.int64)
        count = max(1, int(np.searchsorted(np.cumsum(np.maximum(sizes, 0)), _STRETCH_BYTES)))
        units, sizes = units[:count], sizes[:count]
        starts = units["phy_offset"].astype(np.int64)
        ends = starts + sizes
        is_plain: _Mask = (sizes >= MIN_RECORD_BYTES) & (sizes < PRE_BLANK_BYTES) & (starts >= 0)
        joins = is_plain[1:] & is_plain[:-1] & (starts[1:] == ends[:-1])
        cuts = np.concatenate(([0], np.flatnonzero(~joins) + 1, [len(units)]))
        if len(cuts) > _MAX_RUNS:
            known.lookahead_useless_until = end
            return False
        codes = units["tags_code"]
        may_be_lost: _Mask = (codes == 0) | (codes == LOST_TAGS_CODE)
        may_be_lost |= (codes < MIN_TAG_HASH) | (codes > MAX_TAG_HASH)
        run_ends = np.repeat(cuts[1:], np.diff(cuts))
        for begin, behind in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            run = slice(begin, behind)
            if not is_plain[begin] or self._may_hold_tombstone(starts[run], ends[run], may_be_lost[run]):
                run_ends[run] = 0
        known.starts, known.ends = starts.data, ends.data
        known.sizes, known.run_ends = sizes.data, run_ends.data
        known.first, known.count = queue_offset, len(units)
        return True

    def _may_hold_tombstone(self, starts: _Ints, ends: _Ints, may_be_lost: _Mask) -> bool:
        """Returns whether a run may hold a tombstone: a quick test that is often true without one."""
        suspects = starts[may_be_lost]
        if not len(suspects):
            return False
        run = self._log.read_run(int(starts[0]), int(ends[-1] - starts[0]))
        if run is None:
            return True
        first_bytes = np.frombuffer(run, np.uint8)[suspects - starts[0] + FLAG_AT]
        return bool((first_bytes == _FLAG_FIRST_BYTE).any())

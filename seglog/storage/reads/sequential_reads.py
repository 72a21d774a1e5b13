"""Plain reads in Python: what the native pull does, for stores without it and for stores opened for reading.

Of a queue that is read from end to end, ranges are looked at ahead, thousands of units with a few numpy
calls; each pull then needs only the places of its first and last record. A single message costs one
unit and one record. A read that is not plain is left to :func:`seglog.storage.reads.get.read_queue`.

What was found out about units stays true: a unit below the queue's maximum does not change while the store
is open.
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
"""How often files are checked for having been cut."""
_ONE: Final = 1
_STRETCH_UNITS: Final = 4096
_STRETCH_BYTES: Final = 8 << 20
_MIN_STRETCH_UNITS: Final = 512
"""Looking ahead pays from there on."""
_MAX_RUNS: Final = _STRETCH_UNITS // 16
"""With more runs, pulls gain too little by knowing them."""
_FLAG_FIRST_BYTE: Final = LOST_FLAG >> 24

_Ints = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


class _Known:
    """A queue, and what was found out about a stretch of it.

    Attributes:
        next_offset: Where the last read ended.
        first: Queue offset where the stretch begins.
        count: Its units.
        starts: Where each record starts in the log.
        ends: Where it ends.
        sizes: How long it is.
        run_ends: Behind which unit the run of each ends; 0 for a unit that is not plain.
        lookahead_useless_until: Up to which queue offset looking ahead is no use.
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
        """Does nothing: reads with filters go to the other method."""

    def record_at(self, _phy_offset: int) -> memoryview | None:
        """Leaves single records to the other method."""
        return None

    def forget(self, log: StoreLog) -> None:
        """Forgets all queues, which may have become others, and takes the log that is read now."""
        self._queues = {}
        self._log = log

    def close(self) -> None:
        """Leaves everything to the other method from now on."""
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
        except TypeError:  # the other method names the argument
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
                if max_count is _ONE:  # and no True, which is equal to it
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
            # Only a reader that continues where it ended gains by looking ahead.
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
        """Finds out about the units from an offset on; returns whether that was of use."""
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
        """Returns whether a run may hold one, quickly: tombstones are far rarer than this says yes."""
        suspects = starts[may_be_lost]
        if not len(suspects):
            return False
        run = self._log.read_run(int(starts[0]), int(ends[-1] - starts[0]))
        if run is None:
            return True
        first_bytes = np.frombuffer(run, np.uint8)[suspects - starts[0] + FLAG_AT]
        return bool((first_bytes == _FLAG_FIRST_BYTE).any())

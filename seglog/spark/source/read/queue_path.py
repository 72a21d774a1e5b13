"""Reads only those records of a split that the consume queues of selected messages lead to.

Consume queues are derived and may be wrong; the log is the truth. So queues are never trusted about bytes
that are *not* read: the units of all queues together must tile the split without overlap, and gaps between
them are walked. A unit of another queue could still lead to a selected record, for instance after folders of
queues were mixed up: so the first and the last record of each such queue in the split are read. And each
selected record must exist and have the topic, queue and offset of its unit. If any of these checks
fails, the split is walked from end to end as if there were no queues.
Cost: 20 bytes for each message of the split, and the selected part of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.spark.source.read.log_plan import LogSplit
from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.split_rows import SplitRows, Window
from seglog.spark.source.wanted.options import AccessPath
from seglog.spark.source.wanted.selection import Selection, Span
from seglog.storage.directory import StoreGeometry, list_queues
from seglog.storage.files import Files
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue import CQ_UNIT_BYTES, Units, in_use
from seglog.storage.format.record import MIN_RECORD_BYTES, Damage, examine
from seglog.storage.splits import UnitFiles

_JOIN_BYTES: Final = 64 << 10
"""Bytes between two selected records are read along with them up to this length."""
_WORTH: Final = 4
"""``auto`` reads by queues if that reads at most a fourth of the split."""
_MAX_QUEUES: Final = 1024
"""If a split has more queues, reading records of each takes longer than the walk."""

Ints = npt.NDArray[np.int64]


class _WrongQueuesError(Exception):
    """The queues do not agree with the log."""


@dataclass(frozen=True, slots=True)
class _Run:
    """The units of one queue that lead into the split.

    Attributes:
        first: Queue offset of the first unit.
        before: End of the record of the unit before; -1 without one.
        wanted: The selected queue offsets, None for none.
    """

    topic: str
    queue_id: int
    first: int
    units: Units
    before: int
    wanted: Span | None


class QueuePath:
    """The consume queues of one store.

    Args:
        files: Access to the store.
        root: The store directory.
        geometry: Lengths of its files.
        rows: Walks the log.
        selection: The selected messages.
    """

    def __init__(
        self, files: Files, root: Path, geometry: StoreGeometry, rows: SplitRows, selection: Selection
    ) -> None:
        self._units = UnitFiles(files, root, geometry.queue_file_size_bytes)
        found = [(queue.topic, queue.queue_id) for queue in list_queues(files, root)]
        # An LMQ queue leads to records of other queues.
        self._queues = [key for key in found if not key[0].startswith(LMQ_PREFIX)]
        self._rows = rows
        self._selection = selection

    def windows(self, split: LogSplit, access_path: AccessPath) -> list[Window] | None:
        """Returns records of a split that include all selected ones.

        Returns:
            None if the split must be walked: the queues are wrong, or a walk is less work.
        """
        try:
            return self._windows(split, access_path)
        except _WrongQueuesError:
            return None

    def _windows(self, split: LogSplit, access_path: AccessPath) -> list[Window] | None:
        runs = [run for run in (self._run(*key, split) for key in self._queues) if run is not None]
        full = [run for run in runs if len(run.units)]
        if len(full) > _MAX_QUEUES and access_path == "auto":
            return None
        places, ends, wanted = _merged(full)
        gaps = list(_gaps(split, places, ends, max((run.before for run in runs), default=-1)))
        stretches = _joined([*gaps, *_stretches(split, places[wanted], ends[wanted])])
        cost = sum(one.end - one.start for one in stretches) + len(places) * CQ_UNIT_BYTES
        if access_path == "auto" and cost * _WORTH > split.end - split.start:
            return None
        for run in full:
            if run.wanted is None:
                self._look_at(run, split)
        found = [window for one in stretches for window in self._rows.windows(one, _refuse)]
        self._compare(full, found)
        return found

    def _run(self, topic: str, queue_id: int, split: LogSplit) -> _Run | None:
        room = self._units.extent(topic, queue_id)
        if not room:
            return None
        first = self._search(topic, queue_id, room, split.start)
        last = self._search(topic, queue_id, range(first, room.stop), split.end)
        wanted = self._selection.of_queue(topic, queue_id)
        if wanted is not None and (wanted.last < first or wanted.first >= last):
            wanted = None
        before = -1
        if first > room.start:
            unit = self._units.read(topic, queue_id, first - 1, 1)[0]
            before = int(unit["phy_offset"]) + int(unit["size_bytes"])
        units = self._units.read(topic, queue_id, first, last - first)
        return _Run(topic, queue_id, first, units, before, wanted)

    def _search(self, topic: str, queue_id: int, room: range, phy_offset: int) -> int:
        """Returns the number of the first unit that leads to a place at or after ``phy_offset``."""
        low, high = room.start, room.stop
        while low < high:
            middle = (low + high) // 2
            unit = self._units.read(topic, queue_id, middle, 1)
            if in_use(unit)[0] and unit["phy_offset"][0] < phy_offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _look_at(self, run: _Run, split: LogSplit) -> None:
        """Raises an error if the first or the last record of a queue in the split is of another queue."""
        for number in (0, len(run.units) - 1):
            phy_offset, size, _code = run.units[number].tolist()
            window = self._rows.read(phy_offset, min(size, split.segment_end - phy_offset))
            row = examine(window, 0, phy_offset, verify=False)
            if isinstance(row, Damage) or (row.topic, row.queue_id, row.queue_offset) != (
                run.topic.encode(),
                run.queue_id,
                run.first + number,
            ):
                raise _WrongQueuesError

    def _compare(self, runs: Sequence[_Run], found: Sequence[Window]) -> None:
        """Raises an error if a selected record is not among those that were found."""
        if not any(run.wanted for run in runs):
            return
        rows = np.concatenate([window.rows for window in found]) if found else None
        numbers = {key: number for number, key in enumerate(self._rows.queues.names)}
        for run in runs:
            if run.wanted is None:
                continue
            chosen = _wanted(run)
            places = run.units["phy_offset"][chosen]
            if rows is None:
                raise _WrongQueuesError
            at = np.searchsorted(rows["phy_offset"], places)
            if at[-1] >= len(rows):
                raise _WrongQueuesError
            own = rows[at]
            offsets = run.first + np.flatnonzero(chosen)
            agree = (own["phy_offset"] == places) & (own["queue_offset"] == offsets)
            agree &= own["queue"] == numbers.get((run.topic, run.queue_id), -1)
            if not agree.all():
                raise _WrongQueuesError


def _refuse(_loss: Loss) -> None:
    raise _WrongQueuesError


def _wanted(run: _Run) -> npt.NDArray[np.bool_]:
    numbers = np.arange(run.first, run.first + len(run.units))
    if run.wanted is None:
        return np.zeros(len(numbers), np.bool_)
    chosen: npt.NDArray[np.bool_] = (numbers >= run.wanted.first) & (numbers <= run.wanted.last)
    return chosen


def _merged(runs: Sequence[_Run]) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Returns start and end of the records of all units, and which are selected, in log order."""
    if not runs:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, np.zeros(0, np.bool_)
    units = np.concatenate([run.units for run in runs])
    if not in_use(units).all() or (units["size_bytes"] < MIN_RECORD_BYTES).any():
        raise _WrongQueuesError
    places = units["phy_offset"].astype(np.int64)
    order = np.argsort(places, kind="stable")
    ends = places + units["size_bytes"]
    wanted = np.concatenate([_wanted(run) for run in runs])
    return places[order], ends[order], wanted[order]


def _gaps(split: LogSplit, places: Ints, ends: Ints, before: int) -> Iterator[LogSplit]:
    """Yields the stretches of a split that no unit leads to.

    Raises:
        _WrongQueuesError: Units lead to overlapping records, or out of the split.
    """
    if len(places) and (places[0] < split.start or places[-1] >= split.end):
        raise _WrongQueuesError
    begins = split.floor if split.start == split.floor else max(before, split.floor)
    starts = np.concatenate([[begins], ends])
    stops = np.concatenate([places, [max(split.end, starts[-1])]])
    if (starts > stops).any() or ends[-1:].max(initial=0) > split.segment_end:
        raise _WrongQueuesError
    for number in np.flatnonzero(starts < stops).tolist():
        floor, stop = int(starts[number]), int(stops[number])
        start = max(floor, split.start)
        if start < stop:
            yield LogSplit(start, stop, floor, split.segment_end)


def _stretches(split: LogSplit, places: Ints, ends: Ints) -> Iterator[LogSplit]:
    """Yields the stretches of selected records; stretches that are close together are joined."""
    if not len(places):
        return
    breaks = np.flatnonzero(places[1:] - ends[:-1] > _JOIN_BYTES) + 1
    firsts = places[np.concatenate([[0], breaks])].tolist()
    lasts = ends[np.concatenate([breaks - 1, [len(ends) - 1]])].tolist()
    for first, last in zip(firsts, lasts, strict=True):
        yield LogSplit(first, min(last, split.end), first, split.segment_end)


def _joined(stretches: Sequence[LogSplit]) -> list[LogSplit]:
    """Returns stretches in log order; stretches that touch or overlap are joined."""
    found: list[LogSplit] = []
    for one in sorted(stretches, key=lambda stretch: stretch.start):
        if found and one.start <= found[-1].end:
            last = found[-1]
            found[-1] = LogSplit(last.start, max(last.end, one.end), last.floor, last.segment_end)
        else:
            found.append(one)
    return found

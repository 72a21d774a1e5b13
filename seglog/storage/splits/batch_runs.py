"""Says which units the records of a batch queue must have: by their place where its files hold them.

Only units that no file has, or has otherwise, travel as they are, 46 bytes a record. So the driver has
every unit byte for byte, independent of what a task finds in the files: a search that a damaged file leads
astray makes the answer longer, not wrong.
"""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.queue.batch_consume_queue import BatchUnits, batch_in_use
from seglog.storage.splits.stretches import BatchRun
from seglog.storage.splits.unit_files import UnitFiles

_NOWHERE: Final = -1


class BatchUnitFinder:
    """Finds units in the files of batch queues.

    Args:
        files: The store's batch-queue files.
    """

    def __init__(self, files: UnitFiles) -> None:
        self._files = files
        self._next: dict[tuple[str, int], int] = {}

    def find(self, topic: str, queue_id: int, units: BatchUnits) -> tuple[int, npt.NDArray[np.bool_]]:
        """Returns the number that the first unit should have in the files, and which units the files hold.

        Args:
            topic: The queue's topic.
            queue_id: Its number.
            units: ``(n,) BATCH_UNIT.dtype``, those of records in log order, n > 0.

        Returns:
            The number, and ``(n,) bool``: unit ``i`` is the one with that number plus ``i``.
        """
        place = int(units["phy_offset"][0])
        # Mostly they continue where those of the last call ended.
        first = self._next.get((topic, queue_id), _NOWHERE)
        if first == _NOWHERE or self._files.read(topic, queue_id, first, 1)["phy_offset"][0] != place:
            first = self._search(topic, queue_id, place)
        self._next[topic, queue_id] = first + len(units)
        there: npt.NDArray[np.bool_] = self._files.read(topic, queue_id, first, len(units)) == units
        return first, there

    def _search(self, topic: str, queue_id: int, phy_offset: int) -> int:
        """Returns the number of the first unit that does not lead to a place before ``phy_offset``."""
        room = self._files.extent(topic, queue_id)

        def is_behind(number: int) -> bool:
            unit = self._files.read(topic, queue_id, number, 1)
            return not (batch_in_use(unit)[0] and unit["phy_offset"][0] < phy_offset)

        return room.start + bisect.bisect_left(room, True, key=is_behind)


@dataclass(slots=True)
class _Run:
    first_index: int
    records: int
    parts: list[bytes] = field(default_factory=list)


class BatchRuns:
    """The runs of a stretch in the making.

    Args:
        finder: Finds units in the files.
    """

    def __init__(self, finder: BatchUnitFinder) -> None:
        self._finder = finder
        self._runs: dict[tuple[str, int], list[_Run]] = {}

    def add(self, topic: str, queue_id: int, units: BatchUnits) -> None:
        """Adds the units of records that follow those before.

        Args:
            topic: The queue's topic.
            queue_id: Its number.
            units: ``(n,) BATCH_UNIT.dtype``, n > 0.
        """
        first, there = self._finder.find(topic, queue_id, units)
        known = self._runs.setdefault((topic, queue_id), [])
        changes = [0, *(np.flatnonzero(np.diff(there)) + 1).tolist(), len(units)]
        for start, end in itertools.pairwise(changes):
            if there[start]:
                _join(known, _Run(first + start, end - start))
            else:
                _join(known, _Run(_NOWHERE, end - start, [units[start:end].tobytes()]))

    def build(self) -> tuple[BatchRun, ...]:
        """Returns them by queue, those of one queue in log order."""
        return tuple(
            BatchRun(topic, queue_id, run.records, run.first_index, b"".join(run.parts))
            for (topic, queue_id), known in self._runs.items()
            for run in known
        )


def _join(known: list[_Run], run: _Run) -> None:
    if known:
        last = known[-1]
        follows = _NOWHERE if last.first_index == _NOWHERE else last.first_index + last.records
        if run.first_index == follows:
            last.records += run.records
            last.parts += run.parts
            return
    known.append(run)

"""Stamps of the files that a split of the log was compared with: if a stamp is equal, the outcome is valid.

A full file of log or index is not written again, so its number, length and time identify it. The file of a
queue is written with every message; its stamp covers only the units of the split's records.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from seglog.doctor.check.log_walk import SplitOutcome
from seglog.storage.audit import AuditPlan
from seglog.storage.files import StoreRoot
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.ours import checksum
from seglog.storage.index_check import IndexFacts
from seglog.storage.seals import segment_path
from seglog.storage.splits import Interval, UnitFiles

Stamp = list[int]
_UNITS_AT_A_TIME: Final = 1 << 16


class ResumeStamps:
    """The stamps of a store's splits.

    Args:
        plan: The store.
        files: Its files.
        index: The entries that the index must hold.
    """

    def __init__(self, plan: AuditPlan, files: StoreRoot, index: IndexFacts) -> None:
        self._plan = plan
        self._files = files
        self._index = index
        self._units = UnitFiles(files, plan.root, plan.geometry.queue_file_size_bytes)

    def of(self, outcome: SplitOutcome) -> Stamp:
        """Returns a value that changes when any file changes that the split was compared with."""
        split = self._plan.splits[outcome.split]
        log = self._plan.root / segment_path(split.segment_end - self._plan.geometry.segment_size_bytes)
        index = self._index.within(split.start, split.segment_end)
        intervals = (one for stretch in outcome.stretches for one in stretch.intervals)
        return [
            *self._of_files([log]),
            index.has_tags,
            min(index.end_phy_offset, split.segment_end),
            *self._of_files(outline.file.path for outline in index.outlines),
            self._of_units(intervals),
            *self._of_files(self._batch_files(outcome)),
        ]

    def _of_files(self, paths: Iterable[Path]) -> Stamp:
        found: Stamp = []
        for path in paths:
            try:
                status = self._files.status(path)
            except OSError:
                continue
            found += [status.st_ino, status.st_size, status.st_mtime_ns]
        return found

    def _of_units(self, intervals: Iterable[Interval]) -> int:
        """Returns the CRC-32C of the units that lead to the records."""
        crc = 0
        for one in intervals:
            for first in range(one.first_queue_offset, one.end_queue_offset, _UNITS_AT_A_TIME):
                count = min(_UNITS_AT_A_TIME, one.end_queue_offset - first)
                crc = checksum(self._units.read(one.topic, one.queue_id, first, count).tobytes(), crc)
        return crc

    def _batch_files(self, outcome: SplitOutcome) -> list[Path]:
        keys = {(run.topic, run.queue_id) for stretch in outcome.stretches for run in stretch.batch_runs}
        queues = [self._plan.batch_files[key] for key in sorted(keys & self._plan.batch_files.keys())]
        return [
            queue.directory / segment_file_name(first) for queue in queues for first in sorted(queue.sizes)
        ]

"""The phases of a compaction as functions of one part each, and the protocol that runs them.

1. :func:`~seglog.spark.compact.task.scan_split` for each split: verifies the log, and takes facts of its
records. 2. :func:`keyed_rows` for each part: rows of records that may be superseded, 37 bytes each; only
records with a key. 3. :func:`losers_of` for each share of these rows; all rows of a key are in one share. 4.
:func:`decide_part` with the losers of a part; its verdicts are written beside the new store. 5.
:func:`~seglog.spark.compact.writing.write_segment`, for each segment of the new log. 6.
:func:`~seglog.spark.making.queues.write_queue`, for each queue,
   :func:`~seglog.spark.compact.compaction_logs.write_compaction_log`, for each compaction queue, and
   :func:`~seglog.spark.making.index_files.write_index_file`, for each file of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from seglog.doctor.check import CheckReport
from seglog.spark.compact.decide import decide, goes_empty, is_mapped
from seglog.spark.compact.policy import Verdict
from seglog.spark.compact.records import Asked
from seglog.spark.compact.summary import QueuePart, summarize
from seglog.spark.compact.task import Task, read_facts
from seglog.spark.compact.writing import SegmentPlan, WrittenSegment, verdicts_path
from seglog.spark.making.spills import Key, save_bytes
from seglog.storage.audit import AuditPlan
from seglog.storage.files import RestoringFiles
from seglog.storage.kernels.gather import Ints
from seglog.storage.kernels.key_winners import KEYED, Keyed, last_of_keys
from seglog.storage.kernels.record_facts import Facts
from seglog.storage.splits import KnownRecords, Stretch

LOSER: Final = np.dtype([("part", "i4"), ("row", "i4"), ("verdict", "i1")])
"""A record that is superseded, or a tombstone that may be dropped; ``row`` is its index in its part."""
Losers = npt.NDArray[np.void]
T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Runs the phases, in a session of Spark or elsewhere."""

    def scan(self, plan: AuditPlan, asked: Asked, staged: Path | None) -> Iterable[Stretch]:
        """Runs phase 1."""

    def check(self, root: Path, known: KnownRecords | None) -> CheckReport:
        """Checks everything in a store, as `seglog check` does.

        Args:
            root: The store.
            known: Records of its log that were verified when they were written.
        """

    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        """Runs phases 2 to 4; writes the verdicts to ``staged`` unless it is None."""

    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        """Runs phase 5."""

    def each(self, staged: Path, do: Callable[[RestoringFiles, T], R], work: Sequence[T]) -> Sequence[R]:
        """Calls a function for each piece of work, with the files around the new store.

        The function writes files there. It may be called twice for a piece, and then must write the same
        bytes. Results are in the order of the work, and must be small.
        """


def keyed_rows(files: RestoringFiles, task: Task, part: int, staged: Path | None) -> Keyed:
    """Returns the rows of the records of a part that take part in the choice of the last of each key."""
    return _keyed(task, part, *read_facts(files, task, part, staged))


def _keyed(task: Task, part: int, facts: Facts, names: Sequence[Key]) -> Keyed:
    rows = np.flatnonzero(is_mapped(facts, names, task.policies))
    order = {key: number for number, key in enumerate(sorted(task.policies))}
    found = np.zeros(len(rows), KEYED)
    if len(rows):
        found["queue"] = np.array([order.get(key, -1) for key in names], np.int32)[facts["queue"][rows]]
        found["goes_empty"] = goes_empty(facts, names, task.policies)[rows]
    for name in ("key_high", "key_low", "queue_offset"):
        found[name] = facts[name][rows]
    found["part"] = part
    found["row"] = rows
    return found


def keyed_rows_of(files: RestoringFiles, task: Task, parts: Iterable[int], staged: Path | None) -> Keyed:
    """Returns the rows of :func:`keyed_rows` for several parts."""
    return np.concatenate([np.zeros(0, KEYED), *(keyed_rows(files, task, part, staged) for part in parts)])


def losers_of(keyed: Keyed) -> Losers:
    """Returns the superseded records among some rows; the rows must include all records of each key."""
    is_last = last_of_keys(keyed)
    lost = ~is_last | keyed["goes_empty"]
    found = np.zeros(int(lost.sum()), LOSER)
    found["part"] = keyed["part"][lost]
    found["row"] = keyed["row"][lost]
    found["verdict"] = np.where(is_last[lost], Verdict.TOMBSTONE, Verdict.SUPERSEDED)
    return found


def share_of(keyed: Keyed, shares: int) -> Ints:
    """Returns for each row the number of its share; all rows of a key are in one share."""
    share: Ints = (keyed["key_high"].view(np.uint64) % np.uint64(shares)).astype(np.int64)
    return share


def decide_part(
    files: RestoringFiles, task: Task, part: int, losers: Losers, staged: Path | None
) -> list[QueuePart]:
    """Decides on all records of a part, given its losers; returns the numbers for each queue."""
    return _decided(files, task, part, losers, staged, *read_facts(files, task, part, staged))


def _decided(
    files: RestoringFiles,
    task: Task,
    part: int,
    losers: Losers,
    staged: Path | None,
    facts: Facts,
    names: Sequence[Key],
) -> list[QueuePart]:
    verdicts, anchors = decide(
        facts, names, task.policies, losers["row"].astype(np.int64), losers["verdict"].astype(np.int8)
    )
    if staged is not None:
        save_bytes(files, verdicts_path(staged, part), verdicts.tobytes())
    return summarize(part, facts, names, verdicts, anchors, task.policies)


def decide_parts(
    files: RestoringFiles, task: Task, parts: Iterable[int], losers: Losers, staged: Path | None
) -> list[QueuePart]:
    """Decides on some parts, given the losers of all of them; returns the numbers for each queue."""
    every = list(parts)
    of_parts = zip(every, _by_part(losers, every), strict=True)
    return [one for part, mine in of_parts for one in decide_part(files, task, part, mine, staged)]


def decide_alone(files: RestoringFiles, task: Task, staged: Path | None) -> list[QueuePart]:
    """Runs phases 2 to 4 for a log whose facts fit into memory, so that they are read once."""
    facts = [read_facts(files, task, part, staged) for part in range(task.parts)]
    rows = [_keyed(task, part, *known) for part, known in enumerate(facts)]
    losers = losers_of(np.concatenate([np.zeros(0, KEYED), *rows]))
    found: list[QueuePart] = []
    for part, (known, mine) in enumerate(zip(facts, _by_part(losers, range(task.parts)), strict=True)):
        found += _decided(files, task, part, mine, staged, *known)
    return found


def _by_part(losers: Losers, parts: Iterable[int]) -> Iterator[Losers]:
    """Yields the losers of each of some parts."""
    losers = losers[np.argsort(losers["part"], kind="stable")]
    of_parts = np.ascontiguousarray(losers["part"])
    for part in parts:
        first, last = np.searchsorted(of_parts, (part, part + 1)).tolist()
        yield losers[first:last]

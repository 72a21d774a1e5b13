"""The phases of a compaction as functions of one part each, and who runs them on this machine alone.

1. :func:`keyed_rows` of each part: what may be superseded, 52 bytes a record, records without key left out.
2. :func:`losers_of` any share of those in which all rows of a key are together.
3. :func:`decide_part` with the losers of a part; its verdicts go beside the store that is being made.
4. :func:`~seglog.spark.compact.writing.write_segment`, one for each segment of the new log.
5. :func:`~seglog.spark.compact.queues.write_queue`, one for each queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from seglog.doctor.check import CheckReport
from seglog.spark.compact.decide import decide, find_losers, is_mapped
from seglog.spark.compact.policy import Verdict
from seglog.spark.compact.records import Key
from seglog.spark.compact.summary import QueuePart, summarize
from seglog.spark.compact.task import Task, read_facts
from seglog.spark.compact.writing import QueueSlice, SegmentPlan, WrittenSegment, save_array, verdicts_path
from seglog.storage.audit import AuditPlan
from seglog.storage.files import RestoringFiles
from seglog.storage.splits import Stretch

KEYED: Final = np.dtype(
    [
        ("queue", "i4"),
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("queue_offset", "i8"),
        ("store_timestamp_ms", "i8"),
        ("part", "i4"),
        ("row", "i4"),
        ("is_empty", "?"),
    ]
)
"""One record with a key; ``queue`` is the place of its queue among :func:`queue_order`."""
LOSER: Final = np.dtype([("part", "i4"), ("row", "i4"), ("verdict", "i1")])
"""A record that is superseded, or a tombstone that may go; ``row`` counts the records of its part."""
Keyed = npt.NDArray[np.void]
Losers = npt.NDArray[np.void]


class Runner(Protocol):
    """Runs the phases somewhere."""

    def scan(self, plan: AuditPlan) -> Iterable[Stretch]:
        """Walks the log, checksums and all."""

    def check(self, root: Path) -> CheckReport:
        """Looks at everything in a store, as `seglog check` does."""

    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        """Runs phases 1 to 3; keeps the verdicts if a store is to be made."""

    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        """Runs phase 4."""

    def write_queues(
        self, staged: Path, queues: Mapping[Key, Sequence[QueueSlice]], file_bytes: int
    ) -> Mapping[Key, int]:
        """Runs phase 5; returns how many units each queue has."""


def queue_order(task: Task) -> list[Key]:
    """Returns the queues that anything is asked of, in an order that all tasks know."""
    return sorted(task.policies)


def keyed_rows(files: RestoringFiles, task: Task, part: int) -> Keyed:
    """Returns what of a part takes part in the choice of the last of each key."""
    facts, names = read_facts(files, task, part)
    rows = np.flatnonzero(is_mapped(facts, names, task.policies))
    order = {key: number for number, key in enumerate(queue_order(task))}
    found = np.zeros(len(rows), KEYED)
    if len(rows):
        found["queue"] = np.array([order.get(key, -1) for key in names], np.int32)[facts["queue"][rows]]
    for name in ("key_high", "key_low", "queue_offset", "store_timestamp_ms", "is_empty"):
        found[name] = facts[name][rows]
    found["part"] = part
    found["row"] = rows
    return found


def losers_of(task: Task, keyed: Keyed) -> Losers:
    """Returns who of some records is superseded; all records of a key must be among them."""
    until = np.array([task.policies[key].tombstones_until_ms for key in queue_order(task)], np.int64)
    verdicts = find_losers(
        keyed["queue"].astype(np.int64),
        keyed["key_high"],
        keyed["key_low"],
        keyed["queue_offset"],
        keyed["is_empty"],
        keyed["store_timestamp_ms"],
        until[keyed["queue"]] if len(keyed) else np.zeros(0, np.int64),
    )
    lost = verdicts != Verdict.KEPT
    found = np.zeros(int(lost.sum()), LOSER)
    found["part"] = keyed["part"][lost]
    found["row"] = keyed["row"][lost]
    found["verdict"] = verdicts[lost]
    return found


def decide_part(
    files: RestoringFiles, task: Task, part: int, losers: Losers, staged: Path | None
) -> list[QueuePart]:
    """Decides on all records of a part, given its losers; returns the numbers."""
    facts, names = read_facts(files, task.without_keys(), part)
    verdicts, anchors = decide(
        facts, names, task.policies, losers["row"].astype(np.int64), losers["verdict"].astype(np.int8)
    )
    if staged is not None:
        save_array(files, verdicts_path(staged, part), verdicts)
    return summarize(part, facts, names, verdicts, anchors, task.policies)


def by_queue(slices: Iterable[QueueSlice]) -> dict[Key, list[QueueSlice]]:
    """Returns the units of all segments by queue."""
    found: dict[Key, list[QueueSlice]] = {}
    for one in slices:
        found.setdefault((one.topic, one.queue_id), []).append(one)
    return found

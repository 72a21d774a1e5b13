"""The data that tasks have about the store, and the reading of one part of it.

Parts are the splits of the commit log and, after them, the compaction logs: those hold messages that
retention removed from the commit log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seglog.spark.compact.policy import QueuePolicy
from seglog.spark.compact.records import Asked, FactTaker, facts_between, load_facts, save_facts
from seglog.spark.making.spills import Key
from seglog.storage.audit import AuditPlan
from seglog.storage.compaction import (
    compacted_queues,
    infer_compaction_sizes,
    list_compaction_files,
    load_state,
    queue_ids,
)
from seglog.storage.directory import StoreGeometry
from seglog.storage.files import Files, RestoringFiles
from seglog.storage.format.layout import I32_ITEMS
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue import BatchUnits
from seglog.storage.format.record import SYS_FLAG_AT
from seglog.storage.kernels.gather import overlapping
from seglog.storage.kernels.record_facts import FACT, Facts
from seglog.storage.kernels.walk import ROW
from seglog.storage.splits import SplitScan, Stretch, UnitFiles
from seglog.storage.walk import Split


@dataclass(frozen=True, slots=True)
class CompactionPart:
    """A part of a compaction queue's log: the messages before the queue's first message in the commit log."""

    topic: str
    queue_id: int
    below_offset: int


@dataclass(frozen=True, slots=True)
class Task:
    """A compaction, as tasks receive it.

    Attributes:
        asked: The store, and the settings of the facts of its records.
        batch_topics: Topics with batch queues.
        splits: Parts of the commit log.
        starts: Start of the first record of each split that has one, from the audit of the whole log.
        compaction: Parts of compaction logs, numbered after the splits.
        records: Number of records of the commit log.
        policies: The policies, by queue.
    """

    asked: Asked
    batch_topics: frozenset[str]
    splits: Sequence[Split]
    starts: Mapping[int, int]
    compaction: Sequence[CompactionPart]
    records: int
    policies: Mapping[Key, QueuePolicy]

    @property
    def root(self) -> Path:
        """The store directory."""
        return self.asked.root

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of its files."""
        return self.asked.geometry

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.splits) + len(self.compaction)


def scan_split(
    files: RestoringFiles,
    plan: AuditPlan,
    asked: Asked,
    number: int,
    staged: Path | None,
    units: UnitFiles | None = None,
) -> Iterator[Stretch]:
    """Walks a split with its checksums, and writes the facts of its records if there is a new store.

    Args:
        files: Access to both stores.
        plan: The store's files.
        asked: The settings of the facts.
        number: Number of the split.
        staged: The new store, None for a plan only.
        units: The store's queue files, if they were listed before.
    """
    # Keys to be erased are searched in Python; a map would kill the process if another one cut the file.
    taker = FactTaker(asked) if staged is not None and not asked.erased else None
    scan = SplitScan(
        files, plan.root, plan.geometry, plan.batch_topics, verify=plan.verify, taker=taker, units=units
    )
    with closing(scan):
        for stretch in scan.run(plan.splits[number]):
            if staged is not None and stretch.records:
                found = taker.facts() if taker is not None else None
                if found is None or len(found[0]) != stretch.records:
                    found = facts_between(files, asked, stretch.start, stretch.end)
                save_facts(files, staged, stretch.start, *found)
            yield stretch


def read_facts(files: Files, task: Task, number: int, staged: Path | None) -> tuple[Facts, Sequence[Key]]:
    """Returns the facts of one part, and the queues of its records."""
    if number >= len(task.splits):
        part = task.compaction[number - len(task.splits)]
        return _compaction_facts(files, task, part), [(part.topic, part.queue_id)]
    start = task.starts.get(number)
    if start is None:
        return np.zeros(0, FACT), []
    found = load_facts(files, staged, start) if staged is not None else None
    return found or facts_between(files, task.asked, start, task.splits[number].end)


def compaction_units(files: Files, root: Path, topic: str, queue_id: int) -> BatchUnits:
    """Returns the valid units of a compaction queue."""
    found = list_compaction_files(files, root, topic, queue_id)
    every = [list_compaction_files(files, root, topic, number) for number in queue_ids(files, root, topic)]
    compacted = (topic, queue_id) in compacted_queues(files, root)
    state = load_state(files, found, infer_compaction_sizes(every), compacted=compacted)
    units = state.units.units(0, state.units.end_index)
    return units[~np.isin(units["phy_offset"], list(state.lost))]


def _compaction_facts(files: Files, task: Task, part: CompactionPart) -> Facts:
    units = compaction_units(files, task.root, part.topic, part.queue_id)
    units = units[units["base_queue_offset"] < part.below_offset]
    found = list_compaction_files(files, task.root, part.topic, part.queue_id)
    every: list[Facts] = [np.zeros(0, FACT)]
    for first, size in sorted(found.logs.items()):
        mine = units[(units["phy_offset"] >= first) & (units["phy_offset"] < first + size)]
        if not len(mine):
            continue
        with closing(files.open(found.log_directory / segment_file_name(first), writable=False)) as log:
            window = memoryview(bytearray(size))
            log.read_into(window, 0)
        rows = np.zeros(len(mine), ROW)
        for name in ("phy_offset", "tags_code", "store_timestamp_ms", "size_bytes"):
            rows[name] = mine[name]
        rows["queue_offset"] = mine["base_queue_offset"]
        places = rows["phy_offset"].astype(np.int64) - first + SYS_FLAG_AT
        rows["sys_flag"] = overlapping(np.frombuffer(window, np.uint8), I32_ITEMS)[places]
        every.append(task.asked.facts(window, first, rows, [(part.topic, part.queue_id)]))
    return np.concatenate(every)

"""What a task knows of the store, and how it reads one part of it.

Parts are the splits of the commit log and, after them, the compaction logs: those hold messages that the
commit log lost to retention long ago.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from seglog.spark.compact.policy import QueuePolicy
from seglog.spark.compact.records import FACT, Facts, FactWatch, Key, facts_of
from seglog.storage.compaction import (
    compacted_queues,
    infer_compaction_sizes,
    list_compaction_files,
    load_state,
    queue_ids,
)
from seglog.storage.directory import LogReader, StoreGeometry
from seglog.storage.files import Files
from seglog.storage.format.layout import I32_ITEMS
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue import BatchUnits
from seglog.storage.format.record import SYS_FLAG_AT
from seglog.storage.kernels.gather import overlapping
from seglog.storage.kernels.walk import ROW, QueueTable, Rows, Stop, walk
from seglog.storage.walk import Split

_WINDOW_BYTES: Final = 16 << 20
_OVERLAP_BYTES: Final = 8 << 20
"""Longer than any record with the default limits."""


@dataclass(frozen=True, slots=True)
class CompactionPart:
    """A compaction queue; of its log, the part before the commit log's first message of it."""

    topic: str
    queue_id: int
    below_offset: int


@dataclass(frozen=True, slots=True)
class Task:
    """A compaction, as tasks know it.

    Attributes:
        root: The store directory.
        geometry: Lengths of its files.
        batch_topics: Topics with batch queues.
        splits: Parts of the commit log.
        starts: Where the first record of each split is that has one: only the audit of the whole log knows.
        compaction: Parts of compaction logs, numbered after those.
        policies: What is asked, by queue.
        salt: Of the key hashes.
    """

    root: Path
    geometry: StoreGeometry
    batch_topics: frozenset[str]
    splits: Sequence[Split]
    starts: Mapping[int, int]
    compaction: Sequence[CompactionPart]
    policies: Mapping[Key, QueuePolicy]
    salt: int

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.splits) + len(self.compaction)

    def without_keys(self) -> Task:
        """Returns the task for those who need no key hashes any more."""
        policies = {key: replace(policy, compact=False) for key, policy in self.policies.items()}
        return replace(self, policies=policies)


def read_facts(files: Files, task: Task, number: int) -> tuple[Facts, Sequence[Key]]:
    """Returns the facts of one part, and the queues that they name."""
    if number >= len(task.splits):
        part = task.compaction[number - len(task.splits)]
        return _compaction_facts(files, task, part), [(part.topic, part.queue_id)]
    watch = FactWatch(task.policies, task.salt)
    walk_split(files, task, number, watch)
    return watch.facts(), watch.names


class Looks(Protocol):
    """Takes the records of a split."""

    def note(
        self,
        window: memoryview,
        phy_offset: int,
        rows: Rows,
        saying_more: Sequence[int],
        queues: Sequence[Key],
    ) -> None:
        """Takes the next records, as :func:`~seglog.spark.compact.records.facts_of` is."""


def walk_split(files: Files, task: Task, number: int, watch: Looks) -> None:
    """Walks a split that an audit found intact, with somebody looking on.

    Neither checksums nor queues are looked at again; that is what makes it quick.
    """
    split = task.splits[number]
    reader = LogReader(files, task.root, task.geometry.segment_size_bytes)
    queues = QueueTable()
    try:
        position = task.starts.get(number, split.end)
        while position < split.end:
            room = split.segment_end - position
            window = reader.read(
                position, min(max(split.end - position, 0) + _OVERLAP_BYTES, _WINDOW_BYTES, room)
            )
            result = walk(window, position, split.segment_end, queues, verify=False)
            owned = int(np.searchsorted(result.rows["phy_offset"], split.end))
            if owned:
                watch.note(window, position, result.rows[:owned], result.saying_more, queues.names)
            if not result.position or result.stop is not Stop.MORE:
                return
            position += result.position
    finally:
        reader.close()


def compaction_units(files: Files, root: Path, topic: str, queue_id: int) -> BatchUnits:
    """Returns the units of a compaction queue that count."""
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
        queue = [(part.topic, part.queue_id)]
        every.append(facts_of(window, first, rows, (), queue, task.policies, task.salt))
    return np.concatenate(every)

"""The right content of each batch queue, derived from the log and compared with the queue's files.

As in :mod:`seglog.storage.overlay.queue_overlay` the log decides, and a unit of a file counts only for
records that the log lost. But the units of a batch queue are in the order of the log, independent of their
queue offsets. If several records claim the same offsets, the last one wins, which also lets a topic that was
deleted and created again begin at 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.queue_files import queue_directory, unit_finding
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import BATCH_CONSUME_QUEUE
from seglog.storage.format.queue.batch_consume_queue import (
    BATCH_UNIT,
    BATCH_UNIT_BYTES,
    BatchUnits,
    batch_in_use,
    make_batch_units,
)
from seglog.storage.kernels.walk import Rows
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.overlay.queue_gaps import QueueGap
from seglog.storage.overlay.queue_overlay import code_of_missing

_NEVER = (1 << 63) - 1


@dataclass(slots=True)
class BatchQueueState:
    """The right content of a batch queue.

    Attributes:
        first_index: Number of ``units[0]``, counted from the first unit that the queue ever had.
        units: ``(n,) BATCH_UNIT.dtype``.
        min_offset: Queue offset of the first message that the log holds; the maximum if none.
        findings: The differences of the files.
        agrees: Whether the files hold exactly these units, and nothing behind them.
        behind: ``(n,) BATCH_UNIT.dtype``, units of the files behind the first ``len(units)`` ones.
        gaps: Messages that only units of the files prove; the log has other records at their places.
    """

    topic: str
    queue_id: int
    first_index: int
    units: BatchUnits
    min_offset: int
    findings: list[Finding]
    agrees: bool
    behind: BatchUnits = field(default_factory=lambda: np.empty(0, BATCH_UNIT.dtype))
    gaps: list[QueueGap] = field(default_factory=list)

    @classmethod
    def empty(cls, topic: str, queue_id: int) -> BatchQueueState:
        """Returns a queue that never had a message."""
        return cls(topic, queue_id, 0, np.empty(0, BATCH_UNIT.dtype), 0, [], agrees=True)

    @property
    def max_offset(self) -> int:
        """The queue offset that the next message gets."""
        return batch_end(self.units)

    @property
    def max_phy_offset(self) -> int:
        """Physical offset of the last record (RocketMQ does not add its size here), -1 before the first."""
        return int(self.units[-1]["phy_offset"]) if len(self.units) else -1


def batch_end(units: BatchUnits) -> int:
    """Returns the queue offset behind the last of these units, 0 without any."""
    return int(units[-1]["base_queue_offset"]) + int(units[-1]["batch_size"]) if len(units) else 0


def batch_min_index(units: BatchUnits, min_phy_offset: int) -> int:
    """Returns the index of the first unit whose record the log still has; ``len(units)`` if there is none."""
    there = units["phy_offset"] >= min_phy_offset
    return int(there.argmax()) if there.any() else len(units)


def units_of_rows(rows: Rows, ranges: Mapping[int, tuple[int, int]]) -> BatchUnits:
    """Returns the units of a queue's records.

    Args:
        rows: ``(n,) ROW``, in log order.
        ranges: Base queue offset and number of messages by physical offset, for records that are batches.
    """
    base = rows["queue_offset"].astype(np.int64)
    count = np.ones(len(rows), np.int64)
    for index, phy_offset in enumerate(rows["phy_offset"].tolist()):
        if phy_offset in ranges:
            base[index], count[index] = ranges[phy_offset]
    return make_batch_units(
        rows["phy_offset"], rows["size_bytes"], rows["tags_code"], rows["store_timestamp_ms"], base, count
    )


def overlay_batch_queue(
    topic: str,
    queue_id: int,
    fresh: BatchUnits,
    first_index: int,
    stored: BatchUnits,
    facts: LogFacts,
    *,
    has_files: bool,
) -> BatchQueueState:
    """Returns the right content of a batch queue.

    Args:
        topic: Its topic.
        queue_id: Its number.
        fresh: Units of the log's records, in log order.
        first_index: Number of ``stored[0]``.
        stored: Units of the queue's files.
        facts: The log; the length of a file is that of a batch queue's.
        has_files: Whether the queue has any file.
    """
    # Merged in log order: of units with the same offsets the later record wins, wherever it comes from.
    merged = np.concatenate([stored[_kept(stored, facts)], fresh], dtype=BATCH_UNIT.dtype)
    units = _last_claims(merged[np.argsort(merged["phy_offset"], kind="stable")])
    min_index = batch_min_index(units, facts.min_phy_offset)
    min_offset = int(units[min_index]["base_queue_offset"]) if min_index < len(units) else batch_end(units)
    state = BatchQueueState(topic, queue_id, first_index, units, min_offset, [], agrees=False)
    state.behind = stored[len(units) :].copy()
    state.findings += _compare(state, stored, facts, has_files=has_files)
    state.agrees = not state.findings and len(stored) == len(units)
    # Files are removed if retention removed all their messages, except the file that the next unit belongs
    # to.
    per_file = facts.file_size_bytes // BATCH_UNIT_BYTES
    gone = max(0, first_index + min(min_index, len(units) - 1)) // per_file * per_file - first_index
    if gone > 0:
        state.first_index, state.units = first_index + gone, units[gone:]
    return state


def batch_behind_findings(state: BatchQueueState, end_phy_offset: int, file_size_bytes: int) -> list[Finding]:
    """Returns the findings about units behind the end of a batch queue.

    Args:
        state: The queue.
        end_phy_offset: End of the log.
        file_size_bytes: Length of a queue file.
    """
    used = batch_in_use(state.behind)
    if not used.any():
        return []
    is_beyond = bool((state.behind["phy_offset"][used] >= end_phy_offset).all())
    return [
        unit_finding(
            "queue-beyond-log" if is_beyond else "queue-unit-stray",
            queue_directory(state.topic, state.queue_id, BATCH_CONSUME_QUEUE),
            state.first_index + len(state.units) + int(used.argmax()),
            file_size_bytes,
            int(used.sum()),
            BATCH_UNIT_BYTES,
        )
    ]


def _kept(stored: BatchUnits, facts: LogFacts) -> npt.NDArray[np.bool_]:
    used = batch_in_use(stored)
    phy = stored["phy_offset"]
    end = phy + stored["size_bytes"]
    kept: npt.NDArray[np.bool_] = used & (end <= facts.min_phy_offset)
    for hole in facts.holes:
        kept |= used & (phy >= hole.phy_offset) & (end <= hole.end)
    return kept


def _last_claims(units: BatchUnits) -> BatchUnits:
    """Returns the units without those whose queue offsets a later unit claims too."""
    base = units["base_queue_offset"].astype(np.int64)
    # The lowest base behind each unit: a unit that reaches beyond it is claimed again.
    following = np.minimum.accumulate(np.append(base[1:], _NEVER)[::-1])[::-1]
    kept: BatchUnits = units[base + units["batch_size"] <= following]
    return kept


def _compare(
    state: BatchQueueState, stored: BatchUnits, facts: LogFacts, *, has_files: bool
) -> list[Finding]:
    queue = queue_directory(state.topic, state.queue_id, BATCH_CONSUME_QUEUE)
    if not has_files:
        lost = int(state.units["batch_size"].sum())
        return [Finding("queue-missing", queue, messages=lost)] if len(state.units) else []
    both = min(len(stored), len(state.units))
    used = batch_in_use(stored)
    right = stored[:both] == state.units[:both]
    missing = np.append(~used[:both], np.ones(len(state.units) - both, np.bool_))
    first_missing = int(state.units["phy_offset"][int(missing.argmax())]) if len(missing) else 0
    runs = [
        ("queue-unit-wrong", used[:both] & ~right),
        (code_of_missing(missing, first_missing, facts), missing),
    ]
    size = facts.file_size_bytes
    return [
        unit_finding(
            code,
            queue,
            state.first_index + int(mask.argmax()),
            size,
            int(mask.sum()),
            BATCH_UNIT_BYTES,
        )
        for code, mask in runs
        if mask.any()
    ]

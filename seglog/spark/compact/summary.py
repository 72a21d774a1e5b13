"""Numbers for each queue in a part after the decision: all that the driver receives about records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from seglog.spark.compact.decide import Policies, Verdicts
from seglog.spark.compact.policy import Verdict
from seglog.spark.compact.records import are
from seglog.spark.making.spills import Key
from seglog.storage.kernels.gather import Mask
from seglog.storage.kernels.record_facts import Bit, Facts

NOWHERE = -1
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class QueuePart:
    """One queue in one part.

    Attributes:
        part: Number of the part.
        records: Number of records by verdict.
        size_bytes: Their bytes by verdict.
        first_offset: Queue offset of the first record that anchors the beginning of its queue; -1 for none.
        last_gone_offset: Queue offset of the last record that is dropped; -1 for none.
        all_placeholder_bytes: Bytes of placeholders for all dropped messages.
        later_placeholder_bytes: Bytes of placeholders for the dropped messages from ``first_offset`` on.
        undelivered: Number of messages that the policy drops and that a group has not read, by group.
    """

    part: int
    topic: str
    queue_id: int
    records: tuple[int, ...]
    size_bytes: tuple[int, ...]
    first_offset: int
    last_gone_offset: int
    all_placeholder_bytes: int
    later_placeholder_bytes: int
    undelivered: tuple[int, ...]

    def written_bytes(self, begin_offset: int) -> int:
        """Returns how many bytes of this queue and part are written to the new log.

        Args:
            begin_offset: Queue offset at which its queue will begin.
        """
        kept = self.size_bytes[Verdict.KEPT] + self.size_bytes[Verdict.HELD]
        if self.first_offset == begin_offset:
            return kept + self.later_placeholder_bytes
        return kept + (self.all_placeholder_bytes if self.last_gone_offset > begin_offset else 0)


def are_replaced(facts: Facts, verdicts: Verdicts) -> Mask:
    """Returns which records are dropped but keep their queue offset, by a placeholder."""
    replaced: Mask = (verdicts > Verdict.HELD) & (verdicts != Verdict.FILLER) & are(facts, Bit.TAKES_SLOT)
    return replaced


def summarize(
    part: int, facts: Facts, names: Sequence[Key], verdicts: Verdicts, anchors: Mask, policies: Policies
) -> list[QueuePart]:
    """Returns the numbers of a part for each queue.

    Args:
        part: Number of the part.
        facts: ``(n,) FACT``.
        names: Topic and queue id by ``queue``.
        verdicts: ``(n,)``, the verdict on each record.
        anchors: ``(n,)``, which records anchor the beginning of their queue.
        policies: The policies, by queue.
    """
    queues, kinds = len(names), len(Verdict)
    queue = facts["queue"].astype(np.int64)
    cell = queue * kinds + verdicts
    counts = np.bincount(cell, minlength=queues * kinds).reshape(queues, kinds)
    sizes = np.bincount(cell, facts["size_bytes"], queues * kinds).reshape(queues, kinds)
    firsts = np.full(queues, _NEVER, np.int64)
    begins = anchors & are(facts, Bit.TAKES_SLOT)
    np.minimum.at(firsts, queue[begins], facts["queue_offset"][begins])
    replaced = np.flatnonzero(are_replaced(facts, verdicts))
    gone_queue, gone_offset = queue[replaced], facts["queue_offset"][replaced]
    gone_bytes = facts["placeholder_bytes"][replaced].astype(np.float64)
    lasts = np.full(queues, NOWHERE, np.int64)
    np.maximum.at(lasts, gone_queue, gone_offset)
    every = np.bincount(gone_queue, gone_bytes, queues)
    later = np.bincount(gone_queue, gone_bytes * (gone_offset >= firsts[gone_queue]), queues)
    asked = np.flatnonzero((verdicts >= Verdict.HELD) & (verdicts < Verdict.PLACEHOLDER))
    asked = asked[np.argsort(queue[asked], kind="stable")]
    asked_starts = np.searchsorted(queue[asked], np.arange(queues + 1))
    found: list[QueuePart] = []
    for number in np.flatnonzero(counts.any(axis=1)).tolist():
        policy = policies.get(names[number])
        offsets = facts["queue_offset"][asked[asked_starts[number] : asked_starts[number + 1]]]
        groups = policy.group_offsets.values() if policy is not None else ()
        found.append(
            QueuePart(
                part,
                *names[number],
                tuple(counts[number].tolist()),
                tuple(sizes[number].astype(np.int64).tolist()),
                int(firsts[number]) if firsts[number] != _NEVER else NOWHERE,
                int(lasts[number]),
                int(every[number]),
                int(later[number]),
                tuple(int((offsets >= group_offset).sum()) for group_offset in groups),
            )
        )
    return found

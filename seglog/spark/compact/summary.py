"""What a part holds of each queue once it is decided, in numbers: all that the driver learns of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seglog.spark.compact.decide import Verdicts
from seglog.spark.compact.policy import QueuePolicy, Verdict
from seglog.spark.compact.records import Facts, Key
from seglog.storage.kernels.gather import Mask

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class QueuePart:
    """One queue in one part.

    Attributes:
        part: Number of the part.
        records: Records by verdict.
        size_bytes: Their bytes by verdict.
        first_offset: Queue offset of the first record that holds the beginning of its queue; -1 for none.
        last_gone_offset: Queue offset of the last record that is dropped; -1 for none.
        all_placeholder_bytes: What placeholders for all that is dropped would take.
        later_placeholder_bytes: What those from ``first_offset`` on would.
        undelivered: Messages that would be dropped and that a group has still to read, by group.
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
        """Returns how many bytes of it are written anew.

        Args:
            begin_offset: Queue offset at which its queue will begin.
        """
        kept = self.size_bytes[Verdict.KEPT] + self.size_bytes[Verdict.HELD]
        if self.first_offset == begin_offset:
            return kept + self.later_placeholder_bytes
        return kept + (self.all_placeholder_bytes if self.last_gone_offset > begin_offset else 0)


def are_replaced(facts: Facts, verdicts: Verdicts) -> Mask:
    """Returns which records go but leave a queue offset."""
    replaced: Mask = (verdicts > Verdict.HELD) & (verdicts != Verdict.FILLER) & facts["takes_slot"]
    return replaced


def summarize(
    part: int,
    facts: Facts,
    names: Sequence[Key],
    verdicts: Verdicts,
    anchors: Mask,
    policies: Mapping[Key, QueuePolicy],
) -> list[QueuePart]:
    """Returns what a part holds of each queue.

    Args:
        part: Its number.
        facts: ``(n,) FACT``.
        names: Topic and number by ``queue``.
        verdicts: ``(n,)``, what becomes of each.
        anchors: ``(n,)``, which hold the beginning of their queue.
        policies: What is asked, by queue.
    """
    found: list[QueuePart] = []
    replaced = are_replaced(facts, verdicts)
    for number in np.unique(facts["queue"]).tolist():
        mine = facts["queue"] == number
        own = facts[mine]
        policy = policies.get(names[number])
        counts = np.bincount(verdicts[mine], minlength=len(Verdict))
        sizes = np.bincount(verdicts[mine], own["size_bytes"], len(Verdict))
        begins = own["queue_offset"][anchors[mine] & own["takes_slot"]]
        first = int(begins.min()) if len(begins) else NOWHERE
        gone = own[replaced[mine]]
        later = gone[gone["queue_offset"] >= first] if first != NOWHERE else gone[:0]
        asked = (verdicts[mine] >= Verdict.HELD) & (verdicts[mine] < Verdict.PLACEHOLDER)
        offsets = own["queue_offset"][asked]
        groups = policy.group_offsets.values() if policy is not None else ()
        found.append(
            QueuePart(
                part,
                names[number][0],
                names[number][1],
                tuple(counts.tolist()),
                tuple(sizes.astype(np.int64).tolist()),
                first,
                int(gone["queue_offset"].max()) if len(gone) else NOWHERE,
                int(gone["placeholder_bytes"].sum()),
                int(later["placeholder_bytes"].sum()),
                tuple(int((offsets >= group_offset).sum()) for group_offset in groups),
            )
        )
    return found

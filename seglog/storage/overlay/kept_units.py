"""Which units of a queue's files count although the log has no record of the queue for them.

Units count of records that were before the log's first file (expired), units that lead into a hole of the
log, and in ``%LMQ%`` queues units that lead to records of other queues. Source of what RocketMQ reads at the
front of a queue: ``store/.../ConsumeQueue.java`` correctMinOffset and recover.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue.consume_queue import PRE_BLANK_BYTES, Units, in_use
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels.walk import Rows
from seglog.storage.walk.behind_damage import Hole

_MAX_I64: Final = (1 << 63) - 1

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts about the log that decide about units.

    Attributes:
        min_phy_offset: Physical offset of its first byte.
        end_phy_offset: Its end.
        holes: Its unreadable stretches.
        record_starts: ``(n,) i8``, sorted, physical offsets of all valid records that have a place in a
            queue.
        record_sizes: ``(n,) i4``, their sizes.
        file_size_bytes: Length of a queue file.
        is_closed: Whether the last writer closed the store; a killed one may not have written the last units.
    """

    min_phy_offset: int
    end_phy_offset: int
    holes: tuple[Hole, ...]
    record_starts: npt.NDArray[np.int64]
    record_sizes: npt.NDArray[np.int32]
    file_size_bytes: int
    is_closed: bool = True


def is_message(units: Units) -> Mask:
    """Returns which units lead to a message: in use, and not pre-blank."""
    mask: Mask = in_use(units) & (units["size_bytes"] != PRE_BLANK_BYTES)
    return mask


def are_expired(stored: Units, min_phy_offset: int) -> Mask:
    """Returns which units lead to messages that lay before the log's first byte."""
    end = stored["phy_offset"] + stored["size_bytes"]
    # The sum overflows near 2**63: a damaged place, not an expired one.
    mask: Mask = is_message(stored) & (end > stored["phy_offset"]) & (end <= min_phy_offset)
    return mask


def kept_units(topic: str, stored: Units, facts: LogFacts) -> tuple[Mask, Mask]:
    """Returns which stored units count although the log has no record of their queue for them.

    Returns:
        The units that always count, and the units that lead into a hole of the log.
    """
    phy = stored["phy_offset"]
    end = phy + stored["size_bytes"]
    message = is_message(stored) & (end > phy)  # overflow near 2**63: a damaged place, not an expired one
    kept = are_expired(stored, facts.min_phy_offset)
    in_hole = np.zeros(len(stored), np.bool_)
    for hole in facts.holes:
        in_hole |= (phy >= hole.phy_offset) & (end <= hole.end)
    in_hole &= message & (stored["size_bytes"] >= MIN_RECORD_BYTES)
    if topic.startswith(LMQ_PREFIX) and len(facts.record_starts):
        at = np.searchsorted(facts.record_starts, phy).clip(max=len(facts.record_starts) - 1)
        kept |= message & (facts.record_starts[at] == phy) & (facts.record_sizes[at] == stored["size_bytes"])
    return kept, in_hole


def are_between(rows: Rows, first_slot: int, stored: Units, asked: Mask) -> Mask:
    """Returns which stored units lead to places between those of the records before and after them.

    Places ascend with queue offsets; a unit that leads elsewhere is garbage, or from before the queue began
    anew.
    """
    if not len(rows) or not asked.any():
        return asked
    order = np.argsort(rows["queue_offset"], kind="stable")
    slots, places = rows["queue_offset"][order], rows["phy_offset"][order]
    edges = np.concatenate([[-1], places, [_MAX_I64]])
    numbers = np.flatnonzero(asked)
    own, found = first_slot + numbers, stored["phy_offset"][numbers]
    before = edges[np.searchsorted(slots, own, "left")]
    after = edges[np.searchsorted(slots, own, "right") + 1]
    between = np.zeros(len(stored), np.bool_)
    between[numbers] = (before < found) & (found < after)
    return between


def are_passed_over(head: Units, min_phy_offset: int) -> Mask:
    """Returns which units at the front of a queue RocketMQ passes over in search of the first message.

    It asks units of the first file for the first place that is in the log, in halves. A unit of another queue
    there becomes the queue's least offset; one that is all zeros ends the queue when it starts.

    Args:
        head: The units.
        min_phy_offset: Physical offset of the first byte of the log.
    """
    is_blank = (head["size_bytes"] == PRE_BLANK_BYTES) & (head["phy_offset"] >= 0)
    is_before = (head["phy_offset"] == 0) | (head["phy_offset"] < min_phy_offset)
    mask: Mask = are_expired(head, min_phy_offset) | (is_blank & is_before)
    return mask

"""Decides which records are kept and which are dropped: takes and returns plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seglog.spark.compact.policy import QueuePolicy, Verdict
from seglog.spark.compact.records import are
from seglog.spark.making.spills import Key
from seglog.storage.kernels.gather import Ints, Mask
from seglog.storage.kernels.record_facts import Bit, Facts

Verdicts = npt.NDArray[np.int8]
Policies = Mapping[Key, QueuePolicy]
_NEVER = 1 << 62
"""Above every queue offset and every time."""


def is_mapped(facts: Facts, names: Sequence[Key], policies: Policies) -> Mask:
    """Returns which records are candidates for the last record of their key."""
    until = _of_queues(facts, names, policies, lambda one: one.cleanable_until_ms if one.compact else -1, -1)
    mapped: Mask = are(facts, Bit.HAS_KEY) & ~are(facts, Bit.IS_PLACEHOLDER)
    return mapped & (facts["store_timestamp_ms"] <= until)


def goes_empty(facts: Facts, names: Sequence[Key], policies: Policies) -> Mask:
    """Returns which records have no body and are old enough to drop, though the last of their key."""
    until = _of_queues(facts, names, policies, lambda one: one.tombstones_until_ms, -1)
    empty: Mask = are(facts, Bit.IS_EMPTY) & (facts["store_timestamp_ms"] <= until)
    return empty


def decide(
    facts: Facts, names: Sequence[Key], policies: Policies, loser_rows: Ints, loser_verdicts: Verdicts
) -> tuple[Verdicts, Mask]:
    """Returns the verdicts on the records of a part.

    Args:
        facts: ``(n,) FACT``.
        names: Topic and queue id by ``queue``.
        policies: The policies, by queue.
        loser_rows: ``(m,)``, indices of facts that are superseded, or are tombstones that may be dropped.
        loser_verdicts: ``(m,)``, the verdict of each of these.

    Returns:
        ``(n,)``: the verdicts, and which records anchor the beginning of their queue: the kept records, and
        the last of each queue.
    """
    verdicts = np.full(len(facts), Verdict.KEPT, np.int8)
    verdicts[loser_rows] = loser_verdicts
    can_go = (
        are(facts, Bit.IS_SINGLE) & np.array([key in policies for key in names], np.bool_)[facts["queue"]]
    )
    offsets, times = facts["queue_offset"], facts["store_timestamp_ms"]
    oversize = _of_queues(facts, names, policies, lambda one: one.oversize_below, 0)
    expired = _of_queues(facts, names, policies, lambda one: one.expired_below_ms, 0)
    verdicts[can_go & (offsets < oversize)] = Verdict.OVERSIZE
    verdicts[can_go & (times < expired)] = Verdict.EXPIRED
    verdicts[can_go & are(facts, Bit.IS_ERASED)] = Verdict.ERASED
    held = _of_queues(
        facts, names, policies, lambda one: _NEVER if one.held_from is None else one.held_from, _NEVER
    )
    verdicts[can_go & (verdicts != Verdict.KEPT) & (offsets >= held)] = Verdict.HELD
    verdicts[can_go & are(facts, Bit.IS_PLACEHOLDER)] = Verdict.PLACEHOLDER
    last = _of_queues(facts, names, policies, lambda one: one.last_offset, -1)
    is_end = can_go & (offsets == last)
    verdicts[are(facts, Bit.IS_FILLER)] = Verdict.FILLER
    return verdicts, (verdicts <= Verdict.HELD) | is_end


def _of_queues(
    facts: Facts, names: Sequence[Key], policies: Policies, value: Callable[[QueuePolicy], int], without: int
) -> Ints:
    """Returns a field of the policy of each record's queue."""
    each = [value(policies[key]) if key in policies else without for key in names]
    found: Ints = np.array(each, np.int64)[facts["queue"]]
    return found

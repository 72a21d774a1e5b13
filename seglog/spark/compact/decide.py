"""Which record stays and which goes: plain arrays in, verdicts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seglog.spark.compact.policy import QueuePolicy, Verdict
from seglog.spark.compact.records import Facts, Key
from seglog.storage.kernels.gather import Ints, Mask

Verdicts = npt.NDArray[np.int8]


def is_mapped(facts: Facts, names: Sequence[Key], policies: Mapping[Key, QueuePolicy]) -> Mask:
    """Returns which records take part in the choice of the last of each key."""
    mapped: Mask = facts["has_key"] & ~facts["is_placeholder"]
    until = [policies[key].cleanable_until_ms if key in policies else 0 for key in names]
    if len(facts):
        mapped &= facts["store_timestamp_ms"] <= np.array(until, np.int64)[facts["queue"]]
    return mapped


def find_losers(
    queue: Ints, high: Ints, low: Ints, queue_offset: Ints, is_empty: Mask, store_ms: Ints, until_ms: Ints
) -> Verdicts:
    """Returns who is superseded, and which last messages of a key are tombstones that may go.

    Args:
        queue: ``(n,)`` each of these: a number for each queue.
        high: Half of the key's hash.
        low: The other half.
        queue_offset: Its place in the queue.
        is_empty: Whether it has no body.
        store_ms: When it was stored.
        until_ms: Newest store time of tombstones that may go.

    Returns:
        ``(n,)``: KEPT, SUPERSEDED or TOMBSTONE.
    """
    order = np.lexsort((queue_offset, low, high, queue))
    is_last = np.ones(len(order), np.bool_)
    same = np.ones(max(0, len(order) - 1), np.bool_)
    for column in (queue, high, low):
        ordered = column[order]
        same &= ordered[1:] == ordered[:-1]
    is_last[:-1] = ~same
    found = np.full(len(order), Verdict.SUPERSEDED, np.int8)
    goes = is_empty & (store_ms <= until_ms)
    found[order[is_last]] = np.where(goes[order[is_last]], Verdict.TOMBSTONE, Verdict.KEPT)
    return found


def decide(
    facts: Facts,
    names: Sequence[Key],
    policies: Mapping[Key, QueuePolicy],
    loser_rows: Ints,
    loser_verdicts: Verdicts,
) -> tuple[Verdicts, Mask]:
    """Returns what becomes of each record of a split.

    Args:
        facts: ``(n,) FACT``.
        names: Topic and number by ``queue``.
        policies: What is asked, by queue.
        loser_rows: ``(m,)``, which of the facts :func:`find_losers` found.
        loser_verdicts: ``(m,)``, what it found.

    Returns:
        ``(n,)``: the verdicts, and which records hold the beginning of their queue: those that stay, and
        the last of each queue.
    """
    verdicts = np.full(len(facts), Verdict.KEPT, np.int8)
    verdicts[loser_rows] = loser_verdicts
    is_end = np.zeros(len(facts), np.bool_)
    for number in np.unique(facts["queue"]).tolist():
        policy = policies.get(names[number])
        if policy is None:
            continue
        mine = np.flatnonzero((facts["queue"] == number) & facts["can_go"])
        part = facts[mine]
        own = verdicts[mine]
        own[part["queue_offset"] < policy.oversize_below] = Verdict.OVERSIZE
        own[part["store_timestamp_ms"] < policy.expired_below_ms] = Verdict.EXPIRED
        own[part["is_erased"]] = Verdict.ERASED
        if policy.held_from is not None:
            own[(own != Verdict.KEPT) & (part["queue_offset"] >= policy.held_from)] = Verdict.HELD
        own[part["is_placeholder"]] = Verdict.PLACEHOLDER
        verdicts[mine] = own
        is_end[mine] = part["queue_offset"] == policy.last_offset
    verdicts[facts["is_filler"]] = Verdict.FILLER
    return verdicts, (verdicts <= Verdict.HELD) | is_end

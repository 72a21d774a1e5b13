"""The next commands after a reconciliation: one for each kind of finding, for its first occurrence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog.spark.reconcile.queue_verdicts import QueueVerdict
from seglog.spark.reconcile.verdicts import (
    AHEAD,
    BELOW_MIN,
    DEAD,
    DUPLICATED,
    EXPIRED,
    LOST,
    MESSAGE_FINDINGS,
    QUEUE_FINDINGS,
    STALLED,
)
from seglog.spark.remote_files import is_address, typed_path
from seglog.storage.format.system_names import needs_no_registration
from seglog.text import shell_text

if TYPE_CHECKING:
    from seglog.spark.reconcile.outcome import Outcome

COPY: Final = "COPY"
"""Stands for the path of a local copy of a store that is at an address."""
_ORDER: Final = (LOST, AHEAD, BELOW_MIN, EXPIRED, DEAD, STALLED, DUPLICATED)
"""The worst first."""


class NextStep(NamedTuple):
    """A command, and its purpose.

    Attributes:
        verdict: The finding.
        command: The command to type; may contain :data:`COPY`.
        why: The effect of the command.
        others: Number of other groups and queues with the same finding; 0 for findings about messages.
    """

    verdict: str
    command: str
    why: str
    others: int


def next_steps(outcome: Outcome) -> list[NextStep]:
    """Returns the commands for findings, the worst finding first; empty without findings."""
    steps = [*_of_queues(outcome.queues), *_of_messages(outcome)]
    found: dict[str, NextStep] = {}
    for step in steps:  # dead letters occur as findings about queues and about messages
        found.setdefault(step.verdict, step)
    return [found[verdict] for verdict in _ORDER if verdict in found]


def _of_queues(queues: Iterable[QueueVerdict]) -> Iterator[NextStep]:
    same: dict[str, list[QueueVerdict]] = {}
    for one in queues:
        if one.verdict in QUEUE_FINDINGS:
            same.setdefault(one.verdict, []).append(one)
    for verdict, all_of_it in same.items():
        # A repair moves offsets of the broker's own groups, not a command of the user.
        first = min(all_of_it, key=lambda one: needs_no_registration(one.key.group))
        yield NextStep(verdict, *_of_queue(first), len(all_of_it) - 1)


def _of_queue(one: QueueVerdict) -> tuple[str, str]:
    typed_store, typed_topic = _typed(one.key.store), shell_text(one.key.topic)
    typed_group = shell_text(one.key.group)
    if one.verdict == DEAD:
        return (
            f"seglog dlq show {typed_store} --group {typed_group}",
            "shows them; `seglog dlq resend --apply` sends them again",
        )
    if one.verdict == STALLED:
        at = max(one.offset or 0, one.min_offset)
        return (
            f"seglog get {typed_store} {typed_topic} --queue {one.key.queue_id} --offset {at} --count 1",
            f"shows the message that {one.key.group} stands at",
        )
    if needs_no_registration(one.key.group):
        return f"seglog repair {typed_store}", "shows how the broker's own offsets are put right"
    end, where = (
        ("--end", "behind the last message") if one.verdict == AHEAD else ("--start", "with the first")
    )
    return (
        f"seglog offsets reset {typed_store} {typed_group} {typed_topic} --queue {one.key.queue_id} {end}",
        f"shows the move to continue {where}; --apply makes it",
    )


def _of_messages(outcome: Outcome) -> Iterator[NextStep]:
    counts = outcome.counts.verdicts if outcome.counts is not None else {}
    found = {verdict for _group, _topic, verdict in counts} & MESSAGE_FINDINGS
    if LOST in found:
        command = f"seglog spark audit {_all(outcome.stores)}"
        yield NextStep(LOST, command, "says where the log is damaged, and what a repair can save", 0)
    if EXPIRED in found:
        command = f"seglog retention plan {_typed(outcome.stores[0])}"
        yield NextStep(EXPIRED, command, "shows what goes next that a group still needs", 0)
    if DEAD in found:
        typed = next(
            shell_text(group) for group, _topic, verdict in sorted(counts, key=repr) if verdict == DEAD
        )
        command = f"seglog dlq show {_typed(outcome.stores[0])} --group {typed}"
        yield NextStep(DEAD, command, "shows them; `seglog dlq resend --apply` sends them again", 0)
    if DUPLICATED in found:
        command = f"seglog spark reconcile {_all(outcome.stores)} --messages --json"
        yield NextStep(
            DUPLICATED, command, "names them; `seglog explain STORE MSGID` shows the life of one", 0
        )


def _all(stores: Sequence[str]) -> str:
    return " ".join(map(typed_path, stores))


def _typed(store: str) -> str:
    return COPY if is_address(store) else typed_path(store)

"""Shared code of ``compact`` and ``retain``: their options, how they run, and how plans are printed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from seglog.cli.spark.options import Cluster
from seglog.cli.spark.session import job_session
from seglog.cli.ui import changing, render
from seglog.cli.ui.options import CommandFunction
from seglog.spark.compact import (
    WORDS,
    Compacted,
    Compaction,
    CompactionPlan,
    Policy,
    TopicPlan,
    Verdict,
    discard_old,
    files_around,
    has_old,
    turn_back_text,
    undo_swap,
)
from seglog.text import shell_text

COMPACTED: Final = "compacted"
_REASONS = tuple(verdict for verdict in Verdict if verdict > Verdict.KEPT)


@dataclass(frozen=True, slots=True)
class Wish:
    """What to do with the plan.

    Attributes:
        apply: Whether to carry it out.
        allow_undelivered: Whether messages may be dropped that a group has not read.
        discard_old: Whether to remove the old store at the end.
        undo: Whether to undo the last compaction instead.
    """

    apply: bool
    allow_undelivered: bool
    discard_old: bool
    undo: bool


def wish(function: CommandFunction) -> CommandFunction:
    """Passes ``wish``, a :class:`Wish`, to the command."""

    @changing.changing
    @click.option(
        "--allow-undelivered", is_flag=True, help="Also drop messages that a group has still to read."
    )
    @click.option(
        "--discard-old",
        is_flag=True,
        help="Remove the old store, which is kept beside the new; one of an earlier run alone.",
    )
    @click.option("--undo", is_flag=True, help="Put back the store as it was before the last --apply.")
    @functools.wraps(function)
    def call(
        *, is_applied: bool, allow_undelivered: bool, discard_old: bool, undo: bool, **rest: object
    ) -> None:
        if undo and (is_applied or discard_old):
            raise click.UsageError("--undo goes with neither --apply nor --discard-old")
        function(wish=Wish(is_applied, allow_undelivered, discard_old, undo), **rest)

    return call


def run(
    paths: Sequence[Path],
    policies: Mapping[str, Policy] | None,
    wish: Wish,
    cluster: Cluster,
    step: str,
    *,
    as_json: bool,
    did: str = COMPACTED,
) -> None:
    """Plans, carries out or undoes the compaction of each store.

    Args:
        paths: The stores.
        policies: The policies, by topic; None takes them from the attributes of the topics.
        wish: What to do with the plan.
        cluster: The cluster for the job.
        step: Name of the step, for the progress.
        as_json: Whether to print lines of JSON.
        did: Text for people about what was done.
    """
    roots = [path.resolve() for path in paths]
    kept = [root for root in roots if wish.discard_old and has_old(files_around(root), root)]
    if kept and kept != roots:
        raise click.UsageError(f"--discard-old: only {kept[0]} has an old store; name such stores alone")
    if wish.undo or kept:
        for path in paths:
            _turn_back(path, wish, as_json=as_json)
        if not (wish.undo or wish.apply):
            changing.end_preview(as_json=as_json)
        return
    jobs = {path: Compaction(path, policies, wish.allow_undelivered) for path in paths}
    for job in jobs.values():
        job.check(apply=wish.apply)
    with job_session(cluster, step, paths) as session:
        if not wish.apply:
            _preview({path: job.plan(session) for path, job in jobs.items()}, as_json=as_json)
            return
        for path, job in jobs.items():
            done = job.apply(session)
            if wish.discard_old and done.old is not None:
                discard_old(files_around(path.resolve()), path.resolve())
            _emit(path, done.plan, done, as_json=as_json, is_discarded=wish.discard_old, did=did)


def _preview(plans: Mapping[Path, CompactionPlan], *, as_json: bool) -> None:
    """Shows plans, and the command that carries them out; where that would be refused, what to do first."""
    for path, plan in plans.items():
        _emit(path, plan, None, as_json=as_json)
    roots = [path.resolve() for path, plan in plans.items() if plan.dropped]
    blocked = [root for root in roots if has_old(files_around(root), root)]
    if not as_json:
        for root in blocked:
            render.say(f"what the last compaction of {root} replaced is in the way: {turn_back_text(root)}")
    changing.end_preview(as_json=as_json, is_needed=bool(roots) and not blocked)


def _turn_back(path: Path, wish: Wish, *, as_json: bool) -> None:
    """Puts an old store back, or removes it; without ``--apply`` the removal is only shown."""
    root = path.resolve()
    files = files_around(root)
    if wish.undo or wish.apply:
        lock = files.lock(root)
        try:
            if wish.undo:
                undo_swap(files, root)
            else:
                discard_old(files, root)
        finally:
            lock.release()
        word = "put back" if wish.undo else "discarded"
    else:
        word = "kept, would be removed"
    if as_json:
        fields = {"kind": "compaction", "path": str(path), "result": word}
        render.emit(fields | {"applied": wish.undo or wish.apply})
    else:
        render.facts({"store": render.printable(str(path)), "old store": word})


def _emit(
    path: Path,
    plan: CompactionPlan | None,
    done: Compacted | None,
    *,
    as_json: bool,
    is_discarded: bool = False,
    did: str = COMPACTED,
) -> None:
    result = "planned" if done is None else COMPACTED if done.is_done else "nothing to drop"
    if done is not None and done.was_finished:
        result = "finished what an earlier run had begun"
    old = str(done.old) if done is not None and done.old is not None and not is_discarded else None
    if as_json:
        fields: dict[str, object] = {"kind": "compaction", "path": str(path), "result": result, "old": old}
        fields["applied"] = done is not None
        render.emit(fields | (_fields(plan) if plan is not None else {}))
        return
    result = did if result == COMPACTED else result
    render.facts(
        {"store": render.printable(str(path)), "result": result} | ({"old store": old} if old else {})
    )
    if plan is not None and not plan.task.policies:
        render.say(
            "no topic is chosen: none has cleanup.policy=COMPACTION in config/topics.json; choose with"
            f" --topic TOPIC, as `seglog inspect queues {shell_text(path)}` names them"
        )
    elif plan is not None:
        _show(plan)
    if old is not None:
        render.say("the old store is kept: --undo puts it back, --discard-old --apply deletes it")


def _fields(plan: CompactionPlan) -> dict[str, object]:
    return {
        "dropped": plan.dropped,
        "bytesBefore": plan.bytes_before,
        "bytesAfter": plan.bytes_after,
        "topics": [
            {
                "topic": topic.topic,
                "kept": topic.kept,
                "dropped": topic.dropped,
                "bytesBefore": topic.bytes_before,
                "bytesAfter": topic.bytes_after,
                "reasons": {WORDS[reason]: topic.records[reason] for reason in _REASONS},
            }
            for topic in plan.topics
        ],
        "undelivered": [
            {
                "group": one.group,
                "topic": one.topic,
                "queueId": one.queue_id,
                "offset": one.offset,
                "messages": one.messages,
                "held": not plan.allows_undelivered,
            }
            for one in plan.undelivered
        ],
    }


def _show(plan: CompactionPlan) -> None:
    render.facts(
        {
            "dropped": render.count_text(plan.dropped, "message"),
            "log": f"{render.size_text(plan.bytes_before)}, then {render.size_text(plan.bytes_after)}",
        }
    )
    render.say()
    render.table(
        ("topic", "kept", "dropped", "size", "size then", "reasons"),
        [_cells(topic) for topic in plan.topics],
        numbers=("kept", "dropped", "size", "size then"),
    )
    if plan.undelivered:
        render.say()
        fate = "dropped, though" if plan.allows_undelivered else "kept, because"
        render.say(f"{fate} groups have still to read them:")
        render.table(
            ("group", "topic", "queue", "at", "messages"),
            [(one.group, one.topic, one.queue_id, one.offset, one.messages) for one in plan.undelivered],
            numbers=("queue", "at", "messages"),
        )


def _cells(topic: TopicPlan) -> tuple[str, ...]:
    reasons = [f"{topic.records[reason]} {WORDS[reason]}" for reason in _REASONS if topic.records[reason]]
    return (
        render.printable(topic.topic),
        str(topic.kept),
        str(topic.dropped),
        render.size_text(topic.bytes_before),
        render.size_text(topic.bytes_after),
        ", ".join(reasons) or "-",
    )

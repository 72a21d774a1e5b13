"""``seglog retention``: the old messages that would be deleted, and the groups that still need them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from pathlib import Path
from typing import Final

import click

from seglog.broker.retention import Doomed, Victim, by_group
from seglog.broker.settings import GuardPolicy
from seglog.cli.admin.amounts import Duration
from seglog.cli.admin.retention_broker import broker
from seglog.cli.read.reading import check_store
from seglog.cli.ui import changing, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.groups import (
    RetentionPlan,
    RetentionRules,
    list_parked,
    plan_retention,
    run_retention,
    unpark,
)
from seglog.storage.format.names import segment_file_name

_HOUR_MS: Final = 3_600_000


@click.group(cls=CommandGroup)
def command() -> None:
    """Delete old messages that no group needs."""


command.add_command(broker)


def rules(function: options.CommandFunction) -> options.CommandFunction:
    """Adds the options about what may be deleted to a command, which gets them as ``rules``."""

    @click.option(
        "--older-than",
        type=Duration(),
        default=72 * _HOUR_MS,
        help="Age of the newest message of a file of the log that may go.  [default: 72h]",
    )
    @click.option(
        "--policy",
        type=click.Choice([policy.value for policy in GuardPolicy]),
        default=GuardPolicy.REFUSE.value,
        show_default=True,
        help="What to do with messages that a group needs: keep them, save them to a file, or drop them.",
    )
    @click.option("--ignore", "ignored", metavar="GROUP", multiple=True, help="A group that needs nothing.")
    @click.option(
        "--idle", type=Duration(), default=0, help="Ignore groups that have committed nothing for this long."
    )
    @wraps(function)
    def wrapped(*, older_than: int, policy: str, ignored: tuple[str, ...], idle: int, **rest: object) -> None:
        function(rules=RetentionRules(older_than, GuardPolicy(policy), ignored, idle), **rest)

    return wrapped


@command.command(name="plan")
@options.store
@rules
@options.as_json
def plan_(*, path: Path, rules: RetentionRules, as_json: bool) -> None:
    """Show which files of the log of STORE would go now, and who needs messages of them.

    Counted are messages that groups have not consumed, dead letters that were not fetched, delayed messages
    whose time has not come, and open half messages. Works beside a process that has STORE open.
    """
    check_store(path)
    planned = plan_retention(options.reading(path), path, SystemClock(), rules)
    _show(planned, rules, as_json=as_json)
    if not as_json:
        render.say(_verdict(planned, rules))


@command.command
@options.store
@rules
@changing.changing
@options.as_json
def run(*, path: Path, rules: RetentionRules, is_applied: bool, as_json: bool) -> None:
    """Delete what `seglog retention plan` names, while no broker has STORE open.

    Messages that go with the policy park are written to STORE/seglog/parked first, in the form of `seglog
    export`, and `seglog retention unpark` brings them back.
    """
    check_store(path)
    if not is_applied:
        planned = plan_retention(options.reading(path), path, SystemClock(), rules)
        _show(planned, rules, as_json=as_json)
        if not as_json:
            render.say(_verdict(planned, rules))
        changing.end_preview(as_json=as_json, is_needed=bool(planned.going))
        return
    done = run_retention(options.writing(path), path, SystemClock(), rules)
    _show(done.plan, rules, as_json=as_json)
    if as_json:
        for name, count in done.parked.items():
            render.emit({"kind": "parked-file", "file": name, "messages": count})
        render.emit(
            {
                "kind": "retention-done",
                "minPhyOffset": done.min_phy_offset,
                "files": done.log_files,
                "freedBytes": done.freed_bytes,
                "parkedMessages": sum(done.parked.values()),
            }
        )
        return
    for name, count in done.parked.items():
        render.say(f"{render.count_text(count, 'message')} parked in {name}")
    files = render.count_text(done.log_files, "file")
    render.say(f"{files} of the log deleted, which begins at {done.min_phy_offset} now")
    if done.plan.held is not None:
        render.say(_held_text(done.plan))


@command.command(name="unpark")
@options.store
@click.option("--group", "groups", metavar="GROUP", multiple=True, help="Only what this group needs.")
@changing.changing
@options.as_json
def unpark_(*, path: Path, groups: tuple[str, ...], is_applied: bool, as_json: bool) -> None:
    """Bring parked messages back to those who needed them, while no broker has STORE open.

    What a group had not consumed goes to its retry topic, where no other group gets it again; dead letters go
    to its DLQ; delayed messages go to their topic at once. Half messages stay parked. Each message is brought
    back once, also if the command is stopped and run again.
    """
    check_store(path)
    if not is_applied:
        count = 0
        columns = ("file", "why", "group", "messages", "not back yet")
        listing = render.Listing(columns, numbers=columns[3:], none="nothing is parked", as_json=as_json)
        for waiting in list_parked(options.reading(path), path, groups):
            fields = {
                "kind": "parked",
                "file": waiting.file,
                "why": waiting.why,
                "group": waiting.group or None,
                "messages": waiting.messages,
                "waiting": waiting.waiting,
            }
            name = waiting.group or None
            count += waiting.waiting
            listing.add(fields, waiting.file, waiting.why, name, waiting.messages, waiting.waiting)
        listing.end()
        changing.end_preview(as_json=as_json, is_needed=bool(count))
        return
    count = 0
    for receipt in unpark(options.writing(path), path, SystemClock(), groups):
        count += receipt.is_new
        if as_json:
            render.emit(receipt.fields())
    if not as_json:
        render.say(f"{render.count_text(count, 'message')} brought back")


def _show(planned: RetentionPlan, rules: RetentionRules, *, as_json: bool) -> None:
    shown = [*planned.going, *([planned.held] if planned.held is not None else [])]
    if as_json:
        for doomed in shown:
            render.emit(_fields(doomed, goes=doomed is not planned.held))
        needed = [
            {"why": why, "group": group or None, "messages": count}
            for (why, group), count in _needed(shown).items()
        ]
        render.emit(
            {
                "kind": "retention-plan",
                "policy": rules.policy.value,
                "files": len(planned.going),
                "messages": sum(doomed.count for doomed in planned.going),
                "held": planned.held is not None,
                "heldBehind": planned.behind,
                "young": planned.young,
                "ignoredGroups": sorted(planned.ignored_groups),
                "needed": needed,
            }
        )
        return
    rows = [
        (
            segment_file_name(doomed.segment.first_phy_offset),
            render.time_text(doomed.segment.newest_store_ms),
            doomed.count,
            sum(len(victim.offsets) for victim in doomed.victims),
            "stays" if doomed is planned.held else "goes",
        )
        for doomed in shown
    ]
    if rows:
        columns = ("file of the log", "newest message", "messages", "needed", "")
        render.table(columns, rows, numbers=("messages", "needed"))
    needs = [victim for doomed in shown for victim in doomed.victims]
    if needs:
        columns = ("needed by", "why", "queue", "offsets", "messages")
        render.table(columns, [_cells(victim) for victim in _joined(needs)], numbers=("messages",))


def _joined(victims: Iterable[Victim]) -> list[Victim]:
    """Returns ranges of files in which consecutive ranges are joined."""
    found: dict[tuple[object, ...], Victim] = {}
    for victim in victims:
        key = victim[:4]
        before = found.get(key)
        first = victim.offsets.start if before is None else before.offsets.start
        found[key] = victim._replace(offsets=range(first, victim.offsets.stop))
    return sorted(found.values(), key=lambda one: (-len(one.offsets), one.group, one.topic, one.queue_id))


def _cells(victim: Victim) -> tuple[render.Cell, ...]:
    queue = f"{victim.topic}/{victim.queue_id}"
    offsets = f"{victim.offsets.start}..{victim.offsets.stop - 1}"
    return victim.group or None, victim.why.value, queue, offsets, len(victim.offsets)


def _fields(doomed: Doomed, *, goes: bool) -> dict[str, object]:
    return {
        "kind": "retention-file",
        "firstPhyOffset": doomed.segment.first_phy_offset,
        "endPhyOffset": doomed.segment.end_phy_offset,
        "newestTimestamp": doomed.segment.newest_store_ms,
        "messages": doomed.count,
        "unread": doomed.unread,
        "goes": goes,
        "neededBy": [
            {
                "why": victim.why.value,
                "group": victim.group or None,
                "topic": victim.topic,
                "queueId": victim.queue_id,
                "from": victim.offsets.start,
                "to": victim.offsets.stop - 1,
                "messages": len(victim.offsets),
            }
            for victim in doomed.victims
        ],
    }


def _needed(doomed: Iterable[Doomed]) -> dict[tuple[str, str], int]:
    return by_group(victim for one in doomed for victim in one.victims)


def _verdict(planned: RetentionPlan, rules: RetentionRules) -> str:
    files = render.count_text(len(planned.going), "file")
    messages = render.count_text(sum(doomed.count for doomed in planned.going), "message")
    if planned.held is not None:
        return f"{files} with {messages} would go; {_held_text(planned)}"
    if not planned.going:
        young = render.count_text(planned.young, "file")
        return f"nothing is old enough: {young} of the log could go later"
    lost = sum(_needed(planned.going).values())
    fate = "are parked first" if rules.policy is GuardPolicy.PARK else "ARE LOST to those who need them"
    return f"{files} with {messages} would go" + (f"; {lost} {fate}" if lost else ", and no group needs them")


def _held_text(planned: RetentionPlan) -> str:
    behind = f", and {render.count_text(planned.behind, 'file')} behind it" if planned.behind else ""
    return f"one stays for those who need it{behind} (--policy park or allow, --ignore GROUP)"

"""``seglog repair``: what would put a store right, and with ``--apply`` that it is done.

Nothing is written without ``--apply``, and then nothing before a person typed the store's name or gave
``--yes``. Everything that is written over goes into an undo pack first.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from seglog.cli import options, render
from seglog.cli.findings import show_findings
from seglog.clock import SystemClock
from seglog.doctor.actions import Action
from seglog.doctor.changes import CHANGED, CREATED, MADE, MOVED, REMOVED, Change
from seglog.doctor.repair import Plan, plan_repair, repair_store
from seglog.doctor.undo_pack import UndoPack
from seglog.errors import StoreLockedError
from seglog.storage.finding_text import finding_fields
from seglog.storage.geometry import FileSizes
from seglog.storage.lost_messages import LostMessages

_MAX_LOST_SHOWN: Final = 12
_MAX_CHANGES_SHOWN: Final = 20


@click.command
@options.store
@click.option("--apply", "is_applied", is_flag=True, help="Do it, once the name of the store was typed.")
@click.option("--yes", "is_sure", is_flag=True, help="With --apply: ask nothing.")
@options.file_sizes
@options.as_json
def command(
    *,
    path: Path,
    is_applied: bool,
    is_sure: bool,
    given: FileSizes,
    as_json: bool,
) -> None:
    """Show what would put STORE right; with --apply do it.

    Messages that cannot be saved keep their queue offsets: tombstones take their places, so that RocketMQ
    opens the store and serves everything else. `seglog undo STORE` takes a repair back, bit for bit.

    The exit code is 0 if nothing is wrong (any more), 1 if something is.
    """
    if is_applied and as_json and not is_sure:
        raise click.UsageError("--json asks nothing: give --yes as well")
    if is_sure and not is_applied:
        raise click.UsageError("--yes goes with --apply")
    if not is_applied:
        plan = _dry_run(path, given)
        _tell(plan, None, as_json=as_json)
        if plan.first or plan.changes or plan.left:
            raise click.exceptions.Exit(1)
        return

    def confirm(plan: Plan) -> bool:
        if not as_json:
            _show(plan)
        return is_sure or _is_typed(path)

    plan, pack = repair_store(options.writing(path), path, SystemClock(), confirm, given)
    if as_json:
        _tell(plan, pack, as_json=True)
    elif pack is None and plan.is_settled:
        render.say(f"done: {render.count_text(len(plan.first), 'step')}; nothing else was to be repaired")
    elif pack is None:
        _show(plan) if not (plan.first or plan.changes) else render.say("nothing was changed")
    else:
        render.say(f"done; `seglog undo {path}` takes it back (undo pack {pack.number})")
    if plan.left or (pack is None and not plan.is_settled and (plan.first or plan.changes)):
        raise click.exceptions.Exit(1)


def _dry_run(path: Path, sizes: FileSizes) -> Plan:
    holder = options.reading(path).lock_holder()
    if holder is not None:
        who = f"process {holder}" if holder > 0 else "another process"
        raise StoreLockedError(f"{who} has {path} open for writing", help="stop it, then run this again")
    return plan_repair(options.reading(path), path, SystemClock(), sizes)


def _is_typed(path: Path) -> bool:
    name = path.resolve().name
    return bool(click.prompt(f"type {name} to do this", default="", show_default=False) == name)


def _tell(plan: Plan, pack: UndoPack | None, *, as_json: bool) -> None:
    if not as_json:
        _show(plan)
        if plan.first or plan.changes:
            render.say()
            render.say(f"nothing was written; `seglog repair --apply {plan.root}` does this")
        return
    for action in (*plan.first, *plan.actions):
        render.emit(_action_fields(action))
    for change in plan.changes:
        render.emit(_change_fields(plan, change))
    render.emit(
        {
            "kind": "plan",
            "actions": len(plan.first) + len(plan.actions),
            "changedFiles": len(plan.changes),
            "changedBytes": plan.changed_bytes,
            "saved": sum(action.saved for action in plan.actions),
            "lost": sum(action.lost_messages for action in plan.actions),
            "left": [finding_fields(finding) for finding in plan.left],
            "rescan": plan.is_rescanned,
            "applied": pack is not None or plan.is_settled,
            "undo": None if pack is None else pack.number,
        }
    )


def _show(plan: Plan) -> None:
    actions = [*plan.first, *plan.actions]
    if not actions:
        render.say("nothing to do" + (": no repair can put right what is left" if plan.left else ""))
    for number, action in enumerate(actions, 1):
        _show_action(number, action)
    if plan.changes:
        _show_changes(plan)
    if plan.left:
        render.say()
        render.say("left as it is:")
        show_findings(plan.left, plan.root)
    if plan.is_rescanned:
        render.say()
        render.say("RocketMQ walks the whole log when it starts, and makes what is missing; start it once")


def _show_action(number: int, action: Action) -> None:
    where = action.file
    if action.position_bytes or action.size_bytes:
        where += f" +{action.position_bytes}"
    size = f", {render.count_text(action.size_bytes, 'byte')}" if action.size_bytes else ""
    render.say(f"{number:3}. {action.purpose}: {render.printable(where)}{size}")
    if action.detail:
        render.say(f"     {render.printable(action.detail)}")
    if action.saved:
        render.say(f"     saves {render.count_text(action.saved, 'message')}")
    if action.lost:
        shown = ", ".join(str(one) for one in action.lost[:_MAX_LOST_SHOWN])
        more = (
            f" and {len(action.lost) - _MAX_LOST_SHOWN} more ranges"
            if len(action.lost) > _MAX_LOST_SHOWN
            else ""
        )
        lost = render.count_text(action.lost_messages, "message")
        render.say(f"     lost for good: {lost}, {render.printable(shown)}{more}")


def _show_changes(plan: Plan) -> None:
    render.say()
    files = [change for change in plan.changes if change.kind != MADE]
    rows = [_change_cells(plan, change) for change in files[:_MAX_CHANGES_SHOWN]]
    render.table(("file", "what", "bytes", "from"), rows, numbers=("bytes",))
    if len(files) > _MAX_CHANGES_SHOWN:
        render.say(f"… and {render.count_text(len(files) - _MAX_CHANGES_SHOWN)} more; --json prints all")
    saved = render.count_text(sum(action.saved for action in plan.actions), "message")
    lost = render.count_text(sum(action.lost_messages for action in plan.actions))
    render.say(
        f"{render.count_text(len(files), 'file')}, {render.count_text(plan.changed_bytes, 'byte')} to write;"
        f" {saved} saved, {lost} lost for good"
    )


def _change_cells(plan: Plan, change: Change) -> tuple[str, str, str, str]:
    name = render.printable(change.path.relative_to(plan.root).as_posix())
    if change.kind == MOVED and change.target is not None:
        return name, f"moved to {change.target.relative_to(plan.root).as_posix()}", "0", ""
    what = {CREATED: "new", REMOVED: "removed", CHANGED: "changed"}[change.kind]
    if change.kind == CHANGED and change.old_bytes != change.new_bytes:
        what += f", {change.old_bytes:,} to {change.new_bytes:,} long"
    starts = [f"+{position}" for position, _size in change.stretches[:3]]
    more = " …" if len(change.stretches) > len(starts) else ""
    return name, what, f"{change.changed_bytes:,}", " ".join(starts) + more


def _action_fields(action: Action) -> dict[str, object]:
    return {
        "kind": "action",
        "action": action.kind,
        "purpose": action.purpose,
        "file": action.file,
        "pos": action.position_bytes,
        "size": action.size_bytes,
        "detail": action.detail,
        "saved": action.saved,
        "lost": _lost_fields(action.lost),
    }


def _lost_fields(lost: Sequence[LostMessages]) -> list[dict[str, object]]:
    return [
        {
            "topic": one.topic,
            "queueId": one.queue_id,
            "firstOffset": one.offsets.start,
            "count": len(one.offsets),
        }
        for one in lost
    ]


def _change_fields(plan: Plan, change: Change) -> dict[str, object]:
    target = None if change.target is None else change.target.relative_to(plan.root).as_posix()
    return {
        "kind": "change",
        "change": change.kind,
        "file": change.path.relative_to(plan.root).as_posix(),
        "target": target,
        "oldSize": change.old_bytes,
        "newSize": change.new_bytes,
        "stretches": [{"pos": position, "size": size} for position, size in change.stretches],
    }

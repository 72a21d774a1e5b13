"""``seglog repair``: prints the plan of a repair, and carries it out with ``--apply``.

Nothing is written without ``--apply``; with it, nothing is written before the user typed the store's name or
gave ``--yes``. All bytes that the repair overwrites are written to an undo pack first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from seglog.cli.ui import changing, options, render
from seglog.cli.ui.confirm import is_typed
from seglog.cli.ui.findings import show_findings
from seglog.clock import SystemClock
from seglog.doctor.check import check_store, ending_of_check, verdict_on
from seglog.doctor.draft import CHANGED, CREATED, MADE, MOVED, REMOVED, Change, refuse_open
from seglog.doctor.plans import Action
from seglog.doctor.repair import Plan, judge, plan_repair, repair_store, wrong_now
from seglog.doctor.undo import UndoPack
from seglog.errors import Ending
from seglog.storage.directory import FileSizes
from seglog.storage.findings import Severity, findings_fields
from seglog.storage.overlay import LostMessages
from seglog.text import shell_line

_BEFORE_OTHERS: Final = frozenset({"hole", "segment", "tail-lost"})
"""Actions on a stretch of the log after which RocketMQ, after a crash, may serve nothing."""
_MAX_LOST_SHOWN: Final = 12
_WHAT: Final = {CREATED: "new", REMOVED: "removed", CHANGED: "changed", MOVED: "moved"}


@click.command
@options.store
@options.file_sizes
@click.option("-v", "--verbose", "is_long", is_flag=True, help="Show each file that is written, and where.")
@changing.asking
@options.as_json
def command(
    *,
    path: Path,
    is_applied: bool,
    is_sure: bool,
    is_long: bool,
    given: FileSizes,
    as_json: bool,
) -> None:
    """Show what would put STORE right; with --apply do it.

    Messages that cannot be saved keep their queue offsets: tombstones take their places, so that RocketMQ
    opens the store and serves everything else. `seglog undo STORE` takes a repair back, bit for bit.

    \b
    Exit codes:
      0  nothing is wrong (any more)
      1  shown: a repair puts all right without loss
      2  --apply needs an answer or --yes, and there is no terminal
      5  shown: messages are lost for good, or cannot be read
      6  something is left that no repair puts right
    """  # noqa: D301 - click takes the character itself
    if is_applied:
        ending = _apply(path, given, is_sure=is_sure, is_long=is_long, as_json=as_json)
    else:
        ending = _show_plan(path, given, is_long=is_long, as_json=as_json)
    raise click.exceptions.Exit(ending)


def _show_plan(path: Path, given: FileSizes, *, is_long: bool, as_json: bool) -> Ending:
    """Prints what a repair would do; returns the ending of a check of the unrepaired store, or LEFT."""
    plan = dry_run(path, given)
    report = check_store(path, follow=options.followed(path), log=options.log_paths())
    wrong = judge(plan, report)
    _tell_plan(plan, is_sound=not wrong, is_long=is_long, as_json=as_json)
    helps = plan.first or plan.actions
    ending = ending_of_check(report)
    is_left = any(finding.severity is not Severity.NOTE for finding in plan.left)
    if (wrong and not helps) or (is_left and ending is Ending.FINDINGS):
        return Ending.LEFT
    return Ending.LOSS if plan.lost and ending is Ending.FINDINGS else ending


def _apply(path: Path, given: FileSizes, *, is_sure: bool, is_long: bool, as_json: bool) -> Ending:
    """Repairs a store if the user agrees; returns whether findings are left."""
    shown: list[Plan] = []
    before = check_store(path, follow=options.followed(path), log=options.log_paths())

    def confirm(plan: Plan) -> bool:
        judge(plan, before)
        shown.append(plan)
        if is_sure:  # the repair runs before anything is printed, because the reader of a pipe may be gone
            return True
        try:
            show_plan(plan, is_sound=False, is_long=is_long)
            name = path.resolve().name
            return is_typed(f'type "{name}" to do this', name)
        except BrokenPipeError:
            render.say("nothing was changed: the plan could not be printed; --yes asks nothing", err=True)
            raise

    plan, pack = repair_store(options.writing(path), path, SystemClock(), confirm, given)
    is_done = pack is not None or plan.is_settled
    if shown and not is_done:
        render.say("nothing was changed")
        raise click.exceptions.Exit(Ending.FINDINGS)
    plan.rescued = verdict_on(before).saved
    wrong = plan.left = wrong_now(path, options.followed(path), options.log_paths())
    if as_json:
        _emit(plan, pack)
    else:
        if not is_done:
            show_plan(plan, is_sound=not wrong, is_long=is_long)
        elif is_sure:
            show_plan(shown[0], is_sound=False, with_left=False, is_long=is_long)
        show_done(plan, pack, path)
    return Ending.LEFT if wrong else Ending.CLEAN


def dry_run(path: Path, sizes: FileSizes) -> Plan:
    """Returns what a repair of a store would do.

    Raises:
        StoreLockedError: A process has it open for writing.
        FileKindError: A link or a folder is where a file belongs.
        UnsupportedStoreError: The log is in several folders that no configuration states.
    """
    refuse_open(options.reading(path))
    # Not the files of a reader, which treats a link or folder in place of a file as absent: --apply refuses
    # it.
    files = options.writing(path)
    files.demand_stated()
    files.demand_kinds(path)
    return plan_repair(files, path, SystemClock(), sizes)


def _tell_plan(plan: Plan, *, is_sound: bool, is_long: bool, as_json: bool) -> None:
    is_needed = bool(plan.first or plan.changes)
    if as_json:
        _emit(plan, None)
    else:
        show_plan(plan, is_sound=is_sound, is_long=is_long)
        if is_needed:
            render.say()
    changing.end_preview(as_json=as_json, is_needed=is_needed, asks=True)


def show_done(plan: Plan, pack: UndoPack | None, path: Path) -> None:
    """Prints that a repair was done, how to undo it, and which findings are left."""
    if pack is not None:
        numbers = [str(one.number) for one in _packs(plan, pack)]
        undo = shell_line(["seglog", "undo", path])
        if len(numbers) == 1:
            render.say(f"done; `{undo}` takes it back (undo pack {pack.number})")
        else:
            packs = " and ".join(numbers)
            render.say(f"done; `{undo}`, run twice, takes it back (undo packs {packs})")
    elif plan.is_settled:
        render.say(f"done: {render.count_text(len(plan.first), 'step')}; nothing else was to be repaired")
    else:
        return
    if plan.doubt:
        more = "how many messages" if plan.lost is None else "whether more messages"
        render.say(f"{more} are lost is still not known; later checks and exports say so too")
    if plan.left:
        _show_left(plan)


def _packs(plan: Plan, pack: UndoPack | None) -> list[UndoPack]:
    """Returns the undo packs of a repair, in the order in which `seglog undo` takes them."""
    both = [one for one in (pack, plan.renaming) if one is not None]
    return both[:1] if pack is plan.renaming else both


def _emit(plan: Plan, pack: UndoPack | None) -> None:
    for action in (*plan.first, *plan.actions):
        render.emit(_action_fields(action))
    for change in plan.changes:
        render.emit(_change_fields(plan, change))
    render.emit(
        {
            "kind": "plan",
            "actions": len(plan.first) + len(plan.actions),
            "changedFiles": len(_files(plan)),
            "changedBytes": plan.changed_bytes,
            "saved": plan.saved,
            "lost": plan.lost,
            "mayBeMore": bool(plan.doubt),
            "left": [*findings_fields(plan.left)],
            "rescan": plan.is_rescanned,
            "applied": pack is not None or plan.is_settled,
            "undo": None if pack is None else pack.number,
            "undoPacks": [one.number for one in _packs(plan, pack)],
        }
    )


def show_plan(plan: Plan, *, is_sound: bool, with_left: bool = True, is_long: bool = False) -> None:
    """Prints a plan: what it comes to, its steps, and which folders it writes to.

    Args:
        plan: The plan.
        is_sound: Whether a check finds only notes; opening the store for writing then does the same as the
            repair.
        with_left: Whether to print the findings that the repair leaves.
        is_long: Whether to print each file that is written, and where.
    """
    actions = [*plan.first, *plan.actions]
    if not actions:
        render.say("nothing to do" + (": no repair can put right what is left" if plan.left else ""))
    elif is_sound:
        render.say("nothing to do; when the store is next opened for writing, or with --apply:")
    if plan.changes:
        _show_sum(plan)
    for number, action in enumerate(actions, 1):
        _show_action(number, action)
    if plan.changes:
        render.say()
        (_show_files if is_long else _show_folders)(plan)
    if plan.left and with_left:
        _show_left(plan)
    if plan.is_rescanned:
        render.say()
        render.say("RocketMQ walks the whole log when it starts, and makes what is missing; start it once")


def _show_left(plan: Plan) -> None:
    render.say()
    render.say("left as it is:")
    show_findings(plan.left, plan.root)


def _files(plan: Plan) -> list[Change]:
    return [change for change in plan.changes if change.kind != MADE]


def _show_action(number: int, action: Action) -> None:
    where = action.file
    if action.position_bytes or action.size_bytes:
        where += f" +{action.position_bytes}"
    size = f", {render.count_text(action.size_bytes, 'byte')}" if action.size_bytes else ""
    render.say(f"{number:3}. ", f"{action.purpose}: {where}{size}")
    if action.detail:
        render.say(" " * 5, action.detail)
    if action.saved:
        count = render.count_text(action.saved, "message")
        render.say(f"     keeps {count} after it" if action.kind in _BEFORE_OTHERS else f"     saves {count}")
    if action.lost:
        shown = ", ".join(str(one) for one in action.lost[:_MAX_LOST_SHOWN])
        more = (
            f" and {len(action.lost) - _MAX_LOST_SHOWN} more ranges"
            if len(action.lost) > _MAX_LOST_SHOWN
            else ""
        )
        lost = render.count_text(action.lost_messages, "message")
        render.say(" " * 5, f"lost for good: {lost}, {shown}{more}")


def _show_files(plan: Plan) -> None:
    rows = [_change_cells(plan, change) for change in _files(plan)]
    render.table(("file", "what", "bytes", "from"), rows, numbers=("bytes",))


def _show_folders(plan: Plan) -> None:
    kinds: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    for change in _files(plan):
        top = change.path.relative_to(plan.root).parts[0]
        kinds.setdefault(top, Counter())[_WHAT[change.kind]] += 1
        sizes[top] += change.changed_bytes
    rows = [
        (
            render.printable(top),
            f"{sizes[top]:,}",
            ", ".join(f"{count:,} {kind}" for kind, count in kinds[top].items()),
        )
        for top in kinds
    ]
    render.table(("where", "bytes", "files"), rows, numbers=("bytes",))


def _show_sum(plan: Plan) -> None:
    files = _files(plan)
    saved = render.count_text(plan.saved, "message")
    # Before the stopped repair is taken back no check sees the store that the plan is for.
    most = "up to " if plan.first and plan.rescued is None else ""
    render.say(
        f"{most}{saved} saved{_lost_text(plan)};"
        f" {render.count_text(plan.changed_bytes, 'byte')} in {render.count_text(len(files), 'file')}"
        " to write"
    )
    if plan.doubt.is_at_end:
        render.say("new messages may get queue offsets that lost ones had: no queue says how far they went")


def _lost_text(plan: Plan) -> str:
    if plan.lost is None:
        return "; how many are lost for good is not known"
    return f", {'at least ' if plan.doubt else ''}{render.count_text(plan.lost)} lost for good"


def _change_cells(plan: Plan, change: Change) -> tuple[str, str, str, str]:
    name = render.printable(change.path.relative_to(plan.root).as_posix())
    if change.kind == MOVED and change.target is not None:
        return name, f"moved to {change.target.relative_to(plan.root).as_posix()}", "0", ""
    what = _WHAT[change.kind]
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

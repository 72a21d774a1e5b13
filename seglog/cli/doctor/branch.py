"""``seglog branch``: stores that share the full files of another store, to run old traffic again."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.doctor.backup import show_copied
from seglog.cli.read.reading import check_store, file_sizes
from seglog.cli.ui import changing, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.copies import (
    BranchDiff,
    OffsetChange,
    QueueChange,
    branch_path,
    create_branch,
    diff_branch,
    drop_branch,
    existing_branch,
    list_branches,
)
from seglog.doctor.draft import refuse_open
from seglog.storage.files import StoreRoot
from seglog.text import shell_line


@click.group(cls=CommandGroup)
def command() -> None:
    """Branch a store: a store of its own that shares what is full, for trying things on real messages.

    A branch is the folder STORE/seglog/branches/NAME, for every command and for MessageStore.open. What is
    done to it never changes STORE. A RocketMQ broker does not know that files are shared: give it a
    `seglog backup --copy`.
    """


@command.command
@options.store
@click.argument("name")
@click.option(
    "--rewind", metavar="MS|ISO", help="Groups continue with the first message stored at this time or later."
)
@click.option("--group", "groups", multiple=True, help="Rewind only this group; may be given several times.")
@options.as_json
def create(*, path: Path, name: str, rewind: str | None, groups: tuple[str, ...], as_json: bool) -> None:
    """Make the branch NAME of STORE, also while a broker writes to STORE."""
    rewind_ms = None if rewind is None else options.timestamp_ms("--rewind", rewind, 0)
    done, point = create_branch(
        options.writing(path), path, name, SystemClock(), rewind_ms=rewind_ms, groups=groups
    )
    if as_json:
        render.emit(
            {
                "kind": "branch-created",
                "name": name,
                "path": str(done.target),
                "created": point.created_ms,
                "maxPhyOffset": point.end_phy_offset,
                "linkedFiles": len(done.linked),
                "copiedFiles": len(done.copied),
            }
        )
        return
    show_copied(done, None)
    render.say(f"compare: {shell_line(['seglog', 'branch', 'diff', path, name])}")


@command.command(name="list")
@options.store
@options.as_json
def list_(*, path: Path, as_json: bool) -> None:
    """List the branches of STORE, and what they take beside it."""
    check_store(path)
    columns = ("branch", "made", "log end", "own bytes")
    listing = render.Listing(columns, numbers=columns[2:], none="no branches", as_json=as_json)
    for name, point in list_branches(options.reading(path), path):
        own = _own_bytes(options.reading(path), branch_path(path, name))
        fields = {
            "kind": "branch",
            "name": name,
            "path": str(branch_path(path, name)),
            "created": None if point is None else point.created_ms,
            "maxPhyOffset": None if point is None else point.end_phy_offset,
            "ownBytes": own,
        }
        known = ("?", "?") if point is None else (render.time_text(point.created_ms), point.end_phy_offset)
        listing.add(fields, name, *known, render.size_text(own))
    listing.end()


@command.command
@options.store
@click.argument("name")
@options.as_json
def diff(*, path: Path, name: str, as_json: bool) -> None:
    """Compare the branch NAME, and STORE itself, with the time when the branch was made."""
    found = diff_branch(options.reading(path), path, name)
    if as_json:
        for queue in found.queues:
            render.emit({"kind": "branch-queue", "use": queue.kind, **_fields(queue)})
        for one in found.offsets:
            render.emit({"kind": "branch-offset", "group": one.group, **_fields(one)})
        return
    _show(found)


@command.command
@options.store
@click.argument("name")
@changing.changing
@options.as_json
def drop(*, path: Path, name: str, is_applied: bool, as_json: bool) -> None:
    """Remove the branch NAME, and nothing else."""
    if is_applied:
        gone = drop_branch(options.writing(path), path, name)
    else:
        gone = existing_branch(options.reading(path), path, name)
        refuse_open(options.reading(gone))
    if as_json:
        fields = {"kind": "branch-dropped", "name": name, "path": str(gone), "applied": is_applied}
        render.emit(fields)
    elif is_applied:
        render.say(f"dropped {gone}")
    else:
        own = render.size_text(_own_bytes(options.reading(path), gone))
        render.say(f"{gone} would be removed, which has {own} of its own")
    if not is_applied:
        changing.end_preview(as_json=as_json)


def _show(found: BranchDiff) -> None:
    render.say(f"since {render.time_text(found.point.created_ms)}, when the branch was made")
    for kind, title in (("new", "new messages"), ("retry", "retries"), ("dead", "dead letters")):
        queues = [queue for queue in found.queues if queue.kind == kind]
        store, branch = sum(one.in_store for one in queues), sum(one.in_branch for one in queues)
        render.say(
            f"{title}: {render.count_text(branch)} in the branch, {render.count_text(store)} in the store"
        )
    if found.queues:
        render.say()
        render.table(
            ("topic", "queue", "at branch", "in store", "in branch"),
            [
                (one.topic, one.queue_id, one.at_branch, f"+{one.in_store}", f"+{one.in_branch}")
                for one in found.queues
            ],
            numbers=("queue", "at branch", "in store", "in branch"),
        )
    if found.offsets:
        render.say()
        render.table(
            ("group", "topic", "queue", "at branch", "store next", "branch next"),
            [
                (one.group, one.topic, one.queue_id, one.at_branch, one.in_store, one.in_branch)
                for one in found.offsets
            ],
            numbers=("queue", "at branch", "store next", "branch next"),
        )


def _fields(one: QueueChange | OffsetChange) -> dict[str, object]:
    return {
        "topic": one.topic,
        "queueId": one.queue_id,
        "atBranch": one.at_branch,
        "inStore": one.in_store,
        "inBranch": one.in_branch,
    }


def _own_bytes(files: StoreRoot, path: Path) -> int:
    """Returns the space on the disk that a branch takes in addition to its store, in bytes."""
    return sum(blocks for blocks, _length in file_sizes(files, path, own=True))

"""Branches of a store: ``<store>/seglog/branches/NAME``, each a store of its own that shares its full files.

A branch is made like a backup, so the store may be in use. A process that opens the branch appends to it,
consumes it with offsets of its own, and may even recover it: shared files are separated before they are
written, so no byte of the store changes. RocketMQ ignores the folder of branches.

``<branch>/seglog/branch`` describes the store at the time when the branch was made, for later comparisons of
both. It is derived and may be lost; then a comparison is not possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.broker.tables import as_int, as_object, as_text
from seglog.clock import Clock
from seglog.doctor.copies.backup import Copied, make_backup
from seglog.doctor.copies.branch_places import DROPPED, branch_names, branch_path
from seglog.doctor.tables.offset_table import GroupOffset, OffsetTable
from seglog.errors import ConfigError, CorruptError, NotFoundError
from seglog.storage.files import Files, StoreRoot, lock_held
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import BRANCHES, OURS
from seglog.storage.small_files import ConfigFile
from seglog.storage.store import MessageStore
from seglog.text import shell_line

BRANCH_FILE: Final = f"{OURS}/branch"

QueueKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class BranchPoint:
    """The state of a store when a branch was made of it.

    Attributes:
        created_ms: Time of the branch, ms since 1970 UTC.
        end_phy_offset: End of the log.
        queues: Next queue offset of each queue.
        offsets: Offsets of groups.
    """

    created_ms: int
    end_phy_offset: int
    queues: dict[QueueKey, int]
    offsets: tuple[GroupOffset, ...]


def create_branch(
    files: StoreRoot,
    root: Path,
    name: str,
    clock: Clock,
    *,
    rewind_ms: int | None = None,
    groups: Sequence[str] = (),
) -> tuple[Copied, BranchPoint]:
    """Makes a branch.

    Args:
        files: Access to the store.
        root: The store directory.
        name: Name of the branch.
        clock: The time.
        rewind_ms: Groups continue with the first message stored at or after this time; None keeps their
            offsets.
        groups: The groups to rewind; empty for all.

    Raises:
        NotFoundError: There is no store, or no such group.
        InvalidArgumentError: There is a branch of that name.
        InvalidNameError: The branch's name is not valid.
    """
    path = branch_path(root, name)
    done = make_backup(files, root, path, others=files)
    try:
        point = _begin(files, path, clock, rewind_ms, groups)
    except BaseException:
        files.remove_tree(path)
        raise
    return done, point


def list_branches(files: Files, root: Path) -> list[tuple[str, BranchPoint | None]]:
    """Returns the branches of a store by name, each with its point if that can be read."""
    return [(name, _point_or_none(files, root / BRANCHES / name)) for name in branch_names(files, root)]


def read_point(files: Files, root: Path, name: str) -> BranchPoint:
    """Returns the state of the store when a branch was made.

    Raises:
        NotFoundError: There is no such branch.
        ConfigError: Its file cannot be read.
    """
    path = existing_branch(files, root, name)
    point = ConfigFile(files, path / BRANCH_FILE).load(_parse)
    if point is None:
        raise ConfigError(
            f"{path / BRANCH_FILE} is missing: the state at the start of the branch is unknown",
            help=f"a trial of `seglog doctor` records none; {shell_line(['seglog', 'check', path])}",
        )
    return point


def existing_branch(files: Files, root: Path, name: str) -> Path:
    """Returns the directory of an existing branch.

    Raises:
        NotFoundError: There is no such branch.
    """
    path = branch_path(root, name)
    if not files.is_dir(path):
        raise NotFoundError(f"{root} has no branch {name}", help="`seglog branch list STORE` lists them")
    return path


def drop_branch(files: StoreRoot, root: Path, name: str) -> Path:
    """Removes a branch and nothing else; returns its former path.

    Raises:
        NotFoundError: There is no such branch.
        StoreLockedError: A process has it open.
    """
    files = files.as_it_is  # a whole folder goes: where its log is does not matter
    path = existing_branch(files, root, name)
    with lock_held(files, path):
        # Renamed first: after a killed drop the rest no longer counts as a branch.
        gone = path.with_name(f"{name}{DROPPED}")
        files.remove_tree(gone)
        files.rename(path, gone)
    files.remove_tree(gone)
    return path


def _begin(
    files: Files, path: Path, clock: Clock, rewind_ms: int | None, groups: Sequence[str]
) -> BranchPoint:
    table = OffsetTable(files, path)
    # By files of its own: where the branch has files of its log, those of the store do not say.
    with MessageStore.open(path, create=False, read_only=True) as store:
        queues = {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}
        if rewind_ms is not None:
            _rewind(table, store, rewind_ms, groups, clock.now_ms())
        point = BranchPoint(clock.now_ms(), store.max_phy_offset, queues, tuple(table.all()))
    files.make_dirs(path / OURS)
    ConfigFile(files, path / BRANCH_FILE).save(_value(point))
    return point


def _rewind(
    table: OffsetTable, store: MessageStore, rewind_ms: int, groups: Sequence[str], now_ms: int
) -> None:
    known = {one.group for one in table.all()}
    missing = sorted(set(groups) - known)
    if missing:
        raise NotFoundError(f"group {missing[0]} has no offset in the store")
    for one in table.all():
        if one.is_broadcast or (groups and one.group not in groups):
            continue
        there = store.offset_by_time(one.topic, one.queue_id, rewind_ms)
        if there < one.queue_offset:
            table.set(one.group, one.topic, one.queue_id, there, now_ms)


def _point_or_none(files: Files, path: Path) -> BranchPoint | None:
    try:
        return ConfigFile(files, path / BRANCH_FILE).load(_parse)
    except ConfigError:
        return None


def _value(point: BranchPoint) -> Mapping[str | int, ConfigValue]:
    return {
        "created": point.created_ms,
        "maxPhyOffset": point.end_phy_offset,
        "queues": [
            {"topic": topic, "queueId": queue_id, "maxOffset": max_offset}
            for (topic, queue_id), max_offset in sorted(point.queues.items())
        ],
        "offsets": [
            {
                "group": one.group,
                "topic": one.topic,
                "queueId": one.queue_id,
                "offset": one.queue_offset,
                "broadcast": one.is_broadcast,
            }
            for one in point.offsets
        ],
    }


def _parse(value: ConfigValue) -> BranchPoint:
    fields = as_object(value, "branch")
    queues = {
        (as_text(one.get("topic"), "topic"), as_int(one.get("queueId"), "queueId")): as_int(
            one.get("maxOffset"), "maxOffset"
        )
        for one in _objects(fields.get("queues"), "queues")
    }
    offsets = tuple(
        GroupOffset(
            as_text(one.get("group"), "group"),
            as_text(one.get("topic"), "topic"),
            as_int(one.get("queueId"), "queueId"),
            as_int(one.get("offset"), "offset"),
            one.get("broadcast") is True,
        )
        for one in _objects(fields.get("offsets"), "offsets")
    )
    created_ms = as_int(fields.get("created"), "created")
    return BranchPoint(created_ms, as_int(fields.get("maxPhyOffset"), "maxPhyOffset"), queues, offsets)


def _objects(value: ConfigValue, name: str) -> list[Mapping[str | int, ConfigValue]]:
    if not isinstance(value, list):
        raise CorruptError("branch", expected=f"a list of {name}", found=type(value).__name__)
    return [as_object(one, name) for one in value]

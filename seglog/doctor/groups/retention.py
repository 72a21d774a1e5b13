"""Retention of a store that no broker has open: its plan, the groups that need messages, and the deletion."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from seglog.broker.delay import DelayOffsets
from seglog.broker.offsets import OffsetPast, idle_groups
from seglog.broker.retention import Doomed, Standing, park_victims, parked_file, plan
from seglog.broker.settings import GuardPolicy
from seglog.clock import Clock
from seglog.doctor.message.pending import DELAY_FILE
from seglog.doctor.tables.lost_tables import demand_offsets
from seglog.doctor.tables.offset_table import OffsetTable, by_queue
from seglog.storage.directory import demand_own_queues
from seglog.storage.files import Files
from seglog.storage.small_files import ConfigFile
from seglog.storage.store import MessageStore


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """The plan of retention.

    Attributes:
        going: The files of the log that would be deleted, oldest first.
        held: The first file that is old enough and is kept for groups that need it; None if there is none.
        behind: Files after that one that are old enough too.
        young: Files that are not old enough.
        ignored_groups: Groups that do not count.
    """

    going: tuple[Doomed, ...]
    held: Doomed | None
    behind: int
    young: int
    ignored_groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class RetentionDone:
    """The result of retention.

    Attributes:
        plan: The plan.
        min_phy_offset: Start of the log now.
        log_files: Number of log files that were deleted.
        freed_bytes: Lengths of all files that were deleted.
        parked: Number of messages by the file that they were written to.
    """

    plan: RetentionPlan
    min_phy_offset: int
    log_files: int
    freed_bytes: int
    parked: dict[str, int]


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """The age of deletable files, and the policy for messages that are needed.

    Attributes:
        older_than_ms: Least age of the newest message of a file that may be deleted.
        policy: What happens to messages that a group needs.
        ignored_groups: Groups that need nothing.
        idle_ms: Groups without a commit for longer than this are ignored; 0 counts all.
    """

    older_than_ms: int
    policy: GuardPolicy
    ignored_groups: Collection[str] = ()
    idle_ms: int = 0


def plan_retention(files: Files, root: Path, clock: Clock, rules: RetentionRules) -> RetentionPlan:
    """Returns the plan of retention; the store may be open for writing.

    Raises:
        ConfigError: The offsets of the groups are lost, so what they need is not known.
        UnsupportedStoreError: They are in RocksDB, or queues are.
        StoreError: There is no store, or it cannot be read.
    """
    with MessageStore.open(root, create=False, read_only=True, files=files, clock=clock) as store:
        return _plan(store, clock, rules)


def run_retention(files: Files, root: Path, clock: Clock, rules: RetentionRules) -> RetentionDone:
    """Carries out the plan of :func:`plan_retention`.

    Raises:
        ConfigError: The offsets of the groups are lost.
        StoreLockedError: A broker or another process has the store open.
        FullError: There is no space to park messages; the files that hold them are kept.
        StoreError: The store cannot be opened, or a file could not be deleted.
    """
    with MessageStore.open(root, create=False, files=files, clock=clock) as store:
        planned = _plan(store, clock, rules)
        parked: dict[str, int] = {}
        log_files = freed_bytes = 0
        for doomed in planned.going:
            if doomed.victims and rules.policy is GuardPolicy.PARK:
                parked[parked_file(doomed)] = park_victims(store, doomed)
            trimmed = store.retention.delete_before(doomed.segment.end_phy_offset)
            log_files += trimmed.log_files
            freed_bytes += trimmed.freed_bytes
        return RetentionDone(planned, store.min_phy_offset, log_files, freed_bytes, parked)


def _plan(store: MessageStore, clock: Clock, rules: RetentionRules) -> RetentionPlan:
    demand_own_queues(store.files, store.path)
    demand_offsets(store.files, store.path)
    segments = store.retention.segments()
    limit_ms = clock.now_ms() - rules.older_than_ms
    # A file may be deleted only together with all older files: the log must stay contiguous.
    young_from = next((n for n, one in enumerate(segments) if one.newest_store_ms > limit_ms), len(segments))
    ignored = frozenset(rules.ignored_groups)
    if rules.idle_ms:
        ignored |= idle_groups(OffsetPast(store.files, store.path), clock.now_ms() - rules.idle_ms)
    standing = Standing(
        by_queue(OffsetTable(store.files, store.path).all()),
        DelayOffsets(ConfigFile(store.files, store.path / DELAY_FILE), clock).all(),
        ignored,
    )
    old = plan(store.retention, segments[:young_from], standing)
    kept_from = len(old)
    if rules.policy is GuardPolicy.REFUSE:
        kept_from = next((number for number, doomed in enumerate(old) if doomed.victims), len(old))
    return RetentionPlan(
        tuple(old[:kept_from]),
        old[kept_from] if kept_from < len(old) else None,
        max(0, len(old) - kept_from - 1),
        len(segments) - young_from,
        ignored,
    )

"""Repairs a store, first on a draft of it: computes from a survey which bytes would change.

The order is: faults that recovery does not handle (foreign files, config, records with a certain mend), then
recovery's own code over every file of the log, then data derived from the log, then offsets. The plan is the
difference between draft and store; :mod:`seglog.doctor.plans.apply` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from typing_extensions import override

from seglog.clock import Clock
from seglog.doctor.check.rescan import MADE_BY_ROCKETMQ
from seglog.doctor.draft.changes import Change, changes_of
from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.parts.parts_check import check_parts
from seglog.doctor.plans.actions import Action
from seglog.doctor.plans.apply import apply_changes
from seglog.doctor.plans.unfinished import first_actions, settle, settle_draft, unfinished
from seglog.doctor.repair.compaction import mend_compacted
from seglog.doctor.repair.config import mend_config
from seglog.doctor.repair.delays import mend_delays
from seglog.doctor.repair.derived import mend_index, rescan_action
from seglog.doctor.repair.files import lengthen_log, mend_files, mend_own, mend_strays
from seglog.doctor.repair.filters import mend_ext
from seglog.doctor.repair.keys import mend_keys
from seglog.doctor.repair.log import mend_log, needs_recovery, remove_queue_files
from seglog.doctor.repair.lost import mend_lost
from seglog.doctor.repair.names import name_actions, rename_draft, rename_log_files
from seglog.doctor.repair.offsets import mend_offsets
from seglog.doctor.repair.records import mend_records, recall, with_recalled
from seglog.doctor.repair.tables import mend_tables
from seglog.doctor.repair.timer import mend_timer
from seglog.doctor.tables.config_tables import load_tables
from seglog.doctor.undo.store_fingerprint import as_it_is
from seglog.doctor.undo.undo_pack import UndoPack, list_packs
from seglog.doctor.undo.undo_writing import has_leftovers
from seglog.errors import LengthUnknownError
from seglog.storage.directory import (
    NOTHING_KNOWN,
    FileSizes,
    LogRoot,
    OneLog,
    demand_own_queues,
    demand_store,
    disproved_lengths,
    list_store,
    no_queue_length,
    write_lengths,
)
from seglog.storage.files import Files, RestoringFiles
from seglog.storage.findings import Finding, Severity, repair_with_length
from seglog.storage.format.names import INDEX, LOCK_FILE
from seglog.storage.index_check import check_index
from seglog.storage.overlay import is_message
from seglog.storage.scan import Doubt, doubt_of, has_uncounted, lost_end, note_hole
from seglog.storage.survey import Survey, survey

_WITHOUT_LOG: Final = frozenset({"log-empty", "log-file-packed"})
"""Codes of stores that a repair leaves alone: their log, or a part of it, is elsewhere."""
_MAX_ROUNDS: Final = 3
"""Filling a hole may let the next survey find more; a third round has never been needed."""


@dataclass(slots=True)
class Plan:
    """The plan of a repair.

    Attributes:
        root: The store.
        draft: The store as it would be after the repair.
        actions: What the repair does, in order.
        changes: The change of each file.
        findings: The findings in the store.
        left: The findings that the repaired store would still have, without notes.
        is_rescanned: Whether RocketMQ must walk the whole log when it starts.
        first: Actions that come before all others: for repairs that were stopped half-way, and names of
            files.
        is_settled: Whether these actions were done.
        served: Number of messages that the queues of the repaired store serve.
        renaming: The undo pack of renamed log files, if the repair renamed any; it is older than the pack of
            all other changes.
        rescued: Number of messages that the repair saves by the verdict of a check; None before a check ran,
            or if the check saw a repair that is half done.
        doubt: Whether more messages are lost than the actions name.
    """

    root: Path
    draft: DraftFiles
    actions: list[Action]
    changes: list[Change]
    findings: list[Finding]
    left: list[Finding]
    is_rescanned: bool = False
    first: list[Action] = field(default_factory=list)
    is_settled: bool = False
    served: int = 0
    renaming: UndoPack | None = None
    rescued: int | None = None
    doubt: Doubt = field(default=Doubt())

    @override
    def __repr__(self) -> str:
        return f"<Plan of {self.root}: {len(self.actions)} actions, {self.saved} messages saved>"

    @property
    def saved(self) -> int:
        """Number of messages that it saves; before a check a sum over actions, which may count one twice."""
        if self.rescued is not None:
            return self.rescued
        return min(sum(action.saved for action in self.actions), self.served)

    @property
    def lost(self) -> int | None:
        """Number of messages that stay lost, as far as known; None if nothing is known of them."""
        lost = sum(action.lost_messages for action in self.actions)
        is_log_gone = any(finding.code == "log-empty" for finding in self.left)
        return None if is_log_gone or (self.doubt and not lost) else lost

    @property
    def changed_bytes(self) -> int:
        """Number of bytes that are overwritten or new."""
        return sum(change.changed_bytes for change in self.changes)


def plan_repair(files: Files, root: Path, clock: Clock, sizes: FileSizes | None = None) -> Plan:
    """Returns the plan of a repair of a store; writes nothing.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: Gives names to copies in the attic, and to new index files.
        sizes: Lengths of files that the store no longer shows.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: ``root`` is not a store.
        UnsupportedStoreError: A store of another kind, or with queues in RocksDB.
        LengthUnknownError: Nothing shows how long the files of the log must be.
        InvalidArgumentError: The files prove another length than given.
        UndoError: A repair that was stopped cannot be taken back: the store was changed since.
    """
    demand_own_queues(files, root)
    found = unfinished(files, root)
    first = first_actions(found)
    if found:
        settled = DraftFiles(as_it_is(files))
        settle_draft(settled, root, found)
        # What an undo puts back has the names of its folders: the draft shows them as one log again.
        files = OneLog(settled, root, files.places.given) if isinstance(files, LogRoot) else settled
    names = name_actions(files, root)
    if names:
        files = DraftFiles(files)
        rename_draft(files, root)
    plan = _plan(files, root, clock, sizes or NOTHING_KNOWN)
    plan.first = first + names
    return plan


def _plan(files: Files, root: Path, clock: Clock, sizes: FileSizes) -> Plan:
    """Returns the plan for a store in which no repair, undo or erase is unfinished."""
    draft = DraftFiles(files)
    demand_store(draft, root)
    own = [*mend_own(draft, root)]
    lengthened = _settle_lengths(draft, root, sizes)
    before = survey(root, draft)
    if gone := [finding for finding in before.findings if finding.code in _WITHOUT_LOG]:
        return Plan(root, draft, [], [], before.findings, gone)
    index_findings = check_index(before, draft)
    findings = before.findings + index_findings
    tables = [*mend_config(draft, root), *mend_tables(draft, root), *mend_lost(draft, root, clock)]
    strays = [*mend_strays(draft, root, before.findings), *mend_files(draft, root)]
    actions = [*own, *lengthened, *tables, *strays]
    found = survey(root, draft) if actions else before
    found, records = mend_records(found, draft)
    if records:
        actions += records
        index_findings = check_index(found, draft)
    bits = [*mend_keys(found, draft, index_findings), *mend_compacted(found, draft)]
    if bits:
        actions += bits
        found = survey(root, draft)
    knows_queues = found.geometry.is_queue_file_known
    doubt = _note_doubt(found, draft, clock, index_findings)
    found, actions = _recovered(found, draft, clock, actions)
    if actions:
        index_findings = check_index(found, draft)
    index = list(mend_index(found, draft, clock, found.index_division(draft), index_findings))
    actions += index
    if index:
        index_findings = check_index(found, draft)
    knows_queues = knows_queues or not found.queues
    is_rescanned = (bool(index) and not draft.list_dir(root / INDEX)) or not knows_queues
    if is_rescanned:
        was_due = before.is_rescan_due
        actions.append(rescan_action(found, draft, knows_queues=knows_queues, was_due=was_due))
    actions += [*mend_ext(found, draft), *mend_timer(found, draft, sizes.timer_log_bytes)]
    ends = {key: state.max_offset for key, state in found.all_queues.items()}
    actions += [*mend_offsets(draft, root, ends), *mend_delays(found, draft)]
    parts = check_parts(found, draft, load_tables(draft, root), found.all_queues, found.max_phy_offset)
    left = _left(found, [*index_findings, *parts], is_rescanned=is_rescanned)
    if not knows_queues:
        remove_queue_files(found, draft)
        actions = [action for action in actions if action.kind != "queue"]
    changes = changes_of(draft) if actions else []
    if not knows_queues:
        left += no_queue_length(replace(found.geometry, is_queue_file_known=False), left)
    served = sum(int(is_message(state.units).sum()) for state in found.queues.values())
    served += sum(state.max_offset - state.min_offset for state in found.batch_queues.values())
    # Tombstones count above; messages that a queue lost have no tombstone.
    served -= sum(action.lost_messages for action in actions if action.kind != "queue")
    actions = actions if changes else []
    return Plan(root, draft, actions, changes, findings, left, is_rescanned, served=served, doubt=doubt)


def _note_doubt(found: Survey, draft: DraftFiles, clock: Clock, index_findings: list[Finding]) -> Doubt:
    """Notes that the log lost an end which nothing counts: files that show it will agree with the log.

    Returns:
        Whether more messages are lost than are counted, by all files that a check compares.
    """
    findings = [*found.findings, *index_findings]
    if has_uncounted(findings):  # only then does it matter which other files show more than the log
        tables = load_tables(draft, found.root)
        findings += check_parts(found, draft, tables, found.all_queues, found.max_phy_offset)
    doubt = doubt_of(findings)
    for hole in lost_end(doubt, found.max_phy_offset, clock.now_ms()):
        note_hole(draft, found.root, hole)
    return doubt


def _recovered(
    found: Survey, draft: DraftFiles, clock: Clock, actions: list[Action]
) -> tuple[Survey, list[Action]]:
    """Recovers a draft until there is nothing left to recover; returns the survey and all actions so far."""
    for _round in range(_MAX_ROUNDS):
        if not needs_recovery(found):
            break
        actions = [*actions, *mend_log(found, draft, clock)]
        found = survey(found.root, draft)
        # Records in a hole that state another place, as after sectors were swapped.
        if recalled := recall(found, draft):
            actions = with_recalled(found, actions, recalled)
            found = survey(found.root, draft)
    return found, actions


def _left(found: Survey, further: list[Finding], *, is_rescanned: bool) -> list[Finding]:
    """Returns the findings that are left in a repaired draft, without those that RocketMQ repairs itself."""
    excused = MADE_BY_ROCKETMQ if is_rescanned else frozenset[str]()
    return [
        finding
        for finding in dict.fromkeys([*found.findings, *further])
        if finding.severity is not Severity.NOTE and finding.code not in excused
    ]


def _settle_lengths(draft: DraftFiles, root: Path, given: FileSizes) -> list[Action]:
    """Stores the given lengths, and extends the log files to their length; returns the actions.

    Raises:
        LengthUnknownError: Nothing shows how long the files of the log must be.
        InvalidArgumentError: The files prove another length than given.
    """
    listing = list_store(draft, root, given)
    if not listing.geometry.is_segment_known:
        raise LengthUnknownError(
            f"nothing in {root} shows how long its log files must be",
            help=f"nothing was changed; run {repair_with_length('--segment-bytes', root)}",
        )
    if given == NOTHING_KNOWN:
        return []
    write_lengths(draft, root, given.over(listing.lengths.written))
    right, _wrong = disproved_lengths(draft, root, listing.geometry)
    write_lengths(draft, root, right)
    return [] if given.segment_bytes is None else [*lengthen_log(draft, root, given.segment_bytes)]


def repair_store(
    files: RestoringFiles,
    root: Path,
    clock: Clock,
    confirm: Callable[[Plan], bool],
    sizes: FileSizes | None = None,
) -> tuple[Plan, UndoPack | None]:
    """Repairs a store after the plan was confirmed; changes nothing before.

    A repair that was stopped half-way is undone first, after this was confirmed as well.

    Args:
        files: Access to the store.
        root: The store directory.
        clock: The time.
        confirm: Called with the plan, if there is anything to do; False ends the repair.
        sizes: Lengths of files that the store no longer shows.

    Returns:
        The plan, and its undo pack; None if nothing was done, or an unfinished repair was undone and nothing
        else.

    Raises:
        UnsupportedStoreError: As :func:`plan_repair`.
        StoreLockedError: Another process has it open for writing.
        FullError: No space; the changes so far can be undone, or the repair started again.
        UndoError: A repair that was stopped cannot be taken back: the store was changed since.
    """
    demand_store(files, root)
    demand_own_queues(files, root)  # before the lock, whose file it would make
    with locked(files, root) as had_lock:
        plan = plan_repair(files, root, clock, sizes)
        if not (plan.first or plan.changes) or not confirm(plan):
            return plan, None
        if not plan.first and not has_leftovers(files, root):
            return plan, _apply(files, root, plan, clock, had_lock=had_lock)
        settle(files, root, unfinished(files, root))
    # Undoing an unfinished repair may have removed the lock file itself.
    with locked(files, root) as had_lock:
        renamed = rename_log_files(files, root, clock, had_lock=had_lock)
        settled = plan_repair(files, root, clock, sizes)
        settled.first, settled.is_settled, settled.renaming = plan.first, bool(plan.first), renamed
        if not settled.changes:
            return settled, renamed
        knows_lock = had_lock or renamed is not None
        return settled, _apply(files, root, settled, clock, had_lock=knows_lock)


def _apply(files: RestoringFiles, root: Path, plan: Plan, clock: Clock, *, had_lock: bool) -> UndoPack:
    return apply_changes(plan.draft, files, root, plan.changes, clock.now_ms(), had_lock=had_lock)


@contextmanager
def locked(files: RestoringFiles, root: Path) -> Iterator[bool]:
    """Holds the lock of a store; yields whether the ``lock`` file existed before.

    A ``lock`` file that this call created is removed at the end, unless an undo pack lists it by then.
    """
    packs = list_packs(files, root)
    had_lock = files.exists(root / LOCK_FILE)
    lock = files.lock(root)
    try:
        yield had_lock
    finally:
        if not had_lock and list_packs(files, root) == packs and files.exists(root / LOCK_FILE):
            files.remove(root / LOCK_FILE)
        lock.release()

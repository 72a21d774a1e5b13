"""One random damage through all of the doctor: checked, repaired, read, checked again, and undone."""

from __future__ import annotations

import functools
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.check.check import check_store
from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.repair.repair import Plan, plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.errors import NotFoundError
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.format.names import COMMIT_LOG, LOCK_FILE
from seglog.storage.format.record.properties import CRC_NAME
from seglog.storage.store import MessageStore
from tests.support.damage.campaign import (
    COMPACTED,
    KINDS,
    Key,
    Outcome,
    Stored,
    Subject,
    judge,
    read_records,
)
from tests.support.damage.laws import (
    Look,
    Questions,
    differing,
    log_changed,
    opened_then_repaired,
    served_by,
    served_otherwise,
)
from tests.support.damage.subjects import shared_subject
from tests.support.damage.unproven import left_to_operator
from tests.support.damage.unseen import COPIES, why_unseen
from tests.support.machine.shared import copy_tree, value_once
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock

KIND_NAMES: Final = sorted(KINDS)

REPAIRED: Final = "repaired"
NOTHING: Final = "nothing to do"
REFUSED: Final = "refused: no log is left"

_PLANNED_AGAIN: Final = 4
"""How often a second repair is asked what it would do: it looks at little else than the check before it."""

_LAWS: Final = 2
"""How often the three laws of opening are tried: they cost two more repairs."""

_AS_OPENING: Final = frozenset({"close", "tail-cut"})
"""What a repair does where nothing is wrong: opening a store for writing does it too."""

_AS_RESCAN: Final = frozenset({"index", "queue"})
"""What RocketMQ, or an opening, makes from the log where nothing is left of it."""

Said = set[tuple[str, str, int, str]]


@dataclass(frozen=True)
class Trial:
    """What became of one damage.

    Attributes:
        seed: Its number: with the name of the store, all that it takes to do it again.
        kind: A key of :data:`~tests.support.damage.campaign.KINDS`.
        damage: What was done.
        seen: Whether a check said something that it does not say of the undamaged store.
        reason: Why not; empty if it was seen, or should have been.
        repair: What a repair did: it had something to do, nothing, or refused, for no log is left.
        left: Codes that a check still finds after the repair, notes left out.
        hit: Messages of which it changed a byte of the log.
        lost: Messages that the plan declared lost.
        whole: Of the messages hit, how many are served as they were.
        changed: Of the messages hit, how many are served with other properties.
        broken: Promises that were not kept, in words.
    """

    seed: int
    kind: str
    damage: str
    seen: bool
    reason: str
    repair: str
    left: list[str]
    hit: int
    lost: int
    whole: int
    changed: int
    broken: list[str]

    @property
    def is_good(self) -> bool:
        """Whether every promise was kept."""
        return not self.broken


@dataclass(frozen=True)
class Patient:
    """A store for trials, and what a check says of it undamaged."""

    name: str
    subject: Subject
    usual: Said
    usual_left: set[str]
    min_phy_offset: int

    @classmethod
    def of(cls, name: str, subject: Subject) -> Patient:
        """Checks the undamaged store."""
        report = check_store(subject.root, clock=new_clock())
        left = {one.code for one in report.findings if one.severity is not Severity.NOTE}
        return cls(name, subject, _said(report), left, report.min_phy_offset)


@functools.cache
def shared_patient(name: str) -> Patient:
    """Returns one of the stores of the campaign, made and checked once for all tests of a run."""
    return value_once(f"patient {name}", lambda: Patient.of(name, shared_subject(name)))


def damage(patient: Patient, copy: Path, seed: int) -> tuple[str, Outcome]:
    """Makes a copy of the store and damages it; returns the kind of damage and what it hit.

    Each kind comes as often as any other: the seed decides it.
    """
    copy_tree(patient.subject.root, copy)
    kind = KIND_NAMES[seed % len(KIND_NAMES)]
    # Numbers in a row are no independent seeds, a text with them is.
    chance = random.Random(f"{patient.name} {seed}")
    outcome = Outcome(KINDS[kind](patient.subject, copy, chance))
    outcome.hit = patient.subject.hits(copy)
    return kind, outcome


def try_damage(patient: Patient, copy: Path, seed: int) -> Trial:
    """Does all of it in a folder that does not exist yet, and is gone afterwards."""
    files, clock, subject = RealFiles(), new_clock(), patient.subject
    kind, outcome = damage(patient, copy, seed)
    broken: list[str] = []
    before = digest(copy)
    report = check_store(copy, clock=clock)
    if digest(copy) != before:
        broken.append("the check wrote to the store")
    seen = bool(_said(report) - patient.usual)
    reason = "" if seen else why_unseen(subject, copy)
    if not seen and not reason:
        broken.append("unseen")
    asked = Questions.about(subject, outcome.hit, random.Random(f"asked {patient.name} {seed}"))
    seen_before = before_repair(subject, copy, asked, report) if seed % _LAWS == 0 else None
    damaged = copy_tree(copy, copy.with_name(f"{copy.name}-damaged"))
    may_stay = left_to_operator(subject.root, damaged)
    plan, pack = repair_store(files, copy, clock, lambda _plan: True, subject.sizes)
    broken += [f"law d, changed: {name}" for name in log_changed(subject, damaged, copy)]
    shutil.rmtree(damaged)
    if is_all_gone(subject, copy):
        broken += [] if seen and not plan.changes and digest(copy) == before else ["not refused"]
        shutil.rmtree(copy)
        return Trial(seed, kind, outcome.damage, seen, "", REFUSED, [], len(outcome.hit), 0, 0, 0, broken)
    allowed = _AS_OPENING | (
        _AS_RESCAN if any(one.code == "rescan-due" for one in report.findings) else set()
    )
    due = {"index-due": "index", "queue-due": "queue"}
    allowed |= {due[one.code] for one in report.findings if one.code in due}
    if report.is_clean and (more := {action.kind for action in plan.actions} - allowed):
        broken.append(f"check finds nothing, but a repair does {sorted(more)}")
    after = check_store(copy, clock=clock)
    left = sorted({one.code for one in after.findings if one.severity is not Severity.NOTE})
    if not may_stay >= set(left) <= {one.code for one in plan.left}:
        broken.append(f"not clean: {left}")
    if seed % _PLANNED_AGAIN == 0:
        again = plan_repair(files, copy, clock, subject.sizes)
        if again.changes:
            broken.append(f"not done: {again.actions}")
    broken += _of_messages(subject, copy, outcome, plan, copies_differ=COPIES in reason)
    if seen_before is not None:
        after_repair = served_by(copy, asked=asked)
        assert isinstance(after_repair, Look)
        broken += seen_before.broken_by(after_repair)
    if pack is not None:
        undo_repair(files, copy)
    if digest(copy) != before:
        broken.append("undo gives another store")
    shutil.rmtree(copy)
    return Trial(
        seed,
        kind,
        outcome.damage,
        seen,
        reason,
        REPAIRED if plan.changes else NOTHING,
        left,
        len(outcome.hit),
        len(declared(plan)),
        len(outcome.whole),
        len(outcome.changed),
        broken,
    )


@dataclass(frozen=True)
class BeforeRepair:
    """What a damaged store serves before it is repaired.

    Attributes:
        reader: To a reader.
        dry_run: In the draft of a dry run.
        opened: In that of one after an opening.
        not_kept: What that opening wrote over and did not keep.
        by_index: Where records are that only the index says otherwise.
    """

    reader: Look | str
    dry_run: Look | str
    opened: Look | str
    not_kept: list[str]
    by_index: set[int]

    def broken_by(self, served: Look) -> list[str]:
        """Returns which laws are broken, given what the repaired store serves."""
        broken = [f"law a, behind an opening: {one}" for one in differing(self.opened, served)]
        broken += [f"law b, given up: {one}" for one in self.not_kept[:3]]
        broken += [f"law c, a dry run: {one}" for one in differing(self.dry_run, served)]
        otherwise = served_otherwise(self.reader, served, self.by_index)
        return broken + [f"law c, a reader: {one}" for one in otherwise]


def before_repair(subject: Subject, copy: Path, asked: Questions, report: CheckReport) -> BeforeRepair:
    """Looks at a damaged store in each way that the laws of opening are about; changes nothing.

    Args:
        subject: The undamaged store.
        copy: The damaged one.
        asked: What is asked beside all messages.
        report: What a check says of it.
    """
    plan = plan_repair(RealFiles(), copy, new_clock(), subject.sizes)
    opened, given_up = opened_then_repaired(subject, copy, copy.with_name(f"{copy.name}-opened"), asked)
    by_index = {
        int(one.file.rpartition("/")[2]) + one.position_bytes
        for one in report.findings
        if one.code == "record-keys"
    }
    looks = served_by(copy, asked=asked), served_by(copy, plan.draft, asked)
    return BeforeRepair(*looks, opened, given_up, by_index)


def declared(plan: Plan) -> set[tuple[str, int, int]]:
    """Returns topic, queue and queue offset of the messages that a plan gives up."""
    return {
        (one.topic, one.queue_id, offset)
        for action in plan.actions
        for one in action.lost
        for offset in one.offsets
    }


def digest(root: Path) -> dict[str, tuple[int, str]]:
    """Returns what undo gives back: everything but the lock, in which each holder leaves its mark."""
    return {name: one for name, one in tree_digest(root).items() if name != LOCK_FILE}


def is_all_gone(subject: Subject, copy: Path) -> bool:
    """Returns whether the log had one file, and that is gone: nothing is left to repair anything from."""
    files = list((subject.root / COMMIT_LOG).iterdir())
    return len(files) == 1 and not (copy / COMMIT_LOG / files[0].name).exists()


def _said(report: CheckReport) -> Said:
    return {(one.code, one.file, one.position_bytes, one.found) for one in report.findings}


def _of_messages(
    subject: Subject, copy: Path, outcome: Outcome, plan: Plan, *, copies_differ: bool
) -> list[str]:
    """Reads the repaired store; returns what of its messages broke a promise."""
    broken = []
    with MessageStore.open(copy, read_only=True, clock=new_clock()) as store:
        served = read_records(store)
        judge(subject, outcome, served, store)
        outcome.silent.clear()
        if copies_differ:
            outcome.wrong = {key for key in outcome.wrong if key[0] != COMPACTED}
        for (topic, queue_id), end in subject.ends.items():
            if store.max_offset(topic, queue_id) < end:
                outcome.given_again.append((topic, queue_id))
        silent = _undeclared(subject, plan, served, store)
    if silent:
        broken.append(f"not told: {sorted(silent)}")
    if not outcome.is_good:
        broken.append(str(outcome))
    # Damage to the checksum property itself makes a record like those that were written without.
    under_crc = {key for key in outcome.changed if CRC_NAME in served[key].properties}
    if under_crc:
        broken.append(f"served otherwise in spite of record CRC: {sorted(under_crc)}")
    return broken


def _undeclared(subject: Subject, plan: Plan, served: dict[Key, Stored], store: MessageStore) -> set[Key]:
    """Returns the records that are gone although the plan does not name them.

    Without record CRC a damaged topic, queue or transaction passes every check: such a record is served where
    it says, or has no place in a queue.
    """
    said = declared(plan)
    return {
        key
        for key in subject.records.keys() - served.keys()
        if key[0] != COMPACTED and key[2] >= store.min_phy_offset
        if (key[0], key[1], subject.records[key].next_offset - 1) not in said
        if subject.has_record_crc or not _is_record(store, key[2])
    }


def _is_record(store: MessageStore, phy_offset: int) -> bool:
    try:
        store.message_at(phy_offset)
    except NotFoundError:
        return False
    return True

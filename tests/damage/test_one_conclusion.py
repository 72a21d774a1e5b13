"""Surveys, audits of any splits, check, info, readers and repair say the same of log and queues of a store.

Held on random damage to the stores of the campaign. All of them stand on one walk and one conclusion; the
tables here name what only one of them looks at.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from copy import copy
from pathlib import Path
from typing import Final

import pytest

from seglog.cli.read.reading import survey_store
from seglog.doctor.check.check import check_store
from seglog.doctor.check.rescan import excuse_rescanned
from seglog.doctor.check.told_once import each_once
from seglog.doctor.check.verify import verify_store
from seglog.doctor.repair.repair import plan_repair
from seglog.errors import LengthUnknownError, LogMissingError
from seglog.storage.audit.plan import plan_audit
from seglog.storage.certain_mends import certain_mends, mends_of_places, withhold
from seglog.storage.directory.misnamed import as_stated
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.finding_codes import FAMILIES
from seglog.storage.findings.findings import Finding
from seglog.storage.findings.log_codes import LOG_CODES
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import Survey, survey
from tests.support.audits import as_audited, audit
from tests.support.damage.subjects import SUBJECTS
from tests.support.damage.trial import KIND_NAMES, damage, shared_patient
from tests.support.material.stores import new_clock
from tests.support.scale import chance, scaled

ONE_SPLIT_BYTES: Final = 1 << 40
"""A split never reaches over the end of a file."""
MANY_SPLITS_BYTES: Final = 4096
EACH: Final = scaled(9, 900)
"""Damages of a store, of one kind after the other: every kind once, at the gate by all stores together."""

_BY_CHECK: Final = (
    "compaction-",
    "ext-",
    "file-unreadable",
    "in-use",
    "log-behind-end",
    "not-closed",
    "queue-beyond-topic",
    "queue-kind",
    "rescan-due",
    "seal-",
)
"""What only a check looks at: bytes behind the log, seals, tables, filter data, compaction logs, locks."""
_BY_OPENING: Final = ("log-block-changed", "record-mended", "recovery-point-unused")
"""What only an opening for writing does."""
_FAMILIES: Final = ("Commit log", "Queues", "Checkpoint, and how the store was left")
CODES: Final = frozenset(
    code for name in _FAMILIES for code in FAMILIES[name] if not code.startswith((*_BY_CHECK, *_BY_OPENING))
)
"""What all of them look at."""
OF_LOG: Final = frozenset({"queue-beyond-log", *LOG_CODES}) - {
    "record-queue-offset",
    "seal-missing",
    "tombstones",
    "topic-name",
}
"""What a verification of the log says as a check does. It reads neither what was lost earlier nor what
records mean, and notes each full segment without a seal, also in a store without any."""


def said(findings: Iterable[Finding]) -> list[str]:
    """Returns what findings say of log and queues."""
    return sorted(repr(finding) for finding in findings if finding.code in CODES)


SEEDS: Final = [
    ("real-conf", 4119780346),  # an empty log does not tell whether it had record CRCs
    *(("propcrc", seed) for seed in (1458821056, 150226816, 2651561401)),  # noise for units of any size
    *(("roll", seed) for seed in (2972343676, 1798945699)),
]
"""Damages of which not all said the same once."""


def hold(root: Path) -> None:
    """Asserts that all say the same of a store."""
    files = as_stated(RealFiles(), root)
    found = survey(root, files)
    named = as_audited(found)
    for split_bytes in (ONE_SPLIT_BYTES, MANY_SPLITS_BYTES):
        report = audit(root, split_bytes, files=files)
        assert sorted(map(repr, report.findings)) == sorted(map(repr, named.findings))
    plan = plan_audit(root, files)
    checked = check_store(root, clock=new_clock()).findings
    assert said(checked) == said(each_once(excuse_rescanned(named.findings, plan)))
    # A verification holds no queue against records that it can read.
    segment = found.geometry.segment_size_bytes
    by_queues = {mend.place(segment) for mend in mends_of_places(found, files)}
    hold_verification(root, [one for one in checked if not is_repairable_at(one, by_queues)])
    # Only readers know mends of tags: an audit would read every record whose tag the queue has otherwise.
    as_read = withhold(copy(found), certain_mends(found, files), files, lambda mended: survey(root, mended))
    assert said(survey_store(root, verify=True).findings) == said(as_read.findings)
    hold_repair(root, found)
    try:
        with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
            assert said(store.recovery.findings) == said(as_read.findings)
    except LogMissingError:
        assert "log-empty" in {finding.code for finding in found.findings}


def is_repairable_at(finding: Finding, places: Collection[tuple[str, int, int]]) -> bool:
    """Returns whether a finding names a record as repairable at one of some places."""
    place = (finding.file, finding.position_bytes, finding.size_bytes)
    return finding.code == "record-repairable" and place in places


def hold_verification(root: Path, checked: Iterable[Finding]) -> None:
    """Asserts that a verification of the log says of it what a check does."""
    try:
        report = verify_store(root, clock=new_clock())
    except LogMissingError:
        assert "log-empty" in {finding.code for finding in checked}
        return
    assert said_of_log(report.findings) == said_of_log(checked)


def said_of_log(findings: Iterable[Finding]) -> list[str]:
    """Returns what findings say of the log."""
    return sorted(repr(finding) for finding in findings if finding.code in OF_LOG)


def hold_repair(root: Path, found: Survey) -> None:
    """Asserts that a repair begins with the same findings, where it need not give files their names first."""
    try:
        plan = plan_repair(RealFiles(), root, new_clock())
    except LengthUnknownError:
        assert "log-length-unknown" in {finding.code for finding in found.findings}
    else:
        assert plan.first or said(plan.findings) == said(found.findings)


@pytest.mark.parametrize(("name", "seed"), SEEDS)
def test_all_say_the_same_of_a_damage_of_which_they_once_did_not(name, seed, memory_path: Path):
    damage(shared_patient(name), memory_path / "store", seed)
    hold(memory_path / "store")


@pytest.mark.parametrize("name", SUBJECTS)
def test_all_that_look_at_a_damaged_store_say_the_same_of_log_and_queues(name, memory_path: Path):
    patient = shared_patient(name)
    hold(patient.subject.root)
    kinds = set()
    first = chance("one conclusion").randrange(1 << 32) + SUBJECTS.index(name) * EACH
    for seed in range(first, first + EACH):
        root = memory_path / str(seed)
        kinds.add(damage(patient, root, seed)[0])
        hold(root)
        shutil.rmtree(root)
    assert len(kinds) == min(EACH, len(KIND_NAMES))

"""Surveys, audits of any splits, check, info, readers and repair say the same of log and queues of a store.

Held on random damage to the stores of the campaign. All of them stand on one walk and one conclusion; the
tables here name what only one of them looks at.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Final

import pytest

from seglog.cli.read.reading import survey_store
from seglog.doctor.check.check import check_store
from seglog.doctor.check.rescan import excuse_rescanned
from seglog.doctor.check.told_once import each_once
from seglog.doctor.repair.repair import plan_repair
from seglog.errors import LengthUnknownError, LogMissingError
from seglog.storage.audit.plan import plan_audit
from seglog.storage.certain_mends import certain_mends, damaged_log
from seglog.storage.certain_mends.bits import mends_of_records
from seglog.storage.certain_mends.withheld import withhold
from seglog.storage.directory.misnamed import as_stated
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.finding_codes import FAMILIES
from seglog.storage.findings.findings import Finding
from seglog.storage.store import MessageStore
from seglog.storage.survey.survey import Survey, survey
from tests.support.audits import audit
from tests.support.damage.subjects import SUBJECTS, make_subject
from tests.support.damage.trial import KIND_NAMES, Patient, damage
from tests.support.material.stores import new_clock
from tests.support.scale import scaled

ONE_SPLIT_BYTES: Final = 1 << 40
"""A split never reaches over the end of a file."""
MANY_SPLITS_BYTES: Final = 4096
EACH: Final = scaled(18, 900)
"""Every kind of damage once; the seeds are those of the campaign."""

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


def said(findings: Iterable[Finding]) -> list[str]:
    """Returns what findings say of log and queues."""
    return sorted(repr(finding) for finding in findings if finding.code in CODES)


def as_by_records(found: Survey) -> Survey:
    """Returns a survey that names repairable what records in holes prove, as an audit does."""
    named = copy(found)
    withhold(named, list(mends_of_records(damaged_log(found), RealFiles())))
    return named


def hold(root: Path) -> None:
    """Asserts that all say the same of a store."""
    files = as_stated(RealFiles(), root)
    found = survey(root, files)
    named = as_by_records(found)
    for split_bytes in (ONE_SPLIT_BYTES, MANY_SPLITS_BYTES):
        report = audit(root, split_bytes, files=files)
        assert sorted(map(repr, report.findings)) == sorted(map(repr, named.findings))
    plan = plan_audit(root, files)
    assert said(check_store(root, clock=new_clock()).findings) == said(
        each_once(excuse_rescanned(named.findings, plan))
    )
    # Readers hold all rows: they also know mends of records that can be read.
    withhold(as_read := copy(found), certain_mends(found, files))
    assert said(survey_store(root, verify=True).findings) == said(as_read.findings)
    hold_repair(root, found)
    try:
        with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
            assert said(store.recovery.findings) == said(as_read.findings)
    except LogMissingError:
        assert "log-empty" in {finding.code for finding in found.findings}


def hold_repair(root: Path, found: Survey) -> None:
    """Asserts that a repair begins with the same findings, where it need not give files their names first."""
    try:
        plan = plan_repair(RealFiles(), root, new_clock())
    except LengthUnknownError:
        assert "log-length-unknown" in {finding.code for finding in found.findings}
    else:
        assert plan.first or said(plan.findings) == said(found.findings)


@pytest.mark.parametrize("name", SUBJECTS)
def test_all_that_look_at_a_damaged_store_say_the_same_of_log_and_queues(name, memory_path: Path):
    (memory_path / "store").mkdir()
    patient = Patient.of(name, make_subject(name, memory_path / "store"))
    hold(patient.subject.root)
    kinds = set()
    for seed in range(EACH):
        root = memory_path / str(seed)
        kinds.add(damage(patient, root, seed)[0])
        hold(root)
        shutil.rmtree(root)
    assert kinds == set(KIND_NAMES)

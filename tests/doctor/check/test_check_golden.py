"""A check of real RocketMQ stores finds their damage, all of it, and nothing on intact ones but notes."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.survey.store_survey import survey
from tests.support.audits import as_audited
from tests.support.material import golden

DAMAGES = {
    "d-bodyflip-first": {"record-repairable"},
    "d-bodyflip-first-halt": {"record-repairable"},
    "d-bodyflip-last": {"record-repairable"},
    "d-cqgarbage": {"queue-beyond-log"},
    "d-cqgarbage-halt": {"queue-beyond-log"},
    "d-cqqueue-missing-halt": {"queue-missing"},
    "d-cqtrunc": {"queue-file-size"},
    "d-indexgarbage": {"index-damaged"},
    "d-indexgarbage-halt": {"index-damaged"},
    "d-magic": {"record-repairable"},
    "d-nocheckpoint": {"checkpoint-missing"},
    "d-nocheckpoint-halt": {"checkpoint-missing"},
    "d-nocq": {"queue-missing", "queue-length-unknown"},
    "d-nocq-halt": {"queue-missing", "queue-length-unknown"},
    "d-noindex": {"index-missing"},
    "d-noindex-halt": {"index-missing"},
    "d-propcrc-propflip": {"record-repairable"},
    "d-propflip": {"record-keys"},
    "d-stalecheckpoint": {"checkpoint-behind"},
    "d-stalecheckpoint-halt": {"checkpoint-behind"},
    "d-trimfront": set(),
    "d-trimfront-halt": set(),
    "d-trunclast": {
        "log-torn-tail", "log-file-size", "log-tail-lost", "messages-lost", "checkpoint-ahead",
        "index-entry-stray",
    },
    "d-zeropage-first": {"log-hole"},
    "d-zeropage-last": {"log-hole"},
    "d-zeropage-last-halt": {"log-hole"},
    "d-zerotail": {"log-torn-tail", "log-tail-lost", "messages-lost", "index-entry-stray"},
    "d-zerotail-halt": {"log-torn-tail", "log-tail-lost", "messages-lost"},
}  # fmt: skip
"""Codes of every damaged store beside :data:`USUAL`; files that are gone in front are retention's to take."""

USUAL = {"stray", "log-spare", "not-closed", "half-pending", "offset-without-queue", "timer-waiting"}
"""Notes that intact stores have too; ``lab.properties`` is what they were made with."""


def test_every_damaged_store_is_in_the_table():
    assert DAMAGES.keys() == set(golden.golden_names(damaged=True))


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(name, tmp_path):
    report = check_store(golden.extract(name, tmp_path))
    assert {finding.code for finding in report.findings} - USUAL == DAMAGES[name]
    assert report.state == ("crashed" if name.endswith("-halt") else "clean")


@pytest.mark.parametrize("name", [*golden.golden_names(damaged=False), *golden.config_names()])
def test_an_intact_store_has_nothing_but_notes_and_stays_as_it_is(name, tmp_path):
    root = golden.extract(name, tmp_path)
    before = golden.tree_digest(root)
    report = check_store(root)
    assert {finding.code for finding in report.findings} <= USUAL
    assert report.is_clean
    assert golden.tree_digest(root) == before


SPLITS = [
    (name, split_bytes)
    for split_bytes in (1 << 16, 64 << 20)
    for name in [*golden.golden_names(), *golden.config_names()]
    if name != "broker-store" or split_bytes > 1 << 20  # a log of 1 GiB of holes would be 16,384 splits
]


@pytest.mark.parametrize(("name", "split_bytes"), SPLITS)
def test_a_check_finds_all_that_a_survey_finds(name, split_bytes, tmp_path):
    root = golden.extract(name, tmp_path)
    found = survey(root, RealFiles())
    report = check_store(root, split_bytes=split_bytes)
    found = as_audited(found)
    assert set(found.findings) <= set(report.findings)
    assert (report.records, report.end_phy_offset) == (len(found.rows), found.max_phy_offset)
    assert list(report.holes) == found.holes


def test_what_is_lost_is_counted_once(tmp_path):
    report = check_store(golden.extract("d-trunclast", tmp_path))
    assert report.lost_messages == 32
    assert report.counts[Severity.LOSS] == 11
    assert not report.is_clean


def test_the_front_of_a_log_that_may_be_lost_is_said_to_be_out_of_sight(tmp_path):
    report = check_store(golden.extract("d-trimfront", tmp_path))
    assert any("before 131,072" in text for text in report.not_looked_at)

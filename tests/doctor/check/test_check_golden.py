"""A check of real RocketMQ stores finds their damage, all of it, and nothing on intact ones but notes."""

from __future__ import annotations

from seglog.doctor.check.check import check_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.survey.store_survey import survey
from tests.support.audits import as_audited
from tests.support.damage.treatment import checked
from tests.support.machine.shared import content_digest
from tests.support.material import golden
from tests.support.rows import every_row

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


def test_damage_is_found():
    with every_row() as row:
        for name, codes in DAMAGES.items():
            with row(name):
                report = checked(name)
                assert {finding.code for finding in report.findings} - USUAL == codes
                assert report.state == ("crashed" if name.endswith("-halt") else "clean")


def test_an_intact_store_has_nothing_but_notes_and_stays_as_it_is():
    with every_row() as row:
        for name in [*golden.golden_names(damaged=False), *golden.config_names()]:
            with row(name):
                before = content_digest(golden.shared(name))
                report = check_store(golden.shared(name))
                assert {finding.code for finding in report.findings} <= USUAL
                assert report.is_clean
                assert content_digest(golden.shared(name)) == before


def test_a_check_finds_all_that_a_survey_finds():
    with every_row() as row:
        for name in [*golden.golden_names(), *golden.config_names()]:
            found = as_audited(survey(golden.shared(name), RealFiles()))
            # A log of 1 GiB of holes would be 16,384 splits of 64 KiB.
            for split_bytes in (None, 1 << 16) if name != "broker-store" else (None,):
                with row(name, split_bytes):
                    report = (
                        check_store(golden.shared(name), split_bytes=split_bytes)
                        if split_bytes
                        else checked(name)
                    )
                    assert set(found.findings) <= set(report.findings)
                    assert (report.records, report.end_phy_offset) == (len(found.rows), found.max_phy_offset)
                    assert list(report.holes) == found.holes


def test_what_is_lost_is_counted_once():
    report = checked("d-trunclast")
    assert report.lost_messages == 32
    assert report.counts[Severity.LOSS] == 11
    assert not report.is_clean


def test_the_front_of_a_log_that_may_be_lost_is_said_to_be_out_of_sight():
    report = checked("d-trimfront")
    assert any("before 131,072" in text for text in report.not_looked_at)

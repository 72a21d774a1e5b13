"""Each way to damage a store of a broker has a code of its own, in any part of the store."""

from __future__ import annotations

import os

import pytest

from seglog.doctor.check.check import check_store
from seglog.storage.findings.finding_codes import CODES
from seglog.storage.store import MessageStore
from tests.support.damage.broker_damage import (
    DAMAGES,
    own,
)
from tests.support.damage.treatment import MAKERS, damages_of, treated, whole
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock
from tests.support.rows import every_row


def test_undamaged_these_stores_are_clean():
    with every_row() as row:
        for make in MAKERS:
            with row(make.__name__):
                report = check_store(whole(make))
                assert report.is_clean, [str(finding) for finding in report.findings]


@pytest.mark.parametrize("make", MAKERS)
def test_damage_has_a_code_and_nothing_is_written(make):
    usual = {finding.code for finding in check_store(whole(make)).findings}
    with every_row() as row:
        for name in damages_of(make):
            with row(name):
                done = treated(name)
                assert DAMAGES[name][2] <= done.before.check.codes - usual
                assert not done.changed


def test_half_messages_that_nobody_settled_and_op_records_of_none(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        for _ in range(3):
            store.put("RMQ_SYS_TRANS_HALF_TOPIC", b"half")
        store.put("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"0,9,", tags="d")
    told = {finding.code: finding.messages for finding in check_store(root).findings}
    assert told == {"half-pending": 2, "op-beyond-half": 1}


def test_groups_behind_what_retention_took_missed_messages(tmp_path):
    root = own(tmp_path / "store")
    (root / "commitlog" / f"{0:020d}").unlink()
    report = check_store(root)
    (finding,) = [finding for finding in report.findings if finding.code == "offset-below-queue"]
    lag = next(lag for lag in report.lags if lag.queue_id == 0)
    assert (lag.offset, lag.missed) == (3, finding.messages)
    assert lag.lag == lag.max_offset - lag.min_offset


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_is_told_once_for_its_folder(tmp_path):
    root = own(tmp_path / "store")
    for path in (root / "commitlog").iterdir():
        os.chown(path, 12345, -1)
    (finding,) = [finding for finding in check_store(root).findings if finding.code == "file-owner"]
    assert finding.file == f"commitlog/{0:020d}"
    assert "more in this folder" in finding.found


def test_every_code_that_is_no_older_one_has_a_damage_here():
    shown = set().union(*(expected for _make, _damage, expected in DAMAGES.values()))
    elsewhere = {
        # by the survey, verify and open, which have tests of their own
        "log-torn-tail", "log-tail-lost", "messages-lost", "tombstones", "log-spare", "log-block-changed",
        "recovery-point-unused", "seal-stale", "topic-name", "queue-beyond-log", "queue-file-size",
            "queue-deleted", "queue-due", "index-due", "rescan-due", "checkpoint-behind",
        # in this folder
        "in-use", "file-owner", "half-pending", "op-beyond-half", "offset-below-queue", "timer-waiting",
        "delay-offset-below",
        # parts/test_rocksdb_stores.py and test_rocksdb_faults.py
        "rocksdb-damaged", "rocksdb-queues", "rocksdb-tables",
        # test_lengths.py, test_memory.py, test_packed_log_files.py, test_hostile_packs.py,
        # test_opening_mends.py and those of cli: test_erase_journal.py, test_undo_packs.py,
        # test_log_in_folders.py
        "log-file-doubled", "log-folder", "log-length-unknown", "queue-length-unknown", "queue-file-due",
        "file-unreadable",
            "log-file-packed", "record-mended",
            "erase-unfinished", "erase-unsound", "undo-unfinished", "undo-unsound",
    }  # fmt: skip
    assert shown | elsewhere == CODES.keys()
    assert not shown & elsewhere

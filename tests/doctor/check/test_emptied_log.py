"""A log whose files are empty, zeros or gone: every loss is counted, and RocketMQ's end of the log is known.

The names of empty files say how long they were.
"""

from __future__ import annotations

import os

import pytest

from seglog.doctor.check.broker_start import Start
from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from seglog.doctor.check.verify import verify_store
from seglog.doctor.repair.repair import plan_repair
from seglog.storage.directory.broker_conf import encode_lengths
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.files.files import RealFiles
from tests.doctor.check.test_lengths import SEGMENT, log_files
from tests.support.damage.log_ends import LOG_ENDS
from tests.support.damage.treatment import run
from tests.support.machine.shared import copy_tree
from tests.support.material import golden
from tests.support.material.stores import new_clock
from tests.support.rows import every_row


def emptied(folder, size_bytes=0):
    """Returns a store of 400 messages whose log files hold nothing."""
    root = golden.extract("roll", folder)
    for path in log_files(root):
        os.truncate(path, 0)
        os.truncate(path, size_bytes)
    return root


@pytest.mark.parametrize("size_bytes", [0, SEGMENT])
def test_every_message_of_an_emptied_log_is_counted(size_bytes, tmp_path):
    root = emptied(tmp_path, size_bytes)
    report = check_store(root, clock=new_clock())
    assert report.geometry.segment_size_bytes == SEGMENT
    assert report.lost_messages == 400
    plan = plan_repair(RealFiles(), root, new_clock())
    assert sum(action.lost_messages for action in plan.actions) == 400
    assert run("repair", "--apply", "--yes", root)[0] == run("check", root)[0] == 0


@pytest.mark.parametrize("size_bytes", [0, SEGMENT])
def test_verify_does_not_certify_an_emptied_log(size_bytes, tmp_path):
    report = verify_store(emptied(tmp_path, size_bytes))
    assert not report.is_clean
    assert {finding.code for finding in report.findings} >= {"messages-lost", "log-tail-lost"}


def test_verify_does_not_certify_zeros_that_queues_know_records_in(tmp_path):
    root = golden.extract("roll", tmp_path)
    last = log_files(root)[-1]
    assert verify_store(root).is_clean
    last.write_bytes(bytes(SEGMENT))
    assert not verify_store(root).is_clean


def test_names_of_an_emptied_log_go_over_what_was_written_down(tmp_path):
    root = emptied(tmp_path)
    (root / "seglog").mkdir()
    (root / "seglog" / "lengths.conf").write_bytes(encode_lengths(FileSizes(segment_bytes=8192)))
    assert check_store(root, clock=new_clock()).geometry.segment_size_bytes == SEGMENT


@pytest.mark.parametrize("name", ["roll", "roll-halt"])
def test_a_verdict_knows_where_rocketmq_ends_the_log(name, tmp_path):
    whole = golden.shared(name)
    with every_row() as row:
        for number, (what, one) in enumerate(LOG_ENDS.items()):
            with row(what):
                root = copy_tree(whole, tmp_path / str(number))
                one.damage(root)
                start = verdict_on(check_store(root, clock=new_clock())).start
                assert start.end_phy_offset == (one.closed if name == "roll" else one.halted)
                assert start.start is (Start.LOSES if start.cut_at >= 0 else Start.YES)


def test_queue_offsets_are_given_again_only_where_rocketmq_ends_the_log_before_them(tmp_path):
    whole = golden.shared("roll-halt")

    def do_not(what):
        root = copy_tree(whole, tmp_path / what)
        LOG_ENDS[what].damage(root)
        return verdict_on(check_store(root, clock=new_clock())).do_not

    assert do_not("the last file is gone, the prepared one is not") == ""
    assert "gives the queue offsets of 73 lost messages" in do_not(
        "the last file and the prepared one are gone"
    )

"""Whether the only file of a log was cut is told by queues whose records would go over its end."""

from __future__ import annotations

import os

import pytest

from seglog.doctor.check import check_store
from seglog.doctor.cut_log import cut_log_finding
from seglog.doctor.repair import FileSizes, plan_repair, repair_store
from seglog.storage.files import RealFiles
from seglog.storage.survey import survey
from tests.support import golden
from tests.support.stores import new_clock

ONE_FILE = ("delay", "innerbatch", "ipv6", "tx")


@pytest.mark.parametrize("name", golden.golden_names(damaged=False))
def test_no_whole_store_looks_cut(name, tmp_path):
    root = golden.extract(name, tmp_path)
    assert cut_log_finding(survey(root, RealFiles())) is None


@pytest.mark.parametrize("name", ONE_FILE)
def test_a_cut_file_is_left_alone_until_its_length_is_given(name, tmp_path):
    root = golden.extract(name, tmp_path)
    (log,) = (root / "commitlog").iterdir()
    size = log.stat().st_size
    os.truncate(log, 2000)
    plan = plan_repair(RealFiles(), root, new_clock())
    assert ([finding.code for finding in plan.left], plan.changes) == (["log-file-size"], [])
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True, FileSizes(2000, segment_bytes=size))
    assert log.stat().st_size == size
    assert check_store(root, clock=new_clock()).lost_messages == 0


def test_noise_in_a_queue_file_does_not_make_the_log_look_cut(tmp_path):
    root = golden.extract("delay", tmp_path)
    queue = next(path for path in sorted(root.glob("consumequeue/*/*/*")) if path.stat().st_size)
    with queue.open("r+b") as file:
        file.seek(20)
        file.write((4_349_667_152_827_188_000).to_bytes(8, "big") + (189).to_bytes(4, "big"))
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert {finding.code for finding in check_store(root, clock=new_clock()).findings} <= {"stray"}

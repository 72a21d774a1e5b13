"""A compressed log file that the log lacks: no message of it is called lost, and none is given up."""

from __future__ import annotations

import gzip

import pytest

from seglog.doctor.check import check_store, verdict_on
from seglog.doctor.check.broker_start import Start
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock, served


def served_by_reader(root):
    with MessageStore.open(root, read_only=True) as store:
        return served(store)


def repaired(root):
    return repair_store(RealFiles(), root, new_clock(), lambda _plan: True)[0]


@pytest.mark.parametrize("number", [0, 1], ids=["first", "middle"])
def test_a_repair_waits_for_a_compressed_file_that_the_log_lacks(number, tmp_path):
    root = golden.extract("roll", tmp_path)
    whole = served_by_reader(root)
    path = sorted((root / "commitlog").iterdir())[number]
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    report = check_store(root, clock=new_clock())
    assert [one.file for one in report.findings if one.code == "log-file-packed"] == [
        f"commitlog/{packed.name}"
    ]
    verdict = verdict_on(report)
    assert (verdict.start.start, verdict.lost, verdict.is_log_unread) == (Start.NO, None, True)
    before = tree_digest(root)
    plan = repaired(root)
    assert [one.code for one in plan.left] == ["log-file-packed"]
    now = tree_digest(root)
    assert {name: now[name] for name in before if name != "lock"} == {
        name: digest for name, digest in before.items() if name != "lock"
    }
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    repaired(root)  # the file is there again: its compressed copy is a stray
    assert not packed.exists()
    assert served_by_reader(root) == whole
    assert check_store(root, clock=new_clock()).is_clean

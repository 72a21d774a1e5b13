"""A store whose log is gone as a whole is not opened: its offsets would be given again."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.check.verify import verify_store
from seglog.doctor.repair.repair import plan_repair
from seglog.errors import FileKindError, LogMissingError
from seglog.storage.directory.log_gone import demand_log
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.store import MessageStore
from tests.support.material.golden import extract, tree_digest
from tests.support.material.stores import SMALL, fill, new_clock, served

TIMES_BYTES = 24
"""Three times at the head of a checkpoint."""


def with_bytes(data: bytes, at: int, value: int) -> bytes:
    """Returns data with one byte of another value."""
    return data[:at] + bytes([value]) + data[at + 1 :]


@pytest.fixture(params=["folder", "files"])
def gone(request, tmp_path):
    """A store of which the folder of the log is gone, or all that was in it; and the log."""
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        fill(store, 20)
    shutil.move(root / "commitlog", tmp_path / "log")
    if request.param == "files":
        (root / "commitlog").mkdir()
    return root, tmp_path / "log"


@pytest.mark.parametrize("read_only", [True, False])
def test_it_is_refused_and_nothing_is_changed(gone, read_only):
    root, log = gone
    before = tree_digest(root)
    with pytest.raises(LogMissingError, match="commit-log files expected, found none, but"):
        MessageStore.open(root, read_only=read_only)
    with pytest.raises(LogMissingError):
        verify_store(root)
    assert tree_digest(root) == before
    shutil.rmtree(root / "commitlog", ignore_errors=True)
    shutil.move(log, root / "commitlog")
    with MessageStore.open(root, clock=new_clock(), read_only=read_only) as store:
        assert sum(map(len, served(store).values())) == 20


def test_check_calls_it_a_loss(gone):
    (found,) = (one for one in check_store(gone[0]).findings if one.severity is not Severity.NOTE)
    assert (found.code, found.severity) == ("log-empty", Severity.LOSS)


def test_a_link_for_it_that_nobody_named_is_told(gone):
    root, log = gone
    shutil.rmtree(root / "commitlog", ignore_errors=True)
    (root / "commitlog").symlink_to(log)
    for read_only in (True, False):
        with pytest.raises(FileKindError, match="commitlog is a link"):
            MessageStore.open(root, read_only=read_only)
    with MessageStore.open(root, read_only=True, follow=("commitlog",)) as store:
        assert sum(map(len, served(store).values())) == 20


def test_a_store_that_never_had_a_message_opens(tmp_path):
    MessageStore.open(tmp_path / "store", clock=new_clock()).close()
    shutil.rmtree(tmp_path / "store" / "commitlog", ignore_errors=True)
    with MessageStore.open(tmp_path / "store", clock=new_clock()) as store:
        assert store.put("T", b"x").queue_offset == 0


@pytest.mark.parametrize("of_rocketmq", [False, True], ids=["own", "RocketMQ's"])
def test_damage_to_the_checkpoint_of_a_store_that_never_had_a_message_tells_of_no_log(of_rocketmq, tmp_path):
    if of_rocketmq:
        root = extract("empty", tmp_path)
    else:
        root = tmp_path / "store"
        MessageStore.open(root, clock=new_clock()).close()
    path = root / "checkpoint"
    zeros = path.read_bytes()
    for bit in range(TIMES_BYTES * 8):
        path.write_bytes(with_bytes(zeros, bit // 8, zeros[bit // 8] ^ 1 << bit % 8))
        demand_log(RealFiles(), root)
    for at, value in itertools.product(range(TIMES_BYTES), (1, 2, 3, 0x55, 0xFF)):
        path.write_bytes(with_bytes(zeros, at, value))
        demand_log(RealFiles(), root)
    path.write_bytes(with_bytes(zeros, 7, 128))
    assert not {one.code for one in check_store(root, clock=new_clock()).findings} & {"log-empty"}
    assert verify_store(root, clock=new_clock()).findings == ()
    assert plan_repair(RealFiles(), root, new_clock()).left == []
    MessageStore.open(root, read_only=True).close()
    with MessageStore.open(root, clock=new_clock()) as store:
        assert store.put("T", b"x").queue_offset == 0


def test_what_the_error_names_lets_a_new_log_begin_once_it_was_moved_away(tmp_path):
    root = extract("basic", tmp_path)
    shutil.rmtree(root / "commitlog")
    (root / "commitlog").mkdir()
    with pytest.raises(LogMissingError) as refused:
        MessageStore.open(root)
    for name in re.findall(r" in ([a-z]+)", str(refused.value)):
        shutil.move(root / name, tmp_path / f"away-{name}")
    with MessageStore.open(root, clock=new_clock()) as store:
        assert store.put("T", b"x").queue_offset == 0


_TELLING = {
    "checkpoint": "times in checkpoint",
    "index": "146 entries in index",
    "config": "offsets in config/consumerOffset.json",
}


@pytest.mark.parametrize("telling", _TELLING)
def test_without_log_and_queues_any_other_file_tells_of_them(telling, tmp_path):
    root = extract("real-conf", tmp_path)
    for name in {"commitlog", "consumequeue", *_TELLING} - {telling}:
        remove = shutil.rmtree if (root / name).is_dir() else Path.unlink
        remove(root / name)
    (root / "commitlog").mkdir()
    (root / "consumequeue").mkdir()
    before = tree_digest(root)
    for read_only in (True, False):
        with pytest.raises(LogMissingError, match=f"none, but {_TELLING[telling]}"):
            MessageStore.open(root, read_only=read_only)
    (found,) = (one for one in check_store(root).findings if one.severity is Severity.LOSS)
    plan = plan_repair(RealFiles(), root, new_clock())
    assert (found.code, plan.changes) == ("log-empty", [])
    assert [one.code for one in plan.left] == ["log-empty"]
    assert tree_digest(root) == before


def test_a_recovery_point_tells_of_a_log(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), recovery_step_bytes=1 << 12, **SMALL) as store:
        fill(store, 200)
    assert (root / "seglog/recovery-point").exists()
    for name in ("commitlog", "consumequeue", "index"):
        shutil.rmtree(root / name)
    (root / "commitlog").mkdir()
    (root / "checkpoint").unlink()
    with pytest.raises(LogMissingError, match="none, but a place in seglog/recovery-point"):
        MessageStore.open(root)


def test_an_offset_that_a_client_stored_in_an_empty_store_tells_of_no_log(tmp_path):
    root = extract("empty", tmp_path)
    (root / "config").mkdir()
    (root / "config/consumerOffset.json").write_text('{"offsetTable":{"T@G":{"0":7}}}')
    with MessageStore.open(root, clock=new_clock()) as store:
        assert store.put("T", b"x").queue_offset == 0

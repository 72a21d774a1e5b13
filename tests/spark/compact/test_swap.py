"""Whenever a compaction stops, the store is the old one or the new one, whole, and the next run finishes."""

from __future__ import annotations

import contextlib
import errno
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typing_extensions import override

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.errors import (
    FullError,
    NotFoundError,
    StoreFailedError,
    StoreLockedError,
    UndoError,
    UnsupportedStoreError,
)
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import discard_old, finish_swap, new_store, old_store, undo_swap, work_folder
from seglog.storage.files.files import RealFiles
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.local_runner import LocalRunner
from tests.support.machine.children import child
from tests.support.material.compactions import STEP_MS, fill_random, said
from tests.support.material.stores import served
from tests.support.narrow import not_none
from tests.support.scale import chance, is_gate

POLICIES = {"Prices": Policy(compact=True), "Events": Policy(retention_ms=20 * STEP_MS)}


class SwapFiles(FailingFiles):
    """Calls fail in turn; with ``can_exchange`` off as on a system that knows no exchange."""

    def __init__(self, fault, *, can_exchange=True):
        super().__init__(fault)
        self._can_exchange = can_exchange

    def exchange(self, first, second):
        self._fault.check("exchange", first)
        return self._can_exchange and RealFiles().exchange(first, second)

    @override
    def remove_dir(self, path):
        self._fault.check("remove_dir", path)
        RealFiles().remove_dir(path)


def compaction(root, now_ms, files=None):
    files = files or RealFiles()
    return Compaction(
        root,
        POLICIES,
        allow_undelivered=True,
        split_bytes=6_000,
        runner=LocalRunner(RealFiles()),
        files=files,
        clock=VirtualClock(now_ms),
        draw=lambda _bits: 99,
    )


def content(root):
    with MessageStore.open(root, read_only=True) as store:
        return {key: [said(m) for m in messages] for key, messages in served(store).items()}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store, what it holds, and what it holds once it is compacted."""
    root = tmp_path_factory.mktemp("stores") / "s"
    filled = fill_random(root, 5, 200)
    twin = root.with_name("twin")
    shutil.copytree(root, twin, copy_function=shutil.copy2)
    assert compaction(twin, filled.now_ms).apply().is_done
    return root, filled.now_ms, content(root), content(twin)


def copy_of(root, target):
    shutil.copytree(root, target, copy_function=shutil.copy2)
    return target


@pytest.mark.parametrize("can_exchange", [True, False], ids=["exchange", "two renames"])
def test_every_call_of_the_swap_may_be_the_last(stores, tmp_path, can_exchange):
    original, now_ms, before, after = stores
    made = copy_of(original, tmp_path / "made")
    swapped = copy_of(original, tmp_path / "counted")
    stop_before_swap(swapped, now_ms)
    whole = Fault()
    assert finish_swap(SwapFiles(whole, can_exchange=can_exchange), swapped)
    assert content(swapped) == after
    stop_before_swap(made, now_ms)
    seen = set()
    for at in range(1, whole.count + 1):
        place = tmp_path / f"at {at}"
        place.mkdir()
        root = copy_of(made, place / "made")
        shutil.copytree(work_folder(made), work_folder(root), copy_function=shutil.copy2)
        fault = Fault(at, errno.EIO, sticky=True)
        with pytest.raises(OSError, match="Input/output"):
            finish_swap(SwapFiles(fault, can_exchange=can_exchange), root)
        if root.exists():
            now = content(root)
            assert now in (before, after)
            seen.add(now == after)
        else:
            assert not can_exchange
        compaction(root, now_ms).apply()
        assert content(root) == after
        assert check_store(root).records == sum(len(messages) for messages in after.values())
        assert content(old_store(root)) == before
        shutil.rmtree(place)
    assert seen == {True, False}


def stop_before_swap(root, now_ms):
    """Makes a new store beside the old one, and stops when it is whole."""
    fault = Fault(1, errno.EIO, sticky=True, names=frozenset({"exchange"}))
    with pytest.raises(StoreFailedError, match="the disk failed"):
        compaction(root, now_ms, SwapFiles(fault)).apply()
    assert new_store(root).exists()


def test_staging_that_fails_anywhere_leaves_the_store_as_it_was(stores, tmp_path):
    original, now_ms, before, after = stores
    counted = Fault()
    compaction(copy_of(original, tmp_path / "counted"), now_ms, SwapFiles(counted)).apply()
    for at in range(2, counted.count, counted.count // 12):
        root = copy_of(original, tmp_path / f"{at}")
        fault = Fault(at, errno.ENOSPC, sticky=True)
        with contextlib.suppress(FullError):
            compaction(root, now_ms, SwapFiles(fault)).apply()
        assert fault.fired
        assert content(root) in (before, after)
        compaction(root, now_ms).apply()
        assert content(root) == after
        shutil.rmtree(root)


CHILD = """
import sys
import time
from pathlib import Path
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from tests.spark.compact.test_swap import compaction
print("begun", flush=True)
compaction(Path(sys.argv[1]), int(sys.argv[2])).apply()
"""


DELAYS_S = [0.02, 0.1, 0.25, 0.5]


def test_killed_process_leaves_a_whole_store(stores, tmp_path):
    original, now_ms, before, after = stores
    for delay_s in chance("killed swap").sample(DELAYS_S, 2 if is_gate() else 4):
        root = copy_of(original, tmp_path / f"{delay_s}")
        words = [sys.executable, "-c", CHILD, root, str(now_ms), "", Path.cwd()]
        with child(words, stdout=subprocess.PIPE) as compacting:
            not_none(compacting.stdout).readline()
            time.sleep(delay_s)
            compacting.kill()
            compacting.wait()
        assert not root.exists() or content(root) in (before, after)
        compaction(root, now_ms).apply()
        assert content(root) == after


def test_new_store_of_an_old_one_that_was_written_to_is_made_again(stores, tmp_path):
    original, now_ms, _before, _after = stores
    root = copy_of(original, tmp_path / "s")
    stop_before_swap(root, now_ms)
    with MessageStore.open(root, clock=VirtualClock(now_ms)) as store:
        store.put("Prices", b"meanwhile", keys="new")
    assert compaction(root, now_ms + 1).apply().plan is not None
    with MessageStore.open(root, read_only=True) as store:
        assert [m.body for m in store.get("Prices", 0, store.max_offset("Prices", 0) - 1)] == [b"meanwhile"]


def test_compaction_can_be_put_back_until_something_is_written(stores, tmp_path):
    original, now_ms, before, after = stores
    root = copy_of(original, tmp_path / "s")
    with pytest.raises(NotFoundError, match="no older state"):
        undo_swap(RealFiles(), root)
    compaction(root, now_ms).apply()
    undo_swap(RealFiles(), root)
    assert content(root) == before
    assert not work_folder(root).exists()
    compaction(root, now_ms).apply()
    with MessageStore.open(root) as store:
        store.put("Prices", b"later")
    with pytest.raises(UndoError, match="written to"):
        undo_swap(RealFiles(), root)
    discard_old(RealFiles(), root)
    assert not work_folder(root).exists()
    assert len(content(root)["Prices", 0]) == len(after["Prices", 0]) + 1


def test_a_store_that_was_removed_after_its_compaction(stores, tmp_path):
    original, now_ms, before, _after = stores
    root = copy_of(original, tmp_path / "s")
    compaction(root, now_ms).apply()
    shutil.rmtree(root)
    with pytest.raises(NotFoundError, match=r"s is gone; .*old is what it was before"):
        finish_swap(RealFiles(), root)
    old_store(root).rename(root)
    assert content(root) == before


def test_store_that_is_open_is_not_compacted(stores, tmp_path):
    original, now_ms, _before, _after = stores
    root = copy_of(original, tmp_path / "s")
    with MessageStore.open(root), pytest.raises(StoreLockedError):
        compaction(root, now_ms).apply()
    assert not work_folder(root).exists()


def test_a_store_whose_log_is_in_several_folders_is_not_exchanged_for_another(tmp_path):
    root = tmp_path / "store"
    fill_random(root, 3)
    path = max((root / "commitlog").iterdir())
    (root / "commitlog2").mkdir()
    path.rename(root / "commitlog2" / path.name)
    with pytest.raises(UnsupportedStoreError, match="commitlog, commitlog2"):
        Compaction(root, POLICIES).check(apply=True)

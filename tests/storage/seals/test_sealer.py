"""Segments are sealed behind the log, and nothing that happens meanwhile leaves half a seal."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from typing_extensions import override

from seglog.clock import SystemClock, VirtualClock
from seglog.doctor.check.verify import verify_store
from seglog.errors import FullError
from seglog.storage.files.files import RealFiles
from seglog.storage.seals.seal_files import list_seals, read_seal
from seglog.storage.seals.sealer import Sealer
from seglog.storage.store import MessageStore
from seglog.storage.writes import writer
from tests.support.machine.patience import patience_s, wait_until
from tests.support.material import golden
from tests.support.material.sealed import (
    BODY_BYTES,
    SEGMENT_BYTES,
    fill,
    flip,
    seal_of,
    sealed_store,
    segment,
)

FULL = [number * SEGMENT_BYTES for number in range(3)]
_MESSAGES = 800
"""Three full segments and a bit more."""


def a_sealer(path, flushed=3 * SEGMENT_BYTES, files=None, clock=None, first=0):
    return Sealer(files or RealFiles(), path, clock or VirtualClock(), SEGMENT_BYTES, first, lambda: flushed)


@pytest.fixture(scope="module")
def original(module_folders):
    path = module_folders.mktemp("sealer") / "store"
    fill(path, _MESSAGES, VirtualClock())
    return path


@pytest.fixture
def store(original, tmp_path):
    return shutil.copytree(original, tmp_path / "store")


def sealers_since(before):
    """Returns the sealing threads that were not there before: stores that tests dropped may have some."""
    return [
        thread for thread in threading.enumerate() if thread.name == "seglog-seal" and thread not in before
    ]


def test_full_segments_are_sealed_and_the_growing_one_is_not(store):
    assert a_sealer(store, flushed=3 * SEGMENT_BYTES + 100).seal_due() == 3
    assert list_seals(RealFiles(), store) == FULL
    seals = [read_seal(RealFiles(), store, first) for first in FULL]
    with MessageStore.open(store, read_only=True) as opened:
        rows = opened.recovery.records
    assert sum(seal.record_count for seal in seals) < rows
    assert {seal.created_ms for seal in seals} == {VirtualClock().now_ms()}
    assert all(seal.first_store_timestamp_ms < seal.last_store_timestamp_ms for seal in seals)
    assert verify_store(store).by_seal == tuple(FULL)


def test_what_is_not_flushed_waits(store):
    flushed = [2 * SEGMENT_BYTES - 1]
    sealer = Sealer(RealFiles(), store, VirtualClock(), SEGMENT_BYTES, 0, lambda: flushed[0])
    assert sealer.seal_due() == 1
    assert sealer.seal_due() == 0
    flushed[0] += 1
    assert sealer.seal_due() == 1
    assert list_seals(RealFiles(), store) == FULL[:2]


def test_an_open_store_seals_what_the_log_rolls_past(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "SEAL_INTERVAL_MS", 10)
    path = tmp_path / "store"
    with MessageStore.open(path, segment_size_bytes=SEGMENT_BYTES, flush_interval_ms=10) as store:
        for _ in range(2 * SEGMENT_BYTES // BODY_BYTES):
            store.put("orders", bytes(BODY_BYTES))
        wait_until(lambda: len(list_seals(RealFiles(), path)) == 2)
        report = verify_store(path)
        assert (report.by_seal, report.is_clean) == (tuple(FULL[:2]), True)


def test_a_store_that_never_had_seals_gets_them_while_it_is_open(store, monkeypatch):
    monkeypatch.setattr(writer, "SEAL_INTERVAL_MS", 10)
    with MessageStore.open(store):
        wait_until(lambda: list_seals(RealFiles(), store) == FULL)


def test_closing_does_not_wait_for_a_segment(original, tmp_path, monkeypatch):
    """The sealer is in a long rest between two pieces when the store is closed."""
    monkeypatch.setattr(writer, "SEAL_INTERVAL_MS", 1)
    monkeypatch.setattr("seglog.storage.seals.sealer._REST", 10**9)
    before = set(threading.enumerate())
    store = MessageStore.open(shutil.copytree(original, tmp_path / "store"))
    time.sleep(0.2)
    begun_s = time.monotonic()
    store.close()
    assert time.monotonic() - begun_s < patience_s(5)
    assert not sealers_since(before)
    assert list_seals(RealFiles(), tmp_path / "store") == []


def test_a_damaged_segment_is_not_sealed_and_does_not_keep_others_from_it(store):
    flip(segment(store, 1), 5000)
    assert a_sealer(store).seal_due() == 2
    assert list_seals(RealFiles(), store) == [FULL[0], FULL[2]]


def test_a_segment_that_is_gone_does_not_keep_others_from_it(store):
    segment(store, 1).unlink()
    assert a_sealer(store).seal_due() == 2


def test_a_full_disk_postpones_the_seal(store):
    class Full(RealFiles):
        is_full = True

        @override
        def write_file(self, path, data, *, sync=True):
            if self.is_full:
                raise FullError(f"{path}: no space left for the next write")
            super().write_file(path, data, sync=sync)

    files = Full()
    sealer = a_sealer(store, files=files)
    with pytest.raises(FullError):
        sealer.seal_due()
    files.is_full = False
    assert sealer.seal_due() == 3


class KilledError(BaseException):
    pass


class KilledFiles(RealFiles):
    """Ends the process, as it were, at the n-th call that changes something, half done."""

    def __init__(self, calls):
        self._calls = calls

    def _dies(self):
        self._calls -= 1
        return self._calls == 0

    @override
    def make_dirs(self, path, *, sync=True):
        if self._dies():
            raise KilledError
        super().make_dirs(path, sync=sync)

    @override
    def write_file(self, path, data, *, sync=True):
        if self._dies():
            super().write_file(path, data[: len(data) // 2], sync=False)
            raise KilledError
        super().write_file(path, data, sync=sync)

    @override
    def rename(self, source, target):
        if self._dies():
            raise KilledError
        super().rename(source, target)

    @override
    def sync_dir(self, path):
        if self._dies():
            raise KilledError
        super().sync_dir(path)


@pytest.mark.parametrize("calls", range(1, 9))
def test_killed_at_any_step_of_sealing_no_half_seal_is_left(store, calls):
    """Eight steps: the folders, and the first two seals."""
    with pytest.raises(KilledError):
        a_sealer(store, files=KilledFiles(calls)).seal_due()
    assert verify_store(store).is_clean
    again = Sealer(RealFiles(), store, SystemClock(), SEGMENT_BYTES, 0, lambda: 3 * SEGMENT_BYTES)
    again.start(1)
    wait_until(lambda: list_seals(RealFiles(), store) == FULL)
    again.stop()
    assert {file.suffix for file in (store / "seglog" / "seals").iterdir()} == {".seal"}
    assert verify_store(store).by_seal == tuple(FULL)


def test_a_process_killed_while_it_seals_leaves_a_store_that_verifies(store, start_child):
    """SIGKILL at random moments of a process that seals the same segments over and over."""
    code = (
        "import sys; from pathlib import Path; from seglog.storage.seals.seal_files import *\n"
        "from seglog.storage.seals.seal import make_seal; from seglog.storage.files.files import RealFiles\n"
        "files, root = RealFiles(), Path(sys.argv[1]); print('ready', flush=True)\n"
        "while True:\n"
        f"    for first in {FULL!r}:\n"
        f"        write_seal(files, root, make_seal(files, root, first, {SEGMENT_BYTES}, 1, lambda: True))\n"
    )
    for wait_ms in (0, 3, 7, 20, 50, 90):
        process = start_child([sys.executable, "-c", code, store], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(wait_ms / 1000)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for first in list_seals(RealFiles(), store):
            assert read_seal(RealFiles(), store, first).record_count
        assert verify_store(store).is_clean


def test_seals_of_segments_that_retention_took_go_too(tmp_path):
    path = tmp_path / "store"
    sealed_store(path)
    segment(path, 0).unlink()
    sealer = Sealer(RealFiles(), path, SystemClock(), SEGMENT_BYTES, FULL[1], lambda: 4 * SEGMENT_BYTES)
    sealer.start(1)
    wait_until(lambda: list_seals(RealFiles(), path) == [number * SEGMENT_BYTES for number in range(1, 4)])
    sealer.stop()


def test_a_log_cut_by_recovery_takes_its_seals_to_the_attic(tmp_path):
    path = tmp_path / "store"
    sealed_store(path)
    with segment(path, 2).open("r+b") as stream:
        stream.truncate(SEGMENT_BYTES // 2)
        stream.truncate(SEGMENT_BYTES)
    segment(path, 3).unlink()
    segment(path, 4).unlink()
    MessageStore.open(path).close()
    assert list_seals(RealFiles(), path) == FULL[:2]
    kept = [file.name for file in (path / "seglog" / "attic").iterdir() if file.suffix == ".seal"]
    assert sorted(name.rpartition("-")[2] for name in kept) == [seal_of(path, 2).name, seal_of(path, 3).name]
    assert verify_store(path).is_clean


def test_an_unwritable_seals_folder_ends_sealing_and_nothing_else(store, monkeypatch):
    class Denied(RealFiles):
        @override
        def make_dirs(self, path, *, sync=True):
            if path.name == "seals":
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            super().make_dirs(path, sync=sync)

    monkeypatch.setattr(writer, "SEAL_INTERVAL_MS", 1)
    before = set(threading.enumerate())
    with MessageStore.open(store, files=Denied()) as opened:
        wait_until(lambda: not sealers_since(before))
        opened.put("orders", b"still works")
        opened.flush()


def test_seals_do_not_change_what_the_store_serves(tmp_path):
    path = golden.extract("roll", tmp_path)
    with MessageStore.open(path, read_only=True) as store:
        before = [
            (queue, store.get(queue.topic, queue.queue_id, queue.min_offset).messages)
            for queue in store.queues()
        ]
    verify_store(path, seal=True)
    with MessageStore.open(path) as store:
        assert not store.recovery.findings
        after = [
            (queue, store.get(queue.topic, queue.queue_id, queue.min_offset).messages)
            for queue in store.queues()
        ]
    assert after == before
    assert list_seals(RealFiles(), path)

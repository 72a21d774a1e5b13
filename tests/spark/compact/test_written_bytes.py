"""What the disk has of a new log is compared with what was verified, every byte, before the old one goes."""

from __future__ import annotations

import os
import pickle
import random
import threading
from contextlib import closing

import pytest
from typing_extensions import override

from seglog.clock import VirtualClock
from seglog.errors import CorruptError, TruncatedError
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import old_store
from seglog.spark.compact.written_bytes import NOT_AS_WRITTEN, WrittenBytes
from seglog.storage.files.direct_writer import DirectWriter
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from tests.support.local_runner import LocalRunner
from tests.support.machine.kernels import BOTH, running
from tests.support.machine.patience import wait_for_event
from tests.support.material.compactions import STEP_MS, fill_random

POLICIES = {"Prices": Policy(compact=True), "Events": Policy(retention_ms=20 * STEP_MS)}
PIECES = [5000, 1, 4096, 300_000, 77]
WRITTEN = sum(PIECES)
ENDING = b"\x00\x01\x02\x03\xff\xfe\xfd\xfc"
LENGTHS = {"blocks": 512 << 10, "odd": (512 << 10) + 1001, "no more": WRITTEN + len(ENDING)}


def write_pieces(path, length):
    written, numbers = WrittenBytes(), random.Random(7)
    data = bytearray(length)
    at = 0
    for size in PIECES:
        data[at : at + size] = numbers.randbytes(size)
        written.note(memoryview(data)[at : at + size])
        at += size
    data[at : at + len(ENDING)] = ENDING
    path.write_bytes(data)
    return written


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_a_file_that_is_as_it_was_written_passes(tmp_path, kernels, length):
    with running(kernels):
        written = write_pieces(tmp_path / "log", length)
        with closing(RealFile(tmp_path / "log", os.O_RDWR)) as file:
            written.check(file, "log", ENDING)
    assert written.size_bytes == WRITTEN


DAMAGE = {
    "the first byte": (0, 0, "first 5000 bytes"),
    "a piece of a byte": (5000, 5000, "first 5001 bytes"),
    "the middle": (150_000, 9097, "first 309097 bytes"),
    "the last byte that was summed": (WRITTEN - 1, WRITTEN - 77, f"first {WRITTEN} bytes"),
    "the ending": (WRITTEN + 3, WRITTEN, "00 01 02 03"),
    "behind the ending": (WRITTEN + len(ENDING), WRITTEN + len(ENDING), "expected 0"),
    "far behind": (500_000, 500_000, "expected 0"),
    "the last of all": (LENGTHS["odd"] - 1, LENGTHS["odd"] - 1, "expected 0"),
}


@pytest.mark.parametrize(("at", "place", "said"), DAMAGE.values(), ids=DAMAGE)
def test_any_byte_that_differs_is_named_with_its_place(tmp_path, at, place, said):
    written = write_pieces(tmp_path / "log", LENGTHS["odd"])
    with closing(RealFile(tmp_path / "log", os.O_RDWR)) as file:
        flip(file, at)
        with pytest.raises(CorruptError, match=said) as caught:
            written.check(file, "commitlog/0", ENDING)
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - as a task gives it to the driver
    assert (error.kind, error.file, error.position_bytes) == (NOT_AS_WRITTEN, "commitlog/0", place)
    assert error.expected != error.found
    assert "the old store is as it was" in error.help


@pytest.mark.parametrize("length", [0, 4999, 5000, 8192, WRITTEN - 1, WRITTEN, WRITTEN + 7])
def test_a_file_that_was_cut_is_refused(tmp_path, length):
    written = write_pieces(tmp_path / "log", LENGTHS["blocks"])
    with closing(RealFile(tmp_path / "log", os.O_RDWR)) as file:
        file.set_size(length)
        with pytest.raises(TruncatedError, match=NOT_AS_WRITTEN):
            written.check(file, "log", ENDING)


def flip(file, at):
    byte = bytearray(1)
    file.read_into(memoryview(byte), at)
    file.write_at(bytes([byte[0] ^ 1]), at)


class FlippedFile(RealFile):
    """Of a disk that changes a byte within a segment of the log once that is synced."""

    @override
    def sync(self):
        flip(self, self.size_bytes // 2)
        super().sync()


class StaleFile(RealFile):
    """Of a system that writes what it was given the time before, where that is of the same length."""

    __slots__ = ("_before",)

    @override
    def write_at(self, data, position):
        before = getattr(self, "_before", b"")
        self._before = bytes(data)
        super().write_at(before if len(before) == len(data) else data, position)


class LostFile(RealFile):
    """Of a disk that forgets what was written first."""

    @override
    def write_at(self, data, position):
        if position:
            super().write_at(data, position)


class LogFiles(RealFiles):
    """Gives segments of the log as files of some kind."""

    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    @override
    def create(self, path, size_bytes):
        file = super().create(path, size_bytes)
        if path.parent.name != "commitlog":
            return file
        file.close()
        return self._kind(path, os.O_RDWR)


class SmallWriter(DirectWriter):
    """Turns its memory often."""

    def __init__(self, file):
        super().__init__(file, 4096)


class LateWriter(SmallWriter):
    """Goes on in memory that is not written yet."""

    def __init__(self, file):
        super().__init__(file)
        self._may_write = threading.Event()

    @override
    def _write(self, data, position):
        wait_for_event(self._may_write)
        super()._write(data, position)

    @override
    def _wait(self):
        if self._may_write.is_set():  # the last one: what follows is written in another mode of the file
            super()._wait()

    @override
    def finish(self):
        self._may_write.set()
        self._thread.submit(int).result()
        super().finish()


CASES = {
    "a byte within a group changes on the disk": (FlippedFile, DirectWriter),
    "an old buffer is written": (StaleFile, SmallWriter),
    "a write is lost": (LostFile, SmallWriter),
    "memory is filled before it is written": (RealFile, LateWriter),
}


def compaction(filled, kind):
    files = LogFiles(kind)
    return Compaction(
        filled.root, POLICIES, allow_undelivered=True, split_bytes=6_000,
        runner=LocalRunner(files), files=files, clock=VirtualClock(filled.now_ms), draw=lambda _bits: 99,
    )  # fmt: skip


def content(root):
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize(("kind", "writer"), CASES.values(), ids=CASES)
def test_a_compaction_whose_log_is_not_as_it_was_verified_is_refused(tmp_path, monkeypatch, kind, writer):
    filled = fill_random(tmp_path / "s", 5)
    before = content(filled.root)
    with monkeypatch.context() as patch:
        patch.setattr("seglog.spark.compact.writing.DirectWriter", writer)
        with pytest.raises(CorruptError, match=r"commitlog/\d{20} \+\d+: not-as-written"):
            compaction(filled, kind).apply()
    assert content(filled.root) == before
    assert not old_store(filled.root).exists()
    assert compaction(filled, RealFile).apply().is_done


def test_the_same_writer_without_a_fault_is_taken(tmp_path, monkeypatch):
    filled = fill_random(tmp_path / "s", 5)
    monkeypatch.setattr("seglog.spark.compact.writing.DirectWriter", SmallWriter)
    assert compaction(filled, RealFile).apply().is_done

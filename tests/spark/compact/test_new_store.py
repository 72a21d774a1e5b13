"""A new store is whole when it is put in place: nobody who opens it has anything left to do."""

from __future__ import annotations

import os
import shutil
from collections import Counter

import pytest
from typing_extensions import override

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.kernels import PYTHON
from tests.support.local_runner import LocalRunner
from tests.support.machine.kernels import BOTH, running
from tests.support.material.compactions import SIZES, STEP_MS, fill_random

POLICIES = {
    "Prices": Policy(compact=True, delete_retention_ms=50 * STEP_MS),
    "Events": Policy(retention_bytes=15_000),
}


class CountedFile(RealFile):
    """Counts what is read."""

    def __init__(self, path, flags, read):
        super().__init__(path, flags)
        self._read, self._folder = read, path.parent

    @override
    def read_into(self, buffer, position):
        done = super().read_into(buffer, position)
        self._read[self._folder] += done
        return done


class CountingFiles(RealFiles):
    """Counts the bytes that are read of files, by the folder that they are in."""

    def __init__(self):
        self.read = Counter()

    @override
    def open(self, path, *, writable):
        return CountedFile(path, os.O_RDWR if writable else os.O_RDONLY, self.read)


def compact(root, now_ms, files=None, **options):
    files = files or RealFiles()
    job = Compaction(
        root,
        POLICIES,
        allow_undelivered=True,
        runner=LocalRunner(files),
        files=files,
        clock=VirtualClock(now_ms),
        draw=lambda bits: 0x1234567 % (1 << bits),
        **options,
    )
    assert job.apply().is_done


def content(root):
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {path.relative_to(root): path.read_bytes() for path in files}


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("entries", [2000, 90], ids=["one index file", "several index files"])
def test_opening_finds_nothing_to_do_and_the_index_is_the_engines(tmp_path, kernels, entries):
    with running(kernels):
        filled = fill_random(tmp_path / "s", 31)
        if entries != SIZES["index_geometry"].entry_count:
            shutil.rmtree(filled.root / "index")
            (filled.root / "seglog" / "lengths.conf").unlink()
            geometry = IndexGeometry(50, entries)
            clock = VirtualClock(filled.now_ms)
            MessageStore.open(filled.root, clock=clock, index_geometry=geometry).close()
        compact(filled.root, filled.now_ms, split_bytes=6_000)
        made = content(filled.root)
        clock = VirtualClock(filled.now_ms)
        with MessageStore.open(filled.root, clock=clock, recovery_step_bytes=0) as store:
            assert store.recovery.rewritten_queue_files == 0
            assert store.recovery.findings == ()
        assert content(filled.root) == made
        shutil.rmtree(filled.root / "index")
        clock = VirtualClock(filled.now_ms)
        MessageStore.open(filled.root, clock=clock, recovery_step_bytes=0).close()
        again = content(filled.root)
        assert {name: data for name, data in again.items() if name.parts[0] == "index"} == {
            name: data for name, data in made.items() if name.parts[0] == "index"
        }
        assert len([name for name in made if name.parts[0] == "index"]) > (entries == 90)


def test_the_old_log_is_read_twice_at_most_and_each_unit_once(tmp_path):
    filled = fill_random(tmp_path / "s", 33)
    log_bytes = sum(path.stat().st_size for path in (filled.root / "commitlog").iterdir())
    files = CountingFiles()
    with running(PYTHON):  # what native kernels read of maps nobody counts
        compact(filled.root, filled.now_ms, files, split_bytes=SIZES["segment_size_bytes"])
    read = files.read
    assert log_bytes <= read[filled.root / "commitlog"] <= 2.2 * log_bytes
    new = tmp_path / "s.compact" / "new"
    units = sum(path.stat().st_size for path in (filled.root / "consumequeue").rglob("0*") if path.is_file())
    assert 0 < read[new / ".units"] <= 33 / 20 * units

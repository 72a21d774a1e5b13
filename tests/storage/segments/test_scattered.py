"""A binary search in files that are not in memory reads little more than the pages that it touches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.storage.files import RealFiles
from seglog.storage.segments.mapped_file import MappedFile, MapPool
from seglog.storage.segments.scattered import ScatteredReads
from tests.storage.writes.test_new_queues import cached_bytes, is_read_ahead

BEGIN_MS = 1_800_000_000_000
STEP_BYTES = 1 << 20
BATCHES = 64


def test_a_file_is_read_ahead_again_when_the_last_search_in_it_has_ended(tmp_path: Path):
    path = tmp_path / "f"
    file = MappedFile.create(RealFiles(), path, 0, 4 * STEP_BYTES, MapPool(), STEP_BYTES)
    assert bytes(file.view[:1]) == b"\0"
    assert is_read_ahead(path)
    with ScatteredReads() as first:
        first.take_in(file)
        first.take_in(file)
        first.take_in(None)
        with ScatteredReads() as second:
            second.take_in(file)
            assert not is_read_ahead(path)
        assert not is_read_ahead(path)
    assert is_read_ahead(path)
    file.close()


def forget(path: Path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.mark.on_disk
def test_a_search_by_time_in_a_log_that_is_not_in_memory_reads_little_of_it(tmp_path: Path):
    clock = VirtualClock(BEGIN_MS)
    with MessageStore.open(tmp_path, clock=clock) as store:
        for _ in range(BATCHES):
            clock.advance(1000)
            store.put_batch("T", [b"x" * 1000] * 1000)
    log = tmp_path / "commitlog" / ("0" * 20)
    with MessageStore.open(tmp_path) as store:
        forget(log)
        before = cached_bytes(log)
        if before > STEP_BYTES:
            pytest.skip(f"{before:,} bytes of {log} stay in the page cache of this file system")
        assert store.offset_by_time("T", 0, BEGIN_MS + 17_500) == 17_000
        assert cached_bytes(log) - before < 2 * STEP_BYTES
        assert is_read_ahead(log)

"""The window ahead of the log: as long as what no sync has seen, within reserved space, and never longer."""

from __future__ import annotations

import mmap

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.warm import populate
from seglog.storage.log.warm_window import NEVER, STRIDE_BYTES, WINDOW_BYTES, WarmWindow
from seglog.storage.segments import mapped_file
from seglog.storage.segments.mapped_file import MapPool
from seglog.storage.segments.segments import Segments
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from tests.support.crash.crash_files import CrashFiles

MIB = 1 << 20


class Warmed:
    """Stretches that were made ready, in order."""

    def __init__(self, is_possible=True):
        self.is_possible = is_possible
        self.sizes = []

    def __call__(self, pages):
        assert isinstance(pages.obj, mmap.mmap)
        self.sizes.append(len(pages))
        return self.is_possible


@pytest.fixture
def warmed(monkeypatch):
    warmed = Warmed()
    monkeypatch.setattr(mapped_file, "populate", warmed)
    return warmed


@pytest.fixture
def segments(tmp_path):
    segments = Segments(RealFiles(), tmp_path / "log", 64 * MIB, MapPool(), step_bytes=32 * MIB)
    segments.add(0)
    yield segments
    segments.close()


def test_log_that_is_synced_often_has_no_window(segments, warmed):
    window = WarmWindow(segments)
    for end in range(0, 64 * MIB, MIB):
        assert window.follow(end, end - 1000, 0) == end + STRIDE_BYTES
    assert warmed.sizes == []


def test_window_is_as_long_as_what_no_sync_has_seen(segments, warmed):
    window = WarmWindow(segments)
    assert window.follow(STRIDE_BYTES, 0, 0) == 2 * STRIDE_BYTES
    assert warmed.sizes == [STRIDE_BYTES]
    window.follow(2 * STRIDE_BYTES, 0, 0)  # from where it was ready to twice the end
    assert sum(warmed.sizes) == 3 * STRIDE_BYTES


def test_window_does_not_grow_beyond_its_size(segments, warmed):
    segments.find(0).reserve(0, 64 * MIB)
    window = WarmWindow(segments)
    window.follow(24 * MIB, 0, 0)
    assert warmed.sizes == [WINDOW_BYTES]
    window.follow(24 * MIB + STRIDE_BYTES, 0, 0)
    assert warmed.sizes == [WINDOW_BYTES, STRIDE_BYTES]


def test_sync_ends_a_window_only_when_it_is_used_up(segments, warmed):
    segments.find(0).reserve(0, 64 * MIB)
    window = WarmWindow(segments)
    window.follow(16 * MIB, 0, 0)
    for end in range(16 * MIB, 32 * MIB + 1, STRIDE_BYTES):  # a sync came at 16 MiB
        window.follow(end, 16 * MIB, 0)
        assert 16 * MIB + sum(warmed.sizes) >= min(end + STRIDE_BYTES, 32 * MIB)


def test_log_that_grows_past_the_map_has_no_window_until_it_grows_through_it_again(segments, warmed):
    segments.find(0).reserve(0, 64 * MIB)
    window = WarmWindow(segments)
    assert window.follow(8 * MIB, 0, 5 * MIB) == 8 * MIB + STRIDE_BYTES
    assert window.follow(16 * MIB, 0, 13 * MIB) == 16 * MIB + STRIDE_BYTES
    assert warmed.sizes == []
    window.follow(20 * MIB, 0, 14 * MIB)
    assert warmed.sizes == [WINDOW_BYTES]


def test_space_that_is_not_reserved_is_left_alone(segments, warmed):
    window = WarmWindow(segments)
    window.follow(28 * MIB, 0, 0)
    assert warmed.sizes == [4 * MIB]  # 32 MiB are reserved
    window.follow(31 * MIB, 0, 0)
    assert warmed.sizes == [4 * MIB]


def test_window_goes_on_in_the_next_file(segments, warmed):
    segments.find(0).reserve(0, 64 * MIB)
    window = WarmWindow(segments)
    window.follow(56 * MIB, 0, 0)
    assert warmed.sizes == [8 * MIB]  # there is no next file yet
    _mapped = segments.add(64 * MIB).view
    window.follow(60 * MIB, 0, 0)
    assert warmed.sizes == [8 * MIB, 12 * MIB]


def test_where_it_cannot_be_it_is_tried_once(segments, monkeypatch):
    warmed = Warmed(is_possible=False)
    monkeypatch.setattr(mapped_file, "populate", warmed)
    window = WarmWindow(segments)
    assert window.follow(8 * MIB, 0, 0) == NEVER
    assert window.follow(16 * MIB, 0, 0) == NEVER
    assert len(warmed.sizes) == 1


def test_files_that_are_no_maps_have_no_window(warmed, tmp_path):
    segments = Segments(CrashFiles(), tmp_path / "log", 16 * MIB, MapPool(), step_bytes=16 * MIB)
    segments.add(0)
    assert WarmWindow(segments).follow(8 * MIB, 0, 0) == NEVER
    assert warmed.sizes == []


@pytest.mark.skipif(KERNELS != NATIVE, reason="only native kernels make pages ready")
@pytest.mark.parametrize("durability", list(Durability))
def test_store_has_a_window_unless_each_put_is_synced(tmp_path, durability, monkeypatch):
    made = []
    real = populate

    def noting(pages):
        made.append(len(pages))
        return real(pages)

    monkeypatch.setattr(mapped_file, "populate", noting)
    puts = 0
    with MessageStore.open(tmp_path / "store", flush_interval_ms=60_000) as store:
        while puts < 24 or (durability is Durability.ASYNC and not made):
            store.put("T", bytes(MIB), durability=durability)
            puts += 1
            assert puts < 1000
    assert bool(made) == (durability is Durability.ASYNC)


def test_large_batches_are_written_past_the_map_by_native_kernels_and_ask_for_no_window(tmp_path, warmed):
    with MessageStore.open(tmp_path / "store", flush_interval_ms=60_000) as store:
        for _ in range(48):
            store.put_batch("T", [bytes(128 << 10)] * 8)
        assert (warmed.sizes == []) == (KERNELS == NATIVE)
        assert [len(message.body) for message in store.get("T", 0, 380)] == [128 << 10] * 4

"""Keys that share a slot of the index, or a hash, cost a query little, wherever its messages lie."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seglog.storage.files import RealFile, RealFiles
from seglog.storage.format.index import IndexGeometry, key_hash
from seglog.storage.format.index_view import IndexView
from seglog.storage.index_files import iter_places, list_index_files, load_index_file
from seglog.storage.key_query import KeyQuery
from seglog.storage.store import MessageStore
from tests.support.kernels import BOTH, native, running
from tests.support.stores import new_clock

COUNT = 20_000
SEGMENT_BYTES = 1 << 20


def colliding(number: int) -> str:
    """Returns one of many keys with the same hash."""
    return "".join(("Aa", "BB")[number >> bit & 1] for bit in range(15))


class CountingFiles(RealFiles):
    """Counts how often files are read, and how much."""

    def __init__(self):
        self.reads = self.bytes = 0

    def open(self, path, *, writable):
        counter = self

        class Counted(RealFile):
            def read_into(self, buffer, position):
                counter.reads += 1
                counter.bytes += len(buffer)
                return super().read_into(buffer, position)

        return Counted(path, 2 if writable else 0)


def put_keys(path, keys, geometry, *, step_ms=0):
    """Puts a message for each key and closes the store."""
    clock = new_clock()
    with MessageStore.open(
        path,
        clock=clock,
        index_geometry=geometry,
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=20_000,
    ) as store:
        for key in keys:
            store.put("T", b"x" * 10, keys=key)
            if step_ms:
                clock.advance(step_ms)
    return path


@pytest.fixture(scope="module")
def one_slot(tmp_path_factory):
    keys = ["first"] * 32 + [f"k{number}" for number in range(COUNT)] + ["last"] * 32
    return put_keys(tmp_path_factory.mktemp("slot") / "store", keys, IndexGeometry(1, 2 * COUNT))


@pytest.fixture(scope="module")
def one_hash(tmp_path_factory):
    keys = [colliding(number) for number in range(COUNT)]
    assert len({key_hash(f"T#{key}") for key in keys}) == 1
    return put_keys(tmp_path_factory.mktemp("hash") / "store", keys, IndexGeometry(1000, 2 * COUNT))


def reads_of(path, key):
    """Returns how many messages a query for a page finds, how often files were read for it, and how much."""
    files = CountingFiles()
    with MessageStore.open(path, read_only=True, files=files) as store:
        files.reads = files.bytes = 0
        found = store.query("T", key, 32)
        assert all(message.keys == [key] for message in found)
        return len(found), files.reads, files.bytes


def test_the_oldest_key_of_a_slot_takes_little_more_than_the_newest(one_slot):
    newest, newest_reads, newest_bytes = reads_of(one_slot, "last")
    oldest, oldest_reads, oldest_bytes = reads_of(one_slot, "first")
    assert (newest, oldest) == (32, 32)
    assert oldest_reads < newest_reads + 50
    assert oldest_bytes < newest_bytes + 20 * 2 * COUNT
    assert reads_of(one_slot, "k0")[0] == reads_of(one_slot, f"k{COUNT - 1}")[0] == 1
    assert reads_of(one_slot, "none")[0] == 0


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("number", [0, 1, COUNT // 2, COUNT - 40, COUNT - 1])
def test_few_messages_of_other_keys_with_the_hash_are_decoded(one_hash, number, kernels):
    asked = []
    with running(kernels), MessageStore.open(one_hash, read_only=True) as store:

        def message_at(phy_offset):
            asked.append(phy_offset)
            return store.message_at(phy_offset)

        lookup = KeyQuery(RealFiles(), one_hash, SEGMENT_BYTES, message_at)
        log = (0, store.max_phy_offset)
        (message,) = lookup.find("T", colliding(number), 32, (0, 1 << 62), log)
        assert (message.keys, message.queue_offset) == ([colliding(number)], number)
        assert len(asked) < 100
        assert lookup.find("T", colliding(COUNT), 32, (0, 1 << 62), log) == []


@pytest.mark.parametrize("slots", [1, 3, 1000])
def test_a_scan_finds_what_the_chain_leads_to(tmp_path, slots):
    chance = random.Random(slots)
    keys = [f"k{chance.randrange(300)}" for _ in range(9_000)]
    path = put_keys(tmp_path / "store", keys, IndexGeometry(slots, 4_000), step_ms=400)
    index, damaged = list_index_files(RealFiles(), path)
    assert (len(index), damaged) == (3, [])
    for file in index:
        view = IndexView(load_index_file(RealFiles(), file.path), file.geometry)
        begin, end = file.header.begin_timestamp_ms, file.header.end_timestamp_ms
        for number in range(0, 300, 7):
            hashed = key_hash(f"T#k{number}")
            times = (0, 1 << 62), sorted(chance.sample(range(begin, end), 2))
            for begin_ms, end_ms in times:
                found = list(iter_places(RealFiles(), file, hashed, begin_ms, end_ms))
                assert found == view.select(hashed, begin_ms=begin_ms, end_ms=end_ms)


def test_the_kernel_says_which_records_may_have_a_key(tmp_path):
    kernel = native()
    keys = ["a", "b", "a b", "ab", "", "b a b"]
    with MessageStore.open(tmp_path / "store", segment_size_bytes=SEGMENT_BYTES) as store:
        puts = [store.put("T", b"x", keys=key or None) for key in keys]
        puts.append(store.put("T", b"x", keys="c", properties={"UNIQ_KEY": "a"}))
    memory = memoryview((tmp_path / "store" / "commitlog" / ("0" * 20)).read_bytes())
    places = np.array([put.phy_offset for put in puts] + [3, len(memory), 1 << 40], np.int64)
    have = kernel.have_key(memory, 0, places.data, b"a")
    assert list(have) == [1, 0, 1, 0, 0, 1, 1, 1, 1, 1]  # what is no record may have any
    assert kernel.have_key(memory, 0, places[:0].data, b"a") == b""
    assert set(kernel.have_key(memory, 1 << 41, places.data, b"a")) == {1}

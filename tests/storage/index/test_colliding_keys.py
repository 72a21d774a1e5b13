"""Keys that share a slot of the index, or a hash, cost a query little, wherever its messages lie."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest
from typing_extensions import override

from seglog.storage.directory.index_files import list_index_files, load_index_file
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.format.index.index import IndexGeometry, key_hash
from seglog.storage.format.index.index_view import IndexView
from seglog.storage.index import colliding_keys, told_apart
from seglog.storage.index.index_lookup import iter_places
from seglog.storage.index.key_query import KeyQuery
from seglog.storage.kernels import index_keys as keys_kernel
from seglog.storage.store import MessageStore
from tests.support.machine.kernels import BOTH, native, running
from tests.support.material.stores import new_clock
from tests.support.scale import scaled

COUNT = scaled(20_000, 20_000)
SEGMENT_BYTES = 1 << 18


def colliding(number: int) -> str:
    """Returns one of many keys with the same hash."""
    return "".join(("Aa", "BB")[number >> bit & 1] for bit in range(15))


class CountingFiles(RealFiles):
    """Counts how often files are read, and how much."""

    def __init__(self):
        self.reads = self.bytes = 0

    @override
    def open(self, path, *, writable):
        counter = self

        class Counted(RealFile):
            @override
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
def one_slot(module_folders):
    keys = ["first"] * 32 + [f"k{number}" for number in range(COUNT)] + ["last"] * 32
    return put_keys(module_folders.mktemp("slot") / "store", keys, IndexGeometry(1, 2 * COUNT))


@pytest.fixture(scope="module")
def one_hash(module_folders):
    keys = [colliding(number) for number in range(COUNT)]
    assert len({key_hash(f"T#{key}") for key in keys}) == 1
    return put_keys(module_folders.mktemp("hash") / "store", keys, IndexGeometry(1000, 2 * COUNT))


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


def looked_at(monkeypatch):
    """Has the native kernels tell keys apart; returns a list of how many records they looked at."""
    told, digests = [], native().key_digests

    def counting(memory, first, places, *rest):
        told.append(len(places))
        return digests(memory, first, places, *rest)

    monkeypatch.setattr(keys_kernel, "native_have", native().have_key)
    monkeypatch.setattr(keys_kernel, "native_digest", native().key_digest)
    monkeypatch.setattr(keys_kernel, "native_digests", counting)
    return told


def found(store, key, topic="T", **options):
    return [message.queue_offset for message in store.query(topic, key, 32, **options)]


@pytest.mark.parametrize("read_only", [False, True])
def test_records_of_one_hash_are_told_apart_once(one_hash, tmp_path, monkeypatch, read_only):
    path = shutil.copytree(one_hash, tmp_path / "store")
    told = looked_at(monkeypatch)
    with MessageStore.open(path, read_only=read_only) as store:
        assert found(store, colliding(0)) == [0]
        assert sum(told) > COUNT - 100
        for number in (1, COUNT // 2, COUNT - 40, COUNT - 1):
            told.clear()
            assert found(store, colliding(number)) == [number]
            assert found(store, colliding(number), topic="U") == []
            assert sum(told) < 100
        assert found(store, colliding(COUNT)) == []
        if not read_only:
            for key in (*(colliding(number) for number in range(2000)), colliding(COUNT)):
                store.put("T", b"later", keys=key)
            told.clear()
            assert found(store, colliding(COUNT)) == [COUNT + 2000]
            assert found(store, colliding(0)) == [0, COUNT]
            assert found(store, colliding(1999)) == [1999, COUNT + 1999]
            assert 1900 < sum(told) < 2500


@pytest.mark.parametrize("kernels", BOTH)
def test_keys_of_one_hash_are_found_in_their_time(tmp_path, kernels):
    keys = [colliding(number) for number in range(200)] * 20
    path = put_keys(tmp_path / "store", keys, IndexGeometry(10, 3000), step_ms=700)
    chance = random.Random(1)
    with running(kernels), MessageStore.open(path, read_only=True) as store:
        times = [message.store_timestamp_ms for message in store.get("T", 0, 0, len(keys))]
        times += [message.store_timestamp_ms for message in store.get("T", 0, len(times), len(keys))]
        for _ in range(60):
            begin, end = sorted(chance.sample(times, 2))
            number = chance.randrange(200)
            wanted = [at for at in range(number, len(times), 200) if begin <= times[at] <= end]
            assert found(store, keys[number], begin_ms=begin, end_ms=end) == wanted


def test_several_keys_of_one_record_and_hash_are_found(tmp_path, monkeypatch):
    told = looked_at(monkeypatch)
    with MessageStore.open(
        tmp_path / "store", index_geometry=IndexGeometry(10, 40_000), segment_size_bytes=SEGMENT_BYTES
    ) as store:
        for number in range(0, 6000, 3):
            unique = {"UNIQ_KEY": colliding(number + 2)}
            pair = f"{colliding(number)} {colliding(number + 1)} other"
            store.put("T", b"x", keys=pair, properties=unique)
        for number in (0, 1, 2, 3001, 5999):
            assert found(store, colliding(number)) == [number // 3]
        assert sum(told) < 7000


def test_a_record_that_could_not_be_read_may_have_any_key(one_hash, tmp_path, monkeypatch):
    looked_at(monkeypatch)
    path = shutil.copytree(one_hash, tmp_path / "store")
    log = path / "commitlog" / ("0" * 20)
    whole = log.read_bytes()
    with MessageStore.open(path, read_only=True) as store:
        (message,) = store.query("T", colliding(40), 32)
        at = message.phy_offset
    with MessageStore.open(path, read_only=True) as store:
        with log.open("r+b") as file:
            file.seek(at + 4)
            file.write(b"\0\0\0\0")
        assert found(store, colliding(40)) == []
        assert found(store, colliding(0)) == [0]
        log.write_bytes(whole)
        assert found(store, colliding(40)) == [40]


def test_another_index_file_of_the_name_is_not_taken_for_the_one_that_was_known(
    one_hash, tmp_path, monkeypatch
):
    looked_at(monkeypatch)
    path = shutil.copytree(one_hash, tmp_path / "store")
    with MessageStore.open(path, read_only=True) as store:
        assert found(store, colliding(0)) == [0]
        (file,) = (path / "index").iterdir()
        damaged = bytearray(file.read_bytes())
        (index,), _damaged = list_index_files(RealFiles(), path)
        entry = index.geometry.entries_at + 20 * 1000
        damaged[entry : entry + 4] = b"\0\0\0\1"  # its hash: this entry leads to message 999 no more
        other = tmp_path / "other"
        other.write_bytes(damaged)
        other.replace(file)
        assert found(store, colliding(0)) == [0]
        # No entry leads to it, and the file is not whole: so the log is read before it is denied.
        assert found(store, colliding(999)) == [999]


def test_what_is_kept_is_bounded(tmp_path, monkeypatch):
    most = COUNT * 3 // 10
    looked_at(monkeypatch)
    monkeypatch.setattr(colliding_keys, "MOST_ENTRIES", most)
    monkeypatch.setattr(told_apart, "MOST_ENTRIES", most)
    kept = []
    keep = told_apart.Collisions.keep

    def keeping(self, *arguments):
        keep(self, *arguments)
        kept.append(sum(len(one.told.numbers) for one in self._known.values()))

    monkeypatch.setattr(told_apart.Collisions, "keep", keeping)
    keys = [colliding(number) + "x" * (number % 4) for number in range(COUNT)]
    path = put_keys(tmp_path / "store", keys, IndexGeometry(10, 2 * COUNT))
    with MessageStore.open(path, read_only=True) as store:
        for number in (0, 1, 2, 3, COUNT - 1, 4):
            assert found(store, keys[number]) == [number]
    assert kept
    assert max(kept) <= most


def test_digests_depend_on_topic_key_and_seed():
    digest = native().key_digest
    seed = bytes(range(16))
    assert digest(b"T", b"a", seed) == digest(b"T", b"a", seed)
    texts = [b"", b"a", b"b", b"aa", b"a\0", b"12345678", b"123456789", b"x" * 100]
    made = {digest(topic, text, salt) for topic in texts for text in texts for salt in (seed, seed[::-1])}
    assert len(made) == 2 * len(texts) ** 2
    with pytest.raises(ValueError, match="16 bytes"):
        digest(b"T", b"a", seed[:15])

"""The key index: RocketMQ's own bytes when made from the log alone, and answers that are right without it."""

from __future__ import annotations

import errno
import os
import re
import shutil

import numpy as np
import pytest
from typing_extensions import override

from seglog.clock import VirtualClock
from seglog.errors import FullError, InvalidArgumentError, NotFoundError
from seglog.storage.directory.index_files import list_index_files
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.format.index.index import INDEX_ENTRY, IndexGeometry, key_hash
from seglog.storage.format.index.index_keys import IndexedRecord
from seglog.storage.format.index.index_rows import key_rows
from seglog.storage.format.names import COMMIT_LOG, INDEX
from seglog.storage.index.key_memory import MOST_KEYS
from seglog.storage.index.key_query import KeyQuery
from seglog.storage.store import MessageStore
from seglog.storage.writes.values import NewMessage
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.machine.kernels import BOTH, running
from tests.support.material.golden import extract
from tests.support.material.index_files import build_index_files
from tests.support.material.stores import SEGMENT_BYTES, SMALL, copy_store, writer_of

LAST_KEYS = b"KEYS\x01k1 k2\x02TAGS\x01t\x02"
TINY = IndexGeometry(slot_count=5, entry_count=8)
WITH_KEYS = ["basic", "basic-halt", "comp", "delay", "idxroll", "ipv6", "outerbatch", "propcrc", "roll", "tx"]


def index_bytes(root) -> list[bytes]:
    return [path.read_bytes() for path in sorted((root / INDEX).iterdir())]


def geometry_of(root) -> IndexGeometry:
    return list_index_files(RealFiles(), root)[0][0].geometry


@pytest.fixture
def open_tiny(tmp_path):
    """Opens one small store with index files of seven entries."""

    def opened(**options) -> MessageStore:
        return MessageStore.open(tmp_path / "store", **SMALL, index_geometry=TINY, **options)

    return opened


def queried(store, topic, key, **options) -> list[bytes]:
    return [message.body for message in store.query(topic, key, **options)]


@pytest.mark.parametrize("name", WITH_KEYS)
def test_made_again_from_the_log_it_equals_what_rocketmq_wrote(name, tmp_path):
    root = extract(name, tmp_path)
    written, geometry = index_bytes(root), geometry_of(root)
    shutil.rmtree(root / INDEX)
    with MessageStore.open(root, index_geometry=geometry):
        pass
    assert index_bytes(root) == written


@pytest.mark.parametrize("name", [*WITH_KEYS, "roll-halt"])
def test_opening_a_store_whose_index_is_whole_changes_no_byte_of_it(name, tmp_path):
    root = extract(name, tmp_path)
    written = {path.name: path.read_bytes() for path in (root / INDEX).iterdir()}
    with MessageStore.open(root):
        pass
    assert {path.name: path.read_bytes() for path in (root / INDEX).iterdir()} == written


@pytest.mark.parametrize("damage", ["missing", "garbage header", "cut", "zeroed", "older part missing"])
def test_damaged_index_files_are_made_again(damage, tmp_path):
    root = extract("idxroll", tmp_path)
    written, geometry = index_bytes(root), geometry_of(root)
    paths = sorted((root / INDEX).iterdir())
    if damage == "missing":
        shutil.rmtree(root / INDEX)
    elif damage == "garbage header":
        paths[3].write_bytes(b"\xff" * 40 + written[3][40:])
    elif damage == "cut":
        paths[3].write_bytes(written[3][:1000])
    elif damage == "zeroed":
        paths[-1].write_bytes(bytes(len(written[-1])))
    else:
        paths[0].unlink()
    with MessageStore.open(root, index_geometry=geometry) as store:
        assert [message.keys for message in store.query("IdxTopic", "second399")] == [["same", "second399"]]
        assert len(store.query("IdxTopic", "same", max_count=1000)) == 134
    assert index_bytes(root) == written


def test_query_finds_keys_unique_keys_and_only_of_the_topic(open_tiny):
    with open_tiny() as store:
        store.put("T", b"1", keys=["a", "b"])
        store.put("T", b"2", keys="b c", properties={"UNIQ_KEY": "u2"})
        store.put("Other", b"3", keys="b")
        assert queried(store, "T", "b") == [b"1", b"2"]
        assert queried(store, "T", "u2") == [b"2"]
        assert queried(store, "T", "a b") == queried(store, "T", "") == queried(store, "Nowhere", "a") == []


def test_keys_that_only_share_a_hash_are_not_found(open_tiny):
    assert key_hash("T#Aa") == key_hash("T#BB")
    with open_tiny() as store:
        store.put("T", b"1", keys="Aa")
        store.put("T", b"2", keys="BB")
        assert (queried(store, "T", "Aa"), queried(store, "T", "BB")) == ([b"1"], [b"2"])


def test_the_newest_come_first_and_are_given_in_log_order(open_tiny):
    with open_tiny() as store:
        for number in range(40):
            store.put("T", b"%d" % number, keys="k")
        assert queried(store, "T", "k", max_count=3) == [b"37", b"38", b"39"]
        assert len(queried(store, "T", "k")) == 40
        with pytest.raises(InvalidArgumentError):
            store.query("T", "k", max_count=0)


def test_a_query_keeps_to_its_times(tmp_path, clock: VirtualClock):
    with MessageStore.open(tmp_path / "store", **SMALL, index_geometry=TINY, clock=clock) as store:
        for number in range(30):
            store.put("T", b"%d" % number, keys="k")
            clock.advance(700)
        first = store.get("T", 0, 10, 1).messages[0].store_timestamp_ms
        found = queried(store, "T", "k", begin_ms=first, end_ms=first + 1400)
        assert found == [b"10", b"11", b"12"]


def test_files_stay_in_order_when_the_clock_is_set_back_a_year(open_tiny, tmp_path, clock: VirtualClock):
    with open_tiny(clock=clock) as store:
        for number in range(20):
            store.put("T", b"%d" % number, keys=f"k{number}")
            assert queried(store, "T", f"k{number}") == [b"%d" % number]
            if number == 5:
                clock.advance(-365 * 24 * 3_600_000)
    ends = [file.header.end_phy_offset for file in list_index_files(RealFiles(), tmp_path / "store")[0]]
    assert len(ends) == 3
    assert ends == sorted(ends)


def test_no_key_is_missed_behind_a_tombstone_for_a_record_that_was_indexed(open_tiny, tmp_path):
    with open_tiny() as store:
        store.put("T", b"0", keys="k0")
        lost = store.put("T", b"1", keys="a b c d")
        store.flush()
        assert queried(store, "T", "a") == [b"1"]
        killed = copy_store(store.path, tmp_path / "killed")
    with (killed / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(lost.phy_offset)
        log.write(bytes(lost.size_bytes))
    with MessageStore.open(killed) as store:
        puts = [store.put("T", b"%d" % number, keys=f"k{number}") for number in range(2, 7)]
        assert [put.queue_offset for put in puts] == [2, 3, 4, 5, 6]
        for number in range(2, 7):
            assert queried(store, "T", f"k{number}") == [b"%d" % number]
        assert queried(store, "T", "a") == []


def test_records_that_rocketmq_does_not_index_are_not_found(open_tiny):
    rollback, prepared = 0xC, 0x4
    with open_tiny() as store:
        store.append("T", 0, b"rollback", b"KEYS\x01k\x02", 0, sys_flag=rollback)
        store.append("T", 0, b"prepared", b"KEYS\x01k\x02", 0, sys_flag=prepared)
        assert queried(store, "T", "k") == [b"prepared"]


def test_a_crash_loses_no_key(open_tiny, tmp_path):
    with open_tiny() as store:
        for number in range(25):
            store.put("T", b"%d" % number, keys=[f"k{number}", "all"])
            if number == 12:
                store.query("T", "all")
        left = copy_store(tmp_path / "store", tmp_path / "left")
    with MessageStore.open(left, index_geometry=TINY) as store:
        assert all(queried(store, "T", f"k{number}") == [b"%d" % number] for number in range(25))
    assert index_bytes(left) == index_bytes(tmp_path / "store")


@pytest.mark.parametrize("step_bytes", [0, 1])
@pytest.mark.parametrize("entry", [1, 2, 3])
def test_an_entry_of_the_last_record_that_leads_elsewhere_is_made_again(tmp_path, entry, step_bytes):
    root, geometry = tmp_path / "store", IndexGeometry(slot_count=5, entry_count=20)
    with MessageStore.open(root, **SMALL, index_geometry=geometry, recovery_step_bytes=step_bytes) as store:
        store.put("T", b"first", keys="k0")
        store.put("T", b"last", keys=["k1", "k2"], tags="t")
    (whole,) = index_bytes(root)
    (path,) = (root / INDEX).iterdir()
    damaged = bytearray(whole)
    damaged[geometry.entries_at + INDEX_ENTRY.size_bytes * (entry + 1) - 16] ^= 1
    path.write_bytes(damaged)
    with MessageStore.open(root, index_geometry=geometry, recovery_step_bytes=step_bytes) as store:
        assert [one.code for one in store.recovery.findings] == ["index-damaged"]
        assert [queried(store, "T", key) for key in ("k0", "k1", "k2")] == [[b"first"], [b"last"], [b"last"]]
    assert index_bytes(root) == [whole]


@pytest.mark.parametrize("taken_first", [1, 2, 3])
def test_an_index_to_which_rocketmq_put_the_last_record_again_stays(open_tiny, tmp_path, taken_first):
    with open_tiny() as store:
        store.put("T", b"last", keys=["k1", "k2"], tags="t")
        record = IndexedRecord(0, store.get("T", 0, 0).messages[0].store_timestamp_ms, 0, "T", LAST_KEYS)
    rows = key_rows([record], tags=True)
    (file,) = build_index_files(np.concatenate([rows[:taken_first], rows]), TINY)
    (path,) = (tmp_path / "store" / INDEX).iterdir()
    path.write_bytes(file)
    with open_tiny() as store:
        assert store.recovery.findings == ()
        assert queried(store, "T", "k2") == [b"last"]
    assert path.read_bytes() == bytes(file)


def test_keys_behind_a_hole_are_found_where_its_first_record_only_fails_its_checksum(open_tiny, tmp_path):
    with open_tiny() as store:
        puts = [
            store.put("T", b"body%d" % number, keys=(f"k{number}", None)[number % 2]) for number in range(5)
        ]
    log = tmp_path / "store" / "commitlog" / f"{0:020d}"
    damaged = bytearray(log.read_bytes())
    damaged[damaged.index(b"body1")] ^= 1
    damaged[puts[2].phy_offset : puts[3].phy_offset] = bytes(puts[2].size_bytes)
    log.write_bytes(damaged)
    shutil.rmtree(tmp_path / "store" / INDEX)
    with open_tiny() as store:
        assert queried(store, "T", "k4") == [b"body4"]


def test_a_reader_finds_what_the_writer_has_not_indexed_yet(open_tiny, tmp_path):
    with open_tiny() as store:
        store.put_batch("T", [NewMessage(b"%d" % number, keys="k") for number in range(9)])
        with MessageStore.open(tmp_path / "store", read_only=True) as reader:
            assert len(queried(reader, "T", "k")) == 9
            store.put("T", b"late", keys="k")
            reader.refresh()
            assert queried(reader, "T", "k")[-1] == b"late"


def test_an_index_of_a_broker_before_5_4_gets_no_entries_for_tags(tmp_path):
    root = extract("real-conf", tmp_path)
    with MessageStore.open(root) as store:
        store.put("T", b"x", tags="TagA", keys="k")
        assert queried(store, "T", "k") == [b"x"]
        newest = list_index_files(RealFiles(), root)[0][-1]
    with MessageStore.open(root) as store:
        before = newest.header.index_count
        store.put("T", b"y", tags="TagA")
        store.query("T", "k")
        assert list_index_files(RealFiles(), root)[0][-1].header.index_count == before


def test_a_message_id_leads_to_its_message_and_to_no_other(open_tiny):
    with open_tiny() as store:
        put = store.put("T", b"x")
        assert store.message_by_id(put.message_id).body == b"x"
        with pytest.raises(NotFoundError):
            store.message_by_id(put.message_id[:-2] + "FF")
        for wrong in ("", "zz" * 16, put.message_id[:-1], put.message_id + "00"):
            with pytest.raises(InvalidArgumentError):
                store.message_by_id(wrong)


def test_a_log_without_keys_is_not_read_for_them(tmp_path):
    fault = Fault(names=frozenset({"read", "map"}))
    with MessageStore.open(tmp_path / "store", files=FailingFiles(fault), record_crc=True) as store:
        store.put_batch("T", [b"bare"] * 100)
        fault.at, fault.sticky, fault.count = 1, True, 0
        writer_of(store).index.catch_up()
        assert writer_of(store).index.position == (store.max_phy_offset, -1)
        fault.at = 0
        store.put("T", b"keyed", keys="k")
        store.put("T", b"bare")
        assert queried(store, "T", "k") == [b"keyed"]


def test_records_of_an_earlier_opening_are_read_for_keys_that_they_may_have(tmp_path):
    with MessageStore.open(tmp_path / "store") as store:
        store.put("T", b"keyed", keys="k")
    shutil.rmtree(tmp_path / "store" / INDEX)
    with MessageStore.open(tmp_path / "store") as store:
        store.put("T", b"bare")
        writer_of(store).index.catch_up()
        assert queried(store, "T", "k") == [b"keyed"]
    assert index_bytes(tmp_path / "store")


def test_an_index_file_that_finds_no_space_leaves_nothing_behind(tmp_path, clock: VirtualClock):
    full = True

    class FullFiles(RealFiles):
        """No space for the slots of an index file."""

        @override
        def open(self, path, *, writable):
            if full and writable and path.parent.name == "index":
                raise FullError("no space")
            return super().open(path, writable=writable)

    with MessageStore.open(tmp_path / "s", files=FullFiles(), clock=clock, **SMALL) as store:
        store.put("T", b"x", keys="k")
        for _ in range(2):  # the log says it meanwhile
            assert queried(store, "T", "k") == [b"x"]
            assert list((store.path / "index").iterdir()) == []
        full = False
        assert queried(store, "T", "k") == [b"x"]
        assert len(list((store.path / "index").iterdir())) == 1


def test_what_is_not_indexed_for_want_of_space_or_descriptors_is_found_and_named_at_the_end(
    tmp_path, clock: VirtualClock, caplog
):
    failing: list[Exception] = []

    class FailingIndexFiles(RealFiles):
        """As long as there is an error in the list it is that of the next index file."""

        @override
        def create(self, path, size_bytes):
            if failing and path.parent.name == "index":
                raise failing[0]
            return super().create(path, size_bytes)

    root = tmp_path / "s"
    for error in (FullError("no space"), OSError(errno.EMFILE, "Too many open files")):
        failing[:] = []
        caplog.clear()
        with MessageStore.open(
            root, files=FailingIndexFiles(), clock=clock, index_geometry=TINY, **SMALL
        ) as store:
            store.put("T", b"early", keys="k")
            assert b"early" in queried(store, "T", "k")
            failing.append(error)
            for number in range(20):  # more than one file of the index takes
                store.put("T", b"%d" % number, keys=f"k{number}")
            assert b"19" in queried(store, "T", "k19")
            assert b"early" in queried(store, "T", "k")
            store.put("T", b"taken", keys="late")
        said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len(said) == 1, said
        assert re.match(r"the keys of the last \d+ bytes of the log are not in the index: ", said[0])
        assert "no space" in said[0] or "too many open files" in said[0].lower()
    with MessageStore.open(root, clock=clock, index_geometry=TINY, **SMALL) as store:
        assert queried(store, "T", "late") == [b"taken", b"taken"]


class ReadFiles(RealFiles):
    """Counts what is read of the log."""

    def __init__(self):
        self.log_reads = 0

    @override
    def open(self, path, *, writable):
        counter, is_log = self, path.parent.name == COMMIT_LOG

        class Counted(RealFile):
            @override
            def read_into(self, buffer, position):
                counter.log_reads += is_log
                return super().read_into(buffer, position)

        return Counted(path, os.O_RDWR if writable else os.O_RDONLY)


def test_a_query_of_a_writer_reads_nothing_of_the_log_for_what_the_index_has(tmp_path):
    files = ReadFiles()
    with MessageStore.open(tmp_path / "store", files=files, **SMALL) as store:
        put = store.put("T", b"x", keys="a")
        store.put("T", b"y", keys="b")
        assert queried(store, "T", "a") == [b"x"]
        files.log_reads = 0
        assert queried(store, "T", "none") == []
        assert files.log_reads == 0
        assert store.message_at(put.phy_offset).body == b"x"


def test_keys_of_an_index_file_that_is_gone_are_found_in_the_log(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, index_geometry=IndexGeometry(10, 20), **SMALL) as store:
        for number in range(50):
            store.put("T", b"%d" % number, keys=f"k{number}")
    with MessageStore.open(root, read_only=True) as store:
        listed, _damaged = list_index_files(RealFiles(), root)
        listed[-1].path.unlink()
        indexed = store.max_phy_offset, listed[-1].header.end_phy_offset
        lookup = KeyQuery(RealFiles(), root, SEGMENT_BYTES, store.message_at, indexed=indexed)
        for number in (0, 45, 49):
            found = lookup.find("T", f"k{number}", 32, (0, 1 << 62), (0, store.max_phy_offset))
            assert [message.body for message in found] == [b"%d" % number]


@pytest.mark.parametrize("kernels", BOTH)
def test_a_reader_reads_what_lies_behind_the_index_once(tmp_path, kernels):
    keys = ["a", "b", "c"]
    with MessageStore.open(tmp_path / "store", **SMALL) as writer:
        for key in keys:
            writer.put("T", b"x", keys=key)
        writer.query("T", "a")
        for number in range(3):
            writer.put("T", b"y", keys=f"behind-{number} c")  # not in the index yet
        files = LogReads()
        with running(kernels), MessageStore.open(writer.path, read_only=True, files=files) as reader:
            assert [message.body for message in reader.query("T", "c")] == [b"x", b"y", b"y", b"y"]
            files.opened = 0
            for number in range(3):
                (message,) = reader.query("T", f"behind-{number}")
                assert message.keys == [f"behind-{number}", "c"]
            assert reader.query("T", "none") == []
            assert files.opened == 0
            writer.put("T", b"z", keys="none c")
            assert reader.query("T", "none") == []
            reader.refresh()
            assert [message.body for message in reader.query("T", "none")] == [b"z"]
            assert len(reader.query("T", "c")) == 5


def test_a_reader_keeps_few_keys_of_what_lies_behind_the_index(tmp_path):
    count = MOST_KEYS + 1
    with MessageStore.open(tmp_path / "store", **SMALL) as writer:
        for number in range(count):
            writer.put("T", b"x", keys=f"k{number}")
        files = LogReads()
        with MessageStore.open(writer.path, read_only=True, files=files) as reader:
            for number in (0, 1, count - 1):
                files.opened = 0
                assert len(reader.query("T", f"k{number}")) == 1
                assert files.opened > 1


class LogReads(RealFiles):
    """Counts how often a file of the log is opened."""

    def __init__(self):
        self.opened = 0

    @override
    def open(self, path, *, writable):
        self.opened += path.parent.name == COMMIT_LOG
        return super().open(path, writable=writable)

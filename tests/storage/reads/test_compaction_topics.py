"""Compaction topics are copied into a log of their own, read from it, and rebuilt where it is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from seglog.errors import MessageIllegalError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.compaction import compaction_record
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes.values import NewMessage
from tests.support.material.archives import unpack
from tests.support.material.stores import copy_store, new_clock

ARCHIVE = Path(__file__).parents[1] / "format" / "stores" / "compaction-5.4.0.tar.xz"


def declare(root, topic="Comp"):
    (root / "config").mkdir(parents=True, exist_ok=True)
    config = {"topicName": topic, "attributes": {"cleanup.policy": "COMPACTION"}}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": {topic: config}}))
    return root


@pytest.fixture
def stores(tmp_path):
    """``filled`` before and ``compacted`` after a compaction by RocketMQ, files of 9660 and 966 bytes."""
    unpack(ARCHIVE, tmp_path)
    for name in ("filled", "compacted"):
        declare(tmp_path / name)
        # The topic table must know every topic, or it counts as deleted.
        path = tmp_path / name / "config" / "topics.json"
        table = json.loads(path.read_text())
        table["topicConfigTable"]["Multi"] = {"topicName": "Multi"}
        path.write_text(json.dumps(table))
    return tmp_path


@pytest.fixture
def root(tmp_path):
    return declare(tmp_path / "store")


def open_store(root, **options):
    return MessageStore.open(
        root, clock=new_clock(), segment_size_bytes=1 << 16, queue_file_size_bytes=2000, **options
    )


def put(store, number, queue_id=0, **options):
    return store.put("Comp", b"%d" % number, keys=f"k{number % 5}", queue_id=queue_id, **options)


def compaction_files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in (root / "compaction").rglob("*")
        if path.is_file() and "position" not in path.name
    }


def read_all(store, queue_id=0):
    found, at = [], 0
    while True:
        result = store.get("Comp", queue_id, at)
        if result.status is not GetStatus.FOUND:
            return found
        found += result.messages
        at = result.next_offset


def test_messages_are_served_from_their_own_log(root):
    with open_store(root) as store:
        store.put("Other", b"first in the commit log")
        puts = [put(store, number) for number in range(10)]
        found = read_all(store)
        assert [message.body for message in found] == [b"%d" % number for number in range(10)]
        assert [message.queue_offset for message in found] == list(range(10))
        assert found[0].phy_offset == 0 != puts[0].phy_offset
        (copied,) = store.get("Comp", 0, 3, 1)
        original = store._core.log.read(puts[3].phy_offset, copied.size_bytes)
        assert store.get("Comp", 0, 3, 1).records[0] == compaction_record(original, copied.phy_offset)
        assert store.message_at(puts[3].phy_offset).body == b"3"
        assert (store.min_offset("Comp", 0), store.max_offset("Comp", 0)) == (0, 10)


def test_keys_are_required(root):
    with open_store(root) as store:
        for keys in (None, "", " "):
            with pytest.raises(MessageIllegalError, match="no keys") as caught:
                store.put("Comp", b"x", keys=keys)
            assert caught.value.response_code == 13
        with pytest.raises(MessageIllegalError, match="no keys"):
            store.put_batch("Comp", [NewMessage(b"a", keys="k"), NewMessage(b"b")])
        assert (store.max_phy_offset, store.max_offset("Comp", 0)) == (0, 0)
        assert store.put_batch("Comp", [NewMessage(b"a", keys="k"), NewMessage(b"b", keys="k")]).count == 2
        assert [message.body for message in read_all(store)] == [b"a", b"b"]


def test_statuses_are_those_of_compaction_topics(root):
    with open_store(root) as store:
        nothing = store.get("Comp", 0, 5)
        assert (nothing.status, nothing.next_offset) == (GetStatus.NO_MATCHED_LOGIC_QUEUE, 0)
        for number in range(4):
            put(store, number)
        end = store.get("Comp", 0, 4)
        assert (end.status, end.next_offset) == (GetStatus.OFFSET_OVERFLOW_ONE, 4)
        beyond = store.get("Comp", 0, 9)
        assert (beyond.status, beyond.next_offset) == (GetStatus.OFFSET_OVERFLOW_BADLY, 0)
        before = store.get("Comp", 0, -1)
        assert (before.status, before.next_offset, len(before)) == (GetStatus.FOUND, 4, 4)


def test_offsets_in_gaps_start_at_the_next_message(stores):
    with MessageStore.open(stores / "compacted", create=False) as store:
        offsets = [message.queue_offset for message in read_all(store)]
        assert offsets == sorted(offsets)
        assert offsets[0] > 0
        assert offsets[-1] == 119
        for at in range(-1, 120):
            (found,) = store.get("Comp", 0, at, 1)
            assert found.queue_offset == min(offset for offset in offsets if offset >= at)
        beyond = store.get("Comp", 0, 500)
        assert (beyond.status, beyond.next_offset) == (GetStatus.OFFSET_OVERFLOW_BADLY, 120)


@pytest.mark.parametrize("name", ["filled", "compacted"])
@pytest.mark.parametrize("read_only", [True, False])
def test_files_of_rocketmq_stay_as_they_are(stores, name, read_only):
    root = stores / name
    before = compaction_files(root)
    with MessageStore.open(root, create=False, read_only=read_only) as store:
        served = [message.queue_offset for message in read_all(store)]
        assert served[-1] == 119
    assert compaction_files(root) == before


LOSSES = {
    "everything but one file": lambda path: path.name != "00000000000000000000",
    "last queue file": lambda path: "compactionCq" in str(path) and path.name.endswith("48300"),
    "middle queue file": lambda path: "compactionCq" in str(path) and path.name.endswith("19320"),
    "middle log file": lambda path: "compactionLog" in str(path) and path.name.endswith("19320"),
}


@pytest.mark.parametrize("lost", LOSSES)
def test_lost_files_are_made_again_from_the_commit_log(stores, lost):
    root = stores / "filled"
    before = compaction_files(root)
    for path in (root / "compaction").rglob("*"):
        if path.is_file() and "position" not in path.name and LOSSES[lost](path):
            path.unlink()
    with MessageStore.open(root, create=False, read_only=True) as store:
        served = [[message.queue_offset for message in read_all(store, number)] for number in (0, 1)]
    with MessageStore.open(root, create=False) as store:
        assert [[message.queue_offset for message in read_all(store, n)] for n in (0, 1)] == served
        assert [len(offsets) for offsets in served] == [120, 120]
    assert compaction_files(root) == before


@pytest.mark.parametrize("damage", ["unit", "count", "record", "behind the end", "left over", "subfolder"])
def test_damaged_files_are_set_right(stores, damage):
    root = stores / "filled"
    before = compaction_files(root)
    folder = root / "compaction"
    queue = folder / "compactionCq" / "Comp" / "0" / "00000000000000019320"
    log = folder / "compactionLog" / "Comp" / "0" / "00000000000000019320"
    if damage == "unit":
        queue.write_bytes(b"\0" * 46 + queue.read_bytes()[46:])
    elif damage == "count":  # of messages of a unit: readers would go on behind them
        data = bytearray(queue.read_bytes())
        data[46 + 36] = 0x40
        queue.write_bytes(data)
    elif damage == "record":
        data = bytearray(log.read_bytes())
        data[95] ^= 1
        log.write_bytes(data)
    elif damage == "behind the end":
        last = queue.with_name("00000000000000048300")
        data = last.read_bytes()
        used = len(data.rstrip(b"\0"))
        used += -used % 46
        last.write_bytes((data[:used] + b"\0" * 46 + data[:46]).ljust(len(data), b"\0")[: len(data)])
    elif damage == "left over":
        (queue.with_name(queue.name + ".delete")).write_bytes(b"old")
    else:
        (queue.parent / "compacting").mkdir()
        (queue.parent / "compacting" / "00000000000000000000").write_bytes(b"old")
    with MessageStore.open(root, create=False) as store:
        assert [message.queue_offset for message in read_all(store)] == list(range(120))
    assert compaction_files(root) == before


def test_writing_goes_on_over_files(stores):
    root = stores / "filled"
    with MessageStore.open(root, create=False) as store:
        for number in range(120, 220):
            assert put(store, number).queue_offset == number
        assert [message.queue_offset for message in read_all(store)] == list(range(220))
        # A read ends with the file that it began in.
        assert len(store.get("Comp", 0, 0, 1000)) == 20
    before = compaction_files(root)
    assert len(before) > 2 * 2 * 6
    shutil.rmtree(root / "compaction" / "compactionCq" / "Comp" / "0")
    with MessageStore.open(root, create=False) as store:
        assert [message.queue_offset for message in read_all(store)] == list(range(220))
    assert compaction_files(root) == before
    assert survey(root, RealFiles()).findings == []


def test_killed_writer_loses_nothing(root, tmp_path):
    with open_store(root) as store:
        for number in range(30):
            put(store, number)
        copy = copy_store(root, tmp_path / "copy")
        shutil.rmtree(copy / "compaction")
    for read_only in (True, False):
        with MessageStore.open(copy, create=False, read_only=read_only) as store:
            assert [message.queue_offset for message in read_all(store)] == list(range(30))
    with MessageStore.open(copy, create=False) as store:
        assert put(store, 30).queue_offset == 30
        assert len(read_all(store)) == 31


def test_reader_follows_a_writer(root):
    with open_store(root) as store:
        put(store, 0)
        with MessageStore.open(root, read_only=True) as reader:
            put(store, 1)
            put(store, 2, queue_id=4)
            reader.refresh()
            assert [message.body for message in read_all(reader)] == [b"0", b"1"]
            assert [message.body for message in read_all(reader, 4)] == [b"2"]


def test_positions_of_compaction_stay(stores):
    path = stores / "compacted" / "compaction" / "position-checkpoint"
    before = path.read_bytes()
    with MessageStore.open(stores / "compacted", create=False) as store:
        put(store, 500)
    assert path.read_bytes() == before


def test_queue_offset_that_a_flipped_bit_made_huge_does_not_reach_the_own_log(root):
    with open_store(root, record_crc=False) as store:
        puts = [put(store, number) for number in range(5)]
    path = root / "commitlog" / ("0" * 20)
    data = bytearray(path.read_bytes())
    data[puts[-1].phy_offset + 22] ^= 0x40
    path.write_bytes(data)
    shutil.rmtree(root / "compaction")
    for read_only in (True, False):
        with MessageStore.open(root, read_only=read_only, clock=new_clock()) as store:
            assert [message.queue_offset for message in store.get("Comp", 0, 0)] == [0, 1, 2, 3, 4]

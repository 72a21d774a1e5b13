"""Messages appear in the further queues that they name, with offsets of their own there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.errors import FullError, MessageIllegalError
from seglog.storage.files.files import RealFiles
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES
from seglog.storage.format.record.sys_flag import TRANSACTION_ROLLBACK
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes.values import NewMessage
from tests.support.material.archives import unpack
from tests.support.material.stores import SMALL, copy_store, new_clock, read_all

ARCHIVE = Path(__file__).parents[1] / "format" / "stores" / "compaction-5.4.0.tar.xz"


def open_store(root, **options):
    return MessageStore.open(root, clock=new_clock(), **SMALL, **options)


def put(store, names, topic="Parent", **options):
    return store.put(topic, b"body", properties={"INNER_MULTI_DISPATCH": names, "K": "v"}, **options)


def fill(store, count=30):
    for number in range(count):
        put(store, ("%LMQ%a", "%LMQ%b", "%LMQ%a,%LMQ%b")[number % 3], queue_id=number % 2, tags=f"t{number}")
        store.put("Parent", b"no further queue", queue_id=number % 2)


def queue_files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes().rstrip(b"\0")
        for path in (root / "consumequeue").rglob("*")
        if path.is_file()
    }


def asked_offsets(message):
    return message.properties["INNER_MULTI_QUEUE_OFFSET"]


def test_each_named_queue_gives_an_offset_of_its_own(tmp_path):
    with open_store(tmp_path) as store:
        for names in ("%LMQ%a", "%LMQ%a,%LMQ%b", "%LMQ%b,%LMQ%a", "%LMQ%b,%LMQ%b"):
            put(store, names, queue_id=3)
        assert [asked_offsets(m) for m in read_all(store, "Parent", 3)] == ["0", "1,0", "1,2", "2,2"]
        assert [m.queue_offset for m in read_all(store, "%LMQ%a", 0)] == [0, 1, 2]  # the parent's
        assert (store.max_offset("%LMQ%a", 0), store.max_offset("%LMQ%b", 0)) == (3, 3)
        assert store.wait_for("%LMQ%b", 0, 2, 0)
        assert read_all(store, "%LMQ%a", 0)[0].topic == "Parent"
        assert read_all(store, "%LMQ%a", 0)[0].properties["K"] == "v"


def test_filter_works_in_a_further_queue(tmp_path):
    with open_store(tmp_path) as store:
        fill(store)
        assert [message.tags for message in store.get("%LMQ%b", 0, 0, filter="t4 || t5")] == ["t4", "t5"]


@pytest.mark.parametrize("crash", [True, False])
@pytest.mark.parametrize("lost", ["%LMQ%a", "%LMQ%b", "Parent", ""])
def test_queues_follow_from_the_log(tmp_path, lost, crash):
    with open_store(tmp_path / "store") as store:
        fill(store)
        copy = copy_store(tmp_path / "store", tmp_path / "copy") if crash else tmp_path / "store"
    before = queue_files(tmp_path / "store")
    shutil.rmtree(copy / "consumequeue" / lost)
    with MessageStore.open(copy, read_only=True) as reader:
        assert reader.max_offset("%LMQ%a", 0) == 20
        assert len(read_all(reader, "%LMQ%b", 0)) == 20
    if lost:  # with no file left their length is not known any more
        with MessageStore.open(copy, create=False) as store:
            put(store, "%LMQ%a")
            assert asked_offsets(read_all(store, "Parent", 0)[-1]) == "20"
            assert store.max_offset("%LMQ%a", 0) == 21
        after = queue_files(copy)
        assert all(after[name].startswith(data) for name, data in before.items())
        assert survey(copy, RealFiles()).findings == []


def test_a_unit_that_leads_to_a_record_without_queue_is_not_served(tmp_path):
    with open_store(tmp_path / "store") as store:
        put(store, "%LMQ%a")
        half = store.append("Parent", 0, b"half", b"", 0, sys_flag=TRANSACTION_ROLLBACK)
        store.flush()
        killed = copy_store(store.path, tmp_path / "killed")
    with (killed / "consumequeue" / "%LMQ%a" / "0" / ("0" * 20)).open("r+b") as file:
        file.seek(CQ_UNIT_BYTES)
        file.write(CQ_UNIT.struct.pack(half.phy_offset, half.size_bytes, 0))
    with MessageStore.open(killed) as store:
        assert [message.body for message in read_all(store, "%LMQ%a", 0)] == [b"body"]
        assert store.max_offset("%LMQ%a", 0) == 1


def test_reader_follows_further_queues(tmp_path):
    with open_store(tmp_path) as store:
        put(store, "%LMQ%a")
        with MessageStore.open(tmp_path, read_only=True) as reader:
            put(store, "%LMQ%a,%LMQ%new")
            reader.refresh()
            assert (reader.max_offset("%LMQ%a", 0), reader.max_offset("%LMQ%new", 0)) == (2, 1)


@pytest.mark.parametrize("topic", ["%RETRY%g", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX"])
def test_messages_of_some_topics_stay_in_their_own_queue(tmp_path, topic):
    with open_store(tmp_path) as store:
        put(store, "%LMQ%a", topic=topic)
        assert {queue.topic for queue in store.queues()} == {topic}


def test_name_that_no_folder_can_have_is_passed_over(tmp_path):
    with open_store(tmp_path) as store:
        put(store, "%LMQ%a/b,%LMQ%c")
        assert [asked_offsets(m) for m in read_all(store, "Parent", 0)] == ["0,0"]
        assert {queue.topic for queue in store.queues()} == {"Parent", "%LMQ%c"}
    assert survey(tmp_path, RealFiles()).findings == []


def test_name_without_prefix_is_refused(tmp_path):
    with open_store(tmp_path) as store:
        with pytest.raises(MessageIllegalError, match="plain"):
            put(store, "%LMQ%a,plain")
        assert (store.queues(), store.max_phy_offset) == ([], 0)


def test_offsets_cannot_be_forged(tmp_path):
    forged = {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": "77"}
    with open_store(tmp_path) as store:
        store.put("Parent", b"", properties=forged)
        assert store.max_offset("%LMQ%a", 0) == 1
        with pytest.raises(MessageIllegalError, match="INNER_MULTI_QUEUE_OFFSET"):
            store.put_batch("Parent", [NewMessage(b"", properties=forged)])
        # Nothing is dispatched without the names, and RocketMQ stores it as it is too.
        store.put("Parent", b"", properties={"INNER_MULTI_QUEUE_OFFSET": "5"})
        assert store.max_offset("%LMQ%a", 0) == 1


def test_put_for_which_a_further_queue_has_no_space_leaves_nothing(tmp_path, monkeypatch):
    with open_store(tmp_path) as store:
        put(store, "%LMQ%a")
        end = store.max_phy_offset
        reserve = StoreRoot.create

        def create(self, path, size_bytes):
            if "LMQ%b" in str(path):
                raise FullError("full")
            return reserve(self, path, size_bytes)

        monkeypatch.setattr(StoreRoot, "create", create)
        with pytest.raises(FullError):
            put(store, "%LMQ%c,%LMQ%b", queue_id=5)
        monkeypatch.undo()
        assert (store.max_phy_offset, store.max_offset("%LMQ%c", 0)) == (end, 0)
        put(store, "%LMQ%c,%LMQ%b", queue_id=5)
        assert (store.max_offset("%LMQ%c", 0), store.max_offset("%LMQ%b", 0)) == (1, 1)


def test_further_queues_of_rocketmq_follow_from_its_log(tmp_path):
    unpack(ARCHIVE, tmp_path)
    store = tmp_path / "filled"
    before = queue_files(store)
    lmqs = [path for path in (store / "consumequeue").iterdir() if path.name.startswith("%LMQ%")]
    assert lmqs
    for path in lmqs:
        shutil.rmtree(path)
    MessageStore.open(store, create=False).close()
    assert queue_files(store) == before

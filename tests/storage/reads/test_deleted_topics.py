"""A topic that is deleted is gone at once and for good, and may be rebuilt."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time

import pytest

from seglog.errors import InvalidArgumentError, ReadOnlyError
from seglog.storage.format.get_status import GetStatus
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL_INDEX, Lengths, OpenStore, fill, read_all, served, writer_of


def know(store, *topics):
    """Names the topics that a broker has."""
    folder = store.path / "config"
    folder.mkdir(exist_ok=True)
    table = {name: {"topicName": name} for name in topics}
    (folder / "topics.json").write_text(json.dumps({"topicConfigTable": table}))


def test_its_queues_and_their_files_are_gone_and_others_stay(open_store: OpenStore):
    store = open_store()
    fill(store, 100)
    kept = {key: queue for key, queue in served(store).items() if key[0] != "Topic0"}
    assert store.retention.delete_topic("Topic0") == 2
    assert served(store) == kept
    assert store.get("Topic0", 0, 3).status is GetStatus.NO_MESSAGE_IN_QUEUE
    assert (store.min_offset("Topic0", 0), store.max_offset("Topic0", 0)) == (0, 0)
    assert store.query("Topic1", "k1")
    assert not (store.path / "consumequeue" / "Topic0").exists()
    assert store.retention.delete_topic("Topic0") == 0


def test_it_stays_gone_once_no_broker_knows_it(open_store: OpenStore):
    store = open_store()
    fill(store, 100)
    know(store, "Topic1")
    store.retention.delete_topic("Topic0")
    kept = served(store)
    store.close()
    again = open_store()
    assert served(again) == kept
    assert {found.code for found in again.recovery.findings} == {"queue-deleted"}


@pytest.mark.parametrize("table", [("Topic1",), ("Other",)], ids=["of this store", "of another store"])
def test_a_topic_of_which_a_queue_is_left_was_not_deleted(open_store: OpenStore, table):
    store = open_store()
    fill(store, 100)
    whole = served(store)
    store.close()
    know(store, *table)
    shutil.rmtree(store.path / "consumequeue" / "Topic0" / "1")
    again = open_store()
    assert {found.code for found in again.recovery.findings} == {"queue-missing"}
    assert served(again) == whole


def test_a_table_that_knows_no_topic_of_the_store_does_not_say_that_one_is_deleted(open_store: OpenStore):
    store = open_store()
    fill(store, 100)
    whole = served(store)
    store.close()
    know(store, "Other")
    shutil.rmtree(store.path / "consumequeue" / "Topic0")
    again = open_store()
    assert {found.code for found in again.recovery.findings} == {"queue-missing"}
    assert served(again) == whole


def test_made_anew_it_begins_at_0_and_has_only_what_is_new(open_store: OpenStore):
    store = open_store()
    fill(store, 100)
    store.retention.delete_topic("Topic0")
    for number in range(15):
        assert store.put("Topic0", b"new %d" % number).queue_offset == number
    bodies = [b"new %d" % number for number in range(15)]
    assert [message.body for message in read_all(store, "Topic0", 0)] == bodies
    know(store, "Topic0", "Topic1")
    store.close()
    again = open_store()
    assert [message.body for message in read_all(again, "Topic0", 0)] == bodies
    assert again.put("Topic0", b"more").queue_offset == 15


def test_a_batch_topic_may_come_back_as_a_plain_one(open_store: OpenStore, tmp_path):
    (tmp_path / "store" / "config").mkdir(parents=True)
    (tmp_path / "store" / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"B":{"topicName":"B","attributes":{"queue.type":"BatchCQ"}}}}'
    )
    store = open_store()
    for number in range(30):
        store.put("B", b"%d" % number)
    assert store.retention.delete_topic("B") == 1
    assert store.put("B", b"plain").queue_offset == 0
    assert len(store.queue("B", 0)) == 1


def test_a_compaction_topic_is_not_deleted(open_store: OpenStore, tmp_path):
    (tmp_path / "store" / "config").mkdir(parents=True)
    (tmp_path / "store" / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"C":{"topicName":"C","attributes":{"cleanup.policy":"COMPACTION"}}}}'
    )
    store = open_store()
    store.put("C", b"1", keys="k")
    with pytest.raises(InvalidArgumentError, match="compaction"):
        store.retention.delete_topic("C")


def test_a_reader_deletes_nothing(open_store: OpenStore):
    store = open_store()
    fill(store, 10)
    with pytest.raises(ReadOnlyError):
        open_store(read_only=True).retention.delete_topic("Topic0")


def test_no_recovery_point_is_left_that_knows_it(open_store: OpenStore):
    store = open_store(recovery_step_bytes=4096)
    fill(store, 400)
    assert writer_of(store)._points._round()
    know(store, "Topic1")
    store.retention.delete_topic("Topic0")
    fill(store, 400, topics=1)
    kept = served(store)
    know(store, "Topic0", "Topic1")
    store.close()
    again = open_store()
    assert again.recovery.walked_from == 0
    assert {key: [m.body for m in queue] for key, queue in served(again).items()} == {
        key: [m.body for m in queue] for key, queue in kept.items()
    }


def test_writing_and_reading_while_it_is_deleted_again_and_again(tmp_path):
    lengths: Lengths = {"segment_size_bytes": 1 << 20, "queue_file_size_bytes": 4000}
    with MessageStore.open(tmp_path / "store", **lengths, **SMALL_INDEX) as store:
        done = threading.Event()
        problems = []

        def work(seed):
            chance = random.Random(seed)
            try:
                while not done.is_set():
                    put = store.put("T", b"x" * chance.randrange(300))
                    assert put.queue_offset >= 0
                    store.get("T", 0, chance.randrange(put.queue_offset + 1))
                    store.put("Other", b"%d" % seed)
                    time.sleep(0.001)
            except BaseException as error:
                problems.append(error)
                raise

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for worker in workers:
            worker.start()
        try:
            for _ in range(20):
                store.retention.delete_topic("T")
                store.retention.delete_before(store.max_phy_offset - (2 << 20))
        finally:
            done.set()
            for worker in workers:
                worker.join()
        assert problems == []
        store.put("T", b"the last one")
        kept = served(store)
        assert [m.queue_offset for m in kept["T", 0]] == list(
            range(store.min_offset("T", 0), store.max_offset("T", 0))
        )
        know(store, "T", "Other")
    with MessageStore.open(tmp_path / "store") as store:
        assert served(store) == kept

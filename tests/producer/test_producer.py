"""A producer says where each message went, keeps the order of a key, and raises what was not stored."""

from __future__ import annotations

import threading

import pytest

from seglog.broker.broker import Broker
from seglog.broker.tables.topics import TopicConfig
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.errors import (
    ClientClosedError,
    InvalidArgumentError,
    InvalidNameError,
    MessageIllegalError,
    RemoteProtocolError,
)
from seglog.producer.producer import Producer
from seglog.producer.send_result import SendStatus
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage
from tests.support.brokers import open_broker
from tests.support.machine.patience import join_thread


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def broker(tmp_path, clock):
    with open_broker(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def producer(broker, clock):
    return Producer(LocalLink(broker), "pg", clock=clock)


def test_a_result_leads_to_the_message(broker, producer, clock):
    sent = producer.send("T", b"body", tags="A", keys=["k1", "k2"], properties={"a": "b"}, flag=7, queue_id=2)
    (message,) = broker.store.get("T", 2, 0).messages
    assert sent.status is SendStatus.SEND_OK
    assert sent.queue == MessageQueue("T", "broker-a", 2)
    assert (sent.queue_offset, sent.durability) == (0, Durability.ASYNC)
    assert sent.message_id == message.unique_key
    assert sent.offset_message_id == message.message_id
    assert (message.body, message.tags, message.keys, message.flag) == (b"body", "A", ["k1", "k2"], 7)
    assert message.properties["a"] == "b"
    assert message.born_timestamp_ms == clock.now_ms()


def test_queues_take_turns(producer):
    sent = [producer.send("T", b"x").queue.queue_id for _ in range(8)]
    assert sent[:4] == sent[4:]
    assert sorted(sent[:4]) == [0, 1, 2, 3]


def test_a_sharding_key_has_the_queue_that_java_would_choose(broker, producer):
    # What Java gives for Math.abs(key.hashCode() % 4); the first two hash codes are negative.
    for key, queue_id in (("customer-7", 0), ("order-1", 2), ("order-17", 1)):
        assert producer.send("T", b"x", sharding_key=key).queue.queue_id == queue_id
    sent = producer.send("T", b"x", sharding_key="customer-7")
    (message,) = broker.store.get("T", sent.queue.queue_id, sent.queue_offset, 1).messages
    assert message.sharding_key == message.properties["__SHARDINGKEY"] == "customer-7"
    unkeyed = producer.send("T", b"x")
    (other,) = broker.store.get("T", unkeyed.queue.queue_id, unkeyed.queue_offset, 1).messages
    assert other.sharding_key is None


def test_a_queue_that_is_not_there_is_refused_before_anything_is_sent(broker, producer):
    with pytest.raises(InvalidArgumentError, match="no queue 4"):
        producer.send("T", b"x", queue_id=4)
    with pytest.raises(InvalidArgumentError, match="no queue -1"):
        producer.send("T", b"x", queue_id=-1)
    assert broker.store.queues() == []


def test_an_id_of_ones_own_is_kept(producer):
    assert producer.send("T", b"x", properties={"UNIQ_KEY": "mine"}).message_id == "mine"


def test_ids_come_from_the_given_maker(broker, clock):
    ids = UniqueIds(clock, process_id=1, life=2)
    expected = UniqueIds(clock, process_id=1, life=2).next()
    assert Producer(LocalLink(broker), clock=clock, ids=ids).send("T", b"x").message_id == expected


def test_what_the_broker_refuses_is_raised_with_its_code(producer):
    with pytest.raises(RemoteProtocolError, match="13") as caught:
        producer.send("T", bytes((4 << 20) + 1))
    assert caught.value.code == 13


def test_properties_that_cannot_be_stored_are_refused(producer):
    with pytest.raises(MessageIllegalError):
        producer.send("T", b"x", properties={"a": "\x02"})


def test_a_topic_that_lost_its_queues_is_asked_for_again(broker, producer):
    for _ in range(2):  # the route of a topic that the first send creates is not kept
        producer.send("T", b"x", queue_id=3)
    broker.topics.put(TopicConfig("T", 1, 1))
    with pytest.raises(RemoteProtocolError, match="illegal"):
        producer.send("T", b"x", queue_id=3)
    assert producer.send("T", b"x").queue.queue_id == 0


def test_a_new_topic_gets_the_queues_that_the_producer_wants(broker, clock):
    producer = Producer(LocalLink(broker), clock=clock, new_topic_queue_nums=2)
    producer.send("T", b"x")
    assert broker.topics.get("T").write_queue_nums == 2
    assert producer.queues("T") == (MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1))


def test_a_batch_lies_in_one_queue_behind_each_other(broker, producer):
    messages = [NewMessage(b"0", tags="A", keys="k", flag=5), NewMessage(b"1", properties={"a": "b"}), b"2"]
    sent = producer.send_batch("T", messages, queue_id=1)
    stored = broker.store.get("T", 1, sent.queue_offset).messages
    assert [message.body for message in stored] == [b"0", b"1", b"2"]
    assert sent.message_ids == tuple(message.unique_key for message in stored)
    assert sent.offset_message_ids == tuple(message.message_id for message in stored)
    assert (stored[0].tags, stored[0].keys, stored[0].flag) == ("A", ["k"], 5)
    assert stored[1].properties["a"] == "b"
    assert [message.tags for message in broker.store.get("T", 1, 0, 10, "A")] == ["A"]


def test_an_empty_batch_is_refused(producer):
    with pytest.raises(InvalidArgumentError, match="at least one"):
        producer.send_batch("T", [])


def test_a_batch_that_is_too_large_is_refused_whole(broker, producer):
    with pytest.raises(RemoteProtocolError):
        producer.send_batch("T", [bytes(3 << 20)] * 2)
    assert broker.store.queues() == []


def test_a_send_need_not_wait_for_the_disk(tmp_path):
    with Broker.open(tmp_path, background=False, durability=Durability.SYNC) as broker:
        producer = Producer(LocalLink(broker))
        assert producer.send("T", b"x").durability is Durability.SYNC
        assert producer.send("T", b"x", wait_for_disk=False).durability is Durability.ASYNC
        assert producer.send_batch("T", [b"x"]).durability is Durability.SYNC
        assert producer.send_batch("T", [b"x"], wait_for_disk=False).durability is Durability.ASYNC


@pytest.mark.parametrize("group", ["", "a/b", "a\n"])
def test_a_group_that_cannot_be_named_so_is_refused(broker, group):
    with pytest.raises(InvalidNameError):
        Producer(LocalLink(broker), group)


def test_threads_share_a_producer(broker, producer):
    results = []

    def run(name):
        results.extend(producer.send("T", b"x", sharding_key=name) for _ in range(200))

    threads = [threading.Thread(target=run, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread, idle_s=30)
    assert len({sent.message_id for sent in results}) == 800
    assert len({(sent.queue, sent.queue_offset) for sent in results}) == 800
    assert sum(queue.max_offset for queue in broker.store.queues()) == 800


def test_s1_07_a_closed_producer_refuses(broker, clock):
    with Producer(LocalLink(broker), clock=clock) as producer:
        producer.send("T", b"x")
    with pytest.raises(ClientClosedError, match="closed"):
        producer.send("T", b"x")
    with pytest.raises(ClientClosedError, match="closed"):
        producer.send_batch("T", [b"x"])
    assert Producer(LocalLink(broker), clock=clock).send("T", b"x").status is SendStatus.SEND_OK

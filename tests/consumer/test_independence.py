"""What happens to one queue, topic or message concerns no other; what a group has to know reaches it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.remoting.admin_headers import DeleteTopicHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.subscription import Subscription
from seglog.remoting.topics import PERM_WRITE
from seglog.storage.format.record import INNER_BATCH, decode_message_id
from tests.support.brokers import open_broker
from tests.support.consumers import NewConsumer, Send
from tests.support.material.golden import extract
from tests.support.recording import recording

BODY_LENGTH_AT = 84
"""In a record whose hosts are IPv4 ones."""
BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


@BOTH
def test_finding_6_a_topic_that_cannot_be_read_starves_none(broker: Broker, send: Send, kind):
    for topic in ("a", "b", "c"):
        send(1, topic=topic)
    broker.topics.put(TopicConfig("a", 4, 4, PERM_WRITE))
    seen = []
    with kind(broker, "g", {"a": "*", "b": "*", "c": "*", "gone": "*"}, seen.append) as consumer:
        consumer.run_until_idle()
        assert sorted(message.topic for message in seen) == ["b", "c"]


@BOTH
def test_finding_6_damaged_deleted_and_forbidden_topics_do_not_delay_a_healthy_one(
    tmp_path, clock: VirtualClock, kind
):
    topics = ("damaged", "deleted", "forbidden", "healthy")
    moments = []

    def listener(message):
        if message.topic == "healthy":
            moments.append(clock.now_ms() - message.store_timestamp_ms)

    with open_broker(tmp_path, clock) as broker, Producer(broker) as producer:
        places = [producer.send(topic, b"x" * 40, queue_id=0).offset_message_id for topic in topics * 3]
        _host, at = decode_message_id(places[0])
        for path in (tmp_path / "commitlog").iterdir():
            with path.open("r+b") as file:
                file.seek(at + BODY_LENGTH_AT)
                file.write(b"\x7f\xff\xff\xff")
        broker.topics.put(TopicConfig("forbidden", 4, 4, PERM_WRITE))
        with kind(broker, "g", dict.fromkeys(topics, "*"), listener) as consumer:
            consumer.start()
            broker.advance(0)
            assert len(moments) == 3
            delete = Request(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicHeader("deleted"))
            assert broker.dispatch(delete).code is ResponseCode.SUCCESS
            moments.clear()
            for _ in range(30):
                broker.advance("7s")
                producer.send("healthy", b"x", queue_id=0)
                broker.advance(0)
            assert moments == [0] * 30, "each comes when it is sent"
            assert consumer.counts.delivered == 36, (
                "those before the deletion as well, and none of the damaged"
            )


@BOTH
def test_finding_7_a_reset_reaches_a_consumer_that_is_stuck(broker: Broker, send: Send, kind):
    send(5)
    seen = []

    def listener(message):
        seen.append(message.queue_offset)
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if message.queue_offset == 0 else None

    with kind(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("30s")
        broker.offsets.reset("g", "T", 0, 3)
        seen.clear()
        broker.advance("11m")
        assert seen[-2:] == [3, 4] or kind is PushConsumer
        assert broker.offsets.query("g", "T", 0) == 5


def test_finding_7_a_reset_reaches_a_consumer_whose_cache_is_full(broker: Broker, send: Send):
    send(1_200)
    seen = []

    def listener(message):
        seen.append(message.queue_offset)
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if message.queue_offset == 0 else None

    with OrderlyConsumer(broker, "g", "T", listener, max_cached=1_000) as consumer:
        consumer.start()
        broker.advance("30s")
        broker.offsets.reset("g", "T", 0, 1_198)
        seen.clear()
        broker.advance("10s")
        assert seen[-2:] == [1_198, 1_199]


def test_finding_1_inner_batches_reach_the_listener_message_by_message(tmp_path):
    with Broker.open(extract("innerbatch", tmp_path), clock=VirtualClock()) as broker:
        topics = dict.fromkeys({queue.topic for queue in broker.store.queues()}, "*")
        seen = []
        with PushConsumer(broker, "g", topics, seen.append, consume_from=ConsumeFrom.FIRST) as consumer:
            consumer.run_until_idle()
    assert len(seen) == 130
    assert len({(message.topic, message.queue_id, message.queue_offset) for message in seen}) == 130
    assert not any(message.sys_flag & INNER_BATCH for message in seen)


def test_finding_8_what_is_sent_back_reaches_its_group_under_the_name_of_its_topic(
    broker: Broker, send: Send
):
    attempts = []

    def listener(message):
        attempts.append((message.topic, message.reconsume_times))
        return Consume.RECONSUME_LATER if message.reconsume_times < 2 else None

    send(1)
    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("9s")
        assert attempts == [("T", 0)]
        broker.advance("1m")
        assert attempts == [("T", 0), ("T", 1), ("T", 2)]
    assert broker.offsets.query("g", "T", 0) == 1


def test_finding_13_sixteen_retries_and_a_dead_letter_in_one_call(
    broker: Broker, send: Send, clock: VirtualClock
):
    moments = []

    def listener(message):
        moments.append(clock.now_ms())
        return Consume.RECONSUME_LATER

    send(1)
    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("5h")
    waits_s = [round((later - earlier) / 1_000) for earlier, later in pairwise(moments)]
    assert waits_s == [10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200]
    assert len(broker.store.get("%DLQ%g", 0, 0, 9).messages) == 1


def test_finding_9_without_a_limit_a_message_is_tried_for_ever_in_order(broker: Broker, send: Send):
    send(1)
    with OrderlyConsumer(broker, "g", "T", lambda _message: Consume.RECONSUME_LATER) as consumer:
        consumer.start()
        broker.advance("100s")
        assert consumer.counts.failed >= 100
    assert broker.topics.get("%DLQ%g") is None


def test_finding_9_the_group_that_rocketmq_refuses_is_refused(broker: Broker):
    with pytest.raises(InvalidArgumentError):
        OrderlyConsumer(broker, "DEFAULT_CONSUMER", "T", print)


def test_finding_10_a_consumer_is_one_client_under_a_strict_queue_lock(tmp_path):
    with open_broker(tmp_path / "s", config=BrokerConfig(strict_queue_lock=True)) as broker:
        Producer(broker).send("T", b"x")
        seen = []
        with OrderlyConsumer(broker, "g", "T", seen.append) as consumer:
            consumer.run_until_idle()
            (locked_by,) = {lock.client_id for lock in broker.locks.all()}
            assert (len(seen), locked_by) == (1, consumer.client_id)


def test_finding_11_an_idle_consumer_waits_in_held_pulls(broker: Broker, consume: NewConsumer, send: Send):
    send(1)
    with recording(broker) as link:
        consumer, _seen = consume(via=link)
        consumer.run_until_idle()
        before = len(link.pulls)
        broker.advance("2m")
        assert len(link.pulls) == before, "ten minutes on virtual time"


def test_finding_12_a_condition_of_sql92_is_one(tmp_path):
    with open_broker(tmp_path / "s", config=BrokerConfig(enable_property_filter=True)) as broker:
        producer = Producer(broker)
        for price in (3, 7, 9):
            producer.send("T", b"x", queue_id=0, properties={"price": str(price)})
        seen = []
        wanted = {"T": Subscription.by_sql("price > 5")}
        with PushConsumer(broker, "g", wanted, seen.append) as consumer:
            consumer.run_until_idle()
        assert [message.properties["price"] for message in seen] == ["7", "9"]


@BOTH
def test_s4_02_both_kinds_begin_where_they_say(tmp_path, kind):
    with open_broker(tmp_path / "s", config=BrokerConfig(hot_bytes=0)) as broker:
        Producer(broker).send("T", b"x", queue_id=0)
        seen = []
        with kind(broker, "g", "T", seen.append, consume_from=ConsumeFrom.FIRST) as consumer:
            assert consumer.run_until_idle() == 1


def test_pulls_of_a_queue_that_fails_delay_only_that_one(broker: Broker, consume: NewConsumer, send: Send):
    for queue_id in range(4):
        send(1, queue_id=queue_id)
    with recording(broker) as link:
        consumer, seen = consume(via=link)
        link.cut = {RequestCode.QUERY_CONSUMER_OFFSET}
        consumer.run_until_idle()
        assert seen == []
        link.cut = set()
        broker.advance(1_000)
        assert len(seen) == 4

"""Messages of a queue come one after another, a failed one first again, and what is done is committed."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.message_bodies import add_offsets
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.pulling import RETRY_MS
from seglog.consumer.push import PushConsumer
from seglog.errors import ConsumerError, InvalidArgumentError, InvalidNameError
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import expect_header
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.brokers import open_broker
from tests.support.consumers import NewConsumer, Send
from tests.support.recording import recording

SUSPEND_MS = 1_000
SUSPEND = Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT


def test_everything_is_consumed_in_the_order_of_each_queue_and_committed(
    broker: Broker, send: Send, consume: NewConsumer
):
    for queue_id in range(4):
        send(10, queue_id=queue_id)
    consumer, seen = consume()
    assert consumer.run_until_idle() == 40
    for queue_id in range(4):
        assert [offset for number, offset in seen if number == queue_id] == list(range(10))
        assert broker.offsets.query("g", "T", queue_id) == 10
    consumer.close()


def test_the_next_consumer_of_the_group_goes_on_where_the_last_one_closed(send: Send, consume: NewConsumer):
    send(5)
    first, _seen = consume()
    first.run_until_idle()
    first.close()
    send(2)
    second, seen = consume()
    second.run_until_idle()
    assert seen == [(0, 5), (0, 6)]


def test_groups_consume_independently(broker: Broker, send: Send, consume: NewConsumer):
    send(3)
    consume()[0].run_until_idle()
    other = []
    OrderlyConsumer(broker, "h", "T", other.append).run_until_idle()
    assert [message.queue_offset for message in other] == [0, 1, 2]


def test_progress_is_committed_with_the_next_pull_at_the_latest(
    broker: Broker, send: Send, consume: NewConsumer
):
    send(3)
    consumer, seen = consume()
    consumer.start()
    broker.advance(0)
    assert (len(seen), broker.offsets.query("g", "T", 0)) == (3, None)
    send(1)
    broker.advance(0)
    assert broker.offsets.query("g", "T", 0) == 3


def test_s4_11_progress_is_committed_after_ten_seconds_and_then_every_five(
    broker: Broker, send: Send, consume: NewConsumer
):
    send(1)
    consumer, _seen = consume(listener=fail_at(1, 99, raises), pull_count=2)
    consumer.start()
    broker.advance(9_999)
    assert broker.offsets.query("g", "T", 0) is None
    broker.advance(1)
    assert broker.offsets.query("g", "T", 0) == 1


def test_commit_brings_progress_to_the_broker_now(broker: Broker, send: Send, consume: NewConsumer):
    send(3)
    consumer, _seen = consume()
    consumer.start()
    broker.advance(0)
    consumer.commit()
    assert broker.offsets.query("g", "T", 0) == 3


def fail_at(offset, times, how):
    left = [times]

    def listener(message):
        if message.queue_offset == offset and left[0] > 0:
            left[0] -= 1
            return how(message)
        return None

    return listener


def raises(_message):
    raise RuntimeError("the application fails")


@pytest.mark.parametrize("how", [lambda _message: SUSPEND, raises], ids=["says so", "raises"])
def test_s2_21_a_failed_message_comes_again_before_any_other_of_its_queue(
    broker: Broker, send: Send, consume: NewConsumer, how
):
    send(3)
    consumer, seen = consume(listener=fail_at(1, 2, how))
    for _ in range(3):
        consumer.run_until_idle()
        broker.advance(SUSPEND_MS)
    assert seen == [(0, 0), (0, 1), (0, 1), (0, 1), (0, 2)]
    assert (consumer.counts.delivered, consumer.counts.failed) == (3, 2)
    assert broker.offsets.query("g", "T", 0) == 3


def test_the_failures_of_a_message_are_counted_in_it(broker: Broker, send: Send, consume: NewConsumer):
    times = []

    def listener(message):
        times.append(message.reconsume_times)
        return SUSPEND if len(times) < 4 else None

    send(2)
    consumer, _seen = consume(listener=listener)
    for _ in range(5):
        consumer.run_until_idle()
        broker.advance(SUSPEND_MS)
    assert times == [0, 1, 2, 3, 0]


def test_a_failed_message_is_not_committed(broker: Broker, send: Send, consume: NewConsumer):
    send(3)
    consumer, _seen = consume(listener=fail_at(1, 9, raises))
    consumer.run_until_idle()
    consumer.close()
    assert broker.offsets.query("g", "T", 0) == 1


def test_s2_23_a_queue_is_suspended_for_a_second(broker: Broker, send: Send, consume: NewConsumer):
    send(1)
    consumer, seen = consume(listener=fail_at(0, 1, raises))
    consumer.run_until_idle()
    broker.advance(SUSPEND_MS - 1)
    assert seen == [(0, 0)]
    broker.advance(1)
    assert seen == [(0, 0), (0, 0)]


def test_other_queues_go_on_while_one_is_suspended(send: Send, consume: NewConsumer):
    send(2, queue_id=0)
    send(2, queue_id=1)
    consumer, seen = consume(listener=lambda message: SUSPEND if message.queue_id == 0 else None)
    consumer.run_until_idle()
    assert seen == [(0, 0), (1, 0), (1, 1)]


def test_a_failure_is_logged_with_its_cause(send: Send, consume: NewConsumer, caplog):
    send(1)
    with caplog.at_level(logging.WARNING):
        consume(listener=raises)[0].run_until_idle()
    assert "the application fails" in caplog.text


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_stops_a_program_comes_to_who_moves_time_and_the_message_again(
    broker: Broker, send: Send, consume: NewConsumer, error
):
    stops = [error]

    def interrupt(_message):
        if stops:
            raise stops.pop()

    send(1)
    consumer, seen = consume(listener=interrupt)
    with pytest.raises(error):
        consumer.run_until_idle()
    broker.advance(SUSPEND_MS)
    assert seen == [(0, 0), (0, 0)]


def test_s4_21_each_message_says_between_which_offsets_its_queue_was_when_it_was_pulled(
    broker: Broker, send: Send
):
    """MIN_OFFSET and MAX_OFFSET, which no record has: what is sent back is sent without them."""
    seen: list[tuple[str, str, str]] = []

    def listener(message: Message) -> None:
        found = message.properties
        seen.append((found["MIN_OFFSET"], found["MAX_OFFSET"], found["UNIQ_KEY"]))
        if not message.reconsume_times:
            raise RuntimeError("the application fails")

    send(2)
    stored = [message.properties["UNIQ_KEY"] for message in broker.store.get("T", 0, 0, 32).messages]
    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance(0)
        assert seen == [("0", "2", stored[0]), ("0", "2", stored[1])]
        send(1)
        broker.advance(0)
        assert seen[2][:2] == ("0", "3")
        seen.clear()
        broker.advance("30s")
    assert {(low, high) for low, high, _key in seen} == {("0", "3")}, "of the queue of the retry topic then"
    for message in broker.store.get("%RETRY%g", 0, 0, 32).messages:
        assert not {"MIN_OFFSET", "MAX_OFFSET"} & message.properties.keys()


def test_s4_21_what_was_pulled_without_the_end_of_its_last_property_keeps_it(broker: Broker, send: Send):
    """Clients of 4.x leave it out."""
    send(1)
    (message,) = broker.store.get("T", 0, 0, 32).messages
    for raw, expected in ((b"a\x01b", {"a": "b"}), (b"a\x01b\x02", {"a": "b"}), (b"", {})):
        pulled = replace(message, properties_raw=raw)
        add_offsets([pulled], 3, 7)
        assert pulled.properties == expected | {"MIN_OFFSET": "3", "MAX_OFFSET": "7"}


def test_s4_21_tags_whose_codes_collide_are_told_apart(broker: Broker, send: Send, consume: NewConsumer):
    for tag in ("Aa", "BB", "Aa", "C"):
        send(tags=tag)
    consumer, seen = consume(subscription={"T": "Aa || D"})
    consumer.run_until_idle()
    assert seen == [(0, 0), (0, 2)]
    assert consumer.counts.filtered == 1
    assert broker.offsets.query("g", "T", 0) == 4


def test_s4_23_a_queue_without_a_wanted_message_is_consumed_all_the_same(
    broker: Broker, send: Send, consume: NewConsumer
):
    send(2_000, tags="B")
    consumer, seen = consume(subscription={"T": "A"})
    consumer.run_until_idle()
    assert seen == []
    assert broker.offsets.query("g", "T", 0) == 2_000


def test_several_topics_have_their_own_subscriptions(send: Send, consume: NewConsumer):
    send(topic="T", tags="A")
    send(topic="T", tags="B")
    send(topic="U", tags="B")
    consumer, _seen = consume(subscription={"T": "A", "U": "*"})
    assert consumer.run_until_idle() == 2
    assert {queue.topic for queue in consumer.queues} == {"T", "U", "%RETRY%g"}


def test_a_topic_that_comes_later_is_found_within_a_second(broker: Broker, send: Send, consume: NewConsumer):
    consumer, seen = consume()
    assert consumer.run_until_idle() == 0
    send(2)
    broker.advance(1_000)
    consumer.run_until_idle()
    assert seen == [(0, 0), (0, 1)]


@pytest.mark.parametrize(("consume_from", "first"), [(ConsumeFrom.FIRST, 0), (ConsumeFrom.LAST, 3)])
def test_s4_02_a_new_group_begins_where_it_says_in_a_queue_that_is_not_young(tmp_path, consume_from, first):
    with open_broker(tmp_path / "old", config=BrokerConfig(hot_bytes=0)) as broker:
        seen = []
        producer = Producer(broker)
        for _ in range(3):
            producer.send("T", b"x", queue_id=0)
        consumer = OrderlyConsumer(
            broker, "g", "T", lambda message: seen.append(message.queue_offset), consume_from=consume_from
        )
        consumer.run_until_idle()
        producer.send("T", b"x", queue_id=0)
        consumer.run_until_idle()
        assert seen == list(range(first, 4))
        consumer.close()


def test_an_offset_below_the_queue_goes_on_at_its_start_and_above_it_at_its_end(
    broker: Broker, send: Send, consume: NewConsumer
):
    send(3)
    broker.offsets.commit("g", "T", 0, 99)
    consumer, seen = consume()
    consumer.run_until_idle()
    assert seen == []
    assert broker.offsets.query("g", "T", 0) == 3
    send(1)
    consumer.run_until_idle()
    assert seen == [(0, 3)]


def test_pulls_bring_no_more_than_they_are_set_to(broker: Broker, send: Send, consume: NewConsumer):
    send(10)
    with recording(broker) as link:
        consumer, seen = consume(pull_count=4, via=link)
        consumer.run_until_idle()
        pulls = [expect_header(pull, PullMessageHeader) for pull in link.pulls]
        asked = [pull.queue_offset for pull in pulls if (pull.topic, pull.queue_id) == ("T", 0)]
    assert (asked, len(seen)) == ([0, 4, 8, 10], 10)


def test_its_queues_can_be_seen(send: Send, consume: NewConsumer):
    send()
    consumer, _seen = consume()
    assert consumer.queues == ()
    consumer.run_until_idle()
    retry = MessageQueue("%RETRY%g", "broker-a", 0)
    assert consumer.queues == (retry, *(MessageQueue("T", "broker-a", queue_id) for queue_id in range(4)))
    consumer.close()
    assert consumer.queues == ()


def test_counts_outlive_the_queues(send: Send, consume: NewConsumer):
    send(3)
    consumer, _seen = consume()
    consumer.run_until_idle()
    consumer.close()
    assert consumer.counts.delivered == 3


def test_a_closed_consumer_cannot_be_stepped_or_started(consume: NewConsumer):
    consumer, _seen = consume()
    consumer.close()
    consumer.close()
    with pytest.raises(ConsumerError):
        consumer.run_until_idle()
    with pytest.raises(ConsumerError):
        consumer.start()


def test_a_broker_that_refuses_is_asked_again(broker: Broker, send: Send, consume: NewConsumer, caplog):
    send()
    with recording(broker) as link:
        link.refused = {RequestCode.PULL_MESSAGE}
        consumer, seen = consume(via=link)
        consumer.run_until_idle()
        assert (seen, "not now" in caplog.text) == ([], True)
        link.refused = set()
        broker.advance(RETRY_MS)
    assert seen == [(0, 0)]


def test_what_cannot_be_subscribed_is_refused_at_once(broker: Broker):
    with pytest.raises(InvalidArgumentError):
        OrderlyConsumer(broker, "g", {"T": "||"}, lambda _message: None)
    with pytest.raises(InvalidNameError):
        OrderlyConsumer(broker, "a@b", "T", lambda _message: None)


def test_s4_02_a_group_that_begins_at_the_end_keeps_its_place_though_nothing_came(tmp_path):
    """What comes between two lives of its only member is not behind where the second one begins."""
    with open_broker(tmp_path, config=BrokerConfig(hot_bytes=0)) as broker:
        producer, seen = Producer(broker), []
        for _ in range(3):
            producer.send("T", b"x", queue_id=0)
        for _ in range(2):
            with OrderlyConsumer(broker, "g", "T", lambda message: seen.append(message.queue_offset)) as one:
                one.run_until_idle()
            producer.send("T", b"between", queue_id=0)
        assert seen == [3]

"""What an application does with a client, at each place: the same, in process and at a real RocketMQ."""

from __future__ import annotations

from collections import defaultdict

import pytest

from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.producer.send_result import SendStatus
from seglog.remoting.body_json import CONSUMED_DIRECTLY, RUNNING_INFO
from seglog.remoting.client_headers import ConsumeDirectlyHeader, RunningInfoHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_header
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.headers import PullMessageResponseHeader, ResetOffsetHeader
from seglog.remoting.heartbeat import DirectEnd
from seglog.remoting.subscription import Subscription
from seglog.storage.writes import NewMessage
from tests.interop.judging.requests import pull
from tests.support.asks import bodies_of

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


@pytest.fixture
def producer(place):
    with Producer(place.target, "shop") as made:
        yield made


def send_all(producer, topic, count, queue_id=0):
    for number in range(count):
        producer.send(topic, b"%d" % number, queue_id=queue_id)


def test_a_message_is_sent_and_comes_as_it_was_sent(place, producer, topic, group):
    seen = []
    place.consumer(PushConsumer, group, topic, seen.append)
    sent = producer.send(topic, b"42 apples", tags="fruit", keys="a b", properties={"colour": "red"}, flag=7)
    assert (sent.status, sent.queue.topic, sent.queue_offset) == (SendStatus.SEND_OK, topic, 0)
    place.settle(lambda: seen)
    (message,) = seen
    assert (bytes(message.body), message.tags, message.keys, message.flag) == (
        b"42 apples",
        "fruit",
        ["a", "b"],
        7,
    )
    assert (message.topic, message.queue_id, message.queue_offset) == (topic, sent.queue.queue_id, 0)
    assert (message.unique_key, message.message_id) == (sent.message_id, sent.offset_message_id)
    assert message.properties["colour"] == "red"
    assert message.reconsume_times == 0


def test_a_batch_is_in_one_queue_behind_each_other(place, producer, topic, group):
    seen = []
    place.consumer(PushConsumer, group, topic, seen.append)
    messages = [NewMessage(b"%d" % number, tags="t") for number in range(10)]
    sent = producer.send_batch(topic, messages, queue_id=2)
    place.settle(lambda: len(seen) == 10)
    seen.sort(key=lambda message: message.queue_offset)
    assert [bytes(message.body) for message in seen] == [b"%d" % number for number in range(10)]
    assert [message.queue_offset for message in seen] == list(range(10))
    assert [message.unique_key for message in seen] == list(sent.message_ids)
    assert {message.queue_id for message in seen} == {2}


def test_a_delayed_message_comes_when_its_time_has_come(place, producer, topic, group):
    seen = []
    clock = place.client().clock
    place.consumer(PushConsumer, group, topic, lambda message: seen.append((message, clock.monotonic_ms())))
    began_ms = clock.monotonic_ms()
    producer.send(topic, b"later", delay_level=2)
    producer.send(topic, b"soon", delay_level=1)
    producer.send(topic, b"now")
    place.settle(lambda: len(seen) == 3)
    assert [bytes(message.body) for message, _ in seen] == [b"now", b"soon", b"later"]
    for (message, moment_ms), delay_ms in zip(seen, (0, 1_000, 2_000), strict=True):
        assert moment_ms - began_ms >= delay_ms - 50, "the broker's clock is another one"
        assert message.topic == topic


def test_pulls_find_what_is_there_and_say_where_it_ends(place, producer, topic, group):
    send_all(producer, topic, 5)
    place.settle(lambda: place.ask(pull(group, topic, 4)).code is ResponseCode.SUCCESS)
    assert bodies_of(place.ask(pull(group, topic, 2, count=2))) == [b"2", b"3"]
    for queue_offset, code, following in (
        (5, ResponseCode.PULL_NOT_FOUND, 5),
        (9, ResponseCode.PULL_OFFSET_MOVED, 5),
    ):
        answer = place.ask(pull(group, topic, queue_offset))
        assert answer.code is code
        header = expect_header(answer, PullMessageResponseHeader)
        assert (header.next_begin_offset, header.min_offset, header.max_offset) == (following, 0, 5)


def test_in_order_a_failure_keeps_what_follows_and_other_queues_go_on(place, producer, topic, group):
    attempts = defaultdict(list)

    def listener(message):
        number = message.queue_offset
        attempts[message.queue_id].append((number, message.reconsume_times))
        is_bad = message.queue_id == 1 and number == 3 and message.reconsume_times < 2
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if is_bad else None

    for queue_id in range(4):
        send_all(producer, topic, 10, queue_id)
    consumer = place.consumer(OrderlyConsumer, group, topic, listener, suspend_ms=100)
    place.settle(lambda: sum(map(len, attempts.values())) == 42)
    in_order = [(number, 0) for number in range(10)]
    assert [attempts[queue_id] for queue_id in (0, 2, 3)] == [in_order] * 3
    assert attempts[1] == [*in_order[:3], (3, 0), (3, 1), (3, 2), *in_order[4:]]
    assert [place.done(consumer, topic, queue_id) for queue_id in range(4)] == [10] * 4


def test_what_is_sent_back_comes_again_under_the_name_of_its_topic(place, producer, topic, group):
    attempts = []

    def listener(message):
        attempts.append((bytes(message.body), message.topic, message.reconsume_times, message.unique_key))
        return Consume.RECONSUME_LATER if message.body == b"bad" and message.reconsume_times < 2 else None

    consumer = place.consumer(PushConsumer, group, topic, listener)
    sent = {body: producer.send(topic, body, queue_id=0).message_id for body in (b"bad", b"good")}
    place.settle(lambda: len(attempts) == 4)
    assert sorted(attempts) == [
        *((b"bad", topic, times, sent[b"bad"]) for times in range(3)),
        (b"good", topic, 0, sent[b"good"]),
    ]
    place.settle(lambda: place.done(consumer, topic) == 2)


@BOTH
def test_after_the_last_attempt_a_message_is_a_dead_letter(place, producer, topic, group, kind):
    attempts = []

    def listener(message):
        attempts.append((bytes(message.body), message.reconsume_times))
        return Consume.RECONSUME_LATER if message.body == b"bad" else None

    for body in (b"bad", b"good"):
        producer.send(topic, body, queue_id=0)
    consumer = place.consumer(kind, group, topic, listener, max_reconsume_times=1, suspend_ms=50)
    dead = pull(group, f"%DLQ%{group}")
    place.settle(lambda: place.ask(dead).code is ResponseCode.SUCCESS)
    assert bodies_of(place.ask(dead)) == [b"bad"]
    place.settle(lambda: place.done(consumer, topic) == 2)
    assert sorted(attempts) == [(b"bad", 0), (b"bad", 1), (b"good", 0)]


@BOTH
def test_a_reset_brings_messages_again_and_reaches_a_consumer_that_is_stuck(
    place, producer, topic, group, kind
):
    seen, is_bad = [], [False]

    def listener(message):
        number = int(message.body)
        seen.append(number)
        is_failed = is_bad[0] and number == 0 and (kind is OrderlyConsumer or not message.reconsume_times)
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if is_failed else None

    def reset_to(queue_offset):
        header = ResetOffsetHeader(group, topic, 0, is_forced=True, queue_id=0, offset=queue_offset)
        answer = place.ask(Request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header))
        assert answer.code is ResponseCode.SUCCESS
        producer.send(topic, b"99", queue_id=0)  # a pull that is held hears of a reset when it ends

    send_all(producer, topic, 10)
    consumer = place.consumer(kind, group, topic, listener, suspend_ms=100)
    place.settle(lambda: place.done(consumer, topic) == 10)
    seen.clear()
    is_bad[0] = True
    reset_to(0)
    place.settle(lambda: seen.count(0) > (2 if kind is OrderlyConsumer else 1))
    seen.clear()
    reset_to(7)
    place.settle(lambda: {7, 8, 9, 99} <= set(seen))
    place.settle(lambda: place.done(consumer, topic) == 12)


def test_a_condition_is_met_by_what_comes(place, producer, topic, group):
    seen = []
    wanted = Subscription.by_sql("price > 5 AND colour IS NOT NULL")
    place.consumer(PushConsumer, group, {topic: wanted}, seen.append)
    for price in range(10):
        colour = {"colour": "red"} if price % 2 else {}
        producer.send(topic, b"%d" % price, properties={"price": str(price), **colour})
    place.settle(lambda: len(seen) == 2)
    producer.send(topic, b"last", properties={"price": "99", "colour": "blue"})
    place.settle(lambda: len(seen) == 3)
    assert sorted(bytes(message.body) for message in seen) == [b"7", b"9", b"last"]


def test_tags_that_are_not_wanted_do_not_come(place, producer, topic, group):
    seen = []
    place.consumer(PushConsumer, group, {topic: "a || c"}, seen.append)
    for tag in "abcabc":
        producer.send(topic, tag.encode(), tags=tag)
    place.settle(lambda: len(seen) == 4)
    assert sorted(message.tags for message in seen) == ["a", "a", "c", "c"]


@BOTH
def test_a_consumer_that_closes_has_committed_and_left(place, producer, topic, group, kind):
    seen = []
    send_all(producer, topic, 20, queue_id=3)
    first = place.consumer(kind, group, topic, lambda message: seen.append(message.queue_offset))
    place.settle(lambda: len(seen) == 20)
    first.close()
    assert place.offset(group, topic, 3) == 20
    place.settle(lambda: place.members(group) == [])
    producer.send(topic, b"next", queue_id=3)
    place.consumer(kind, group, topic, lambda message: seen.append(message.queue_offset))
    place.settle(lambda: len(seen) == 21)
    assert seen == [*range(20), 20] or sorted(seen) == list(range(21))


@BOTH
def test_a_broker_asks_how_a_consumer_runs_and_has_it_consume_a_message(place, producer, topic, group, kind):
    seen = []
    sent = producer.send(topic, b"picked", queue_id=1)
    consumer = place.consumer(kind, group, topic, lambda message: seen.append(bytes(message.body)))
    place.settle(lambda: place.done(consumer, topic, 1) == 1)

    header = RunningInfoHeader(group, consumer.client_id)
    info = RUNNING_INFO.decode(
        place.ask(Request(RequestCode.GET_CONSUMER_RUNNING_INFO, header)).body, DEFAULT_LIMITS
    )
    reports = {queue.queue_id: one for queue, one in info.queues.items() if queue.topic == topic}
    assert [reports[queue_id].done_offset for queue_id in range(4)] == [0, 1, 0, 0]
    assert {one.is_locked for one in reports.values()} == {kind is OrderlyConsumer}
    picked = ConsumeDirectlyHeader(group, consumer.client_id, sent.offset_message_id, topic=topic)
    ended = CONSUMED_DIRECTLY.decode(
        place.ask(Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, picked)).body, DEFAULT_LIMITS
    )
    assert (ended.end, ended.is_in_order) == (DirectEnd.SUCCESS, kind is OrderlyConsumer)
    assert seen == [b"picked"] * 2

"""Listeners that are given batches: how large, what of them is done, and what becomes of the rest."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.message_queue import MessageQueue
from tests.support.consumers import Send
from tests.support.recording import recording

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
LATER = Consume.RECONSUME_LATER


def offsets(messages: Any) -> list[int]:
    return [message.queue_offset for message in messages]


def dead(broker: Broker) -> list[int]:
    if broker.topics.get("%DLQ%g") is None:
        return []
    return [int(message.body) for message in broker.store.get("%DLQ%g", 0, 0, 32).messages]


@pytest.mark.parametrize(("batch_size", "sizes"), [(4, [4, 4, 2]), (10, [10]), (1_024, [10]), (9, [9, 1])])
def test_s2_17_in_order_a_batch_is_what_is_there_up_to_its_size(
    broker: Broker, send: Send, batch_size: int, sizes: list[int]
):
    batches: list[Any] = []
    send(10)
    with OrderlyConsumer(broker, "g", "T", batches.append, batch_size=batch_size) as consumer:
        assert consumer.run_until_idle() == 10
    assert [len(batch) for batch in batches] == sizes
    assert [one for batch in batches for one in offsets(batch)] == list(range(10))
    assert broker.offsets.query("g", "T", 0) == 10


@BOTH
def test_s2_17_it_is_1_unless_it_is_set_and_from_1_to_1024(broker: Broker, send: Send, kind: Any):
    seen: list[Any] = []
    send(3)
    with kind(broker, "g", "T", seen.append) as consumer:
        consumer.run_until_idle()
    assert offsets(seen) == [0, 1, 2], "a message is given itself"
    for wrong in (0, 1_025, 1.5):
        with pytest.raises(InvalidArgumentError, match="batch_size"):
            kind(broker, "h", "T", seen.append, batch_size=wrong)


def test_s2_20_a_batch_is_a_tuple_and_comes_with_a_context_of_its_own(broker: Broker, send: Send):
    calls: list[tuple[Any, Any]] = []

    def listener(messages: Any, context: Any) -> None:
        with pytest.raises(FrozenInstanceError):
            messages[0].body = b"other"
        calls.append((messages, context))
        assert (context.auto_commit, context.suspend_ms) == (True, -1)
        context.suspend_ms = 77

    send(5, queue_id=2)
    with OrderlyConsumer(broker, "g", "T", listener, batch_size=3) as consumer:
        consumer.run_until_idle()
    assert [type(messages) for messages, _context in calls] == [tuple, tuple]
    assert [offsets(messages) for messages, _context in calls] == [[0, 1, 2], [3, 4]]
    assert {context.queue for _messages, context in calls} == {MessageQueue("T", "broker-a", 2)}
    assert calls[0][1] is not calls[1][1]


def test_s4_26_what_is_there_is_handed_over_at_once_and_more_than_a_batch_is_split(
    broker: Broker, send: Send, clock: VirtualClock
):
    batches: list[tuple[int, int]] = []
    began_ms = clock.now_ms()

    def listener(messages: Any) -> None:
        batches.append((clock.now_ms() - began_ms, len(messages)))

    send(1)
    with PushConsumer(broker, "g", "T", listener, batch_size=32, pull_count=100) as consumer:
        consumer.start()
        broker.advance(0)
        assert batches == [(0, 1)], "one message does not wait for thirty-one others"
        send(101)
        broker.advance(0)
        assert [size for _moment, size in batches[1:]] == [32, 32, 32, 5]


@pytest.mark.parametrize(
    ("ack_index", "failed"), [(1, [2]), (0, [1, 2]), (-1, [0, 1, 2]), (2, []), (99, []), (None, [])]
)
def test_s4_28_what_is_behind_the_ack_index_has_failed(
    broker: Broker, send: Send, ack_index: int | None, failed: list[int]
):
    retried: list[int] = []

    def listener(messages: Any, context: Any) -> None:
        if messages[0].reconsume_times:
            retried.extend(int(message.body) for message in messages)
        elif ack_index is not None:
            context.ack_index = ack_index

    send(3)
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener, batch_size=3)
        consumer.start()
        broker.advance(0)
        assert len(link.moments(RequestCode.CONSUMER_SEND_MSG_BACK)) == len(failed)
        assert (consumer.counts.delivered, consumer.counts.failed) == (3 - len(failed), len(failed))
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 3
        broker.advance("10s")
        assert sorted(retried) == failed
        consumer.close()


def test_s4_28_a_batch_that_is_to_come_later_has_failed_whole(broker: Broker, send: Send):
    def listener(_messages: Any, context: Any) -> Consume:
        context.ack_index = 1
        return LATER

    send(3)
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener, batch_size=3)
        consumer.start()
        broker.advance(0)
        assert len(link.moments(RequestCode.CONSUMER_SEND_MSG_BACK)) == 3
        consumer.close()


@pytest.mark.parametrize("wrong", ["1", 1.5, -2, None])
def test_s4_28_an_ack_index_that_is_none_is_a_failure_of_the_batch(
    broker: Broker, send: Send, caplog: pytest.LogCaptureFixture, wrong: Any
):
    def listener(_messages: Any, context: Any) -> None:
        context.ack_index = wrong

    send(3)
    with PushConsumer(broker, "g", "T", listener, batch_size=3) as consumer:
        consumer.run_until_idle()
        assert (consumer.counts.delivered, consumer.counts.failed) == (0, 3)
    assert "ack_index" in caplog.text


def test_a_context_says_how_long_what_failed_waits(broker: Broker, send: Send):
    times: list[tuple[int, int]] = []

    def listener(message: Any, context: Any) -> Consume:
        times.append((int(message.body), message.reconsume_times))
        context.delay_level = -1 if message.body == b"1" else 1
        return LATER

    send(2)
    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance(999)
        assert (times, dead(broker)) == ([(0, 0), (1, 0)], [1])
        broker.advance(1)
        assert times[2:] == [(0, 1)], "level 1 is a second"


@BOTH
def test_what_expires_or_cannot_be_read_costs_a_batch_only_that(
    broker: Broker, clock: VirtualClock, kind: Any
):
    producer = Producer(broker)
    producer.send("T", b"0", queue_id=0)
    producer.send("T", b"1", queue_id=0, ttl_ms=10)
    broker.store.append("T", 0, b"no zlib", b"", 0, sys_flag=1)
    producer.send("T", b"3", queue_id=0)
    clock.advance(50)
    batches: list[list[bytes]] = []

    def listener(messages: Any) -> None:
        batches.append([message.body for message in messages])

    with kind(broker, "g", "T", listener, batch_size=8, max_reconsume_times=0) as consumer:
        consumer.start()
        broker.advance("1m")
        assert batches == ([[b"0"], [b"3"]] if kind is OrderlyConsumer else [[b"0", b"3"]])
        assert (consumer.counts.expired, consumer.counts.delivered, consumer.counts.given_up) == (1, 2, 1)


@BOTH
def test_a_listener_that_takes_neither_a_message_nor_a_context_is_refused_at_once(broker: Broker, kind: Any):
    for wrong in (lambda: None, lambda _a, _b, _c: None):
        with pytest.raises(InvalidArgumentError, match=r"listener=.*a message and a context"):
            kind(broker, "g", "T", wrong)


@BOTH
def test_a_second_parameter_with_a_default_asks_for_no_context(broker: Broker, send: Send, kind: Any):
    given: list[Any] = []

    def listener(message: Any, into: Any = given) -> None:
        into.append(message)

    send(1)
    with kind(broker, "g", "T", listener) as consumer:
        consumer.run_until_idle()
    assert offsets(given) == [0]


@BOTH
def test_an_async_listener_takes_batches_and_contexts_as_well(broker: Broker, send: Send, kind: Any):
    calls: list[tuple[list[int], int]] = []

    async def listener(messages: Any, context: Any) -> None:
        calls.append((offsets(messages), context.queue.queue_id))

    send(5, queue_id=3)
    with kind(broker, "g", "T", listener, batch_size=4) as consumer:
        consumer.run_until_idle()
    assert calls == [([0, 1, 2, 3], 3), ([4], 3)]

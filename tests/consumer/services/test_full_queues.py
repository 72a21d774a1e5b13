"""What is cached of a queue is bounded; one that is full is pulled again once there is room."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import expect_header
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.recording import RecordingLink

MIB = 1 << 20
BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


def slow_at(waits_ms: Mapping[int, int]) -> Any:
    """Returns a listener that takes so long for the messages at some offsets, and no time for others."""

    async def slow(message: Message) -> None:
        await sleep_ms(waits_ms.get(message.queue_offset, 0))

    return slow


def pulls(link: RecordingLink) -> list[tuple[float, int]]:
    """Returns when queue 0 of T was pulled, in seconds, and from where."""
    asked = [
        (moment, expect_header(request, PullMessageHeader))
        for moment, request in link.asked
        if request.code == RequestCode.PULL_MESSAGE
    ]
    return [(at, one.queue_offset) for at, one in asked if (one.topic, one.queue_id) == ("T", 0)]


def fill(broker: Broker, count: int, body: bytes = b"x", batch: int = 100) -> None:
    producer = Producer(broker)
    for begun in range(0, count, batch):
        producer.send_batch("T", [body] * min(batch, count - begun), queue_id=0)


def run(broker: Broker, consumer: Any, link: RecordingLink) -> tuple[list[tuple[float, int]], int]:
    """Returns the pulls of the first minute, and how much was cached before the first message was done."""
    consumer.start()
    broker.advance("299ms")
    held = consumer._member.held(MessageQueue("T", "broker-a", 0))
    cached = held.cache.counts().messages
    broker.advance("59701ms")
    made = pulls(link)
    broker.advance("3h")
    consumer.close()
    return made, cached


def test_s4_17_a_queue_with_more_than_1000_messages_is_pulled_within_50_ms_of_there_being_room(
    broker: Broker, link: RecordingLink
):
    fill(broker, 1_200)
    consumer = OrderlyConsumer(link, "g", "T", slow_at({0: 300, 500: 120_000}))
    made, cached = run(broker, consumer, link)
    before = [offset for moment, offset in made if moment == 0]
    assert before[-1] == 1_000, "1,000 are not more than 1,000"
    assert 1_000 < cached <= 1_032
    moment, offset = made[len(before)]
    assert offset == cached
    assert 0.3 <= moment <= 0.35


def test_s4_17_a_queue_with_more_bytes_than_it_may_have_waits_likewise(broker: Broker, link: RecordingLink):
    """The bound of 100 MiB is the default (S4-05); here it is one."""
    size_bytes = MIB // 20
    fill(broker, 40, b"x" * size_bytes, batch=1)
    consumer = OrderlyConsumer(link, "g", "T", slow_at({0: 300, 30: 120_000}), max_cached_bytes=MIB)
    made, cached = run(broker, consumer, link)
    before = [offset for moment, offset in made if moment == 0]
    assert before[-1] * size_bytes <= MIB < cached * size_bytes
    moment, offset = made[len(before)]
    assert offset == cached
    assert 0.3 <= moment <= 0.35


@BOTH
def test_s4_17_a_span_above_2000_offsets_waits_side_by_side_and_does_not_count_in_order(
    broker: Broker, link: RecordingLink, kind: Any
):
    fill(broker, 2_500)
    listener = slow_at({0: 300, **dict.fromkeys(range(2_000, 2_040), 120_000)})
    consumer = kind(link, "g", "T", listener, max_cached=5_000, threads=100)
    made, cached = run(broker, consumer, link)
    before = [offset for moment, offset in made if moment == 0]
    if kind is OrderlyConsumer:
        assert (cached, before[-1]) == (2_500, 2_500)
    else:  # what is done is gone, so that the first message and those that are not done yet count
        assert before[-1] == 2_000, "which is not more than 2,000"
        moment, offset = made[len(before)]
        assert 2_000 < offset <= 2_032
        assert 0.3 <= moment <= 0.35


@BOTH
def test_s4_17_each_thousandth_look_at_a_full_queue_is_warned_of(
    broker: Broker, link: RecordingLink, kind: Any, caplog: pytest.LogCaptureFixture
):
    """Java's client looks every 50 ms: each 50 s. What is full for a shorter time is not worth a line."""

    def warned() -> list[str]:
        return [one.getMessage() for one in caplog.records if "is not pulled for group g" in one.getMessage()]

    async def very_slow(_message: Message) -> None:
        await sleep_ms(120_000)

    fill(broker, 1_200)
    consumer = kind(link, "g", "T", very_slow, threads=2)
    consumer.start()
    broker.advance("49999ms")
    assert warned() == []
    broker.advance(1)
    (first,) = warned()
    assert re.search(r"since 50000 ms: 10\d\d messages are cached, of 1000; offset 0 is the first", first)
    broker.advance("50s")
    assert len(warned()) == 2
    with pytest.raises(TimeoutError):
        consumer.close(0)


def test_s4_17_a_bound_that_queues_share_makes_room_when_one_is_given_up(broker: Broker, link: RecordingLink):
    fill(broker, 100)
    slow = slow_at({0: 120_000})
    consumer = OrderlyConsumer(link, "g", "T", slow, pull_count=20, max_cached_topic=200)
    consumer.start()
    broker.advance("1s")
    assert [offset for _moment, offset in pulls(link)] == [0, 20, 40], "60 of 40, with five queues"
    other = OrderlyConsumer(make_client(broker, client_id="z"), "g", "T", slow)
    other.start()
    broker.advance("2s")
    assert len(consumer.queues) == 3
    given_up = [moment for moment, request in link.asked if request.code == RequestCode.UNLOCK_BATCH_MQ]
    assert pulls(link)[3][1] == 60, "60 of 66"
    assert 0 <= pulls(link)[3][0] - given_up[0] <= 0.05
    for each in (consumer, other):
        with suppress(TimeoutError):
            each.close(0)

"""Side by side: what fails is sent back, what the listener does not come back with too."""

from __future__ import annotations

from typing import Any

import pytest

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import expect_header
from seglog.remoting.headers import SendBackHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.consumers import Send
from tests.support.recording import recording

BACK = RequestCode.CONSUMER_SEND_MSG_BACK
MINUTE_MS = 60_000


def test_s4_27_a_retry_has_its_own_topic_and_a_context_says_when_it_was_begun(
    broker: Broker, send: Send, clock: VirtualClock
):
    calls: list[tuple[str, int, int]] = []
    began_ms = clock.now_ms()

    def listener(message: Any, context: Any) -> Consume | None:
        calls.append((message.topic, message.reconsume_times, context.started_ms - began_ms))
        assert context.queue.topic == ("%RETRY%g" if message.reconsume_times else "T")
        return Consume.RECONSUME_LATER if not message.reconsume_times else None

    send(1)
    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("20s")
    assert calls == [("T", 0, 0), ("T", 1, 10_000)]


@pytest.mark.parametrize("end", ["raises", "says so", "returns what is no answer"])
def test_s4_27_what_is_no_success_comes_later_and_none_is_one(broker: Broker, send: Send, end: str):
    """In Python a function that returns nothing has done its work; Java takes null for RECONSUME_LATER."""

    def listener(message: Message) -> Any:
        if message.body == b"0":
            return None
        if end == "raises":
            raise RuntimeError("the application fails")
        return Consume.RECONSUME_LATER if end == "says so" else False

    send(2)
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener)
        consumer.run_until_idle()
        assert (consumer.counts.delivered, consumer.counts.failed) == (1, 1)
        sent = [expect_header(one, SendBackHeader) for _moment, one in link.asked if one.code == BACK]
        assert [header.origin_topic for header in sent] == ["T"]
        consumer.close()


def test_s4_27_of_a_queue_that_is_dropped_nothing_begins(broker: Broker, send: Send):
    seen: list[int] = []

    async def listener(message: Message) -> None:
        seen.append(message.queue_offset)
        await sleep_ms(1_000)

    send(10)
    consumer = PushConsumer(broker, "g", "T", listener, threads=2)
    consumer.start()
    broker.advance(500)
    consumer._member._begin_to_leave()
    broker.advance("10s")
    assert len(seen) == 2, "as many as there are threads"
    assert broker.offsets.query("g", "T", 0) == min(set(range(10)) - set(seen))


def test_s4_29_each_failure_is_sent_back_and_what_cannot_be_is_tried_again_here_in_5_s(
    broker: Broker, send: Send, clock: VirtualClock
):
    calls: list[tuple[int, int, int]] = []
    began_ms = clock.now_ms()

    def listener(message: Message) -> Consume:
        calls.append((clock.now_ms() - began_ms, int(message.body), message.reconsume_times))
        return Consume.RECONSUME_LATER

    send(2)
    with recording(broker) as link:
        link.refused = {BACK, RequestCode.SEND_MESSAGE_V2}
        consumer = PushConsumer(link, "g", "T", listener)
        consumer.start()
        broker.advance(0)
        assert link.moments(BACK) == [0, 0]
        broker.advance(4_999)
        assert calls == [(0, 0, 0), (0, 1, 0)]
        broker.advance(1)
        assert calls[2:] == [(5_000, 0, 1), (5_000, 1, 1)]
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 0
        link.refused = set()
        broker.advance(5_000)
        assert calls[4:] == [(10_000, 0, 2), (10_000, 1, 2)]
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 2, "both are with their broker now"
        consumer.close()


def test_s4_29_what_is_no_longer_in_the_queue_is_not_sent_back(broker: Broker, send: Send):
    """It was sent back already because it took too long."""

    async def listener(message: Message) -> Consume | None:
        if message.reconsume_times:
            return None
        await sleep_ms(45 * MINUTE_MS)
        return Consume.RECONSUME_LATER

    send(1)
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener)
        consumer.start()
        broker.advance("31m")
        assert len(link.moments(BACK)) == 1
        broker.advance("1h")
        assert len(link.moments(BACK)) == 1
        assert (consumer.counts.failed, consumer.counts.delivered) == (1, 1)
        consumer.close()


def test_s4_34_the_first_messages_of_a_queue_that_take_15_min_are_sent_back_sixteen_at_a_time(
    broker: Broker, send: Send, clock: VirtualClock, caplog: pytest.LogCaptureFixture
):
    again: list[tuple[int, int]] = []
    began_ms = clock.now_ms()

    async def listener(message: Message) -> None:
        if message.reconsume_times:
            again.append((clock.now_ms() - began_ms, int(message.body)))
        else:
            await sleep_ms(120 * MINUTE_MS)

    send(20)
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener, threads=40)
        consumer.start()
        broker.advance(30 * MINUTE_MS - 1)
        assert (link.moments(BACK), again) == ([], []), "at 15 min they do not take longer than that yet"
        broker.advance(1)
        assert link.moments(BACK) == [1_800] * 16
        sent = [expect_header(one, SendBackHeader) for _moment, one in link.asked if one.code == BACK]
        assert {header.delay_level for header in sent} == {3}
        broker.advance("10s")
        assert again == [(30 * MINUTE_MS + 10_000, number) for number in range(16)]
        assert broker.offsets.query("g", "T", 0) == 16
        broker.advance(15 * MINUTE_MS)
        assert len(link.moments(BACK)) == 20
        assert broker.offsets.query("g", "T", 0) == 20
        assert sorted(number for _moment, number in again) == list(range(20))
        assert caplog.text.count("for the listener is at it for more than 900000 ms") == 20
        broker.advance(80 * MINUTE_MS)
        assert broker.offsets.query("g", "T", 0) == 20, "what ends late changes nothing"
        consumer.close()


def test_s4_34_what_is_behind_a_message_that_waits_is_not_late(broker: Broker, send: Send):
    """Only what the queue waits for is sent back: a quick one that failed is first, and rests."""

    async def listener(message: Message) -> None:
        if is_mended:
            return
        if message.body == b"0":
            raise RuntimeError("the application fails")
        await sleep_ms(100 * MINUTE_MS)

    is_mended = False
    send(2)
    with recording(broker) as link:
        link.refused = {BACK, RequestCode.SEND_MESSAGE_V2}
        consumer = PushConsumer(link, "g", "T", listener)
        consumer.start()
        broker.advance("29m")
        before = len(link.moments(BACK))
        link.asked.clear()
        broker.advance("2m")
        assert 0 < len(link.moments(BACK)) <= before
        offsets = {
            expect_header(one, SendBackHeader).phy_offset for _moment, one in link.asked if one.code == BACK
        }
        assert len(offsets) == 1
        link.refused, is_mended = set(), True
        broker.advance("2h")
        consumer.close()


@pytest.mark.parametrize("batch_size", [1, 2])
def test_s4_34_what_was_done_of_a_hand_is_not_waited_for_with_what_takes_long(
    broker: Broker, send: Send, batch_size: int
):
    """Quick messages are handed over by the dozen; the one that takes long need not be the first of them."""

    async def listener(given: Any) -> None:
        first = given if isinstance(given, Message) else given[0]
        if first.body == b"4" and not first.reconsume_times:
            await sleep_ms(100 * MINUTE_MS)

    send(60)
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener, threads=6, batch_size=batch_size)
        consumer.start()
        broker.advance("1m")
        assert broker.offsets.query("g", "T", 0) == 4
        broker.advance("30m")
        assert len(link.moments(BACK)) == batch_size
        assert broker.offsets.query("g", "T", 0) == 60
        broker.advance("70m")
        consumer.close()


def test_s4_34_what_was_not_given_of_a_batch_is_not_waited_for_with_the_rest(broker: Broker):
    """Those whose TTL is over are done; what the queue waits for are those behind them."""

    async def listener(batch: Any) -> None:
        if not batch[0].reconsume_times:
            await sleep_ms(100 * MINUTE_MS)

    with Producer(broker) as producer:
        producer.send("T", b"gone", queue_id=0, ttl_ms=1)
        producer.send("T", b"slow", queue_id=0)
    broker.advance("1m")
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener, batch_size=2, consume_from=ConsumeFrom.FIRST)
        consumer.start()
        broker.advance("31m")
        assert len(link.moments(BACK)) == 1
        assert broker.offsets.query("g", "T", 0) == 2
        broker.advance("70m")
        consumer.close()


def test_s4_34_what_was_begun_before_a_reset_is_not_given_back_after_it(broker: Broker, send: Send):
    """Its offsets are those of messages that the listener has not got yet."""

    async def listener(message: Message) -> None:
        if not message.reconsume_times:
            await sleep_ms(40 * MINUTE_MS)

    send(1)
    with recording(broker) as link:
        consumer = PushConsumer(link, "g", "T", listener)
        consumer.start()
        broker.advance("20m")
        consumer._member.reset("T", {MessageQueue("T", "broker-a", 0): 0})
        broker.advance("11m")
        assert link.moments(BACK) == [], "what has begun anew takes 11 min"
        broker.advance("15m")
        assert link.moments(BACK) == [2_700]
        broker.advance("20m")
        consumer.close()


def test_s4_34_the_time_can_be_set_and_in_order_it_does_not_count(broker: Broker, send: Send):
    async def listener(message: Message) -> None:
        if not message.reconsume_times:
            await sleep_ms(10 * MINUTE_MS)

    send(1)
    with recording(broker) as link:
        one = PushConsumer(link, "g", "T", listener, consume_timeout_ms=2 * MINUTE_MS)
        other = OrderlyConsumer(link, "h", "T", listener, consume_timeout_ms=1)
        for consumer in (one, other):
            consumer.start()
        broker.advance("5m")
        assert link.moments(BACK) == [240]
        assert (one.counts.delivered, other.counts.delivered) == (1, 0)
        broker.advance("10m")
        assert other.counts.delivered == 1
        for consumer in (one, other):
            consumer.close()

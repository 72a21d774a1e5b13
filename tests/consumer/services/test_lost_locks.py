"""A lock that is not got, or that another client has: when it is asked for, and what is not committed."""

from __future__ import annotations

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.consumer.lease import BROKER_LIVE_MS
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.shares.sharing import MIN_SHARE_INTERVAL_MS
from seglog.remoting.codes import RequestCode
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.consumers import NewConsumer, Send
from tests.support.recording import RecordingLink

LOCK = RequestCode.LOCK_BATCH_MQ
QUEUE = MessageQueue("T", "broker-a", 0)


def test_s2_26_a_lock_that_is_not_got_is_asked_for_in_100_ms_and_then_every_3_s(
    broker: Broker, link: RecordingLink, send: Send
):
    times: list[float] = []
    began_ms = broker.clock.now_ms()

    def listener(_message: Message) -> None:
        times.append((broker.clock.now_ms() - began_ms) / 1_000)
        if len(times) == 1:
            raise RuntimeError("the application fails")

    consumer = OrderlyConsumer(link, "g", "T", listener, suspend_ms=30_000)
    send(1, queue_id=1)
    times.append(0.0)
    consumer.start()
    broker.advance("200ms")
    times.clear()
    send(2)
    link.cut = {LOCK}
    broker.advance("29900ms")  # the rest ends at 30.2 s, the lock at 30 s
    link.asked.clear()
    broker.advance("9s")
    assert link.moments(LOCK) == [30.3, 33.4, 36.5], "3 s, and 100 ms again"
    link.cut = set()
    broker.advance("1s")
    assert link.moments(LOCK)[3] == 39.6
    assert times == [0.2, 39.61, 39.61], "10 ms after it has got it"
    consumer.close()


def test_s2_26_a_lock_that_another_client_has_got_is_asked_for_too_and_then_all_begins_anew(
    broker: Broker, link: RecordingLink, send: Send
):
    seen: list[int] = []

    def listener(message: Message) -> None:
        if message.queue_id == 0:
            seen.append(message.queue_offset)
            if len(seen) == 1:
                raise RuntimeError("the application fails")

    send(1, queue_id=1)
    consumer = OrderlyConsumer(link, "g", "T", listener, suspend_ms=30_000)
    consumer.start()
    broker.advance("200ms")
    send(3)
    broker.advance("300ms")
    link.cut = {LOCK}
    broker.advance("29s")
    broker.locks.unlock("g", [QUEUE], link.client_id)
    broker.locks.lock("g", [QUEUE], "thief")
    broker.offsets.commit("g", "T", 0, 2)
    link.cut = set()
    broker.advance("5s")
    assert (seen, broker.locks.owner("g", QUEUE)) == ([0], "thief")
    broker.locks.unlock("g", [QUEUE], "thief")
    broker.advance("10s")
    assert seen == [0, 2], "from what the other one has committed"
    consumer.close()


def test_s2_27_what_ends_after_its_queue_was_lost_is_not_committed(
    broker: Broker, link: RecordingLink, send: Send
):
    async def listener(_message: Message) -> None:
        await sleep_ms(90_000)

    send(2)
    consumer = OrderlyConsumer(link, "g", "T", listener)
    consumer.start()
    broker.advance("500ms")
    link.cut = {LOCK}
    broker.advance(BROKER_LIVE_MS + 10_000)
    broker.locks.lock("g", [QUEUE], "thief")
    link.cut = set()
    broker.advance("1m")
    assert consumer.counts.delivered == 1
    consumer.commit()
    assert broker.offsets.query("g", "T", 0) == 0, "where it has begun"
    broker.advance("10m")
    consumer.close()


def test_s2_27_before_the_offset_of_a_queue_is_known_nothing_is_committed(
    broker: Broker, link: RecordingLink, send: Send
):
    send(1)
    link.cut = {RequestCode.QUERY_CONSUMER_OFFSET}
    consumer = OrderlyConsumer(link, "g", "T", lambda _message: None)
    consumer.run_until_idle()
    consumer.close()
    assert not link.moments(RequestCode.UPDATE_CONSUMER_OFFSET)
    assert broker.offsets.query("g", "T", 0) is None


def test_s2_28_at_its_end_a_consumer_unlocks_all_queues_and_a_peer_has_them_before_the_next_round(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send(1)
    first, _seen = consume(via=link)
    first.start()
    broker.advance("30s")
    heir, seen = consume()
    heir.start()
    broker.advance("5s")
    kept = set(first.queues)
    link.asked.clear()
    first.close()
    unlocked = [
        queue
        for _moment, request in link.asked
        if request.code == RequestCode.UNLOCK_BATCH_MQ
        for queue in getattr(request.body, "queues", ())
    ]
    assert set(unlocked) == kept
    assert link.client_id not in {lock.client_id for lock in broker.locks.all()}
    for queue_id in range(4):
        send(1, queue_id=queue_id)
    broker.advance(MIN_SHARE_INTERVAL_MS)
    assert sum(queue.topic == "T" for queue in heir.queues) == 4
    assert len(seen) >= 4
    heir.close()

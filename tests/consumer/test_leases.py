"""One queue has one consumer of a group at a time, for any fate of consumers and renewals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.consumer.lease import BROKER_LIVE_MS, WORK_MS
from seglog.consumer.shares.sharing import MIN_SHARE_INTERVAL_MS
from seglog.errors import CommitError, FencedError
from seglog.remoting.codes import RequestCode
from tests.support.consumers import NewConsumer, Send
from tests.support.recording import RecordingLink, recording


@pytest.fixture
def link(broker: Broker) -> Iterator[RecordingLink]:
    with recording(broker, "127.0.0.1@1#first") as made:
        yield made


def crash(link: RecordingLink) -> None:
    """Ends a client as a crash does: its connection is gone, its locks are not."""
    link.close()


def test_a_second_consumer_gets_the_queues_when_the_first_closes(
    broker: Broker, send: Send, consume: NewConsumer
):
    send(2)
    first, seen_by_first = consume()
    first.run_until_idle()
    second, seen_by_second = consume()
    second.start()
    broker.advance(5_000)
    assert sorted(len(one.queues) for one in (first, second)) == [2, 3]
    first.close()
    broker.advance(MIN_SHARE_INTERVAL_MS)
    assert len(second.queues) == 5
    send(2)
    broker.advance(0)
    assert sorted(seen_by_first + seen_by_second) == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_the_queues_of_a_consumer_that_died_are_free_after_60_s(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send(2)
    consume(via=link)[0].run_until_idle()
    crash(link)
    send(2)
    heir, seen = consume()
    heir.start()
    broker.advance(BROKER_LIVE_MS)
    assert seen == []
    broker.advance(MIN_SHARE_INTERVAL_MS + 1)
    assert seen == [(0, 2), (0, 3)]


def test_s2_03_locks_are_renewed_after_1_s_and_then_every_20_s(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send()
    consumer, _seen = consume(via=link)
    consumer.start()
    broker.advance(62_000)
    assert link.moments(RequestCode.LOCK_BATCH_MQ) == [0, 0, 1, 21, 41, 61], "two are of the two topics"


def test_a_consumer_that_renews_keeps_its_queues_for_ever(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send()
    keeper, seen = consume(via=link)
    keeper.start()
    for _ in range(20):
        broker.advance(10_000)
        send()
        broker.advance(0)
    assert len(seen) == 21
    assert {lock.client_id for lock in broker.locks.all()} == {link.client_id}


def test_s2_06_without_renewal_work_stops_after_30_s(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send()
    consumer, seen = consume(via=link)
    consumer.run_until_idle()
    link.cut = {RequestCode.LOCK_BATCH_MQ}
    broker.advance(WORK_MS)
    send()
    broker.advance(0)
    assert seen == [(0, 0), (0, 1)]
    broker.advance(1)
    send()
    broker.advance(10_000)
    assert seen == [(0, 0), (0, 1)], "the broker still has its lock for another 20 s, but it does not work"


def test_a_renewal_within_60_s_goes_on_where_work_stopped(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send()
    consumer, seen = consume(via=link)
    consumer.run_until_idle()
    link.cut = {RequestCode.LOCK_BATCH_MQ}
    broker.advance(WORK_MS + 1)
    send(2)
    broker.offsets.commit("g", "T", 0, 0)
    link.cut = set()
    broker.advance(20_000)
    assert seen == [(0, 0), (0, 1), (0, 2)], "nobody else can have had the queue"


def test_s2_11_a_lock_regained_later_starts_from_what_others_have_committed(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send(2)
    consumer, seen = consume(via=link)
    consumer.run_until_idle()
    link.cut = {RequestCode.LOCK_BATCH_MQ}
    broker.advance(BROKER_LIVE_MS + 20_001)
    send(3)
    broker.offsets.commit("g", "T", 0, 4)  # as a thief has it that came and went
    link.cut = set()
    broker.advance(20_000)
    assert seen == [(0, 0), (0, 1), (0, 4)]
    consumer.close()
    assert broker.offsets.query("g", "T", 0) == 5


def test_what_was_consumed_under_a_lost_lease_is_not_committed(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    send(1)
    consumer, seen = consume(via=link)
    link.refused = {RequestCode.UPDATE_CONSUMER_OFFSET}
    with pytest.raises(CommitError, match="not now"):
        consumer.run_until_idle()
    assert seen == [(0, 0)]
    link.cut = {RequestCode.LOCK_BATCH_MQ, RequestCode.PULL_MESSAGE}
    broker.advance(BROKER_LIVE_MS + 1_001)
    link.refused = set()
    with pytest.raises(FencedError, match=r"queue 0 of T at broker-a is not committed: another member"):
        consumer.commit()
    consumer.close()
    assert broker.offsets.query("g", "T", 0) is None


def test_a_renewal_that_another_client_has_won_gives_the_queue_up(
    broker: Broker, link: RecordingLink, clock: VirtualClock, send: Send, consume: NewConsumer
):
    send(3)
    consumer, seen = consume(via=link)
    consumer.run_until_idle()
    link.cut = {RequestCode.LOCK_BATCH_MQ}
    broker.advance(BROKER_LIVE_MS + 1_001)
    with recording(broker, "127.0.0.1@1#thief") as other:
        thief, seen_by_thief = consume(via=other)
        thief.start()
        crash(link)  # its notices go; what it has in memory stays
        link.cut = set()
        broker.advance(2_000)
        send(1)
        broker.advance(0)
        assert (seen, seen_by_thief) == ([(0, 0), (0, 1), (0, 2)], [(0, 3)])
    assert broker.offsets.query("g", "T", 0) is not None


def test_a_listener_that_outlives_its_lease_stops_after_the_message_it_is_at(
    broker: Broker, clock: VirtualClock, send: Send, consume: NewConsumer
):
    def very_slowly_once(_message):
        if len(seen) == 1:
            clock.advance(BROKER_LIVE_MS + 1)
        else:
            again.append(broker.offsets.query("g", "T", 0))

    again: list[int | None] = []
    send(3)
    consumer, seen = consume(listener=very_slowly_once)
    consumer.run_until_idle()
    assert seen == [(0, 0), (0, 0), (0, 1), (0, 2)], "another client may have had the queue meanwhile"
    assert again[0] is None


def test_two_members_share_the_queues_of_a_topic(broker: Broker, send: Send, consume: NewConsumer):
    """Finding 2 of consumers and producer: a group did not share."""
    consumers = [consume() for _ in range(2)]
    for consumer, _seen in consumers:
        consumer.start()
    for queue_id in range(4):
        send(2, queue_id=queue_id)
    broker.advance(5_000)
    shares = [{queue_id for queue_id, _offset in seen} for _consumer, seen in consumers]
    assert sorted(map(sorted, shares)) == [[0, 1], [2, 3]]


def test_three_members_share_four_queues_and_those_that_stay_take_over(
    broker: Broker, send: Send, consume: NewConsumer
):
    send(1)
    with recording(broker, "127.0.0.1@1#0") as last:
        consumers = [consume(via=last)[0], consume()[0], consume()[0]]
        for consumer in consumers:
            consumer.start()

        def shares():
            return sorted(sum(queue.topic == "T" for queue in one.queues) for one in consumers)

        broker.advance(5_000)
        assert shares() == [1, 1, 2]
        consumers.pop().close()
        broker.advance(5_000)
        assert shares() == [2, 2]
        crash(last)
        del consumers[0]
        broker.advance(BROKER_LIVE_MS + 2_000)
        assert shares() == [4]


def test_a_new_member_gets_its_share_and_nothing_comes_twice(
    broker: Broker, send: Send, consume: NewConsumer
):
    for queue_id in range(4):
        send(2, queue_id=queue_id)
    first, seen_by_first = consume()
    first.run_until_idle()
    second, seen_by_second = consume()
    second.start()
    broker.advance(5_000)
    for queue_id in range(4):
        send(2, queue_id=queue_id)
    broker.advance(0)
    assert sorted(seen_by_first + seen_by_second) == [
        (queue_id, offset) for queue_id in range(4) for offset in range(4)
    ]
    assert len({queue_id for queue_id, _offset in seen_by_second}) == 2

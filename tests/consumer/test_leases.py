"""One queue has one consumer of a group at a time, whatever happens to consumers and renewals."""

from __future__ import annotations

import pytest

from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.leases import BROKER_LIVE_MS, WORK_MS
from seglog.errors import ProtocolError
from seglog.remoting.codes import RequestCode
from tests.support.consumers import NewConsumer, Send


class Cable:
    """A link whose lock requests can be made to fail, and which notes when they were sent."""

    def __init__(self, link, clock):
        self._link = link
        self._clock = clock
        self._start_ms = clock.now_ms()
        self.client_id = link.client_id
        self.is_cut = False
        self.locks_at_s = []

    def invoke(self, request, timeout_ms=None):
        if request.code is RequestCode.LOCK_BATCH_MQ:
            self.locks_at_s.append((self._clock.now_ms() - self._start_ms) / 1000)
            if self.is_cut:
                raise ProtocolError("no answer to the lock request")
        return self._link.invoke(request, timeout_ms)


@pytest.fixture
def cable(link: LocalLink, clock: VirtualClock):
    return Cable(link, clock)


def test_a_second_consumer_waits_until_the_first_closes(
    clock: VirtualClock, send: Send, consume: NewConsumer
):
    send(2)
    first, seen_by_first = consume("a")
    first.run_until_idle()
    second, seen_by_second = consume("b")
    send(2)
    second.run_until_idle()
    assert (second.queues, seen_by_second) == ((), [])
    first.run_until_idle()
    first.close()
    send(1)
    clock.advance(1_000)
    second.run_until_idle()
    assert seen_by_first == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert seen_by_second == [(0, 4)]


def test_the_queues_of_a_consumer_that_died_are_free_after_60_s(
    clock: VirtualClock, send: Send, consume: NewConsumer
):
    send(2)
    dead, _seen = consume("a")
    dead.run_until_idle()
    heir, seen = consume("b")
    send(2)
    clock.advance(BROKER_LIVE_MS)
    heir.run_until_idle()
    assert seen == []
    clock.advance(1_000)
    heir.run_until_idle()
    assert seen == [(0, 2), (0, 3)]


def test_s2_03_locks_are_renewed_after_1_s_and_then_every_20_s(
    clock: VirtualClock, cable, send: Send, consume: NewConsumer
):
    send()
    consumer, _seen = consume(via=cable)
    for _ in range(62):
        consumer.run_until_idle()
        clock.advance(1_000)
    assert cable.locks_at_s == [0, 1, 21, 41, 61]


def test_a_consumer_that_renews_keeps_its_queues_for_ever(
    clock: VirtualClock, send: Send, consume: NewConsumer
):
    send()
    keeper, _seen = consume("a")
    rival, seen = consume("b")
    for _ in range(20):
        keeper.run_until_idle()
        rival.run_until_idle()
        clock.advance(10_000)
        send()
    assert seen == []
    assert keeper.counts.delivered == 20


def cut_and_step(cable, clock, consumer, by_ms):
    cable.is_cut = True
    clock.advance(by_ms)
    with pytest.raises(ProtocolError):
        consumer.poll()


def test_s2_06_without_renewal_work_stops_after_30_s(
    clock: VirtualClock, cable, send: Send, consume: NewConsumer
):
    send()
    consumer, seen = consume(via=cable)
    consumer.run_until_idle()
    send(2)
    cable.is_cut = True
    clock.advance(WORK_MS + 1)
    with pytest.raises(ProtocolError):
        consumer.poll()
    consumer.poll()
    assert seen == [(0, 0)], "the broker still has its lock for another 30 s, but it does not work"


def test_up_to_30_s_work_goes_on_without_renewal(
    clock: VirtualClock, cable, send: Send, consume: NewConsumer
):
    send()
    consumer, seen = consume(via=cable)
    consumer.run_until_idle()
    send(2)
    cut_and_step(cable, clock, consumer, WORK_MS)
    consumer.poll()
    assert seen == [(0, 0), (0, 1), (0, 2)]


def test_a_renewal_within_60_s_goes_on_where_work_stopped(
    broker: Broker, clock: VirtualClock, cable, send: Send, consume: NewConsumer
):
    send(3)
    consumer, seen = consume(via=cable, pull_count=1)
    consumer.poll()
    cut_and_step(cable, clock, consumer, WORK_MS + 1)
    cable.is_cut = False
    broker.offsets.commit("g", "T", 0, 0)
    clock.advance(20_000)
    consumer.run_until_idle()
    assert seen == [(0, 0), (0, 1), (0, 2)], "nobody else can have had the queue"


def test_s2_11_a_lock_regained_later_starts_from_what_others_have_committed(
    broker: Broker, clock: VirtualClock, cable, send: Send, consume: NewConsumer
):
    send(5)
    consumer, seen = consume(via=cable, pull_count=1)
    consumer.poll()
    cut_and_step(cable, clock, consumer, WORK_MS + 1)
    clock.advance(BROKER_LIVE_MS)
    thief, seen_by_thief = consume("b", pull_count=1)
    for _ in range(3):
        thief.poll()
    thief.close()
    assert seen_by_thief == [(0, 0), (0, 1), (0, 2)]
    cable.is_cut = False
    clock.advance(1_000)
    consumer.run_until_idle()
    assert seen == [(0, 0), (0, 3), (0, 4)]
    assert broker.offsets.query("g", "T", 0) == 5


def test_what_was_consumed_under_a_lost_lease_is_not_committed(
    broker: Broker, clock: VirtualClock, cable, send: Send, consume: NewConsumer
):
    send(5)
    consumer, _seen = consume(via=cable)
    consumer.poll()
    cut_and_step(cable, clock, consumer, BROKER_LIVE_MS + 1)
    consumer.commit()
    consumer.close()
    assert broker.offsets.query("g", "T", 0) is None


def test_a_renewal_that_another_client_has_won_gives_the_queue_up(
    broker: Broker, clock: VirtualClock, cable, send: Send, consume: NewConsumer
):
    send(3)
    consumer, _seen = consume(via=cable, pull_count=1)
    consumer.poll()
    clock.advance(BROKER_LIVE_MS + 1)
    thief, seen_by_thief = consume("b")
    thief.run_until_idle()
    assert consumer.poll() == 0
    assert consumer.queues == ()
    assert len(seen_by_thief) == 3
    assert broker.offsets.query("g", "T", 0) == 3


def test_a_listener_that_outlives_its_lease_stops_after_the_message_it_is_at(
    clock: VirtualClock, send: Send, consume: NewConsumer
):
    def very_slowly(_message):
        clock.advance(BROKER_LIVE_MS + 1)

    send(3)
    consumer, seen = consume(listener=very_slowly)
    consumer.poll()
    assert seen == [(0, 0)]


def test_members_share_the_queues(broker: Broker, send: Send, consume: NewConsumer):
    for queue_id in range(4):
        send(2, queue_id=queue_id)
    first, seen_by_first = consume("a", members=["a", "b"])
    second, seen_by_second = consume("b", members=["b", "a"])
    first.run_until_idle()
    second.run_until_idle()
    assert {queue_id for queue_id, _offset in seen_by_first} == {0, 1}
    assert {queue_id for queue_id, _offset in seen_by_second} == {2, 3}


def test_a_new_member_gets_its_share_and_nothing_comes_twice(
    clock: VirtualClock, send: Send, consume: NewConsumer
):
    for queue_id in range(4):
        send(2, queue_id=queue_id)
    first, seen_by_first = consume("a", members=["a"])
    first.run_until_idle()
    second, seen_by_second = consume("b", members=["a", "b"])
    for queue_id in range(4):
        send(2, queue_id=queue_id)
    second.run_until_idle()
    assert seen_by_second == [], "the first one has not let go yet"
    first.set_members(["a", "b"])
    first.run_until_idle()
    clock.advance(1_000)
    second.run_until_idle()
    assert sorted(seen_by_first + seen_by_second) == [
        (queue_id, offset) for queue_id in range(4) for offset in range(4)
    ]
    assert {queue_id for queue_id, _offset in seen_by_second} == {2, 3}


def test_who_is_no_member_gets_nothing(send: Send, consume: NewConsumer):
    send()
    consumer, seen = consume("x", members=["a", "b"])
    consumer.run_until_idle()
    assert (consumer.queues, seen) == ((), [])

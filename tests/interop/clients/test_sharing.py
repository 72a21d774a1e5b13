"""Members of a group share its queues, among ours and with RocketMQ's own: each message once, in order."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from tests.interop.clients.conftest import AT_ROCKETMQ, DRAWN, RELEASES
from tests.interop.clients.crashing import MemberHere, MemberProcess
from tests.interop.judging.places import VirtualPlace
from tests.support.scale import is_full

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
OF_ROCKETMQ = pytest.mark.parametrize(
    "place",
    AT_ROCKETMQ,
    indirect=True,
    scope="session",
)
# What takes a minute of real time is waited for by the campaign, at one release; --full waits at all.
WITH_A_MINUTE = [
    "in process",
    *(
        pytest.param(one, marks=[pytest.mark.interop, pytest.mark.campaign])
        for one in (RELEASES if is_full() else [DRAWN])
    ),
]


class Seen:
    """What all members of a group were given; any thread adds to it."""

    def __init__(self):
        self.of_queues = defaultdict(list)

    def __call__(self, message):
        self.of_queues[message.queue_id].append(message.queue_offset)

    def __len__(self):
        return sum(map(len, self.of_queues.values()))

    @property
    def are_each_once(self):
        return all(count == 1 for offsets in self.of_queues.values() for count in Counter(offsets).values())

    @property
    def are_in_order(self):
        return all(one < other for offsets in self.of_queues.values() for one, other in pairwise(offsets))


def of_topic(consumer, topic):
    return [queue.queue_id for queue in consumer.queues if queue.topic == topic]


def send_round(producer, topic, count):
    for number in range(count):
        producer.send(topic, b"%d" % number, queue_id=number % 4)


@pytest.mark.parametrize("place", WITH_A_MINUTE, indirect=True, scope="session")
def test_finding_2_three_members_share_2_1_1_then_2_2_and_after_a_crash_4(place, topic, group):
    """What a crashed member had locked waits for the end of its locks: 60 s after the last renewal."""
    seen, clock = Seen(), place.client().clock
    first, second = (place.consumer(OrderlyConsumer, group, topic, seen) for _ in range(2))
    third = (
        MemberHere(place.broker, group, topic)
        if isinstance(place, VirtualPlace)
        else MemberProcess(place.target, group, topic)
    )
    crashed = False
    try:

        def shares():
            return len(of_topic(first, topic)), len(of_topic(second, topic))

        with Producer(place.target) as producer:
            place.settle(lambda: len(place.members(group)) == 3)
            place.settle(lambda: shares() in ((2, 1), (1, 2), (1, 1)))
            send_round(producer, topic, 40)
            place.settle(lambda: len(seen) + len(third.seen) == 40)
            assert seen.are_each_once
            assert seen.are_in_order
            second.close()
            place.settle(lambda: len(of_topic(first, topic)) == 2)
            send_round(producer, topic, 40)
            place.settle(lambda: len(seen) + len(third.seen) == 80)
            assert len({*third.seen}) == len(third.seen)
            mine = of_topic(first, topic)
            third.crash()
            crashed, began_ms = True, clock.monotonic_ms()
            send_round(producer, topic, 40)
            place.settle(lambda: all(29 in seen.of_queues[queue_id] for queue_id in mine))
            assert of_topic(first, topic) == mine, "what is locked has to wait"
            place.settle(lambda: len(of_topic(first, topic)) == 4, 100)
            waited_ms = clock.monotonic_ms() - began_ms
            assert 39_000 <= waited_ms <= 65_000 or not isinstance(place, VirtualPlace)
            assert waited_ms >= 35_000
            place.settle(lambda: all(29 in seen.of_queues[queue_id] for queue_id in range(4)))
            assert seen.are_in_order
            everything = {(queue_id, offset) for queue_id in range(4) for offset in range(30)}
            ours = {(queue_id, offset) for queue_id, offsets in seen.of_queues.items() for offset in offsets}
            assert ours | set(third.seen) == everything
    finally:
        if not crashed:
            third.crash()


@OF_ROCKETMQ
@BOTH
def test_finding_3_with_a_java_consumer_each_message_comes_once_and_both_agree_on_the_queues(
    place, topic, group, kind
):
    """What is done is committed, and nothing is sent, while queues change hands."""
    seen, java = Seen(), []

    def look():
        of_java, queues = place.java.look("j", topic)
        java.extend((one["queueId"], one["queueOffset"]) for one in of_java)
        return queues

    def are_agreed(mine, theirs):
        return sorted([*mine, *theirs]) == [0, 1, 2, 3] and len(mine) == len(theirs) == 2

    with Producer(place.target) as producer:
        ours = place.consumer(kind, group, topic, seen)
        place.settle(lambda: len(of_topic(ours, topic)) == 4)
        send_round(producer, topic, 40)
        place.settle(lambda: [place.done(ours, topic, number) for number in range(4)] == [10] * 4)
        place.java.join("j", group, topic, is_in_order=kind is OrderlyConsumer)
        try:
            place.settle(lambda: are_agreed(of_topic(ours, topic), look()), 40)
            send_round(producer, topic, 80)
            place.settle(lambda: [look(), len(seen) + len(java)][1] >= 120)
            assert java
            # Java's shutdown leaves out what its listener had a moment ago: that would come twice.
            place.settle(lambda: [place.done(ours, topic, number) for number in range(4)] == [30] * 4, 40)
        finally:
            place.java.leave("j")
        place.settle(lambda: len(of_topic(ours, topic)) == 4, 40)
        send_round(producer, topic, 40)
        place.settle(lambda: len(seen) + len(java) >= 160)
    of_both = Counter(java) + Counter(
        (queue_id, offset) for queue_id, offsets in seen.of_queues.items() for offset in offsets
    )
    assert of_both == Counter({(queue_id, offset): 1 for queue_id in range(4) for offset in range(40)})
    if kind is OrderlyConsumer:
        assert seen.are_in_order
        for queue_id in range(4):
            offsets = [offset for of_queue, offset in java if of_queue == queue_id]
            assert offsets == sorted(offsets)

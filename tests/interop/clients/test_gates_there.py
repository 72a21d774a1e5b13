"""Queues in order at RocketMQ's own broker: handed over when a listener ends, left when a lock is lost."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from seglog.consumer.orderly import OrderlyConsumer
from seglog.producer.producer import Producer
from seglog.remoting.bodies import LockBatchBody
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.message_queue import MessageQueue
from tests.interop.clients.conftest import DRAWN

OF_ROCKETMQ = pytest.mark.parametrize(
    "place", [pytest.param(DRAWN, marks=pytest.mark.interop)], indirect=True, scope="session"
)


class Slow:
    """A listener that takes a time for each message, and notes when it had which.

    Attributes:
        spans: Queue, offset, begin and end of each call, in seconds.
    """

    def __init__(self, takes_s):
        self.takes_s = takes_s
        self.spans = []

    def __call__(self, message):
        began_s = time.monotonic()
        time.sleep(self.takes_s)
        self.spans.append((message.queue_id, message.queue_offset, began_s, time.monotonic()))


@OF_ROCKETMQ
def test_s2_19_a_rebalance_waits_for_a_slow_listener_and_the_next_owner_goes_on_behind_it(
    place, topic, group
):
    first, second = Slow(4), Slow(0)
    with Producer(place.target) as producer:
        for _ in range(3):
            for queue_id in range(4):
                producer.send(topic, b"x", queue_id=queue_id)
    place.consumer(OrderlyConsumer, group, topic, first)
    place.settle(lambda: len(place.members(group)) == 1)
    time.sleep(2)  # all four queues are with a listener
    place.consumer(OrderlyConsumer, group, topic, second)
    place.settle(lambda: len(first.spans) + len(second.spans) == 12, 60)
    spans = sorted(first.spans + second.spans)
    assert [(queue_id, offset) for queue_id, offset, *_ in spans] == [
        (q, o) for q in range(4) for o in range(3)
    ]
    assert second.spans, "it got some of the queues"
    for one, other in pairwise(spans):
        assert one[0] != other[0] or one[3] <= other[2], "never two of a queue at a time"


@OF_ROCKETMQ
def test_s2_16_a_queue_whose_lock_another_client_got_is_left_and_asked_for_until_it_is_free(
    place, topic, group
):
    """The loop ends with the renewal that does not get it; then it goes on behind what was done."""
    slow = Slow(0.2)
    queue = MessageQueue(topic, "broker-a", 0)
    with Producer(place.target) as producer:
        producer.send_batch(topic, [b"x"] * 200, queue_id=0)
    consumer = place.consumer(OrderlyConsumer, group, topic, slow)
    place.settle(lambda: len(slow.spans) >= 5)
    place.ask(
        Request(
            RequestCode.UNLOCK_BATCH_MQ, body=LockBatchBody(group, consumer.client_id, frozenset({queue}))
        )
    )
    stolen = Request(RequestCode.LOCK_BATCH_MQ, body=LockBatchBody(group, "thief", frozenset({queue})))
    assert queue in place.ask(stolen).body.queues
    place.settle(lambda: queue not in consumer.queues, 40)
    count = len(slow.spans)
    time.sleep(2)
    assert len(slow.spans) <= count + 1
    place.ask(Request(RequestCode.UNLOCK_BATCH_MQ, body=LockBatchBody(group, "thief", frozenset({queue}))))
    place.settle(lambda: len(slow.spans) >= count + 5, 40)
    offsets = [offset for _queue, offset, *_ in slow.spans]
    assert sorted(set(offsets)) == list(range(max(offsets) + 1))
    assert offsets == sorted(offsets) or offsets.count(offsets[count - 1]) <= 2

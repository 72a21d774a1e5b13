"""A consumer that is polled, in process, over connections and at RocketMQ, alone and with one in Java."""

from __future__ import annotations

import pytest

from seglog import AsyncLitePullConsumer, LitePullConsumer
from seglog.consumer.listener import ConsumeFrom
from seglog.producer.producer import Producer
from seglog.remoting.message_queue import MessageQueue
from tests.interop.clients.conftest import AT_ROCKETMQ
from tests.support.faces import driven
from tests.support.machine.patience import wait_until

OF_ROCKETMQ = pytest.mark.parametrize(
    "place",
    AT_ROCKETMQ,
    indirect=True,
    scope="session",
)


def send_round(producer, topic, count):
    for number in range(count):
        producer.send(topic, b"%d" % number, queue_id=number % 4, tags="AB"[number // 4 % 2])


def poll_until(consumer, count):
    seen = []

    def poll():
        seen.extend(consumer.poll(0.2))
        return len(seen) >= count

    wait_until(poll)
    return sorted((message.queue_id, message.queue_offset) for message in seen)


@pytest.mark.parametrize("kind", [LitePullConsumer, AsyncLitePullConsumer])
def test_a_group_polls_seeks_pauses_and_goes_on_where_it_has_committed(place, topic, group, kind):
    with Producer(place.target) as producer:
        send_round(producer, topic, 24)
        with driven(kind, place.target, group, {topic: "A"}, consume_from=ConsumeFrom.FIRST) as consumer:
            assert poll_until(consumer, 12) == [(one, offset) for one in range(4) for offset in (0, 2, 4)]
            consumer.commit()
            queue = consumer.assignment[0]
            wait_until(lambda: consumer.committed(queue) in (5, 6))
            consumer.pause([queue])
            send_round(producer, topic, 4)
            assert poll_until(consumer, 3) == [(one, 6) for one in (1, 2, 3)]
            consumer.resume([queue])
            assert poll_until(consumer, 1) == [(0, 6)]
            assert consumer.seek(queue, 4) == 4
            assert poll_until(consumer, 2) == [(0, 4), (0, 6)]
            consumer.commit()
            wait_until(lambda: sum(consumer.lag().values()) == 0)
        send_round(producer, topic, 4)
        with driven(kind, place.target, group, consume_from=ConsumeFrom.FIRST) as consumer:
            consumer.assign([MessageQueue(topic, queue.broker_name, number) for number in (1, 2)])
            assert poll_until(consumer, 2) == [(1, 7), (2, 7)]


@OF_ROCKETMQ
def test_a_java_consumer_goes_on_where_ours_has_committed_and_ours_where_it_has(place, topic, group):
    seen = []

    def look():
        seen.extend((one["queueId"], one["queueOffset"]) for one in place.java.look("j", topic)[0])
        return len(seen) >= 4

    with Producer(place.target) as producer:
        send_round(producer, topic, 8)
        with LitePullConsumer(place.target, group, topic, consume_from=ConsumeFrom.FIRST) as consumer:
            assert poll_until(consumer, 8) == [(one, offset) for one in range(4) for offset in (0, 1)]
            consumer.commit()
        send_round(producer, topic, 4)
        place.java.join("j", group, topic, is_in_order=False)
        try:
            wait_until(look)
        finally:
            place.java.leave("j")
        assert sorted(seen) == [(one, 2) for one in range(4)]
        send_round(producer, topic, 4)
        with LitePullConsumer(place.target, group, topic, consume_from=ConsumeFrom.FIRST) as consumer:
            assert poll_until(consumer, 4) == [(one, 3) for one in range(4)]

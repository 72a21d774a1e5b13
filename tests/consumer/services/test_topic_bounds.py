"""Bounds of what is cached of a topic, which all queues that a consumer has share evenly."""

from __future__ import annotations

import pytest

from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.settings import ConsumerSettings
from tests.support.consumers import Send, cached_counts

MIB = 1 << 20


@pytest.mark.parametrize(
    ("messages", "size_bytes", "queues", "expected"),
    [
        (None, None, 4, (1_000, 100 * MIB)),
        (20, None, 5, (4, 100 * MIB)),
        (3, 50 * MIB, 5, (1, 10 * MIB)),
        (None, 2 * MIB, 5, (1_000, MIB)),
        (20, 2 * MIB, 0, (20, 2 * MIB)),
    ],
)
def test_s4_04_a_bound_of_a_topic_is_shared_by_the_queues_and_leaves_each_a_message_and_a_mib(
    messages: int | None, size_bytes: int | None, queues: int, expected: tuple[int, int]
):
    settings = ConsumerSettings("g", {}, max_cached_topic=messages, max_cached_topic_bytes=size_bytes)
    assert settings.bounds_of(queues) == expected


def test_s4_17_a_queue_is_not_pulled_while_it_has_its_part_of_the_bound_of_a_topic(
    broker: Broker, send: Send
):
    send(50)
    with OrderlyConsumer(
        LocalLink(broker),
        "g",
        "T",
        lambda _message: Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT,
        max_cached_topic=20,
        pull_count=2,
    ) as consumer:
        consumer.start()
        broker.advance(10_000)
        assert len(consumer.queues) == 5, "one of them is of the retry topic"
        assert sum(cached_counts(broker, consumer.client_id).values()) == 6, (
            "pulls go on until there are more than 4"
        )

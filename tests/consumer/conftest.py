"""A broker on a virtual clock, and what consumers of it have seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Unpack

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import Target
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume, PlainListener
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.settings import ConsumerOptions
from seglog.producer.producer import Producer
from seglog.storage.format.record.message import Message
from tests.support.brokers import open_broker
from tests.support.consumers import NewConsumer, Send


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def broker(tmp_path: Path, clock: VirtualClock) -> Iterator[Broker]:
    with open_broker(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def send(broker: Broker) -> Send:
    producer = Producer(broker)

    def send(count: int = 1, *, queue_id: int = 0, tags: str | None = None, topic: str = "T") -> None:
        for number in range(count):
            producer.send(topic, b"%d" % number, queue_id=queue_id, tags=tags)

    return send


@pytest.fixture
def consume(broker: Broker) -> NewConsumer:
    def consume(
        subscription: str | Mapping[str, str] = "T",
        *,
        listener: PlainListener | None = None,
        via: Target | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> tuple[OrderlyConsumer, list[tuple[int, int]]]:
        seen: list[tuple[int, int]] = []

        def note(message: Message) -> Consume | None:
            seen.append((message.queue_id, message.queue_offset))
            return None if listener is None else listener(message)

        consumer = OrderlyConsumer(via or LocalLink(broker), "g", subscription, note, **options)
        return consumer, seen

    return consume

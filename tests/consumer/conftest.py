"""A broker on a virtual clock, and what consumers of it have seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Unpack

import pytest

from seglog.broker.broker import Broker
from seglog.client.links.link import Link
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume, Listener
from seglog.consumer.orderly import OrderlyConsumer
from seglog.producer.producer import Producer
from seglog.storage.format.record.message import Message
from tests.support.brokers import open_broker
from tests.support.consumers import ConsumerOptions, NewConsumer, Send


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def broker(tmp_path: Path, clock: VirtualClock) -> Iterator[Broker]:
    with open_broker(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def link(broker: Broker) -> LocalLink:
    return LocalLink(broker)


@pytest.fixture
def send(link: LocalLink, clock: VirtualClock) -> Send:
    producer = Producer(link, clock=clock)

    def send(count: int = 1, *, queue_id: int = 0, tags: str | None = None, topic: str = "T") -> None:
        for number in range(count):
            producer.send(topic, b"%d" % number, queue_id=queue_id, tags=tags)

    return send


@pytest.fixture
def consume(link: LocalLink, clock: VirtualClock) -> NewConsumer:
    def consume(
        client_id: str = "a",
        subscription: str | Mapping[str, str] = "T",
        *,
        listener: Listener | None = None,
        via: Link | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> tuple[OrderlyConsumer, list[tuple[int, int]]]:
        seen: list[tuple[int, int]] = []

        def note(message: Message) -> Consume | None:
            seen.append((message.queue_id, message.queue_offset))
            return None if listener is None else listener(message)

        consumer = OrderlyConsumer(
            via or link, "g", subscription, note, client_id=client_id, clock=clock, **options
        )
        return consumer, seen

    return consume

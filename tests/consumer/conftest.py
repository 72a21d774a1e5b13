"""A broker on a virtual clock, and what consumers of it have seen."""

from __future__ import annotations

import pytest

from seglog.client.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.orderly import OrderlyConsumer
from seglog.producer.producer import Producer
from tests.support.brokers import open_broker


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def broker(tmp_path, clock):
    with open_broker(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def link(broker):
    return LocalLink(broker)


@pytest.fixture
def send(link, clock):
    producer = Producer(link, clock=clock)

    def send(count=1, *, queue_id=0, tags=None, topic="T"):
        for number in range(count):
            producer.send(topic, b"%d" % number, queue_id=queue_id, tags=tags)

    return send


@pytest.fixture
def consume(link, clock):
    """Makes a consumer of group ``g`` and the list that its listener fills with (queue id, offset)."""

    def consume(client_id="a", subscription="T", *, listener=None, via=link, **options):
        seen = []

        def note(message):
            seen.append((message.queue_id, message.queue_offset))
            return None if listener is None else listener(message)

        consumer = OrderlyConsumer(via, "g", subscription, note, client_id=client_id, clock=clock, **options)
        return consumer, seen

    return consume

"""A plain producer in an event loop: its call is refused before anything is stored, or all of it works."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seglog import Broker, ConsumeFrom, Message, Producer, PushConsumer, make_client
from seglog.errors import InvalidArgumentError
from seglog.testing import VirtualBroker
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until


def stored(broker: Broker, topic: str = "T") -> int:
    return sum(queue.max_offset for queue in broker.store.queues() if queue.topic == topic)


@pytest.mark.parametrize("trace", [False, True])
def test_in_the_process_of_its_broker_a_block_in_a_loop_ends_and_has_sent(tmp_path: Path, trace: bool):
    with Broker.open(tmp_path / "s", small=True) as broker:

        async def scene() -> None:
            with Producer(broker, "shop", trace=trace) as producer:
                producer.send("T", b"x")

        asyncio.run(scene())
        assert stored(broker) == 1
        assert not broker.clients.producers("shop"), "it has left"
        if trace:
            assert stored(broker, "RMQ_SYS_TRACE_TOPIC") == 1


def test_so_does_a_block_of_its_client(tmp_path: Path):
    with Broker.open(tmp_path / "s", small=True) as broker:

        async def scene() -> None:
            with make_client(broker) as client, Producer(client, "shop") as producer:
                producer.send("T", b"x")

        asyncio.run(scene())
        assert stored(broker) == 1
        assert not broker.clients.producers("shop")


def test_so_does_a_block_in_an_async_listener_which_its_own_home_runs(tmp_path: Path):
    with Broker.open(tmp_path / "s", small=True) as broker:
        ended: list[str] = []

        async def forward(message: Message) -> None:
            with Producer(broker, "forwarder") as producer:
                producer.send("U", message.body)
            ended.append("sent")

        with Producer(broker) as first:
            first.send("T", b"x")
        with PushConsumer(broker, "g", "T", forward, consume_from=ConsumeFrom.FIRST) as consumer:
            consumer.start()
            wait_until(lambda: ended or consumer.counts.failed, "the listener has run")
        assert ended == ["sent"]
        wait_until(lambda: not broker.clients.producers("forwarder"), "its producer has left")
        assert stored(broker, "U") == 1


def test_so_does_a_block_in_a_listener_on_virtual_time(tmp_path: Path):
    with VirtualBroker.at(tmp_path / "s") as broker:
        seen: list[bytes] = []

        def forward(message: Message) -> None:
            with Producer(broker, "forwarder") as producer:
                producer.send("U", message.body)
            seen.append(message.body)

        broker.producer().send("T", b"x")
        with PushConsumer(broker, "g", "T", forward, consume_from=ConsumeFrom.FIRST) as consumer:
            consumer.start()
            broker.advance("1s")
        assert seen == [b"x"]
        assert not broker.clients.producers("forwarder")


def test_over_connections_the_send_is_refused_and_nothing_is_stored(tmp_path: Path):
    with BrokerServer(tmp_path / "s") as server:
        producer = Producer(server.address)

        async def scene() -> None:
            with pytest.raises(InvalidArgumentError, match="in an event loop") as error:
                producer.send("T", b"x")
            assert "AsyncProducer" in error.value.help

        asyncio.run(scene())
        producer.close()
        assert stored(server.broker) == 0

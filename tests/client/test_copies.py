"""What has threads, sockets or files is no value: it is neither copied nor pickled, and says so."""

from __future__ import annotations

import asyncio
import copy
import pickle
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.producer.producer import AsyncProducer, Producer
from tests.support.listening import BrokerServer


def check_refused(*made: object) -> None:
    for one in made:
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"^a {type(one).__name__} cannot be copied or pickled"):
                call(one)


def test_a_broker_a_client_and_what_is_in_it_are_not_copied(tmp_path: Path):
    async def awaited(broker: Broker) -> None:
        async with (
            AsyncProducer(broker) as producer,
            AsyncPushConsumer(broker, "g", "T", print) as consumer,
            AsyncOrderlyConsumer(broker, "h", "T", print) as ordered,
        ):
            check_refused(producer, consumer, ordered)

    with Broker.open(tmp_path / "s") as broker, make_client(broker) as client:
        producer = Producer(client)
        consumers = [kind(client, kind.__name__, "T", print) for kind in (PushConsumer, OrderlyConsumer)]
        check_refused(broker, client, producer, *consumers)
        asyncio.run(awaited(broker))
        with pytest.raises(TypeError, match="a Producer cannot be copied or pickled"):
            copy.deepcopy({"of an application": [producer]})
        assert producer.send("T", b"x").queue_offset == 0


def test_a_server_is_not_copied(tmp_path: Path):
    with BrokerServer(tmp_path / "s") as served:
        check_refused(served.server)

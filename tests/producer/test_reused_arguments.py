"""What a caller changes after a task's send began does not reach the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog import AsyncProducer, Broker, BrokerConfig, Listener, NewMessage, Server

SIZE = 64


async def sent(producer: AsyncProducer[Any], way: str) -> None:
    body, keys, properties = bytearray(b"f" * SIZE), ["first"], {"word": "first"}
    many = [NewMessage(body, keys=keys, properties=properties)] * 2
    calls: dict[str, Callable[[], Any]] = {
        "send": lambda: producer.send("T", body, queue_id=0, keys=keys, properties=properties),
        "a view": lambda: producer.send("T", memoryview(body), queue_id=0, keys=keys, properties=properties),
        "batch": lambda: producer.send_batch("T", many, queue_id=0),
    }
    task = asyncio.ensure_future(calls[way]())
    await asyncio.sleep(0)
    body[:] = b"S" * SIZE
    keys[:] = ["second"]
    properties["word"] = "second"
    many.clear()
    await task


@pytest.mark.parametrize("way", ["send", "a view", "batch"])
@pytest.mark.parametrize("is_remote", [False, True])
def test_a_message_is_stored_as_it_was_when_its_send_began(tmp_path: Path, way, is_remote):
    listener = Listener("127.0.0.1", 0)
    config = BrokerConfig(address=listener.address)
    with Broker.open(tmp_path / "s", small=True, config=config) as broker, Server(broker, listener) as server:

        async def send() -> None:
            async with AsyncProducer(server.address if is_remote else broker) as producer:
                await sent(producer, way)

        asyncio.run(send())
        for message in broker.store.get("T", 0, 0, 10):
            assert bytes(message.body) == b"f" * SIZE
            assert message.keys == ["first"]
            assert message.properties["word"] == "first"
        assert broker.store.max_offset("T", 0) == 1 + (way == "batch")

"""A consumer in an application's loop shares it with others, and survives tasks and loops that end early."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer
from seglog.producer.producer import AsyncProducer, Producer
from seglog.storage.format.record.message import Message
from tests.support.consumers import until_idle, until_idle_in_loop
from tests.support.listening import BrokerServer
from tests.support.machine.patience import in_time, wait_until, wait_until_in_loop
from tests.support.machine.said import said

BOTH = pytest.mark.parametrize("kind", [AsyncOrderlyConsumer, AsyncPushConsumer])


@pytest.fixture
def broker(tmp_path: Path):
    with Broker.open(tmp_path / "s") as opened:
        yield opened


@pytest.fixture
def server(tmp_path: Path):
    with BrokerServer(tmp_path / "served") as opened:
        yield opened


def send_to(broker: Broker, count: int, **where: Any) -> None:
    with Producer(broker) as producer:
        for number in range(count):
            producer.send("T", b"%d" % number, **where)


@BOTH
def test_two_of_a_group_on_one_loop_share_its_queues(server: BrokerServer, kind: Any):
    seen: list[tuple[int, int]] = []

    async def listener(message: Message) -> None:
        seen.append((message.queue_id, message.queue_offset))

    def shares(consumers: Any) -> list[int]:
        return [sum(queue.topic == "T" for queue in one.queues) for one in consumers]

    async def scene() -> None:
        async with (
            kind(server.address, "g", "T", listener) as one,
            kind(server.address, "g", "T", listener) as other,
        ):
            await one.start()
            await other.start()
            await wait_until_in_loop(lambda: shares((one, other)) == [2, 2])
            async with AsyncProducer(server.address) as producer:
                await asyncio.gather(*(producer.send("T", b"x") for _ in range(100)))
            await wait_until_in_loop(lambda: len(set(seen)) == 104)

    send_to(server.broker, 4)
    asyncio.run(scene())


@BOTH
def test_a_listener_sends_over_the_loop_that_runs_it_and_no_call_has_a_thread(
    server: BrokerServer, kind: Any
):
    def threads() -> set[str]:
        store = ("seglog-commit", "seglog-flush")
        return {each.name for each in threading.enumerate() if not each.name.startswith(store)}

    async def scene() -> None:
        async with make_client(server.address, in_loop=True) as client, AsyncProducer(client) as producer:

            async def listener(message: Message) -> None:
                await producer.send("U", message.body, queue_id=0)

            async with kind(client, "g", "T", listener) as consumer:
                await until_idle_in_loop(consumer)
                before = threads()
                await asyncio.gather(*(producer.send("T", b"%d" % number) for number in range(200)))
                await wait_until_in_loop(lambda: consumer.counts.delivered == 210)
                assert threads() <= before

    send_to(server.broker, 10)
    asyncio.run(scene())
    assert server.server.accepted_count == 1
    assert [queue.max_offset for queue in server.broker.store.queues() if queue.topic == "U"] == [210]


@BOTH
def test_a_task_that_is_cancelled_while_it_waits_leaves_the_consumer_at_work(broker: Broker, kind: Any):
    entered = asyncio.Event()
    leave = asyncio.Event()

    async def listener(_message: Message) -> None:
        entered.set()
        await leave.wait()

    async def scene() -> None:
        async with kind(broker, "g", "T", listener) as consumer:
            waiting = asyncio.create_task(consumer.run_until_idle())
            await in_time(entered.wait())
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
            with pytest.raises(TimeoutError):
                await consumer.run_until_idle(0.02)
            leave.set()
            await until_idle_in_loop(consumer)
            assert consumer.counts.delivered == 1

    send_to(broker, 1)
    asyncio.run(scene())


@BOTH
def test_a_close_that_is_cancelled_or_late_ends_the_listener_and_leaves_the_group(broker: Broker, kind: Any):
    async def scene(is_cancelled: bool) -> None:
        entered, ended = asyncio.Event(), asyncio.Event()

        async def listener(_message: Message) -> None:
            entered.set()
            try:
                await asyncio.sleep(3_600)
            finally:
                ended.set()

        consumer = kind(broker, "g", "T", listener)
        await consumer.start()
        await in_time(entered.wait())
        if is_cancelled:
            closing = asyncio.create_task(consumer.close())
            await asyncio.sleep(0.02)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        else:
            with pytest.raises(TimeoutError, match="g: T, queue 0 of broker-a, offsets 0 to 0"):
                await consumer.close(0.02)
        await in_time(ended.wait(), idle_s=10)
        await wait_until_in_loop(lambda: broker.clients.consumers("g") is None)

    send_to(broker, 1, queue_id=0)
    for is_cancelled in (True, False):
        asyncio.run(scene(is_cancelled))
    seen: list[int] = []
    with OrderlyConsumer(broker, "g", "T", lambda message: seen.append(message.queue_offset)) as heir:
        while not seen:
            until_idle(heir)
    assert seen == [0]


@BOTH
def test_a_loop_that_is_closed_first_leaves_a_consumer_that_can_be_closed(
    broker: Broker, kind: Any, caplog: pytest.LogCaptureFixture
):
    async def scene(group: str) -> Any:
        async def listener(_message: Message) -> None:
            await asyncio.sleep(3_600)

        consumer = kind(broker, group, "T", listener)
        await consumer.start()
        await wait_until_in_loop(lambda: consumer.queues)
        return consumer

    send_to(broker, 1)
    consumer = asyncio.run(scene("g"))
    asyncio.run(in_time(consumer.close(), idle_s=5))
    assert broker.clients.consumers("g") is None
    left = asyncio.run(scene("h"))
    caplog.clear()
    send_to(broker, 1)
    del left
    gc.collect()
    assert said(caplog) == []


@BOTH
def test_a_client_of_another_loop_serves_a_consumer_here(broker: Broker, kind: Any):
    names: set[str] = set()

    async def listener(_message: Message) -> None:
        await asyncio.sleep(0)
        names.add(threading.current_thread().name)

    async def scene(client: Any) -> None:
        async with kind(client, "g", "T", listener) as consumer:
            assert await until_idle_in_loop(consumer) == 10

    send_to(broker, 10)
    with make_client(broker) as client:
        asyncio.run(scene(client))
    assert names == {threading.current_thread().name}


@BOTH
def test_a_close_after_that_of_its_loop_ends_the_connections_at_once(server: BrokerServer, kind: Any):
    async def scene() -> list[Any]:
        consumer = kind(server.address, "g", "T", lambda _message: None)
        await until_idle_in_loop(consumer)
        producer = AsyncProducer(server.address, "shop")
        await producer.send("T", b"x")
        return [consumer, producer]

    send_to(server.broker, 1)
    loop = asyncio.new_event_loop()
    gc.disable()  # which would close them as well, some time
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of asyncio: the loop was closed first
        try:
            left = loop.run_until_complete(scene())
            loop.close()
            assert server.broker.clients.consumers("g") is not None
            for one in left:
                asyncio.run(one.close())
            wait_until(lambda: server.broker.clients.is_empty, "the end of the connections", idle_s=10)
            del left, one
        finally:
            gc.enable()
            gc.collect()

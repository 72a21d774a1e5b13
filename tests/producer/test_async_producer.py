"""An awaited producer keeps no loop from its other tasks, ends with its task, and makes no thread."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import AsyncProducer, Producer
from seglog.storage.writes import Durability
from tests.support.brokers import open_broker
from tests.support.listening import BrokerServer, Server
from tests.support.machine.held_files import HeldFiles
from tests.support.machine.patience import in_time, patience_s


async def send_many(target: object, count: int = 300) -> list[int]:
    async with AsyncProducer(target, "shop") as producer:  # type: ignore[arg-type]
        await producer.send("T", b"first", queue_id=0)
        limit_ms = round(patience_s(60) * 1000)  # one that is sent again would be stored twice
        tasks = [
            producer.send("T", b"%d" % number, queue_id=0, timeout_ms=limit_ms) for number in range(count)
        ]
        return [sent.queue_offset for sent in await asyncio.gather(*tasks)]


def bodies(broker: Broker, count: int) -> list[bytes]:
    messages = broker.store.get("T", 0, 1, count).messages
    return [bytes(message.body) for message in messages]


def test_sends_that_are_begun_together_keep_their_order_in_process(tmp_path: Path):
    with Broker.open(tmp_path / "s") as broker:
        assert asyncio.run(send_many(broker)) == list(range(1, 301))
        assert bodies(broker, 300) == [b"%d" % number for number in range(300)]


def test_sends_that_are_begun_together_keep_their_order_over_a_socket_and_make_no_thread(tmp_path: Path):
    with BrokerServer(tmp_path / "s") as server:
        before: set[threading.Thread] = set()

        async def scene() -> set[threading.Thread]:
            async with AsyncProducer(server.address, "shop") as producer:
                await producer.send("T", b"first", queue_id=0)
                await asyncio.gather(*(producer.send("T", b"x", queue_id=1) for _ in range(100)))
                before.update(threading.enumerate())
                tasks = [producer.send("T", b"%d" % number, queue_id=0) for number in range(300)]
                await asyncio.gather(*tasks)
                return set(threading.enumerate())

        assert asyncio.run(scene()) <= before
        assert bodies(server.broker, 300) == [b"%d" % number for number in range(300)]


def test_more_sends_than_a_connection_takes_wait_for_their_turn(tmp_path: Path):
    with BrokerServer(tmp_path / "s") as server:
        assert asyncio.run(send_many(server.address, 3_000)) == list(range(1, 3_001))
        assert server.server.accepted_count == 1


def test_a_loop_has_turns_while_sends_wait_for_the_disk(tmp_path: Path):
    disk = HeldFiles(tmp_path / "s")

    async def scene(broker: Broker) -> None:
        async with AsyncProducer(broker) as producer:
            await producer.send("T", b"first")
            for _ in range(20):
                with disk.held():
                    sending = asyncio.create_task(producer.send("T", b"x"))
                    # The disk continues once this task has had its turns: a loop that waits stays here.
                    for _turn in range(10):
                        await asyncio.sleep(0.001)
                        assert not sending.done()
                sent = await in_time(sending, "the send")
                assert sent.durability is Durability.SYNC

    with Broker.open(tmp_path / "s", durability=Durability.SYNC, files=disk) as broker:
        asyncio.run(scene(broker))


def test_it_sends_on_virtual_time_without_time_passing(tmp_path: Path):
    clock = VirtualClock()
    with open_broker(tmp_path / "s", clock) as broker:
        before_ms = clock.now_ms()
        assert asyncio.run(send_many(broker, 20)) == list(range(1, 21))
        assert clock.now_ms() == before_ms


def test_without_a_loop_that_it_could_live_in_it_is_not_made(tmp_path: Path):
    with Broker.open(tmp_path / "s") as broker:
        for target in (broker, "127.0.0.1:1"):
            with pytest.raises(InvalidArgumentError, match="no event loop"):
                AsyncProducer(target)


def test_a_plain_producer_in_a_loop_names_the_other_face():
    async def scene() -> None:
        producer = Producer("127.0.0.1:1")
        with pytest.raises(InvalidArgumentError) as refused:
            producer.send("T", b"x")
        assert "AsyncProducer" in refused.value.help
        await asyncio.to_thread(producer.close)

    asyncio.run(scene())


def test_a_send_that_is_cancelled_ends_at_once():
    def silent(one, _number) -> None:
        while one.recv(4096):
            pass

    async def scene(address: str) -> None:
        long_ms = round(patience_s(600) * 1_000)
        async with AsyncProducer(address) as producer:
            sending = asyncio.create_task(producer.send("T", b"x", timeout_ms=long_ms))
            await asyncio.sleep(0.05)
            sending.cancel()
            await in_time(asyncio.wait([sending]), idle_s=5)
            assert sending.cancelled()

    with Server(silent) as server:
        asyncio.run(scene(server.address))


def test_producers_share_a_client_of_their_loop(tmp_path: Path):
    async def scene(address: str) -> None:
        async with make_client(address, in_loop=True) as client:
            producers = [AsyncProducer(client, group) for group in ("a", "b")]
            await asyncio.gather(*(producer.send("T", b"x") for producer in producers))
            await producers[0].close()
            assert (await producers[1].send("T", b"x")).queue_offset >= 0
            assert client.client_id in repr(client)
        assert "closed" in repr(client)

    with BrokerServer(tmp_path / "s") as server:
        asyncio.run(scene(server.address))
        assert server.server.accepted_count == 1
        assert sum(queue.max_offset for queue in server.broker.store.queues()) == 3


def test_a_loop_that_is_closed_first_leaves_a_producer_that_can_be_closed(tmp_path: Path):
    async def scene(broker: Broker) -> AsyncProducer:
        producer = AsyncProducer(broker, "shop")
        await producer.send("T", b"x")
        return producer

    with Broker.open(tmp_path / "s") as broker:
        producer = asyncio.run(scene(broker))
        asyncio.run(in_time(producer.close(), idle_s=5))
        producer = asyncio.run(scene(broker))
        del producer  # one that is never closed leaves no word either

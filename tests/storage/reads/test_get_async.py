"""``await store.get_async(...)`` reads as get does, and waits for the first message that its filter wants."""

from __future__ import annotations

import asyncio
import threading

import pytest

from seglog.errors import ClosedError
from seglog.storage.format.get_status import GetStatus
from seglog.storage.store import MessageStore
from tests.support.machine.patience import patience_s
from tests.support.material.stores import SMALL

PATIENCE_MS = patience_s(20) * 1000


@pytest.fixture
def store(tmp_path):
    with MessageStore.open(tmp_path / "s", **SMALL) as opened:
        yield opened


def test_messages_that_are_there_come_at_once(store):
    store.put_batch("T", [b"a", b"b", b"c"])
    found = asyncio.run(store.get_async("T", 0, 1, max_count=1, timeout_ms=0))
    assert [message.body for message in found] == [b"b"]
    assert found == store.get("T", 0, 1, max_count=1)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_get_waits_for_a_put_of_another_task(store, is_there):
    if is_there:
        store.put("T", b"before")

    async def both():
        reader = asyncio.create_task(store.get_async("T", 0, int(is_there), timeout_ms=PATIENCE_MS))
        await asyncio.sleep(0)
        assert not reader.done()
        await store.put_async("T", b"late")
        return await reader

    assert [message.body for message in asyncio.run(both())] == [b"late"]


def test_messages_that_a_filter_rules_out_are_not_waited_for(store):
    store.put("T", b"no", tags="B")

    async def both():
        reader = asyncio.create_task(store.get_async("T", 0, 0, filter="A", timeout_ms=PATIENCE_MS))
        for tag in "BBA":
            await asyncio.sleep(0.01)
            await store.put_async("T", tag.encode(), tags=tag)
        return await reader

    found = asyncio.run(both())
    assert [message.body for message in found] == [b"A"]
    assert found.next_offset == 4


def test_after_its_time_a_get_ends_without_messages_and_says_where_to_go_on(store):
    store.put("T", b"no", tags="B")
    found = asyncio.run(store.get_async("T", 0, 0, filter="A", timeout_ms=10))
    assert (found.status, found.next_offset, list(found)) == (GetStatus.OFFSET_OVERFLOW_ONE, 1, [])


def test_many_gets_wait_without_threads(store):
    async def waiting():
        readers = [
            asyncio.create_task(store.get_async("T", queue, 0, timeout_ms=PATIENCE_MS)) for queue in range(20)
        ]
        before = threading.active_count()
        await asyncio.sleep(0.05)
        assert threading.active_count() == before
        for queue in range(20):
            store.put("T", b"%d" % queue, queue_id=queue)
        return [message.body for found in await asyncio.gather(*readers) for message in found]

    assert asyncio.run(waiting()) == [b"%d" % queue for queue in range(20)]


def test_a_reader_sees_what_the_writer_beside_it_puts(store):
    with MessageStore.open(store.path, read_only=True) as reader:

        async def both():
            task = asyncio.create_task(reader.get_async("T", 0, 0, timeout_ms=PATIENCE_MS))
            await asyncio.sleep(0.01)
            store.put("T", b"late")
            return await task

        assert [message.body for message in asyncio.run(both())] == [b"late"]


def test_the_end_of_the_store_ends_the_wait(store):
    async def closed_meanwhile():
        reader = asyncio.create_task(store.get_async("T", 0, 0, timeout_ms=PATIENCE_MS))
        await asyncio.sleep(0)
        store.close()
        await reader

    with pytest.raises(ClosedError):
        asyncio.run(closed_meanwhile())

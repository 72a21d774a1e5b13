"""A task follows a queue: it gets what is there, then what comes, and lets other tasks run meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from seglog.errors import ClosedError, InvalidArgumentError
from seglog.storage.format.record.message import Message
from seglog.storage.store import MessageStore
from tests.support.machine.patience import in_time
from tests.support.material.stores import SMALL, OpenStore

LONG_MS = 60_000


async def taken(messages: AsyncIterator[Message], count: int) -> list[bytes]:
    """Returns the bodies of the next messages."""
    return [(await anext(messages)).body for _ in range(count)]


async def all_of(messages: AsyncIterator[Message]) -> list[bytes]:
    return [message.body async for message in messages]


def test_all_that_is_there_comes_in_order_and_then_it_ends(open_store: OpenStore):
    store = open_store()
    bodies = [b"%d" % number for number in range(100)]
    for body in bodies:
        store.put("T", body)
    assert asyncio.run(all_of(store.follow("T", 0, 0, timeout_ms=0))) == bodies
    assert asyncio.run(all_of(store.follow("T", 0, 97, timeout_ms=0))) == bodies[97:]
    assert asyncio.run(all_of(store.follow("T", 0, -5, timeout_ms=0))) == bodies
    assert asyncio.run(all_of(store.follow("T", 0, 100, timeout_ms=0))) == []


@pytest.mark.parametrize("begin", [0, 2])
def test_what_is_put_later_comes_too_also_into_a_queue_that_had_nothing(open_store: OpenStore, begin):
    async def main() -> list[bytes]:
        following = asyncio.ensure_future(taken(store.follow("T", 0, begin, timeout_ms=LONG_MS), 4))
        for number in range(begin + 4):
            await asyncio.sleep(0.01)
            assert not following.done()
            await store.put_async("T", b"%d" % number)
        return await in_time(following, idle_s=20)

    store = open_store()
    assert asyncio.run(main()) == [b"%d" % number for number in range(begin, begin + 4)]


def test_a_filter_leaves_messages_out_and_it_goes_on_behind_them(open_store: OpenStore):
    store = open_store()
    for number in range(70):
        store.put("T", b"%d" % number, tags="A" if number % 33 == 0 else "B")
    assert asyncio.run(all_of(store.follow("T", 0, 0, "A", timeout_ms=0))) == [b"0", b"33", b"66"]


def test_other_tasks_run_while_there_is_much_to_read(open_store: OpenStore):
    async def main() -> tuple[int, int]:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(others())
        found = len(await all_of(store.follow("T", 0, 0, timeout_ms=0)))
        beside.cancel()
        return found, turns

    store = open_store()
    for _ in range(20):
        store.put_batch("T", [b"x"] * 25)
    found, turns = asyncio.run(main())
    assert found == 500
    assert turns > 5


def test_what_another_process_puts_comes_to_a_store_that_only_reads(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, **SMALL) as writer, MessageStore.open(root, read_only=True) as reader:

        async def main() -> list[bytes]:
            following = asyncio.ensure_future(taken(reader.follow("T", 0, 0, timeout_ms=LONG_MS), 2))
            for body in (b"1", b"2"):
                await writer.put_async("T", body)
            return await in_time(following, idle_s=20)

        assert asyncio.run(main()) == [b"1", b"2"]


def test_a_store_that_is_closed_ends_it_with_an_error(open_store: OpenStore):
    async def main() -> None:
        following = store.follow("T", 0, 0, timeout_ms=LONG_MS)
        assert await taken(following, 1) == [b"x"]
        waiting = asyncio.ensure_future(taken(following, 1))
        await asyncio.sleep(0.01)
        store.close()
        with pytest.raises(ClosedError):
            await in_time(waiting, idle_s=20)

    store = open_store()
    store.put("T", b"x")
    asyncio.run(main())


@pytest.mark.parametrize("wrong", [("T", "0", 0), (7, 0, 0), ("T", 0, "0"), ("T", 0, 0, 7)], ids=str)
def test_wrong_arguments_are_refused_at_the_first_message(open_store: OpenStore, wrong):
    store = open_store()
    with pytest.raises(InvalidArgumentError):
        asyncio.run(all_of(store.follow(*wrong, timeout_ms=0)))
    with pytest.raises(InvalidArgumentError):
        asyncio.run(all_of(store.follow("T", 0, 0, timeout_ms="1")))  # type: ignore[arg-type]

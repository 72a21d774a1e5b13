"""What a caller changes after a call began does not reach the log; subclasses of ``str`` are plain texts."""

from __future__ import annotations

import asyncio
import enum
from typing import Any

import numpy as np
import pytest

from seglog.errors import InvalidArgumentError, InvalidNameError, SeglogError
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage, RawMessage
from tests.support.material.stores import OpenStore


class Topic(str, enum.Enum):  # noqa: UP042 - it is what callers have
    """The name of a member differs from its text, as ``str()`` shows."""

    ORDERS = "orders"


@pytest.mark.parametrize("topic", [Topic.ORDERS, np.str_("orders")], ids=["enum", "numpy"])
@pytest.mark.parametrize("way", ["put", "put_batch", "append"])
def test_a_topic_of_a_subclass_is_its_plain_text_also_after_a_refusal(open_store: OpenStore, topic, way):
    store = open_store()
    calls: dict[str, Any] = {
        "put": lambda: store.put(topic, b"1"),
        "put_batch": lambda: store.put_batch(topic, [b"1"]),
        "append": lambda: store.append(topic, 0, b"1", b"", 0),
    }
    with pytest.raises(InvalidNameError):
        store.put("orders/new", b"x")
    for _ in range(2):
        calls[way]()
    store.put("orders", b"1")
    assert [type(name) for name in store.topics()] == [str]
    assert store.topics() == ["orders"]
    assert store.max_offset(topic, 0) == 3
    assert [message.topic for message in store.get(topic, 0, 0)] == ["orders"] * 3


async def changed_since(store: MessageStore, way: str, durability: Durability, size: int) -> bytes:
    """Changes the buffer of a put after the task had its first turn; returns the body that was stored."""
    body: Any = bytearray(b"f" * size)
    calls: dict[str, Any] = {
        "put": lambda: store.put_async("T", body, durability=durability),
        "append": lambda: store.append_async("T", 0, body, b"", 0, durability=durability),
        "put_batch": lambda: store.put_batch_async("T", [NewMessage(body)] * 2, durability=durability),
        "append_batch": lambda: store.append_batch_async(
            "T", 0, [RawMessage(body, b"", 0)], durability=durability
        ),
    }
    task = asyncio.ensure_future(calls[way]())
    await asyncio.sleep(0)
    body[:] = b"S" * size
    await task
    return bytes(next(iter(store.get("T", 0, 0))).body)


@pytest.mark.parametrize("way", ["put", "append", "put_batch", "append_batch"])
@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("size", [5, 100_000])
def test_a_buffer_that_is_filled_again_after_the_first_turn_is_stored_as_it_was(
    tmp_path, way, durability, size
):
    with MessageStore.open(tmp_path / "s", small=True) as store:
        assert asyncio.run(changed_since(store, way, durability, size)) == b"f" * size


@pytest.mark.parametrize("durability", Durability)
def test_keys_of_an_iterator_and_a_mapping_are_taken_when_the_put_begins(tmp_path, durability):
    async def run(store):
        properties = {"a": "b"}
        keys = iter(["k1", "k2"])
        task = asyncio.ensure_future(
            store.put_async("T", b"x", keys=keys, properties=properties, durability=durability)
        )
        await asyncio.sleep(0)
        properties["a"] = "changed"
        await task

    with MessageStore.open(tmp_path / "s", small=True) as store:
        asyncio.run(run(store))
        (message,) = store.get("T", 0, 0)
        assert message.keys == ["k1", "k2"]
        assert message.properties["a"] == "b"


@pytest.mark.parametrize(
    "body",
    [np.str_("hello"), np.int64(1), np.float64("nan"), np.uint8(7), np.zeros(3), np.array(["a", "b"])],
    ids=lambda body: f"{type(body).__name__} {getattr(body, 'dtype', '')}",
)
def test_the_memory_of_numbers_and_texts_of_numpy_is_no_body(open_store: OpenStore, body):
    store = open_store()
    with pytest.raises(InvalidArgumentError, match="bytes, bytearray or memoryview"):
        store.put("T", body)
    with pytest.raises(SeglogError):
        store.put_batch("T", [body])
    assert store.max_phy_offset == 0


def test_bytes_of_numpy_are_a_body(open_store: OpenStore):
    store = open_store()
    for body in (np.arange(4, dtype=np.uint8), np.bytes_(b"\0\1\2\3"), memoryview(bytes(range(4)))):
        given: Any = body
        store.put("T", given)
    assert [bytes(message.body) for message in store.get("T", 0, 0)] == [b"\0\1\2\3"] * 3

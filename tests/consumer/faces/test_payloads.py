"""``decode`` of consumers and ``encode`` of producers: what applications send and get in place of bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, assert_type

import pytest

from seglog import (
    AsyncLitePullConsumer,
    AsyncProducer,
    Broker,
    DecodedMessage,
    LitePullConsumer,
    Message,
    NewMessage,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.errors import InvalidArgumentError, PayloadError
from seglog.testing import VirtualBroker


@dataclass(frozen=True)
class Order:
    """What a shop sends."""

    number: int
    fruit: str


def to_bytes(order: Order) -> bytes:
    return json.dumps(asdict(order)).encode()


def digits(number: int) -> bytes:
    return b"%d" % number


def of_bytes(body: bytes) -> Order:
    return Order(**json.loads(body))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        yield opened


@pytest.mark.parametrize("kind", [PushConsumer, OrderlyConsumer])
@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_listener_gets_what_decode_makes_of_what_encode_made(
    broker: VirtualBroker, kind: Any, batch_size: int
):
    producer = Producer(broker.link(), "shop", encode=to_bytes)
    assert_type(producer, Producer[Order])
    producer.send("orders", Order(1, "apple"), queue_id=0)
    producer.send_batch(
        "orders", [Order(2, "pear"), NewMessage(b'{"number": 3, "fruit": "fig"}')], queue_id=0
    )
    seen: list[Order] = []

    def listen(given: DecodedMessage[Order] | tuple[DecodedMessage[Order], ...]) -> None:
        messages = given if isinstance(given, tuple) else (given,)
        assert [json.loads(one.body) for one in messages] == [asdict(one.value) for one in messages]
        seen.extend(one.value for one in messages)

    with kind(broker.link(), "g", "orders", listen, decode=of_bytes, batch_size=batch_size) as consumer:
        consumer.run_until_idle()
    assert seen == [Order(1, "apple"), Order(2, "pear"), Order(3, "fig")]


@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_message_that_decode_refuses_fails_for_its_listener_and_ends_as_a_dead_letter(
    broker: VirtualBroker, caplog: pytest.LogCaptureFixture, batch_size: int
):
    for body in (b'{"number": 1, "fruit": "fig"}', b"no order", b'{"number": 2, "fruit": "fig"}'):
        broker.producer().send("orders", body, queue_id=0)
    seen: list[Any] = []
    consumer = PushConsumer(
        broker.link(),
        "g",
        "orders",
        seen.append,
        decode=of_bytes,
        batch_size=batch_size,
        max_reconsume_times=2,
    )
    with consumer:
        consumer.start()
        broker.advance("5m")
        assert consumer.counts.failed == 3
    (said, *_more) = [
        one.getMessage() for one in caplog.records if "not given to the listener" in one.message
    ]
    assert "offset 1" in said
    assert "orders/0 @1" in said
    assert "decode raised JSONDecodeError" in said
    assert [dead.body for dead in broker.messages("%DLQ%g")] == [b"no order"]
    given = [one for batch in seen for one in batch] if batch_size > 1 else seen
    assert [one.value.number for one in given] == [1, 2], "no listener has had it"


def test_in_order_nothing_passes_a_message_that_decode_refuses(broker: VirtualBroker):
    for body in (b"1", b"no number", b"3"):
        broker.producer().send("T", body, queue_id=0)
    seen: list[int] = []
    with OrderlyConsumer(
        broker.link(), "g", "T", lambda one: seen.append(one.value), decode=int, max_reconsume_times=2
    ) as consumer:
        consumer.start()
        broker.advance("1500ms")
        assert seen == [1]
        broker.advance("10s")
    assert seen == [1, 3]


def test_a_poll_brings_a_message_that_decode_refuses_and_its_value_says_why(broker: VirtualBroker):
    for body in (b"1", b"no number", b"3"):
        broker.producer().send("T", body, queue_id=0)
    with LitePullConsumer(broker.link(), "g", "T", decode=int) as consumer:
        assert_type(consumer, LitePullConsumer[DecodedMessage[int]])
        first, second, third = consumer.poll()
        assert_type(first.value, int)
        assert (first.value, second.body, third.value) == (1, b"no number", 3)
        with pytest.raises(PayloadError, match=r"T/0 @1, message \w+: decode raised ValueError"):
            _ = second.value
        assert isinstance(first, Message)
        with pytest.raises(PayloadError, match="this copy of it was not decoded"):
            _ = replace(first, queue_id=1).value
        broker.producer().send("T", b"4", queue_id=0)
        broker.advance(0)
        assert [message.value for message in consumer] == [4]


def test_without_decode_messages_are_what_they_were(broker: VirtualBroker):
    broker.producer().send("T", b"1", queue_id=0)
    seen: list[Message] = []
    with PushConsumer(broker.link(), "g", "T", seen.append) as consumer:
        assert_type(consumer, PushConsumer[Message])
        consumer.run_until_idle()
    assert [one.__class__ for one in seen] == [Message]


def test_listeners_by_topic_get_values_too(broker: VirtualBroker):
    broker.producer().send("T", b"7", queue_id=0)
    seen: list[int] = []
    with PushConsumer(broker.link(), "g", decode=int) as consumer:

        @consumer.on("T")
        def listen(message: DecodedMessage[int]) -> None:
            seen.append(message.value)

        consumer.run_until_idle()
    assert seen == [7]


def test_the_async_faces_do_the_same(tmp_path: Path):
    async def run(broker: Broker) -> list[int]:
        async with (
            AsyncProducer(broker, encode=digits) as producer,
            AsyncLitePullConsumer(broker, "g", "T", decode=int) as consumer,
        ):
            await producer.send("T", 5, queue_id=0)
            await producer.send_batch("T", [6, 7], queue_id=0)
            seen: list[int] = []
            async for message in consumer:
                seen.append(message.value)
                if len(seen) == 3:
                    break
            return seen

    with Broker.open(tmp_path / "s") as broker:
        assert asyncio.run(run(broker)) == [5, 6, 7]


def test_what_encode_refuses_is_not_sent_and_named(broker: VirtualBroker):
    calls: list[tuple[Callable[[], object], str]] = []
    dumps: Any = json.dumps
    made: Any = Producer(broker.link(), "shop", encode=dumps)
    with made as texts:
        calls.append((lambda: texts.send("T", {"a": 1}), "what encode returned=.*expected bytes"))
        calls.append((lambda: texts.send("T", {1, 2}), r"body=\{1, 2\} is not sent: encode raised TypeError"))
        calls.append((lambda: texts.send_batch("T", [{1}]), r"messages\[0\]: body=\{1\} is not sent"))
        for call, words in calls:
            with pytest.raises(InvalidArgumentError, match=words):
                call()
    assert broker.messages("T") == []


async def no_plain_function(_given: object) -> Any:
    return b""


@pytest.mark.parametrize("strange", ["json", 5, no_plain_function], ids=["text", "number", "async"])
def test_what_is_no_plain_function_is_refused(broker: VirtualBroker, strange: Any):
    with pytest.raises(InvalidArgumentError, match=r"encode=.*a plain function that returns bytes"):
        Producer(broker.link(), encode=strange)
    for kind, arguments in ((PushConsumer, ("T", print)), (LitePullConsumer, ())):
        with pytest.raises(InvalidArgumentError, match=r"decode=.*a plain function that takes bytes"):
            kind(broker.link(), "g", *arguments, decode=strange)

"""Brokers for tests make clients with all the settings that clients have, and with their types."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, assert_type

import pytest

from seglog import (
    ConsumeConcurrentlyContext,
    ConsumeOrderlyContext,
    DecodedMessage,
    LitePullConsumer,
    Message,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.clock import VirtualClock
from seglog.consumer.consumer import Consumer
from seglog.consumer.consumer_parts import ConsumerParts
from seglog.consumer.contexts import Context
from seglog.consumer.lite.lite_parts import LiteParts
from seglog.errors import ConsumerError, InvalidArgumentError
from seglog.producer.producer import ProducerParts
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.system_names import TRACE_TOPIC
from seglog.testing import ForTests, ServedBroker, VirtualBroker
from tests.support.machine.patience import patience_s, wait_until

MADE: dict[str, tuple[Callable[..., object], dict[str, object]]] = {
    "producer": (ProducerParts.__init__, {"group": "test-producer"}),
    "consumer": (ConsumerParts.__init__, {"in_order": True}),
    "polled_consumer": (LiteParts.__init__, {}),
}
"""What each call makes; and the parameters that it has of its own, or with a default of its own."""


def parameters(call: Callable[..., object], without: set[str]) -> dict[str, tuple[object, object, object]]:
    """Returns those that a caller gives, with kind, default and, where none is generic, annotation."""
    return {
        name: (one.kind, one.default, one.annotation if name not in GENERIC else None)
        for name, one in inspect.signature(call).parameters.items()
        if name not in {"self", "target", *without}
    }


GENERIC = {"encode", "decode", "listener"}


@pytest.mark.parametrize("broker", [VirtualBroker, ServedBroker])
@pytest.mark.parametrize("name", MADE)
def test_each_call_has_the_parameters_of_what_it_makes(broker: type[ForTests], name: str):
    init, own = MADE[name]
    made = getattr(broker, name)
    assert parameters(made, {*own}) == parameters(init, {*own})
    shown = inspect.signature(made).parameters
    assert {one: shown[one].default for one in own} == own


@pytest.mark.parametrize("name", MADE)
def test_each_of_its_types_has_them_too(name: str):
    made = getattr(ForTests, name)
    own = {*MADE[name][1], *GENERIC}
    overloads = typing.get_overloads(made)
    assert len(overloads) >= 2
    for one in overloads:
        assert parameters(one, own) == parameters(made, own)
        assert inspect.signature(one).parameters.keys() == inspect.signature(made).parameters.keys()


@dataclass(frozen=True)
class Order:
    """What a shop sends."""

    number: int


def to_bytes(order: Order) -> bytes:
    return json.dumps(asdict(order)).encode()


def of_bytes(body: bytes) -> Order:
    return Order(**json.loads(body))


@pytest.fixture(params=["in process", "over connections"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VirtualBroker | ServedBroker]:
    kind = VirtualBroker if request.param == "in process" else ServedBroker
    with kind.at(tmp_path / "s") as opened:
        yield opened


LIMIT_S = patience_s(60)


def test_what_is_encoded_is_decoded_in_all_kinds_of_consumers(broker: VirtualBroker | ServedBroker):
    producer = broker.producer("shop", encode=to_bytes)
    assert_type(producer, Producer[Order])
    producer.send("orders", Order(7))
    seen: list[Order] = []

    def ship(order: DecodedMessage[Order], context: ConsumeOrderlyContext) -> None:
        assert context.queue.topic == "orders"
        seen.append(order.value)

    async def bill(orders: tuple[DecodedMessage[Order], ...], context: ConsumeConcurrentlyContext) -> None:
        context.ack_index = len(orders) - 1
        seen.extend(order.value for order in orders)

    def book(order: DecodedMessage[Order], context: Context) -> None:
        assert context.queue.topic == "orders"
        seen.append(order.value)

    orderly = broker.consumer("shipping", "orders", ship, decode=of_bytes)
    assert_type(orderly, OrderlyConsumer[DecodedMessage[Order]])
    push = broker.consumer("billing", "orders", bill, in_order=False, decode=of_bytes, batch_size=8)
    assert_type(push, PushConsumer[DecodedMessage[Order]])
    polled = broker.polled_consumer("ledger", "orders", decode=of_bytes)
    assert_type(polled, LitePullConsumer[DecodedMessage[Order]])
    assert (orderly.run_until_idle(LIMIT_S), push.run_until_idle(LIMIT_S)) == (1, 1)
    assert [order.value for order in polled.poll(LIMIT_S)] == seen[:1]
    for in_order in (True, False):
        some = broker.consumer(f"books-{in_order}", "orders", book, in_order=in_order, decode=of_bytes)
        assert_type(some, Consumer[DecodedMessage[Order]])
        assert some.run_until_idle(LIMIT_S) == 1
        assert isinstance(some, OrderlyConsumer if in_order else PushConsumer)
    assert seen == [Order(7)] * 4


def test_values_of_json_are_what_json_says(broker: VirtualBroker | ServedBroker):
    broker.producer().send("orders", b'{"number": 7}')
    seen: list[int] = []
    consumer = broker.consumer("billing", decode=json.loads, in_order=False)
    assert_type(consumer, PushConsumer[DecodedMessage[Any]])

    @consumer.on("orders")
    def bill(order: DecodedMessage[Any], context: ConsumeConcurrentlyContext) -> None:
        seen.append(order.value["number"])
        context.delay_level = 1

    assert consumer.run_until_idle(LIMIT_S) == 1
    assert seen == [7]


def test_without_decode_they_are_plain_messages(broker: VirtualBroker | ServedBroker):
    assert_type(broker.producer(), Producer[bytes | bytearray | memoryview])
    assert_type(broker.consumer("a", "T", print), OrderlyConsumer[Message])
    assert_type(broker.consumer("b", "T", print, in_order=True, threads=3), OrderlyConsumer[Message])
    assert_type(broker.consumer("c", "T", print, in_order=False), PushConsumer[Message])
    assert_type(broker.polled_consumer("d"), LitePullConsumer[Message])


def test_a_listener_with_the_context_of_the_other_kind_is_refused(broker: VirtualBroker | ServedBroker):
    def in_order(message: Message, context: ConsumeOrderlyContext) -> None:
        context.suspend_ms = 50

    def side_by_side(message: Message, context: ConsumeConcurrentlyContext) -> None:
        context.delay_level = 1

    with pytest.raises(InvalidArgumentError, match="ConsumeOrderlyContext"):
        broker.consumer("g", "T", side_by_side)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidArgumentError, match="ConsumeConcurrentlyContext"):
        broker.consumer("g", "T", in_order, in_order=False)  # type: ignore[arg-type]  # likewise
    with pytest.raises(InvalidArgumentError, match="in_order"):
        broker.consumer("g", "T", print, in_order="yes")  # type: ignore[call-overload]  # likewise


def test_a_producer_has_its_settings(broker: VirtualBroker | ServedBroker):
    clock = VirtualClock(1_000_000)
    ids = UniqueIds(clock, process_id=7, life=0)
    producer = broker.producer("shop", clock=clock, ids=ids, new_topic_queue_nums=2, first_turn=1)
    sent = [producer.send("orders", b"x") for _ in range(3)]
    assert [one.queue.queue_id for one in sent] == [1, 0, 1]
    (first, *_more) = broker.messages("orders")
    assert first.born_timestamp_ms == 1_000_000
    assert sent[0].message_id == UniqueIds(clock, process_id=7, life=0).next()


def test_sends_and_calls_of_listeners_are_traced(broker: VirtualBroker | ServedBroker):
    producer = broker.producer("shop", trace=True)
    sent = producer.send("orders", b"x")
    consumer = broker.consumer("billing", "orders", print, trace=True)
    assert consumer.run_until_idle(LIMIT_S) == 1
    consumer.close()
    producer.close()
    if isinstance(broker, VirtualBroker):
        broker.advance("10s")

    def traced() -> str:
        return "\x02".join(message.body.decode() for message in broker.messages(TRACE_TOPIC))

    wait_until(
        lambda: {"Pub", "SubBefore", "SubAfter"} <= set(traced().replace("\x02", "\x01").split("\x01")),
        idle_s=60,
    )
    assert sent.message_id in traced()


def test_clients_end_with_the_broker(broker: VirtualBroker | ServedBroker):
    broker.producer().send("orders", b"x")
    consumer, polled = broker.consumer("g", "orders", print), broker.polled_consumer("p", "orders")
    assert consumer.run_until_idle(LIMIT_S) == 1
    assert [message.body for message in polled.poll(LIMIT_S)] == [b"x"]
    broker.close()
    for call in (consumer.commit, polled.commit):
        with pytest.raises(ConsumerError, match="closed"):
            call()


def test_each_consumer_that_broadcasts_has_a_name_of_its_own(broker: VirtualBroker | ServedBroker):
    broker.producer().send("labels", b"x")
    everything: dict[str, Any] = {"message_model": MessageModel.BROADCASTING}
    listening = [broker.consumer("tills", "labels", print, **everything) for _ in range(2)]
    polling = [broker.polled_consumer("screens", "labels", **everything) for _ in range(2)]
    assert [one.run_until_idle(LIMIT_S) for one in listening] == [1, 1]
    assert [len(one.poll(LIMIT_S)) for one in polling] == [1, 1]
    assert len({one.client_id for one in (*listening, *polling)}) == 4

"""``@consumer.on(topic)``: a listener for each topic, on every consumer that calls listeners."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seglog import (
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    Broker,
    Consume,
    ConsumeConcurrentlyContext,
    ConsumeFrom,
    Message,
    OrderlyConsumer,
    Producer,
    PushConsumer,
    Subscription,
)
from seglog.errors import ConsumerError, InvalidArgumentError, InvalidNameError
from seglog.testing import VirtualBroker
from tests.support.consumers import until_idle
from tests.support.faces import driven
from tests.support.machine.patience import patience_s

ALL = pytest.mark.parametrize(
    "kind", [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        producer = opened.producer()
        producer.send("orders", b"1", tags="paid")
        producer.send("orders", b"2", tags="open")
        producer.send("refunds", b"3")
        yield opened


@ALL
def test_each_topic_has_its_listener_and_its_tags(broker: VirtualBroker, kind: Any):
    seen: dict[str, list[bytes]] = {"orders": [], "refunds": []}
    with driven(kind, broker.link(), "g") as consumer:

        def bill(order: Message) -> None:
            seen["orders"].append(order.body)

        async def pay_back(refund: Message) -> None:
            seen["refunds"].append(refund.body)

        assert consumer.made.on("orders", tags="paid || refunded")(bill) is bill
        assert consumer.made.on("refunds")(pay_back) is pay_back
        consumer.run_until_idle()
        broker.producer().send("orders", b"4", tags="refunded")
        broker.advance("1s")
    assert seen == {"orders": [b"1", b"4"], "refunds": [b"3"]}


def test_a_message_that_failed_comes_again_to_the_listener_of_its_topic(broker: VirtualBroker):
    seen: list[tuple[str, str, int]] = []
    with PushConsumer(broker.link(), "g") as consumer:

        @consumer.on("orders")
        def bill(order: Message) -> Consume:
            seen.append(("bill", order.topic, order.reconsume_times))
            return Consume.RECONSUME_LATER if not order.reconsume_times else Consume.SUCCESS

        @consumer.on("refunds")
        def pay_back(refund: Message, context: ConsumeConcurrentlyContext) -> Consume | None:
            seen.append(("pay_back", refund.topic, refund.reconsume_times))
            context.delay_level = 1
            return None if refund.reconsume_times else Consume.RECONSUME_LATER

        consumer.start()
        broker.advance("1m")
    assert sorted(seen) == sorted(
        [("bill", "orders", times) for times in (0, 1)] * 2
        + [("pay_back", "refunds", times) for times in (0, 1)]
    )


def test_batches_that_are_tried_again_are_of_one_topic(broker: VirtualBroker):
    again: list[tuple[str, set[str]]] = []
    with PushConsumer(broker.link(), "g", batch_size=32) as consumer:

        @consumer.on("orders")
        def bill(orders: tuple[Message, ...]) -> Consume | None:
            return note("bill", orders)

        @consumer.on("refunds")
        def pay_back(refunds: tuple[Message, ...]) -> Consume | None:
            return note("pay_back", refunds)

        def note(name: str, messages: tuple[Message, ...]) -> Consume | None:
            if not messages[0].reconsume_times:
                return Consume.RECONSUME_LATER
            again.append((name, {message.topic for message in messages}))
            return None

        consumer.start()
        broker.advance("1m")
        assert consumer.counts.delivered == 3
    assert dict(again) == {"bill": {"orders"}, "pay_back": {"refunds"}}


def test_a_message_of_a_topic_without_a_listener_fails_and_says_which_there_are(
    broker: VirtualBroker, caplog: pytest.LogCaptureFixture
):
    with PushConsumer(broker.link(), "g", "refunds", lambda _refund: Consume.RECONSUME_LATER) as before:
        before.start()
        broker.advance("1s")
    with PushConsumer(broker.link(), "g") as consumer:
        consumer.on("orders")(lambda _order: None)
        consumer.start()
        broker.advance("20s")
    assert "no listener is registered for topic refunds: there are those of orders" in caplog.text


@pytest.mark.parametrize("is_awaited", [False, True])
def test_on_real_time_a_plain_listener_beside_an_async_one_holds_no_loop(tmp_path: Path, is_awaited: bool):
    met = threading.Barrier(2)
    threads: dict[str, str] = {}

    def meet() -> None:
        threads["plain"] = threading.current_thread().name
        met.wait(patience_s(30))

    async def others() -> None:
        threads["awaited"] = threading.current_thread().name
        await asyncio.to_thread(met.wait, patience_s(30))

    kind = AsyncPushConsumer if is_awaited else PushConsumer
    with Broker.open(tmp_path / "s") as broker, Producer(broker) as producer:
        producer.send("plain", b"x")
        producer.send("awaited", b"x")
        with driven(kind, broker, "g") as consumer:
            made = consumer.made

            def listen(_message: Message) -> None:
                meet()
                with pytest.raises(ConsumerError, match="was called by a listener"):
                    made._member.refuse_from_inside("close()", is_bounded=False)

            async def wait(_message: Message) -> None:
                await others()

            made.on("plain")(listen)
            made.on("awaited")(wait)
            assert until_idle(consumer) == 2
    assert threads["plain"] != threads["awaited"]


def test_what_cannot_be_registered_is_refused_with_the_way_out(broker: VirtualBroker):
    with PushConsumer(broker.link(), "given", "orders", print) as given:
        with pytest.raises(ConsumerError, match="was made with a listener") as error:
            given.on("refunds")
        assert "without subscription and listener" in error.value.help
        given.run_until_idle()
    with PushConsumer(broker.link(), "g") as consumer:
        for call in (consumer.start, consumer.run_until_idle):
            with pytest.raises(ConsumerError, match="has no listener") as error:
                call()
            assert '@consumer.on("orders")' in error.value.help
        on: Any = consumer.on
        wrong: list[tuple[Any, type[Exception], str]] = [
            (
                lambda: on(print),
                InvalidArgumentError,
                r"expected the name of a topic: @consumer\.on",
            ),
            (lambda: consumer.on("a b"), InvalidNameError, "topic name"),
            (lambda: on("orders", ["paid"]), InvalidArgumentError, r"tags=.*paid \|\| refunded"),
            (lambda: consumer.on("orders", "||"), InvalidArgumentError, "names no tag"),
            (lambda: on("orders")(5), InvalidArgumentError, "a function that takes a message"),
            (lambda: on("orders")(lambda: None), InvalidArgumentError, "a message and a context"),
        ]
        for call, kind, words in wrong:
            with pytest.raises(kind, match=words):
                call()
        consumer.on("orders")(lambda _order: None)
        with pytest.raises(ConsumerError, match="has a listener for topic orders already"):
            consumer.on("orders")
        late = consumer.on("refunds")
        consumer.start()
        with pytest.raises(ConsumerError, match="was started, and takes no listener for topic refunds"):
            late(lambda _refund: None)
    with pytest.raises(ConsumerError, match="closed"):
        consumer.on("refunds")
    for arguments in (("orders",), (None, print)):
        with pytest.raises(InvalidArgumentError, match=r"(listener|subscription)=None") as refused:
            PushConsumer(broker.link(), "h", *arguments)
        assert "@consumer.on" in refused.value.help


def test_a_subscription_in_sql_and_a_suspension_before_the_first_listener_count(tmp_path: Path):
    from seglog.broker.settings import BrokerConfig

    seen: list[bytes] = []
    with VirtualBroker.at(tmp_path / "s", config=BrokerConfig(enable_property_filter=True)) as broker:
        for price in ("3", "7"):
            broker.producer().send("stock", price.encode(), properties={"price": price})
        with PushConsumer(broker.link(), "g") as consumer:
            consumer.suspend()
            consumer.on("stock", Subscription.by_sql("price > 5"))(lambda one: seen.append(one.body))
            consumer.start()
            broker.advance("10s")
            assert seen == []
            consumer.resume()
            broker.advance("10s")
    assert seen == [b"7"]


@pytest.mark.parametrize("is_begun", [False, True])
def test_no_topic_is_subscribed_to_that_has_no_listener(broker: VirtualBroker, is_begun: bool):
    seen: list[bytes] = []
    with PushConsumer(broker.link(), "g", consume_from=ConsumeFrom.FIRST) as consumer:
        consumer.on("orders", tags="paid")(lambda order: seen.append(order.body))
        if is_begun:
            consumer.start()
        with pytest.raises(ConsumerError, match="no listener for topic refunds: there are those of orders"):
            consumer.subscribe("refunds")
        consumer.subscribe("orders", "open")
        consumer.run_until_idle()
        assert {queue.topic for queue in consumer.queues} == {"orders", "%RETRY%g"}
    assert seen == [b"2"]

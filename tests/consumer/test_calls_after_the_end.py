"""What calls of a consumer say after the end of it or of its client, and those that wait meanwhile."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ClientClosedError, ConsumerError, SeglogError
from seglog.producer.producer import Producer
from seglog.storage.format.record.message import Message
from tests.support.consumers import until_idle
from tests.support.faces import driven
from tests.support.machine.patience import (
    in_time,
    join_thread,
    wait_for_event,
    wait_until,
    wait_until_in_loop,
)

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
BOTH_AWAITED = pytest.mark.parametrize("kind", [AsyncOrderlyConsumer, AsyncPushConsumer])
ALL = pytest.mark.parametrize(
    "kind", [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
)
ENDS = pytest.mark.parametrize(
    ("ends", "error"), [("consumer", ConsumerError), ("client", ClientClosedError)]
)


@pytest.fixture
def broker(tmp_path: Path):
    with Broker.open(tmp_path / "s") as opened:
        with Producer(opened) as producer:
            for number in range(5):
                producer.send("T", b"%d" % number, queue_id=0)
        yield opened


class Held:
    """A listener that keeps its first message until it may go on."""

    def __init__(self) -> None:
        self.has_one = threading.Event()
        self.may_go_on = threading.Event()

    def __call__(self, _message: Message) -> None:
        self.has_one.set()
        wait_for_event(self.may_go_on, idle_s=30)


def outcome_of(call: Callable[[], object]) -> object:
    """Returns what a call returns, or what it raises of ours."""
    try:
        return call()
    except SeglogError as error:
        return error


@BOTH
@ENDS
def test_a_wait_until_idle_whose_consumer_is_closed_meanwhile_is_an_error_and_no_count(
    broker: Broker,
    kind: Callable[..., Any],
    ends: str,
    error: type[SeglogError],
    caplog: pytest.LogCaptureFixture,
):
    held, outcomes = Held(), []
    with make_client(broker) as client:
        consumer = kind(client, "g", "T", held, threads=1)
        waiting = threading.Thread(target=lambda: outcomes.append(outcome_of(consumer.run_until_idle)))
        waiting.start()
        wait_for_event(held.has_one, idle_s=30)
        closing = threading.Thread(target=(consumer if ends == "consumer" else client).close)
        closing.start()
        join_thread(waiting, idle_s=30)
        held.may_go_on.set()
        join_thread(closing, idle_s=30)
    assert [type(one) for one in outcomes] == [error]
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@BOTH_AWAITED
@ENDS
def test_an_awaited_one_too(
    broker: Broker,
    kind: Callable[..., Any],
    ends: str,
    error: type[SeglogError],
):
    async def run() -> None:
        has_one, may_go_on = asyncio.Event(), asyncio.Event()

        async def handle(_message: Message) -> None:
            has_one.set()
            await may_go_on.wait()

        client = make_client(broker, in_loop=True)
        consumer = kind(client, "g", "T", handle, threads=1)
        waiting = asyncio.create_task(consumer.run_until_idle())
        await in_time(has_one.wait())
        closing = asyncio.create_task(consumer.close() if ends == "consumer" else client.aclose())
        with pytest.raises(error):
            await in_time(waiting)
        may_go_on.set()
        await in_time(closing)
        await in_time(client.aclose())

    asyncio.run(run())


@ALL
@ENDS
def test_a_call_after_the_end_is_refused(
    broker: Broker, kind: Callable[..., Any], ends: str, error: type[SeglogError]
):
    client = make_client(broker)
    with driven(kind, client, "g", "T", lambda _message: None) as consumer:
        until_idle(consumer)
        (consumer if ends == "consumer" else client).close()
        for call in (consumer.run_until_idle, consumer.commit):
            with pytest.raises(error, match="closed"):
                call()
    client.close()


def test_what_was_idle_before_the_end_is_counted(broker: Broker):
    client: Client = make_client(broker)
    consumer = PushConsumer(client, "g", "T", lambda _message: None)
    assert until_idle(consumer) == 5
    client.close()


# A second close


@BOTH
def test_the_end_of_with_waits_for_listeners_also_where_another_thread_closes_meanwhile(
    broker: Broker, kind: Callable[..., Any]
):
    held = Held()
    closing: list[threading.Thread] = []

    def use() -> None:
        with kind(broker, "g", "T", held, threads=1) as consumer:
            consumer.start()
            wait_for_event(held.has_one, idle_s=30)
            closing.append(threading.Thread(target=consumer.close))
            closing[0].start()
            wait_until(lambda: "closed" in repr(consumer))

    using = threading.Thread(target=use)
    using.start()
    wait_for_event(held.has_one, idle_s=30)
    time.sleep(0.1)
    assert using.is_alive(), "a listener is at work still"
    held.may_go_on.set()
    for each in (using, *closing):
        join_thread(each, idle_s=30)


@BOTH_AWAITED
def test_the_end_of_async_with_too(broker: Broker, kind: Callable[..., Any]):
    async def run() -> None:
        has_one, may_go_on, ended = asyncio.Event(), asyncio.Event(), []

        async def handle(_message: Message) -> None:
            has_one.set()
            await may_go_on.wait()
            await asyncio.sleep(0.01)
            ended.append(True)

        async with kind(broker, "g", "T", handle, threads=1) as consumer:
            await consumer.start()
            await in_time(has_one.wait())
            closing = asyncio.create_task(consumer.close())
            await wait_until_in_loop(lambda: "closed" in repr(consumer))
            may_go_on.set()
        assert ended
        await in_time(closing)

    asyncio.run(run())


@BOTH
def test_a_second_close_waits_no_longer_than_its_own_time(broker: Broker, kind: Callable[..., Any]):
    held = Held()
    consumer = kind(broker, "g", "T", held, threads=1)
    consumer.start()
    wait_for_event(held.has_one, idle_s=30)
    closing = threading.Thread(target=consumer.close)
    closing.start()
    wait_until(lambda: "closed" in repr(consumer))
    with pytest.raises(TimeoutError, match="listeners are at work still: g: T, queue 0"):
        consumer.close(0.05)
    held.may_go_on.set()
    join_thread(closing, idle_s=30)
    consumer.close()


@BOTH
def test_after_a_close_that_took_too_long_another_one_does_nothing(broker: Broker, kind: Callable[..., Any]):
    held = Held()
    consumer = kind(broker, "g", "T", held, threads=1)
    consumer.start()
    wait_for_event(held.has_one, idle_s=30)
    with pytest.raises(TimeoutError, match="at work still"):
        consumer.close(0.05)
    consumer.close()  # as the end of ``with`` behind it
    held.may_go_on.set()


@BOTH
def test_a_listener_does_not_wait_for_a_close_that_waits_for_it(broker: Broker, kind: Callable[..., Any]):
    has_one, outcomes = threading.Event(), []

    def handle(_message: Message) -> None:
        has_one.set()
        wait_until(lambda: "closed" in repr(consumer))
        outcomes.append(outcome_of(consumer.close))

    consumer = kind(broker, "g", "T", handle, threads=1)
    consumer.start()
    wait_for_event(has_one, idle_s=30)
    consumer.close()
    # It is closed for its callers a moment before its own thread hears of it: others may begin until then.
    assert set(outcomes) == {None}

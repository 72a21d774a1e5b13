"""Calls where they could not end, and waits for what cannot come, are errors that name the way out."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog import (
    AsyncLitePullConsumer,
    Broker,
    LitePullConsumer,
    MessageQueue,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.errors import ClientClosedError, InvalidArgumentError
from tests.support.consumers import until_idle
from tests.support.machine.patience import join_thread, wait_for_event


@pytest.fixture
def broker(tmp_path: Path):
    with Broker.open(tmp_path / "s") as opened, Producer(opened) as producer:
        producer.send("T", b"x", queue_id=0)
        yield opened


@pytest.mark.parametrize("kind", [PushConsumer, OrderlyConsumer])
def test_a_with_block_in_an_event_loop_names_the_class_for_that(broker: Broker, kind: Any):
    async def start_there() -> None:
        with kind(broker, "g", "T", print) as consumer:
            consumer.start()

    with pytest.raises(InvalidArgumentError) as error:
        asyncio.run(start_there())
    assert f"use Async{kind.__name__}" in error.value.help

    with kind(broker, "h", "T", print) as started:
        started.start()

        async def close_there() -> None:
            with started:
                assert started.group == "h"

        with pytest.raises(InvalidArgumentError, match=f"a {kind.__name__} was called in an event loop") as e:
            asyncio.run(close_there())
        assert f"use Async{kind.__name__} there" in e.value.help
        assert "closed" not in repr(started), "it goes on, and a thread can close it"


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.poll(),
        lambda consumer: consumer.commit(),
        lambda consumer: consumer.lag(),
        lambda consumer: consumer.assign([MessageQueue("T", "broker-a", 0)]),
        next,
    ],
    ids=["poll", "commit", "lag", "assign", "next"],
)
def test_a_call_in_an_event_loop_names_the_class_for_that(broker: Broker, call: Callable[[Any], object]):
    with LitePullConsumer(broker, "g") as consumer:

        async def there() -> None:
            call(consumer)

        with pytest.raises(InvalidArgumentError) as error:
            asyncio.run(there())
        assert "use AsyncLitePullConsumer" in error.value.help


def test_a_loop_and_a_poll_end_with_an_error_once_the_broker_in_this_process_is_closed(broker: Broker):
    errors: list[BaseException] = []
    has_come = threading.Event()
    with LitePullConsumer(broker, "g", "T") as consumer:

        def loop() -> None:
            try:
                for _message in consumer:
                    has_come.set()
            except ClientClosedError as error:
                errors.append(error)

        thread = threading.Thread(target=loop)
        thread.start()
        wait_for_event(has_come, idle_s=30)
        time.sleep(0.05)  # it waits for the next one by now; where it does not yet, it ends likewise
        broker.close()
        join_thread(thread, idle_s=30)
        (error,) = errors
        assert "the broker in this process was closed" in str(error)
        for call in (consumer.poll, lambda: next(consumer)):
            with pytest.raises(ClientClosedError, match="the broker in this process was closed"):
                call()


def test_an_async_loop_ends_likewise(broker: Broker):
    async def run() -> None:
        async with AsyncLitePullConsumer(broker, "g", "T") as consumer:
            async for message in consumer:
                assert message.body == b"x"
                await asyncio.to_thread(broker.close)

    with pytest.raises(ClientClosedError, match="the broker in this process was closed"):
        asyncio.run(run())


def test_a_wait_until_idle_ends_likewise(broker: Broker):
    entered, may_go_on = threading.Event(), threading.Event()

    def listener(_message: object) -> None:
        entered.set()
        wait_for_event(may_go_on, idle_s=30)
        raise ValueError("it comes again")

    def close() -> None:
        wait_for_event(entered, idle_s=30)
        broker.close()
        may_go_on.set()

    with PushConsumer(broker, "g", "T", listener) as consumer:
        thread = threading.Thread(target=close)
        thread.start()
        with pytest.raises(ClientClosedError, match="the broker in this process was closed"):
            until_idle(consumer)
        join_thread(thread, idle_s=30)

"""What is dropped open: Python warns, and its connections end; a started consumer with a listener goes on."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.client.home.thread_home import thread_home
from seglog.consumer.listener import ConsumeFrom
from seglog.consumer.lite.lite_pull import LitePullConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import AsyncProducer, Producer
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until


@pytest.fixture
def server(tmp_path: Path):
    with BrokerServer(tmp_path / "s") as opened:
        yield opened


def unstarted(address: str) -> PushConsumer:
    return PushConsumer(address, "billing", "T", print)


def sending(address: str) -> Producer:
    producer = Producer(address, "shop")
    producer.send("T", b"x")
    return producer


def polled(address: str) -> LitePullConsumer:
    """What cannot be polled again must not keep a share of its group's queues."""
    consumer = LitePullConsumer(address, "billing", "T")
    consumer.poll(0)
    return consumer


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (sending, "Producer shop of client"),
        (unstarted, "PushConsumer billing of client"),
        (polled, "LitePullConsumer billing of client"),
    ],
)
def test_what_is_dropped_open_is_named_and_its_client_ends(
    server: BrokerServer, make: Callable[[str], Any], name: str
):
    made = [make(server.address)]
    link = made[0]._client.link
    with pytest.warns(ResourceWarning, match=f"^<{name} .* was dropped open"):
        made.clear()
    wait_until(lambda: link.closed.is_done)
    wait_until(lambda: server.broker.clients.is_empty)


def test_it_ends_also_where_warnings_are_errors_and_a_lock_of_its_home_is_taken(
    server: BrokerServer, monkeypatch: pytest.MonkeyPatch
):
    made, unraisable = [sending(server.address)], []
    link = made[0]._client.link
    monkeypatch.setattr(sys, "unraisablehook", lambda told: unraisable.append(str(told.exc_value)))
    inbox: Any = thread_home()._inbox
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with inbox._lock:  # as a collection of garbage finds it, somewhere
            made.clear()
    assert [told for told in unraisable if f"of client {link.client_id}> was dropped open" in told]
    wait_until(lambda: link.closed.is_done)


def test_an_awaited_one_too(server: BrokerServer):
    async def run() -> None:
        made = [AsyncProducer(server.address, "shop")]
        await made[0].send("T", b"x")
        link = made[0]._client.link
        with pytest.warns(ResourceWarning, match="^<AsyncProducer shop of client"):
            made.clear()
        await link.closed
        assert link.is_over

    asyncio.run(run())


def test_nothing_is_said_of_what_was_closed_or_holds_nothing_open(server: BrokerServer, tmp_path: Path):
    with Broker.open(tmp_path / "other") as broker, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made: list[Any] = [sending(server.address), unstarted(server.address)]
        for one in made:
            one.close()
        made += [Producer(broker), PushConsumer(broker, "g", "T", print)]
        ids = [each.client_id if isinstance(each, PushConsumer) else each._client.client_id for each in made]
        del one
        made.clear()
    assert not [each for each in told if any(one in str(each.message) for one in ids)]


def test_a_consumer_that_was_started_goes_on(server: BrokerServer):
    seen: list[bytes] = []
    made = [
        PushConsumer(
            server.address,
            "g",
            "T",
            lambda message: seen.append(bytes(message.body)),
            consume_from=ConsumeFrom.FIRST,
        )
    ]
    made[0].start()
    client = made[0]._client
    made.clear()
    with Producer(server.address) as producer:
        producer.send("T", b"x")
    wait_until(lambda: seen == [b"x"])
    client.close()


def test_a_consumer_that_is_polled_and_dropped_gives_its_queues_back_in_process_too(tmp_path: Path):
    with Broker.open(tmp_path / "s") as broker:
        made = [LitePullConsumer(broker, "g", "T")]
        made[0].poll(0)
        with pytest.warns(ResourceWarning, match="^<LitePullConsumer g of client .* was dropped open"):
            made.clear()
        wait_until(lambda: broker.clients.is_empty)

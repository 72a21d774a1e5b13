"""What ``run_until_idle()`` consumes: all that was acknowledged before the call, of all that is its share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.client.links.link import Link
from seglog.client.links.local_link import LocalLink
from seglog.consumer.lease import BROKER_LIVE_MS
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ClientClosedError
from seglog.producer.producer import Producer
from seglog.remoting.bodies import LockBatchBody
from seglog.remoting.codes import PullFlag, RequestCode
from seglog.remoting.command import Request, Response
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.consumers import NewConsumer, Send, until_idle, wait_until_named
from tests.support.faces import driven
from tests.support.links import LinkOver
from tests.support.listening import BrokerServer
from tests.support.machine.patience import join_thread, wait_for_event
from tests.support.recording import recording

ALL = pytest.mark.parametrize(
    "kind", [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
)
BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


@pytest.fixture
def real_broker(tmp_path: Path):
    with Broker.open(tmp_path / "real") as opened:
        yield opened


def listener(_message: Message) -> None:
    """Is done with anything."""


class SilentLink(LinkOver):
    """A link on which the answers to pulls that are held do not come through."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._kept: list[Deferred[Response]] = []

    @override
    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        header = request.header
        if isinstance(header, PullMessageHeader) and header.sys_flag & PullFlag.SUSPEND:
            self._kept.append(super().ask(request, timeout_ms, to))
            return Deferred()
        return super().ask(request, timeout_ms, to)


# All that was acknowledged


@ALL
def test_what_was_acknowledged_is_consumed_also_where_no_held_pull_has_brought_it(
    real_broker: Broker, kind: Callable[..., Any]
):
    link = SilentLink(LocalLink(real_broker))
    with Producer(real_broker) as producer, driven(kind, link, "g", "T", listener) as consumer:
        producer.send("T", b"x", queue_id=0)
        assert until_idle(consumer) == 1
        for _ in range(20):
            producer.send("T", b"x", queue_id=0)
            assert until_idle(consumer) == 1
            assert until_idle(consumer) == 0
        assert real_broker.offsets.query("g", "T", 0) == 21


@BOTH
def test_what_is_not_wanted_is_passed_by_the_call(real_broker: Broker, kind: Callable[..., Any]):
    with Producer(real_broker) as producer, kind(real_broker, "g", {"T": "mine"}, listener) as consumer:
        producer.send("T", b"x", queue_id=0, tags="mine")
        assert until_idle(consumer) == 1
        producer.send("T", b"x", queue_id=0, tags="other")
        assert until_idle(consumer) == 0
        assert real_broker.offsets.query("g", "T", 0) == 2


@ALL
def test_over_a_connection_nothing_that_was_acknowledged_is_left_by_the_call(
    tmp_path: Path, kind: Callable[..., Any]
):
    seen: list[bytes] = []
    with (
        BrokerServer(tmp_path / "s") as server,
        Producer(server.address) as producer,
        driven(kind, server.address, "g", "T", lambda message: seen.append(message.body)) as consumer,
    ):
        producer.send("T", b"first")
        until_idle(consumer)
        for number in range(30):
            producer.send("T", b"%d" % number)
            until_idle(consumer)
            assert seen[-1] == b"%d" % number


def test_a_reset_by_the_broker_is_followed_by_the_call(real_broker: Broker):
    with Producer(real_broker) as producer, PushConsumer(real_broker, "g", "T", listener) as consumer:
        for _ in range(3):
            producer.send("T", b"x", queue_id=0)
        assert until_idle(consumer) == 3
        real_broker.offsets.reset("g", "T", 0, 1)
        assert until_idle(consumer) == 2


# Of all that is its share


@ALL
def test_a_topic_that_is_there_since_the_consumer_began_is_found(
    real_broker: Broker, kind: Callable[..., Any]
):
    with Producer(real_broker) as producer, driven(kind, real_broker, "g", "T", listener) as consumer:
        assert until_idle(consumer) == 0
        producer.send("T", b"x")
        assert until_idle(consumer) == 1


@BOTH
def test_a_topic_is_found_on_virtual_time_without_time_passing(
    broker: Broker, send: Send, kind: Callable[..., Any]
):
    with kind(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("5s")
        send(1)
        before_ms = broker.clock.now_ms()
        assert consumer.run_until_idle() == 1
        assert broker.clock.now_ms() == before_ms


def test_a_queue_that_another_member_has_locked_is_waited_for_and_named(real_broker: Broker):
    with Producer(real_broker) as producer:
        for queue_id in (0, 1):
            producer.send("T", b"x", queue_id=queue_id)
    dead = LockBatchBody("g", "127.0.0.1@1#dead", frozenset([MessageQueue("T", "broker-a", 1)]))
    real_broker.dispatch(Request(RequestCode.LOCK_BATCH_MQ, body=dead))
    with OrderlyConsumer(real_broker, "g", "T", listener) as consumer:
        wait_until_named(consumer, "another client has the lock of queue 1 of T at broker-a")
        assert not consumer.is_idle
        real_broker.dispatch(Request(RequestCode.UNLOCK_BATCH_MQ, body=dead))
        until_idle(consumer)
        assert consumer.counts.delivered == 2


# After an outage


@BOTH
def test_a_queue_whose_pulls_fail_is_not_idle_and_says_why(real_broker: Broker, kind: Callable[..., Any]):
    with Producer(real_broker) as producer, recording(real_broker) as link:
        producer.send("T", b"x", queue_id=0)
        with kind(link, "g", "T", listener) as consumer:
            assert until_idle(consumer) == 1
            link.cut = {RequestCode.PULL_MESSAGE}
            wait_until_named(consumer, "request 11 got no answer")
            link.cut = set()
            producer.send("T", b"x", queue_id=0)
            until_idle(consumer)
            assert consumer.counts.delivered == 2


def test_a_queue_that_begins_anew_is_soon_known_to_be_at_its_end(
    broker: Broker, send: Send, consume: NewConsumer
):
    send(1)
    with recording(broker) as link:
        consumer, _seen = consume(via=link)
        consumer.run_until_idle()
        link.cut = {RequestCode.LOCK_BATCH_MQ}
        broker.advance(BROKER_LIVE_MS + 20_001)
        link.cut = set()
        link.asked.clear()
        broker.advance(20_000)
        assert consumer.is_idle, "the broker is not asked to hold the first pull"
        first = link.pulls[0].header
        assert isinstance(first, PullMessageHeader)
        assert not first.sys_flag & PullFlag.SUSPEND
        consumer.close()


# Where the broker in the process is closed meanwhile


@ALL
def test_a_broker_that_a_listener_closes_ends_the_wait_with_one_plain_error(
    tmp_path: Path, kind: Callable[..., Any], caplog: pytest.LogCaptureFixture
):
    broker = Broker.open(tmp_path / "closed")
    with Producer(broker) as producer:
        producer.send("T", b"x", queue_id=0)
        with (
            driven(kind, broker, "g", "T", lambda _message: broker.close()) as consumer,
            pytest.raises(ClientClosedError, match="the broker in this process was closed"),
        ):
            until_idle(consumer)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@ALL
def test_it_is_so_where_another_thread_closes_it(
    tmp_path: Path, kind: Callable[..., Any], caplog: pytest.LogCaptureFixture
):
    broker, entered, over = Broker.open(tmp_path / "closed"), threading.Event(), threading.Event()

    def waits(_message: Message) -> None:
        entered.set()
        wait_for_event(over, idle_s=30)

    def close() -> None:
        wait_for_event(entered, idle_s=30)
        broker.close()

    closing = threading.Thread(target=close)
    closing.start()
    with Producer(broker) as producer:
        producer.send("T", b"x", queue_id=0)
        with driven(kind, broker, "g", "T", waits) as consumer:
            with pytest.raises(ClientClosedError, match="the broker in this process was closed"):
                until_idle(consumer)
            over.set()
    join_thread(closing, idle_s=30)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@BOTH
def test_it_is_so_on_virtual_time(
    broker: Broker, send: Send, kind: Callable[..., Any], caplog: pytest.LogCaptureFixture
):
    send(1)
    with (
        kind(broker, "g", "T", lambda _message: broker.close()) as consumer,
        pytest.raises(ClientClosedError, match="the broker in this process was closed"),
    ):
        consumer.run_until_idle()
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []

"""Both faces of a consumer have the same calls and settings, and consume alike, here and over sockets."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.consumer.consumer import AsyncConsumer, Consumer
from seglog.consumer.listener import Consume
from seglog.consumer.lite.lite_pull import AsyncLitePullConsumer, LitePullConsumer
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ConsumerError, InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.storage.format.record.message import Message
from tests.support.consumers import until_idle
from tests.support.faces import driven
from tests.support.listening import BrokerServer

PAIRS = [(OrderlyConsumer, AsyncOrderlyConsumer), (PushConsumer, AsyncPushConsumer)]
POLLED = (LitePullConsumer, AsyncLitePullConsumer)
ASKED = {"start", "commit", "resume", "close", "position", "committed", "lag"}
CALLS: dict[type, set[str]] = {
    OrderlyConsumer: ASKED | {"run_until_idle", "suspend", "subscribe", "unsubscribe", "on"},
    PushConsumer: ASKED | {"run_until_idle", "suspend", "subscribe", "unsubscribe", "on"},
    LitePullConsumer: ASKED | {"subscribe", "unsubscribe", "queues_of", "assign", "poll", "seek", "pause"},
}
ALL = pytest.mark.parametrize("kind", [kind for pair in PAIRS for kind in pair])


def calls_of(kind: type) -> dict[str, Any]:
    """Returns the signatures of what a class has in public, and of how it is made."""
    found: dict[str, Any] = {}
    for name, value in inspect.getmembers(kind):
        if not name.startswith("_"):
            found[name] = inspect.signature(value) if callable(value) else type(value)
    return found | {"made": inspect.signature(kind)}


@pytest.mark.parametrize(("plain", "awaited"), [*PAIRS, POLLED])
def test_a_setting_of_one_face_is_one_of_the_other(plain: type, awaited: type):
    assert calls_of(plain) == calls_of(awaited)
    calls = {name for name, value in inspect.getmembers(plain, inspect.isfunction) if name[0] != "_"}
    assert calls == CALLS[plain]
    for name in calls - {"on"}:  # which waits for nothing
        assert not inspect.iscoroutinefunction(getattr(plain, name)), name
        assert inspect.iscoroutinefunction(getattr(awaited, name)), name


@pytest.mark.parametrize("kind", [Consumer, AsyncConsumer])
def test_a_consumer_of_no_kind_is_not_made(kind: Any):
    with pytest.raises(TypeError, match="abstract"):
        kind("127.0.0.1:1", "g", "T", print)


@pytest.fixture(params=["in process", "over a socket"])
def place(request: Any, tmp_path: Path):
    """A broker, and what leads to it."""
    if request.param == "in process":
        with Broker.open(tmp_path / "s") as broker:
            yield broker, broker
    else:
        with BrokerServer(tmp_path / "s") as server:
            yield server.broker, server.address


class Listening:
    """A listener of either kind, and what it has seen."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def plain(self, message: Message) -> Consume | None:
        """Notes a message; the third of a queue is wanted again once."""
        self.seen.append((message.queue_id, message.queue_offset))
        is_first = message.queue_offset == 2 and message.reconsume_times == 0
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if is_first else None

    async def awaited(self, message: Message) -> Consume | None:
        """Does the same."""
        return self.plain(message)


@ALL
@pytest.mark.parametrize("how", ["plain", "awaited"])
def test_all_is_consumed_and_committed_and_the_next_one_goes_on(
    place: tuple[Broker, Any], kind: Callable[..., Any], how: str
):
    broker, target = place
    with Producer(broker) as producer:
        for number in range(40):
            producer.send("T", b"%d" % number, queue_id=number % 4)
    listening = Listening()
    with driven(kind, target, "g", "T", getattr(listening, how), suspend_ms=20) as consumer:
        done = until_idle(consumer)
        while consumer.counts.delivered < 40 - 4 * ("Push" in kind.__name__):
            done += until_idle(consumer)
        assert len(consumer.queues) == 5
        assert f"{kind.__name__} g of client" in repr(consumer.made)
        assert "with 5 queues" in repr(consumer.made)
    assert set(listening.seen) == {(queue_id, offset) for queue_id in range(4) for offset in range(10)}
    if "Orderly" in kind.__name__:
        for queue_id in range(4):
            offsets = [offset for queue, offset in listening.seen if queue == queue_id]
            assert offsets == [0, 1, 2, *range(2, 10)]
    assert [broker.offsets.query("g", "T", queue_id) for queue_id in range(4)] == [10] * 4
    with Producer(broker) as producer:
        producer.send("T", b"late", queue_id=0)
    listening.seen.clear()
    with driven(kind, target, "g", {"T": "*"}, getattr(listening, how)) as consumer:
        consumer.start()
        until_idle(consumer)
        with pytest.raises(ConsumerError):
            consumer.start()
    assert (0, 10) in listening.seen
    assert "closed" in repr(consumer.made)


@ALL
def test_a_closed_consumer_cannot_be_started_or_stepped(tmp_path: Path, kind: Callable[..., Any]):
    with Broker.open(tmp_path / "s") as broker, driven(kind, broker, "g", "T", print) as consumer:
        consumer.close()
        consumer.close()
        for call in (consumer.start, consumer.run_until_idle):
            with pytest.raises(ConsumerError):
                call()


@ALL
def test_a_plain_listener_that_returns_what_is_awaited_fails_and_says_why(
    tmp_path: Path, kind: Callable[..., Any], caplog: pytest.LogCaptureFixture
):
    async def handle(_message: Message) -> None:
        raise AssertionError("it is never awaited")

    with Broker.open(tmp_path / "s") as broker:
        Producer(broker).send("T", b"x", queue_id=0)
        listener = lambda message: handle(message)  # noqa: E731, PLW0108 - it hides what it calls
        with driven(kind, broker, "g", "T", listener) as consumer:
            until_idle(consumer)
            assert consumer.counts.failed >= 1
    assert "is to be awaited" in caplog.text


@pytest.mark.parametrize("kind", [AsyncOrderlyConsumer, AsyncPushConsumer])
def test_without_a_loop_that_it_could_live_in_it_is_not_made(tmp_path: Path, kind: Callable[..., Any]):
    with Broker.open(tmp_path / "s") as broker, pytest.raises(InvalidArgumentError, match="no event loop"):
        kind(broker, "g", "T", print)

"""S2-23 and S4-34 with every face: threads and tasks, at a broker in the process and over connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest

from seglog import (
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    Broker,
    Consume,
    ConsumeFrom,
    Message,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.client.connect import Target
from tests.support.faces import driven, is_awaited
from tests.support.listening import BrokerServer
from tests.support.machine.patience import patience_s, wait_until

COUNT = 32
FIRST = {"consume_from": ConsumeFrom.FIRST}
ORDERLY = pytest.mark.parametrize("kind", [OrderlyConsumer, AsyncOrderlyConsumer])
PUSH = pytest.mark.parametrize("kind", [PushConsumer, AsyncPushConsumer])


@pytest.fixture(params=["in process", "served"])
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Broker, Target]]:
    """A broker, and what clients of it are made of."""
    if request.param == "in process":
        with Broker.open(tmp_path / "s", small=True) as opened:
            yield opened, opened
    else:
        with BrokerServer(tmp_path / "s") as server:
            yield server.broker, server.address


class Listening:
    """A listener, plain or awaited, that waits at some messages until it may go on.

    Args:
        waits_at: Whether it waits at a message.
        says: What it returns for a message.
    """

    def __init__(
        self, waits_at: Callable[[Message], bool], says: Callable[[Message], Consume | None] = lambda _: None
    ) -> None:
        self._waits_at, self._says = waits_at, says
        self.may_go_on = threading.Event()
        self.given: list[int] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.may_go_on.set()  # before the consumer is closed, which waits for it

    def of(self, kind: Callable[..., Any]) -> Callable[[Message], Any]:
        """Returns it in the form that is usual with a consumer."""
        return self.awaited if is_awaited(kind) else self.plain

    def plain(self, message: Message) -> Consume | None:
        self._note(message)
        if self._waits_at(message):
            self.may_go_on.wait(patience_s(60))
        return self._says(message)

    async def awaited(self, message: Message) -> Consume | None:
        self._note(message)
        while self._waits_at(message) and not self.may_go_on.is_set():
            await asyncio.sleep(0.01)
        return self._says(message)

    def _note(self, message: Message) -> None:
        with self._lock:
            self.given.append(message.queue_offset)


def fill(broker: Broker, count: int = COUNT) -> None:
    with Producer(broker) as producer:
        producer.send_batch("T", [b"x"] * count, queue_id=0)


def turn(consumer: Any) -> None:
    """Lets a loop of the test work for a moment; a plain consumer has threads."""
    if is_awaited(consumer.made):
        consumer._runner.run(asyncio.sleep(0.01))


@ORDERLY
def test_s2_23_each_success_is_committed_though_the_last_message_of_the_hand_is_at_work(sides, kind):
    broker, target = sides
    fill(broker)
    listening = Listening(lambda message: message.queue_offset == COUNT - 1)
    with driven(kind, target, "g", "T", listening.of(kind), **FIRST) as consumer, listening:
        consumer.start()

        def are_all_given() -> bool:
            turn(consumer)
            return len(listening.given) == COUNT

        wait_until(are_all_given, "the last message is at work", idle_s=30)
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == COUNT - 1
        listening.may_go_on.set()

        def is_committed() -> bool:
            turn(consumer)
            consumer.commit()
            committed: int | None = broker.offsets.query("g", "T", 0)
            return committed == COUNT

        wait_until(is_committed, "the last message is done", idle_s=30)


@ORDERLY
@pytest.mark.parametrize("said", [Consume.COMMIT, Consume.ROLLBACK])
def test_s2_23_an_end_of_a_transaction_is_a_success_with_a_warning(sides, kind, said, caplog):
    broker, target = sides
    fill(broker, 3)
    listening = Listening(lambda _: False, lambda _: said)
    with driven(kind, target, "g", "T", listening.of(kind), **FIRST) as consumer, listening:
        assert consumer.run_until_idle(timeout_s=patience_s(60)) == 3
        consumer.commit()
    assert broker.offsets.query("g", "T", 0) == 3
    assert caplog.text.count(f"returned {said}, which is taken for a success") == 1


@ORDERLY
def test_s2_23_a_suspended_message_comes_again_before_the_next_and_is_given_up_in_the_end(sides, kind):
    broker, target = sides
    fill(broker, 3)
    suspend = Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT
    listening = Listening(lambda _: False, lambda message: suspend if message.queue_offset == 1 else None)
    options = {**FIRST, "suspend_ms": 10, "max_reconsume_times": 2}
    with driven(kind, target, "g", "T", listening.of(kind), **options) as consumer, listening:
        consumer.start()

        def is_over() -> bool:
            turn(consumer)
            return 2 in listening.given

        wait_until(is_over, "the last message is given", idle_s=30)
    assert listening.given == [0, 1, 1, 1, 2]
    assert broker.offsets.query("g", "T", 0) == 3
    assert broker.store.max_offset("%DLQ%g", 0) == 1


@PUSH
def test_s4_34_sixteen_messages_of_a_queue_are_sent_back_at_a_time(sides, kind):
    """As many as RocketMQ's clients send back: the first ones, which the queue waits for."""
    broker, target = sides
    fill(broker)
    listening = Listening(lambda message: not message.reconsume_times)
    options = {**FIRST, "threads": 20, "consume_timeout_ms": 2_000}
    with driven(kind, target, "g", "T", listening.of(kind), **options) as consumer, listening:
        consumer.start()

        def are_sent_back() -> bool:
            turn(consumer)
            return len(sent_back(broker)) >= 16

        wait_until(are_sent_back, "the first pass is over", idle_s=60)
        assert sent_back(broker)[:16] == list(range(16))
        consumer.commit()
        committed = broker.offsets.query("g", "T", 0)
        assert committed is not None
        assert committed >= 16
        listening.may_go_on.set()
        with suppress(TimeoutError):
            consumer.close(patience_s(30))


def sent_back(broker: Broker) -> list[int]:
    """Returns the first offsets of the messages that wait for another attempt."""
    found = broker.store.get("SCHEDULE_TOPIC_XXXX", 2, 0, 32).messages
    return [place_of(broker, message) for message in found]


def place_of(broker: Broker, message: Message) -> int:
    """Returns the offset that a message had in its topic."""
    return broker.store.message_by_id(message.properties["ORIGIN_MESSAGE_ID"]).queue_offset

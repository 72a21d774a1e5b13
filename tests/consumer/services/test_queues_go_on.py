"""A queue is served on after an error that is none of its messages'; none such is worth a queue."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.consumer.consumer import Consumer
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.pools.thread_pool import ThreadPool
from seglog.consumer.push import PushConsumer
from seglog.consumer.services import service
from seglog.producer.producer import Producer
from seglog.storage.format.record.message import Message
from seglog.testing import VirtualBroker
from tests.support.machine.patience import patience_s, wait_for_result, wait_until

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
TOO_LARGE: Final = 1 << 46
"""A stack for which no machine has room, in bytes."""


class Mute(Exception):  # noqa: N818 - an application's
    """An error that has no text."""

    @override
    def __str__(self) -> str:
        raise ValueError("there is none")

    @override
    def __repr__(self) -> str:
        raise ValueError("there is none")


class Broken(logging.Handler):
    """Raises each logged error."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("syslog is gone")


@contextmanager
def no_threads() -> Iterator[None]:
    """Has each start of a thread fail, as where a user may have no more of them."""
    before = threading.stack_size(TOO_LARGE)
    try:
        yield
    finally:
        threading.stack_size(before)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker.open(tmp_path / "s") as opened, Producer(opened) as producer:
        for number in range(4):
            producer.send("T", b"%d" % number, queue_id=0)
        yield opened


def failing(error: Exception, seen: list[int], times: int) -> Callable[[Message], None]:
    """Returns a listener that fails so often at the first message."""

    def listen(message: Message) -> None:
        seen.append(message.queue_offset)
        if message.topic == "T" and message.body == b"0" and seen.count(0) <= times:
            raise error

    return listen


@BOTH
@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_message_whose_errors_have_no_text_comes_again_as_any_other(
    tmp_path: Path, kind: Any, batch_size: int
):
    with VirtualBroker.at(tmp_path / "s") as broker:
        for number in range(4):
            broker.producer().send("T", b"%d" % number, queue_id=0)
        seen: list[bytes] = []

        def listen(given: Message | Sequence[Message]) -> None:
            messages = [given] if isinstance(given, Message) else given
            seen.extend(one.body for one in messages)
            if seen.count(b"0") < 5 and any(one.body == b"0" for one in messages):
                raise Mute

        is_in_order = kind is OrderlyConsumer
        with broker.consumer("g", "T", listen, in_order=is_in_order, batch_size=batch_size) as consumer:
            consumer.start()
            broker.advance("4m")
            assert seen.count(b"0") == 5
            assert set(seen) == {b"0", b"1", b"2", b"3"}
            consumer.commit()
            assert broker.offsets.query("g", "T", 0) == 4


@BOTH
def test_a_queue_is_served_on_where_no_line_can_be_logged(broker: Broker, kind: Any, capsys: Any):
    seen: list[int] = []
    said: list[str] = []
    root, handler = logging.getLogger(), Broken()

    def has_said() -> bool:
        said.append(capsys.readouterr().err)
        return "syslog is gone" in "".join(said)

    with kind(broker, "g", "T", failing(OSError("once"), seen, 1), suspend_ms=20) as consumer:
        root.addHandler(handler)
        try:
            consumer.start()
            wait_until(lambda: {1, 2, 3} <= set(seen), idle_s=30)
            wait_until(has_said, idle_s=30)
        finally:
            root.removeHandler(handler)
        if kind is OrderlyConsumer:
            assert seen == [0, 0, 1, 2, 3]
        wait_until(lambda: consumer.counts.failed == 1, idle_s=30)
    assert broker.offsets.query("g", "T", 0) == 4


def test_messages_wait_where_no_thread_can_be_started_and_are_consumed_once_one_can(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(service, "RESUBMIT_MS", 500)  # 5 s for users
    seen: dict[str, list[int]] = {"a": [], "b": []}

    def noting(group: str) -> Callable[[Message], None]:
        return lambda message: seen[group].append(message.queue_offset)

    consumers: list[Consumer[Message]] = [
        OrderlyConsumer(broker, "a", "T", noting("a")),
        PushConsumer(broker, "b", "T", noting("b"), threads=1),
    ]
    with no_threads():
        for consumer in consumers:
            consumer.start()
        wait_until(lambda: caplog.text.count("can't start new thread") == 2, idle_s=30)
        assert seen == {"a": [], "b": []}
    assert caplog.text.count("messages of queue 0 of T at broker-a wait for 500 ms") == 2
    wait_until(lambda: all(each == [0, 1, 2, 3] for each in seen.values()), idle_s=30)
    for consumer in consumers:
        consumer.close()
    assert [broker.offsets.query(group, "T", 0) for group in "ab"] == [4, 4]
    assert broker.locks.all() == []


def test_a_close_ends_the_wait_for_a_thread(broker: Broker, caplog: pytest.LogCaptureFixture):
    seen: list[int] = []
    with no_threads():
        consumer = OrderlyConsumer(broker, "g", "T", lambda message: seen.append(message.queue_offset))
        consumer.start()
        wait_until(lambda: "can't start new thread" in caplog.text, idle_s=30)
        consumer.close(3)
    assert seen == []
    assert broker.locks.all() == []


def test_work_for_which_no_thread_can_be_started_is_done_by_those_that_are_there():
    pool, gate = ThreadPool(4, "seglog-test-of-a-pool"), threading.Event()

    async def wait() -> bool:
        return gate.wait(patience_s(30))

    async def name() -> str:
        return threading.current_thread().name

    first = pool.run(wait)
    with no_threads():
        second = pool.run(name)
        assert not second.is_done
        gate.set()
        assert wait_for_result(second, idle_s=30) == "seglog-test-of-a-pool-1"
    assert wait_for_result(first, idle_s=30) is True
    pool.close()


def test_work_that_no_thread_can_do_fails_and_the_next_gets_one():
    pool = ThreadPool(1, "seglog-test-of-a-pool")

    async def name() -> str:
        return threading.current_thread().name

    with no_threads(), pytest.raises(RuntimeError, match="can't start new thread"):
        wait_for_result(pool.run(name), idle_s=30)
    assert wait_for_result(pool.run(name), idle_s=30) == "seglog-test-of-a-pool-1"
    pool.close()

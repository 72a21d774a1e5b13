"""How consumers end: from where they may be closed, and what a close waits for."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.client.home.flows import sleep, start
from seglog.client.home.home import Home
from seglog.client.home.thread_home import thread_home
from seglog.client.home.waiting import wait_for
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ConsumerError, InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.consumers import Send, until_idle, until_idle_in_loop
from tests.support.listening import BrokerServer
from tests.support.machine.patience import (
    in_time,
    join_thread,
    wait_for_event,
    wait_until,
    wait_until_in_loop,
)
from tests.support.machine.said import said

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
BOTH_AWAITED = pytest.mark.parametrize("kind", [AsyncOrderlyConsumer, AsyncPushConsumer])
CALLS = pytest.mark.parametrize("call", ["close", "run_until_idle"])


@pytest.fixture
def real_broker(tmp_path: Path):
    with Broker.open(tmp_path / "real") as opened:
        yield opened


def send_to(broker: Broker, count: int) -> None:
    with Producer(broker) as producer:
        for number in range(count):
            producer.send("T", b"%d" % number, queue_id=0)


def threads_of(group: str) -> set[threading.Thread]:
    """Returns the threads for listeners of a group; those of other tests may live on."""
    return {each for each in threading.enumerate() if each.name.startswith(f"seglog-{group}-")}


async def a_moment(home: Home) -> None:
    """Lets a home do what it has to."""
    await sleep(home, 50)


class Closing:
    """Listeners that make calls of what they belong to, and go on.

    Attributes:
        calls: What they call.
        errors: What that raised.
        seen: Queue offsets of the messages.
    """

    def __init__(self) -> None:
        self.calls: Callable[[], Any] = lambda: None
        self.errors: list[Exception] = []
        self.seen: list[int] = []

    def plain(self, message: Message) -> None:
        """Calls it."""
        try:
            self.calls()
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            self.errors.append(error)
        self.seen.append(message.queue_offset)

    async def awaited(self, message: Message) -> None:
        """Calls it likewise, though it is no call to be awaited."""
        self.plain(message)

    async def awaiting(self, message: Message) -> None:
        """Awaits it."""
        try:
            await self.calls()
        except Exception as error:  # noqa: BLE001 - it is what is looked at
            self.errors.append(error)
        self.seen.append(message.queue_offset)

    def check_refused(self, match: str) -> None:
        """Checks that each call was refused, and that the advice is of use."""
        assert len(self.errors) == len(self.seen) > 0
        for error in self.errors:
            assert isinstance(error, ConsumerError), error
            assert match in str(error)
            assert "a thread" in error.help


# From inside of a listener


@BOTH
@CALLS
@pytest.mark.parametrize("how", ["plain", "awaited"])
def test_a_listener_that_would_wait_for_itself_is_refused_and_its_consumer_goes_on(
    real_broker: Broker, caplog: pytest.LogCaptureFixture, kind: Any, call: str, how: str
):
    listening = Closing()
    send_to(real_broker, 2)
    with kind(real_broker, "g", "T", getattr(listening, how)) as consumer:
        listening.calls = getattr(consumer, call)
        consumer.start()
        wait_until(lambda: sorted(set(listening.seen)) == [0, 1], idle_s=30)
        send_to(real_broker, 1)
        wait_until(lambda: 2 in listening.seen, idle_s=30)
        listening.check_refused(f"{call}() was called by a listener of group g")
        assert consumer.counts.failed == 0
        assert real_broker.clients.consumers("g") is not None
    assert real_broker.clients.consumers("g") is None, "the close that was not refused is no second one"
    assert real_broker.offsets.query("g", "T", 0) == 3
    assert said(caplog) == []


@BOTH_AWAITED
@CALLS
def test_a_listener_that_would_await_itself_is_refused_and_its_consumer_goes_on(
    real_broker: Broker, caplog: pytest.LogCaptureFixture, kind: Any, call: str
):
    listening = Closing()

    async def scene() -> None:
        async with kind(real_broker, "g", "T", listening.awaiting) as consumer:
            listening.calls = getattr(consumer, call)
            await consumer.start()
            await wait_until_in_loop(lambda: sorted(set(listening.seen)) == [0, 1])
            listening.check_refused(f"{call}() was called by a listener of group g")

    send_to(real_broker, 2)
    asyncio.run(scene())
    assert real_broker.clients.consumers("g") is None
    assert real_broker.offsets.query("g", "T", 0) == 2
    assert said(caplog) == []


@BOTH
@pytest.mark.parametrize("how", ["plain", "awaited"])
@pytest.mark.parametrize("timeout_s", [None, 0, 1])
def test_on_virtual_time_too(broker: Broker, send: Send, kind: Any, how: str, timeout_s: float | None):
    listening = Closing()
    send(2)
    with kind(broker, "g", "T", getattr(listening, how)) as consumer:
        listening.calls = lambda: consumer.close(timeout_s)
        consumer.run_until_idle()
        assert sorted(listening.seen) == [0, 1]
        listening.check_refused("close() was called by a listener of group g")
        assert consumer.queues
    assert broker.clients.consumers("g") is None


@BOTH
def test_a_listener_has_another_thread_close_its_consumer(real_broker: Broker, kind: Any):
    threads: list[threading.Thread] = []

    def listener(_message: Message) -> None:
        thread = threading.Thread(target=consumer.close)
        thread.start()
        threads.append(thread)

    send_to(real_broker, 1)
    consumer = kind(real_broker, "g", "T", listener)
    consumer.start()
    wait_until(lambda: threads, idle_s=30)
    join_thread(threads[0], idle_s=30)
    assert real_broker.clients.consumers("g") is None
    assert real_broker.offsets.query("g", "T", 0) == 1, "the message of the listener is done"


@BOTH_AWAITED
def test_a_listener_has_another_task_close_its_consumer(real_broker: Broker, kind: Any):
    async def scene() -> None:
        tasks: list[asyncio.Task[None]] = []

        async def listener(_message: Message) -> None:
            tasks.append(asyncio.create_task(consumer.close()))

        consumer = kind(real_broker, "g", "T", listener)
        await consumer.start()
        await wait_until_in_loop(lambda: tasks)
        await in_time(tasks[0])

    send_to(real_broker, 1)
    asyncio.run(scene())
    assert real_broker.clients.consumers("g") is None
    assert real_broker.offsets.query("g", "T", 0) == 1


@BOTH
def test_a_plain_listener_that_gives_a_time_ends_its_consumer_and_its_message_comes_again_but_in_order(
    real_broker: Broker, kind: Any
):
    listening = Closing()
    send_to(real_broker, 1)
    consumer = kind(real_broker, "g", "T", listening.plain)
    listening.calls = lambda: consumer.close(0.01)
    consumer.start()
    wait_until(lambda: listening.seen, idle_s=30)
    (error,) = listening.errors
    assert isinstance(error, TimeoutError)
    assert "at work still: g: T, queue 0 of broker-a, offsets 0 to 0" in str(error)
    wait_until(lambda: real_broker.clients.consumers("g") is None, idle_s=30)
    if kind is OrderlyConsumer:  # it is at work no more by now, or is so soon, and its message is committed
        wait_until(lambda: real_broker.offsets.query("g", "T", 0) == 1, idle_s=30)
        wait_until(lambda: not real_broker.locks.all(), idle_s=30)
        return
    again: list[int] = []
    with kind(real_broker, "g", "T", lambda message: again.append(message.queue_offset)) as heir:
        until_idle(heir)
        wait_until(lambda: again == [0], idle_s=30)


@pytest.mark.parametrize("how", ["plain", "awaited"])
def test_a_client_that_is_closed_by_a_listener_of_it_stays_open(real_broker: Broker, how: str):
    listening = Closing()
    send_to(real_broker, 2)
    with make_client(real_broker) as client:
        listening.calls = client.close
        with OrderlyConsumer(client, "g", "T", getattr(listening, how)) as consumer:
            assert until_idle(consumer) == 2
        listening.check_refused("close() of its client was called by a listener of group g")
        assert Producer(client).send("T", b"x").message_id


# From inside of a loop


def test_what_an_event_loop_would_wait_for_stays_open_where_its_close_is_refused(real_broker: Broker):
    producer = Producer(real_broker)
    producer.send("T", b"x")
    client = make_client(real_broker)
    consumer = OrderlyConsumer(client, "g", "T", lambda _message: None)
    until_idle(consumer)

    async def close() -> None:
        for one in (consumer, client):
            with pytest.raises(InvalidArgumentError, match="would wait for itself"):
                one.close()

    asyncio.run(close())
    producer.send("T", b"x")
    wait_until(lambda: consumer.counts.delivered == 2, idle_s=30)
    producer.close()
    consumer.close()
    client.close()
    assert real_broker.clients.is_empty


# What a close waits for


@BOTH
def test_a_close_without_time_succeeds_where_no_listener_is_at_work(real_broker: Broker, kind: Any):
    send_to(real_broker, 5)
    for _ in range(5):
        consumer = kind(real_broker, "g", "T", lambda _message: None)
        until_idle(consumer)
        consumer.close(0)
        assert real_broker.clients.consumers("g") is None
    with make_client(real_broker) as client:
        until_idle(PushConsumer(client, "g", "T", lambda _message: None))
        client.close(0)
        assert real_broker.clients.consumers("g") is None
    assert real_broker.offsets.query("g", "T", 0) == 5


@BOTH_AWAITED
def test_an_awaited_close_without_time_succeeds_where_no_listener_is_at_work(real_broker: Broker, kind: Any):
    async def scene() -> None:
        consumer = kind(real_broker, "g", "T", lambda _message: None)
        await until_idle_in_loop(consumer)
        await consumer.close(0)
        assert real_broker.clients.consumers("g") is None

    asyncio.run(scene())


@BOTH
@pytest.mark.parametrize("place", ["in process", "over a socket"])
def test_a_close_in_time_alarms_with_nothing_but_its_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: Any, place: str
):
    entered, leave = threading.Event(), threading.Event()

    def listener(_message: Message) -> None:
        entered.set()
        wait_for_event(leave, idle_s=30)

    before = threads_of("g")
    caplog.set_level(logging.DEBUG, "seglog")
    with ExitStack() as stack:
        if place == "in process":
            target: Any = stack.enter_context(Broker.open(tmp_path / "s"))
            broker = target
        else:
            server = stack.enter_context(BrokerServer(tmp_path / "s"))
            broker, target = server.broker, server.address
        for queue_id in range(4):
            Producer(broker).send("T", b"x", queue_id=queue_id)
        consumer = kind(target, "g", "T", listener, threads=2)
        consumer.start()
        wait_for_event(entered, idle_s=30)
        caplog.clear()
        with pytest.raises(TimeoutError, match="listeners are at work still"):
            consumer.close(0.05)
        leave.set()
        wait_until(lambda: threads_of("g") <= before, idle_s=30)
        home = thread_home()
        wait_for(home, start(home, a_moment(home), "what the end of the listener has to say"))
        assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


# What becomes of messages that a close does not wait for


class Stuck:
    """A listener that hangs at one message until it is let go.

    Args:
        at: Queue offsets of such messages.
    """

    def __init__(self, *at: int) -> None:
        self._at = at
        self._before = threads_of("g")
        self._leave = threading.Event()
        self.begun: list[int] = []

    def __call__(self, message: Message) -> None:
        """Notes the message, and hangs where it is to."""
        self.begun.append(message.queue_offset)
        if message.queue_offset in self._at:
            wait_for_event(self._leave, idle_s=60)

    def let_go_on(self) -> None:
        """Lets it end."""
        self._leave.set()

    def let_go(self) -> None:
        """Lets it end, and waits for its thread."""
        self.let_go_on()
        wait_until(lambda: threads_of("g") <= self._before, idle_s=30)


def test_messages_at_work_with_others_done_between_them_are_said_with_their_number(real_broker: Broker):
    send_to(real_broker, 40)
    listener = Stuck(0, 37)
    consumer = PushConsumer(real_broker, "g", "T", listener, threads=2)
    consumer.start()
    wait_until(lambda: {0, 37} <= set(listener.begun), idle_s=30)
    with pytest.raises(TimeoutError, match=r"broker-a, 2 messages between offsets 0 and 37$"):
        consumer.close(0.05)
    listener.let_go()


@BOTH
def test_the_position_is_the_first_message_that_the_listener_was_not_given(real_broker: Broker, kind: Any):
    send_to(real_broker, 20)
    listener = Stuck(4)
    consumer = kind(real_broker, "g", "T", listener, threads=1)
    consumer.start()
    queue = MessageQueue("T", "broker-a", 0)
    wait_until(lambda: 4 in listener.begun, idle_s=30)
    assert consumer.position(queue) == 5
    listener.let_go_on()
    until_idle(consumer)
    assert consumer.position(queue) == 20
    consumer.close()


@BOTH
@pytest.mark.parametrize("timeout_s", [0, 0.05])
def test_a_close_that_took_too_long_commits_what_was_done_and_begins_nothing_more(
    real_broker: Broker, kind: Any, timeout_s: float
):
    send_to(real_broker, 20)
    listener = Stuck(4)
    consumer = kind(real_broker, "g", "T", listener, threads=1)
    consumer.start()
    wait_until(lambda: 4 in listener.begun, idle_s=30)
    with pytest.raises(TimeoutError, match="at work still: g: T, queue 0 of broker-a, offsets 4 to 4"):
        consumer.close(timeout_s)
    assert real_broker.offsets.query("g", "T", 0) == 4
    assert real_broker.clients.consumers("g") is None, "others of the group take over"
    listener.let_go()
    assert listener.begun == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("owner", ["its own client", "a shared client"])
def test_an_ordered_listener_that_ends_after_the_close_is_committed_and_its_lock_given_back(
    real_broker: Broker, owner: str
):
    send_to(real_broker, 3)
    listener = Stuck(1)
    with ExitStack() as stack:
        shared = owner == "a shared client"
        target: Any = stack.enter_context(make_client(real_broker)) if shared else real_broker
        consumer = OrderlyConsumer(target, "g", "T", listener)
        consumer.start()
        wait_until(lambda: 1 in listener.begun, idle_s=30)
        with pytest.raises(TimeoutError, match="offsets 1 to 1"):
            consumer.close(0.05)
        wait_until(lambda: [lock.queue.queue_id for lock in real_broker.locks.all()] == [0], idle_s=30)
        if shared:
            with pytest.raises(ConsumerError, match="has a consumer of group g already"):
                OrderlyConsumer(target, "g", "T", listener)
        listener.let_go()
        wait_until(lambda: real_broker.offsets.query("g", "T", 0) == 2, idle_s=30)
        wait_until(lambda: not real_broker.locks.all(), idle_s=30)
    seen: list[int] = []
    with OrderlyConsumer(real_broker, "g", "T", lambda message: seen.append(message.queue_offset)) as heir:
        until_idle(heir)
    assert seen == [2]


def test_what_comes_back_side_by_side_after_the_close_commits_nothing(real_broker: Broker):
    send_to(real_broker, 2)
    listener = Stuck(1)
    with make_client(real_broker) as client:
        consumer = PushConsumer(client, "g", "T", listener)
        consumer.start()
        wait_until(lambda: 1 in listener.begun, idle_s=30)
        with pytest.raises(TimeoutError, match="offsets 1 to 1"):
            consumer.close(0.05)
        real_broker.offsets.commit("g", "T", 0, 7)  # as another member that has taken over
        listener.let_go()
    assert real_broker.offsets.query("g", "T", 0) == 7


@BOTH
def test_a_plain_consumer_is_not_started_in_an_event_loop_and_the_error_names_the_other_face(
    real_broker: Broker, kind: Any
):
    async def scene() -> None:
        consumer = kind(real_broker, "g", "T", lambda _message: None)
        for call in (consumer.start, consumer.run_until_idle):
            with pytest.raises(InvalidArgumentError, match="would wait for itself") as refused:
                call()
            assert f"use Async{kind.__name__}," in (refused.value.help or "")
        await asyncio.to_thread(consumer.close)

    asyncio.run(scene())
    assert real_broker.clients.consumers("g") is None

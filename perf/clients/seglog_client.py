"""Our client: over a connection, or with its broker in the process."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from perf.clients.seen import Seen
from perf.clients.session import Session, send_all
from perf.clients.work import BODY_BYTES, IN_FLIGHT, Kind, Work, body_of, check_seen
from perf.figures.sample import SanityError, check
from seglog.broker.broker import Broker
from seglog.consumer.consumer import Consumer
from seglog.consumer.listener import ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import AsyncProducer, Producer
from seglog.producer.send_result import SendStatus
from seglog.storage.format.record import Message

BATCH: Final = 100
"""Messages a call where a topic is only filled."""
_CONSUMERS: Final[dict[Kind, type[Consumer]]] = {Kind.CONSUME: PushConsumer, Kind.ORDERLY: OrderlyConsumer}


def remote(work: Work) -> Session:
    """Returns a session at a name server."""
    if work.kind is Kind.FLIGHT:
        return SendsInTasks(work)
    return Sends(work, work.target) if work.kind.is_send else Consumes(work, work.target)


def in_process(work: Work) -> Session:
    """Returns a session with a broker of its own, on a new store in the folder that the work names."""
    return InProcess(work)


def fill(target: Broker | str, topic: str, messages: int, body_bytes: int = BODY_BYTES) -> None:
    """Stores the messages that consumers are to get."""
    with Producer(target, "fill") as producer:
        for first in range(0, messages, BATCH):
            numbers = range(first, min(first + BATCH, messages))
            producer.send_batch(topic, [body_of(number, body_bytes) for number in numbers])


class Sends:
    """A producer.

    Args:
        work: What it does.
        target: Where.
    """

    def __init__(self, work: Work, target: Broker | str) -> None:
        self._work = work
        self._producer = Producer(target, work.name)

    def do(self) -> float:
        """Sends."""
        return send_all(self._work, self._send)

    def _send(self, number: int) -> None:
        sent = self._producer.send(self._work.topic, body_of(number, self._work.body_bytes), tags="TagA")
        if sent.status is not SendStatus.SEND_OK:
            raise SanityError(f"message {number} was answered with {sent.status.name}")

    def check(self) -> None:
        """Each send was answered; what is stored is counted at the broker."""

    def close(self) -> None:
        """Closes the producer."""
        self._producer.close()


class SendsInTasks:
    """A producer in an event loop, each of whose tasks sends one message at a time.

    Args:
        work: What it does.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._runner = asyncio.Runner()
        self._producer = self._runner.run(self._make())

    async def _make(self) -> AsyncProducer:
        return AsyncProducer(self._work.target, self._work.name)

    def do(self) -> float:
        """Sends."""
        begun_s = time.perf_counter()
        self._runner.run(self._send_all())
        return time.perf_counter() - begun_s

    async def _send_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for first in range(IN_FLIGHT):
                tasks.create_task(self._send_share(first))

    async def _send_share(self, first: int) -> None:
        for number in range(first, self._work.messages, IN_FLIGHT):
            sent = await self._producer.send(
                self._work.topic, body_of(number, self._work.body_bytes), tags="TagA"
            )
            if sent.status is not SendStatus.SEND_OK:
                raise SanityError(f"message {number} was answered with {sent.status.name}")

    def check(self) -> None:
        """Each send was answered; what is stored is counted at the broker."""

    def close(self) -> None:
        """Closes the producer, and its loop."""
        self._runner.run(self._producer.close())
        self._runner.close()


class Consumes:
    """Consumers, each of a group of its own, one after another.

    Args:
        work: What they do.
        target: Where.
    """

    def __init__(self, work: Work, target: Broker | str) -> None:
        self._work = work
        self._target = target
        self._numbers = itertools.count()
        self._consumer: Consumer | None = None
        self._seen = Seen(work.messages)

    def do(self) -> float:
        """Consumes the topic."""
        work, seen = self._work, Seen(self._work.messages)
        self._seen = seen

        def listen(message: Message) -> None:
            seen.take(message.body)

        def listen_to_many(messages: Sequence[Message]) -> None:
            for message in messages:
                seen.take(message.body)

        self._consumer = _CONSUMERS[work.kind](
            self._target,
            f"{work.name}-{next(self._numbers)}",
            work.topic,
            listen if work.batch == 1 else listen_to_many,
            consume_from=ConsumeFrom.FIRST,
            batch_size=work.batch,
        )
        self._consumer.start()
        return seen.wait()

    def check(self) -> None:
        """Ends the consumer, and checks its messages."""
        self.close()
        check_seen(self._seen.bodies, self._work.messages, self._work.body_bytes)

    def close(self) -> None:
        """Closes the consumer."""
        if self._consumer is not None:
            self._consumer.close()


class InProcess:
    """A broker, and a client of it, in this process.

    Args:
        work: What the client does.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._stack = ExitStack()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(dir=work.target))
        self._broker = self._stack.enter_context(Broker.open(Path(folder)))
        self._session: Session
        if work.kind.is_send:
            self._session = Sends(work, self._broker)
        else:
            fill(self._broker, work.topic, work.messages, work.body_bytes)
            self._session = Consumes(work, self._broker)
        self._stack.callback(self._session.close)
        self._sent = 0

    def do(self) -> float:
        """Does it."""
        if self._work.kind.is_send:
            self._sent += self._work.messages
        return self._session.do()

    def check(self) -> None:
        """Checks it, and counts the stored messages."""
        self._session.check()
        if self._work.kind.is_send:
            queues = [queue for queue in self._broker.store.queues() if queue.topic == self._work.topic]
            stored = sum(queue.max_offset for queue in queues)
            check(self._sent, stored, "messages in the store")

    def close(self) -> None:
        """Closes client and broker."""
        self._stack.close()

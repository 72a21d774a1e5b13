"""A broker that a loop asks by deferred answers, with many connections at once, until it is killed.

Run as a module it is that process. It says in lines on stdout what it asks and what it was told, each line at
its moment, by the thread that is told, and ``tests/crash/test_kill_deferred.py`` reads them:

    sent <topic> <queue> <queue offset> <count> <id>   acknowledged; the bodies are ids that follow each other
    later <id>                                         acknowledged, to be delivered after a delay
    refused <code>                                     a send that was not acknowledged
    rival|embedded <queues>                            what others could lock at the start
    frees|free <queue>, wants|owns <queue> <client>    an owner is about to change, and has changed
    from <queue> <offset>, got <queue> <offset> <id>   an orderly consumer begins, and consumes
    commits|committed <queue> <offset>                 a commit that was asked for, and that was answered
    saved <queue> <offset>                             what was committed when a save began that is over
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
from collections.abc import Callable, Iterable
from typing import Final

from seglog import Durability
from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.remoting.bodies import (
    BatchMessage,
    LockBatchBody,
    LockedQueuesBody,
    MessageBatch,
    RecordsBody,
)
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, expect_body, expect_header
from seglog.remoting.headers import (
    OffsetResponseHeader,
    PullMessageHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetHeader,
    SendMessageHeader,
    SendMessageResponseHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.storage.format.record import Host
from seglog.storage.format.record.message import decode_message
from tests.support.brokers import on_a_roomy_disk
from tests.support.connections import QuietConnection

DELAY_LEVELS: Final = "1s 2s 3s"
GROUP: Final = "g"
EMBEDDED_GROUP: Final = "embedded"
TOPIC: Final = "Now"
QUEUE_IDS: Final = range(4)
QUEUES: Final = {queue_id: MessageQueue(TOPIC, "broker-a", queue_id) for queue_id in QUEUE_IDS}
CLIENTS: Final = ("c0", "c1")
PRODUCERS: Final = 3
IDS_OF_LIFE: Final = 100_000_000
IDS_OF_PRODUCER: Final = 10_000_000
_WINDOW: Final = 24
"""How many sends of a connection wait for their answers."""
_HOST: Final = Host(b"\x7f\x00\x00\x01", 1)
_PULL_FLAGS: Final = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND | PullFlag.COMMIT_OFFSET


def say(*words: object) -> None:
    """Writes a line in one piece; what was written stays when the process is killed."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Connection:
    """What one client asks, over a connection of its own unless it is in the broker's process."""

    def __init__(self, broker: Broker, name: str, *, is_remote: bool = True) -> None:
        self.name = name
        self._broker = broker
        self._loop = asyncio.get_running_loop()
        self._peer = Peer(name, _HOST, QuietConnection(), is_remote=is_remote)

    def ask(self, request: Request, told: Callable[[Response], None]) -> None:
        """Has a function called with the answer: at once, or by the thread that has it."""
        answer = self._broker.answer(request, self._peer, self._loop.call_soon)
        if isinstance(answer, Response):
            told(answer)
        else:
            answer.then(lambda of: told(of.result()))

    async def invoke(self, code: RequestCode, header: Header, body: LockBatchBody | None = None) -> Response:
        """Returns the answer; a task that is cancelled gives it up."""
        answer = self._broker.answer(Request(code, header, body), self._peer, self._loop.call_soon)
        return answer if isinstance(answer, Response) else await answer

    async def lock(self, queue_ids: Iterable[int], group: str = GROUP) -> frozenset[int]:
        """Returns which queues are its own now."""
        body = LockBatchBody(group, self.name, frozenset(QUEUES[queue_id] for queue_id in queue_ids))
        answer = await self.invoke(RequestCode.LOCK_BATCH_MQ, Header(), body)
        return frozenset(queue.queue_id for queue in expect_body(answer, LockedQueuesBody).queues)

    async def unlock(self, queue_ids: Iterable[int], group: str = GROUP) -> None:
        """Gives queues back."""
        body = LockBatchBody(group, self.name, frozenset(QUEUES[queue_id] for queue_id in queue_ids))
        await self.invoke(RequestCode.UNLOCK_BATCH_MQ, Header(), body)


class Producing:
    """One connection that sends without waiting for the answers, up to a window."""

    def __init__(self, connection: Connection, number: int, first_id: int, dice: random.Random) -> None:
        self._connection = connection
        self._number = number
        self._first_id = first_id
        self._dice = dice
        self._loop = asyncio.get_running_loop()
        self._window = asyncio.Semaphore(_WINDOW)

    async def run(self) -> None:
        """Sends until the process ends."""
        ids = itertools.count(self._first_id)
        for turn in itertools.count():
            await self._window.acquire()
            if turn % 8 == 0:
                await asyncio.sleep(self._dice.choice((0.0, 0.002, 0.02)))
            match self._dice.randrange(12):
                case 0:
                    self._send_later(next(ids))
                case 1 | 2:
                    self._send(TOPIC, [next(ids) for _ in range(3)])
                case 3:
                    self._send(f"New{self._first_id // IDS_OF_LIFE}-{turn // 40}", [next(ids)])
                case 4:
                    self._send(TOPIC, [next(ids)], b"WAIT\x01false\x02")
                case _:
                    self._send(TOPIC, [next(ids)])

    def _send(self, topic: str, ids: list[int], properties: bytes = b"") -> None:
        queue_id = self._dice.choice(QUEUE_IDS)

        def told(answer: Response) -> None:
            offset = expect_header(answer, SendMessageResponseHeader).queue_offset
            say("sent", topic, queue_id, offset, len(ids), ids[0])

        if len(ids) == 1:
            self._ask(RequestCode.SEND_MESSAGE_V2, topic, queue_id, b"%d" % ids[0], properties, told)
        else:
            batch = MessageBatch([BatchMessage(b"%d" % each, properties) for each in ids])
            self._ask(RequestCode.SEND_BATCH_MESSAGE, topic, queue_id, batch, properties, told)

    def _send_later(self, each: int) -> None:
        properties = b"DELAY\x01%d\x02" % self._dice.randint(1, 3)
        self._ask(
            RequestCode.SEND_MESSAGE_V2, "Later", 0, b"%d" % each, properties, lambda _: say("later", each)
        )

    def _ask(
        self,
        code: RequestCode,
        topic: str,
        queue_id: int,
        body: bytes | MessageBatch,
        properties: bytes,
        acknowledged: Callable[[Response], None],
    ) -> None:
        is_batch = isinstance(body, MessageBatch)
        header = SendMessageHeader(
            f"pg{self._number}", topic, "TBW102", 4, queue_id, 0, 0, 0, properties, is_batch=is_batch
        )

        def told(answer: Response) -> None:
            if answer.code is ResponseCode.SUCCESS:
                acknowledged(answer)
            else:
                say("refused", int(answer.code))
            self._loop.call_soon_threadsafe(self._window.release)

        self._connection.ask(Request(code, header, body), told)


class Consuming:
    """Orderly consumers at the ends of two connections: each queue has one owner, which changes at times."""

    def __init__(self, broker: Broker, dice: random.Random) -> None:
        self._broker = broker
        self._dice = dice
        self._clients = [Connection(broker, name) for name in CLIENTS]
        self._owners: dict[int, Connection] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._committed: dict[int, int] = {}

    async def begin(self) -> None:
        """Has each client take what it had in the life before, and what is free."""
        for client in self._clients:
            want_all(client)
            for queue_id in sorted(await client.lock(QUEUE_IDS)):
                self._start(queue_id, client)

    async def hand_over(self) -> None:
        """Has queues change their owners until the process ends."""
        while True:
            await asyncio.sleep(self._dice.uniform(0.02, 0.2))
            queue_id = self._dice.choice(list(self._owners))
            before = self._owners.pop(queue_id)
            task = self._tasks.pop(queue_id)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            say("frees", queue_id)
            await before.unlock([queue_id])
            say("free", queue_id)
            after = self._dice.choice(self._clients)
            say("wants", queue_id, after.name)
            assert await after.lock([queue_id]) == {queue_id}
            self._start(queue_id, after)

    async def save(self) -> None:
        """Saves offsets now and then, in a thread as a duty does."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0.1)
            committed = dict(self._committed)
            await loop.run_in_executor(None, self._broker.persist)
            for place in committed.items():
                say("saved", *place)

    def _start(self, queue_id: int, client: Connection) -> None:
        say("owns", queue_id, client.name)
        self._owners[queue_id] = client
        self._tasks[queue_id] = asyncio.create_task(self._consume(queue_id, client))

    async def _consume(self, queue_id: int, client: Connection) -> None:
        asked = QueryConsumerOffsetHeader(GROUP, TOPIC, queue_id)
        answer = await client.invoke(RequestCode.QUERY_CONSUMER_OFFSET, asked)
        is_found = answer.code is ResponseCode.SUCCESS
        offset = expect_header(answer, OffsetResponseHeader).offset if is_found else 0
        say("from", queue_id, offset)
        while True:
            say("commits", queue_id, offset)
            pulled = PullMessageHeader(
                GROUP, TOPIC, queue_id, offset, 16, int(_PULL_FLAGS), offset, 15_000, 0, "*"
            )
            answer = await client.invoke(RequestCode.PULL_MESSAGE, pulled)
            self._commit(queue_id, offset)
            if answer.code is ResponseCode.SUCCESS:
                for record in expect_body(answer, RecordsBody).records:
                    message = decode_message(record)
                    say("got", queue_id, message.queue_offset, bytes(message.body).decode())
            offset = expect_header(answer, PullMessageResponseHeader).next_begin_offset
            if self._dice.random() < 0.5:
                say("commits", queue_id, offset)
                header = UpdateConsumerOffsetHeader(GROUP, TOPIC, queue_id, offset)
                await client.invoke(RequestCode.UPDATE_CONSUMER_OFFSET, header)
                self._commit(queue_id, offset)

    def _commit(self, queue_id: int, offset: int) -> None:
        self._committed[queue_id] = offset
        say("committed", queue_id, offset)


def want_all(client: Connection) -> None:
    """Says before it is asked for that a client may have every queue that is free."""
    for queue_id in QUEUE_IDS:
        say("wants", queue_id, client.name)


async def _live(broker: Broker, number: int, dice: random.Random) -> None:
    rival = Connection(broker, f"rival-{number}")
    want_all(rival)
    free = sorted(await rival.lock(QUEUE_IDS))
    say("rival", *free)
    for queue_id in free:
        say("owns", queue_id, rival.name)
        say("frees", queue_id)
    await rival.unlock(free)
    for queue_id in free:
        say("free", queue_id)
    embedded = Connection(broker, f"embedded-{number}", is_remote=False)
    say("embedded", *sorted(await embedded.lock(QUEUE_IDS, EMBEDDED_GROUP)))
    consuming = Consuming(broker, dice)
    await consuming.begin()
    first_id = number * IDS_OF_LIFE
    producing = [
        Producing(Connection(broker, f"p{each}"), each, first_id + each * IDS_OF_PRODUCER, dice)
        for each in range(PRODUCERS)
    ]
    say("ready")
    await asyncio.gather(consuming.hand_over(), consuming.save(), *(each.run() for each in producing))


def _main() -> None:
    root, number, durability = sys.argv[1], int(sys.argv[2]), Durability(sys.argv[3])
    broker = Broker.open(
        root,
        config=on_a_roomy_disk(BrokerConfig(delay_levels=DELAY_LEVELS, persist_interval_ms=30)),
        durability=durability,
        segment_size_bytes=1 << 20,
        queue_file_size_bytes=20_000,
    )
    asyncio.run(_live(broker, number, random.Random(f"{root}-{number}")))


if __name__ == "__main__":
    _main()

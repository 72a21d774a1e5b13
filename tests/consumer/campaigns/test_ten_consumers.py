"""Ten consumers join, leave, crash, hang and raise, and clocks jump: at least once, in order, none passed.

On virtual time, in one process: two virtual days with ``--full``, an hour without. What is held against a
model after every step:

- a group commits no offset above its lowest message that is not finished;
- in order, a message is given only once all before it in its queue were done, and only to who has the lock;
- and in the end every message was done, and every queue is committed to its end.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from typing_extensions import override

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record.message import Message
from tests.support.brokers import open_broker
from tests.support.recording import RecordingLink
from tests.support.scale import commit_seed, is_full, repeatable, scaled

QUEUES: Final = 8
MEMBERS: Final = 10
HOURS: Final = scaled(1, 48)
MS_OF_HOUR: Final = 3_600_000
TIMEOUT_MS: Final = 120_000
"""After which a message that a listener hangs at is sent back."""
KINDS: Final = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


class JumpingClock(VirtualClock):
    """A virtual clock whose wall clock people set, forward and back; the other one goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by_ms = 0

    @override
    def now_ms(self) -> int:
        return super().now_ms() + self.set_by_ms


class Model:
    """What became of each message.

    Attributes:
        sent: How many messages each queue has.
        done: Offsets of each queue that a listener was done with.
        passed: Those that were sent back, or are late: their queue need not wait for them.
        at_work: Since when a listener is at a message, on the monotonic clock.
        wrong: What must not be.
    """

    def __init__(self, clock: VirtualClock, *, is_in_order: bool) -> None:
        self.clock = clock
        self.is_in_order = is_in_order
        self.sent = [0] * QUEUES
        self.done: list[set[int]] = [set() for _ in range(QUEUES)]
        self.passed: list[set[int]] = [set() for _ in range(QUEUES)]
        self.at_work: dict[tuple[int, int], float] = {}
        self.wrong: list[str] = []
        self.given = self.again = 0
        self._floors = [0] * QUEUES
        self._next = [0] * QUEUES

    def begin(self, queue_id: int, offset: int) -> None:
        """Notes that a listener was given a message."""
        self.given += 1
        self.again += offset in self.done[queue_id]
        if self.is_in_order and offset > self._next_of(queue_id):
            self.wrong.append(
                f"queue {queue_id}: {offset} was given before {self._next_of(queue_id)} was done"
            )
        self.at_work.setdefault((queue_id, offset), self.clock.monotonic_ms())

    def end(self, queue_id: int, offset: int, *, is_done: bool, may_pass: bool) -> None:
        """Notes how the listener came back."""
        self.at_work.pop((queue_id, offset), None)
        if is_done:
            self.done[queue_id].add(offset)
        elif may_pass and not self.is_in_order:
            self.passed[queue_id].add(offset)

    def _next_of(self, queue_id: int) -> int:
        done = self.done[queue_id]
        while self._next[queue_id] in done:
            self._next[queue_id] += 1
        return self._next[queue_id]

    def floor(self, queue_id: int) -> int:
        """Returns the lowest offset that is not finished."""
        if not self.is_in_order:
            late_ms = self.clock.monotonic_ms() - TIMEOUT_MS
            late = [place for place, since_ms in self.at_work.items() if since_ms <= late_ms]
            for number, offset in late:
                self.passed[number].add(offset)
        done, passed = self.done[queue_id], self.passed[queue_id]
        while (at := self._floors[queue_id]) in done or at in passed:
            self._floors[queue_id] += 1
        return self._floors[queue_id]


class Member:
    """A member of the group, and what its listener does."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.is_alive = True
        self.link = RecordingLink(world.broker, name)
        self.consumer = world.kind(
            self.link,
            "g",
            "T",
            self.listen,
            consume_from=ConsumeFrom.FIRST,
            consume_timeout_ms=TIMEOUT_MS,
            pull_count=world.chance.choice([1, 2, 8, 32]),
            suspend_ms=1_000,
            threads=world.chance.choice([1, 3, 20]),
        )
        self.consumer.start()

    async def listen(self, message: Message) -> Any:
        world, model = self.world, self.world.model
        queue_id, offset = map(int, message.body.split(b":"))
        model.begin(queue_id, offset)
        owner = world.broker.locks.owner("g", MessageQueue("T", "broker-a", queue_id))
        if model.is_in_order and owner != self.link.client_id:
            model.wrong.append(
                f"queue {queue_id}: {self.link.client_id} was given {offset}, {owner} has the lock"
            )
        is_done = False
        try:
            await sleep_ms(world.chance.choice([0, 1, 50, 400]))
            said = await self._misbehave()
            is_done = said is None
            return said
        finally:
            model.end(queue_id, offset, is_done=is_done, may_pass=self.is_alive)

    async def _misbehave(self) -> Any:
        chance = self.world.chance
        draw = 1.0 if self.world.is_calm else chance.random()
        if draw < 0.01:
            await sleep_ms(chance.choice([25_000, 70_000, 200_000, 1_200_000]))
        elif draw < 0.03:
            raise chance.choice([RuntimeError, KeyError, OSError, TimeoutError, RecursionError])("it fails")
        elif draw < 0.033:
            raise chance.choice([SystemExit, KeyboardInterrupt])
        elif draw < 0.05:
            return Consume.RECONSUME_LATER
        elif draw < 0.06:
            return chance.choice(["nonsense", 7, object()])
        return None


class World:
    """A broker, a producer, the members, and what happens to them."""

    def __init__(self, broker: Broker, clock: JumpingClock, kind: Any, chance: random.Random) -> None:
        self.broker, self.clock, self.kind, self.chance = broker, clock, kind, chance
        self.model = Model(clock, is_in_order=kind is OrderlyConsumer)
        self.producer = Producer(LocalLink(broker), new_topic_queue_nums=QUEUES)
        self.members: list[Member] = []
        self.leaving: list[Member] = []
        self.is_calm = False
        self.names = iter(range(10**9))
        self.happened: dict[str, int] = {}

    def advance(self, by_ms: int) -> None:
        """Moves time, and goes on where a listener has raised what would end a program."""
        clock = self.clock
        end_ms = clock.monotonic_ms() + by_ms
        while True:
            left_ms = max(0, int(end_ms - clock.monotonic_ms()))
            try:
                self.broker.advance(left_ms)
            except (SystemExit, KeyboardInterrupt):
                continue
            if clock.monotonic_ms() >= end_ms:
                return

    def step(self) -> None:
        """Has something happen, and time pass."""
        steps = {
            "send": 8,
            "join": 3,
            "leave": 1,
            "cut short": 1,
            "crash": 1,
            "lose answers": 2,
            "heal": 1,
            "set the clock": 1,
        }
        name = self.chance.choices([*steps], [*steps.values()])[0]
        self.happened[name] = self.happened.get(name, 0) + 1
        getattr(self, f"_{name.replace(' ', '_')}")()
        self.advance(self.chance.choice([0, 1, 300, 1_000, 5_000, 20_000, 61_000]))
        if self.chance.random() < 0.01:
            self.advance(20 * 60_000)
        self.check()

    def _send(self) -> None:
        for _ in range(self.chance.randrange(1, 30)):
            queue_id = self.chance.randrange(QUEUES)
            body = b"%d:%d" % (queue_id, self.model.sent[queue_id])
            sent = self.producer.send("T", body, queue_id=queue_id)
            assert sent.queue_offset == self.model.sent[queue_id]
            self.model.sent[queue_id] += 1

    def _join(self) -> None:
        if len(self.members) < MEMBERS:
            self.members.append(Member(self, f"m{next(self.names)}"))

    def _gone(self) -> Member | None:
        return self.members.pop(self.chance.randrange(len(self.members))) if self.members else None

    def _leave(self) -> None:
        if (member := self._gone()) is not None:
            member.consumer._begin_to_leave()  # close() would wait for time to pass, which only this moves
            self.leaving.append(member)

    def _cut_short(self) -> None:
        if (member := self._gone()) is not None:
            self._close_at_once(member)

    def _close_at_once(self, member: Member) -> None:
        """Closes a member; what a listener raised that would end a program comes out of that too."""
        for _ in range(100):
            with suppress(TimeoutError, SystemExit, KeyboardInterrupt):
                member.consumer.close(0)
                break
        member.is_alive = False

    def _crash(self) -> None:
        if (member := self._gone()) is not None:
            member.is_alive = False
            member.link.close()

    def _lose_answers(self) -> None:
        if self.members:
            link = self.chance.choice(self.members).link
            codes = set(self.chance.sample([11, 14, 15, 34, 36, 38, 41, 42], 3))
            codes |= {41} if self.chance.random() < 0.5 else set()
            link.cut, link.refused = (codes, set()) if self.chance.random() < 0.5 else (set(), codes)

    def _heal(self) -> None:
        for member in self.members:
            member.link.cut, member.link.refused = set(), set()

    def _set_the_clock(self) -> None:
        self.clock.set_by_ms = self.chance.choice([-MS_OF_HOUR, -1_000, 0, 1_000, MS_OF_HOUR])

    def committed(self, queue_id: int) -> int:
        """Returns what is committed of a queue."""
        return self.broker.offsets.query("g", "T", queue_id) or 0

    def check(self) -> None:
        """Fails where an offset is committed above what is not finished, or order was broken."""
        for queue_id in range(QUEUES):
            committed, floor = self.committed(queue_id), self.model.floor(queue_id)
            if committed > floor:
                self.model.wrong.append(
                    f"queue {queue_id} is committed at {committed}, and {floor} is not finished"
                )
        assert self.model.wrong == []

    def end(self) -> None:
        """Has the trouble end, and two members finish what is left."""
        self._heal()
        for member in [*self.members]:
            self._close_at_once(member)
        self.is_calm = True
        last = [Member(self, f"last{number}") for number in range(2)]
        for _ in range(
            5 * 60 if self.kind is PushConsumer else 10
        ):  # the last steps of the ladder are 2 h long
            self.advance(60_000)
            self.check()
        assert [len(done) for done in self.model.done] == self.model.sent, "at least once"
        for member in last:
            member.consumer.close()
        self.check()
        assert [self.committed(queue_id) for queue_id in range(QUEUES)] == self.model.sent


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def broker(tmp_path: Path, clock: JumpingClock) -> Iterator[Broker]:
    with open_broker(tmp_path, clock) as opened:
        yield opened


@pytest.mark.sampled(1)
@KINDS
def test_ten_consumers_that_join_leave_crash_hang_and_raise(
    broker: Broker, clock: JumpingClock, kind: Any, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.CRITICAL)
    seed = commit_seed()
    with repeatable(seed):
        world = World(broker, clock, kind, random.Random(f"{seed} {kind.__name__}"))
        world._send()
        began_ms = clock.monotonic_ms()
        while clock.monotonic_ms() < began_ms + HOURS * MS_OF_HOUR:
            world.step()
        world.end()
        model = world.model
        print(
            f"seed {seed}: {sum(model.sent)} messages in {HOURS} h, {model.given} times given, {model.again} "
            f"of them again after they were done; {world.happened}"
        )
        assert len(world.happened) == 8 or not is_full()

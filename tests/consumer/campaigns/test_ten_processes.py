"""Ten processes consume from ``seglog serve``: they join, leave and are killed, and listeners hang and raise.

With ``--full`` for two minutes, else a few of them for some seconds, without trouble but leaving and kills.
Held against the journal of all of them: at least once; in order, a message is given only once all before it
in its queue were done; and nothing is committed above the lowest message that is neither done nor sent back.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from seglog.client.connect import make_client
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import OffsetResponseHeader, QueryConsumerOffsetHeader
from tests.consumer.campaigns.member import GROUP, TOPIC
from tests.support.machine.children import child
from tests.support.machine.patience import wait_for_end, wait_until
from tests.support.machine.serving import Serving
from tests.support.scale import commit_seed, is_full, repeatable, scaled

ROOT: Final = Path(__file__).parents[3]
QUEUES: Final = 4
MEMBERS: Final = scaled(3, 10)
SECONDS: Final = scaled(6, 120)


class MemberProcess:
    """A member in another process."""

    def __init__(
        self, address: str, kind: type, name: str, journal: Path, seed: str, *, has_trouble: bool
    ) -> None:
        words = [address, kind.__name__, name, str(journal), seed, str(has_trouble)]
        self._running = ExitStack()
        self._process = self._running.enter_context(
            child(
                [sys.executable, "-m", "tests.consumer.campaigns.member", *words],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        )

    def leave(self) -> None:
        """Has it leave its group in order, as soon as its listeners are done."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """Ends it as ``kill -9`` does."""
        self._running.close()

    def wait(self) -> None:
        """Waits for its end."""
        wait_for_end(self._process, idle_s=30)


class Journal:
    """What all members have noted, as far as it was read.

    Attributes:
        path: Where it is.
        wrong: What must not be.
    """

    def __init__(self, path: Path, *, is_in_order: bool) -> None:
        path.touch()
        self.path = path
        self.wrong: list[str] = []
        self.given = 0
        self.done: list[set[int]] = [set() for _ in range(QUEUES)]
        self._passed: list[set[int]] = [set() for _ in range(QUEUES)]
        self._next, self._floors = [0] * QUEUES, [0] * QUEUES
        self._is_in_order = is_in_order
        self._at = 0

    def read(self) -> None:
        """Goes on reading."""
        with self.path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self._at += len(text)
        for line in text.decode().splitlines():
            what, name, place = line.split()
            queue_id, offset = map(int, place.split(":"))
            if what == "given":
                self.given += 1
                if self._is_in_order and offset > self._next[queue_id]:
                    self.wrong.append(f"{name} was given {place} before {self._next[queue_id]} was done")
            elif what == "done":
                self.done[queue_id].add(offset)
                while self._next[queue_id] in self.done[queue_id]:
                    self._next[queue_id] += 1
            elif not self._is_in_order:
                self._passed[queue_id].add(offset)

    def floor(self, queue_id: int) -> int:
        """Returns the lowest offset that is neither done nor sent back."""
        done, passed = self.done[queue_id], self._passed[queue_id]
        while (at := self._floors[queue_id]) in done or at in passed:
            self._floors[queue_id] += 1
        return self._floors[queue_id]


class Scene:
    """A server, what was sent to it, and the members.

    Attributes:
        sent: How many messages each queue has.
        count: How many members there were.
    """

    def __init__(self, path: Path, kind: type, seed: str, opened: ExitStack) -> None:
        self.chance = random.Random(f"{seed} {kind.__name__}")
        self._kind, self._seed = kind, seed
        serving = Serving(["--ephemeral"])
        opened.callback(serving.close)
        self._address = serving.address
        self._client = opened.enter_context(make_client(serving.address))
        self._producer = opened.enter_context(Producer(self._client, new_topic_queue_nums=QUEUES))
        self.journal = Journal(path / "journal", is_in_order=kind is OrderlyConsumer)
        self.members: list[MemberProcess] = []
        self.leaving: list[MemberProcess] = []
        opened.callback(lambda: [one.kill() for one in (*self.members, *self.leaving)])
        self.sent = [0] * QUEUES
        self.count = 0

    def send(self, most: int) -> None:
        """Sends some messages."""
        for _ in range(self.chance.randrange(1, most)):
            queue_id = self.chance.randrange(QUEUES)
            body = b"%d:%d" % (queue_id, self.sent[queue_id])
            self._producer.send(TOPIC, body, queue_id=queue_id)
            self.sent[queue_id] += 1

    def committed(self, queue_id: int) -> int:
        """Returns what is committed of a queue."""
        header = QueryConsumerOffsetHeader(GROUP, TOPIC, queue_id)
        asked = Request(RequestCode.QUERY_CONSUMER_OFFSET, header)
        found = self._client.link.invoke(asked, 10_000, self._address).header
        return found.offset if isinstance(found, OffsetResponseHeader) else 0

    def check(self) -> None:
        """Fails where too much is committed, or order was broken."""
        journal, offsets = self.journal, [self.committed(queue_id) for queue_id in range(QUEUES)]
        journal.read()  # behind what was committed
        for queue_id, offset in enumerate(offsets):
            if offset > journal.floor(queue_id):
                journal.wrong.append(f"queue {queue_id}: {offset} is above {journal.floor(queue_id)}")
        assert journal.wrong == []

    def join(self, *, has_trouble: bool) -> MemberProcess:
        """Has a member join."""
        self.count += 1
        name = f"m{self.count}"
        member = MemberProcess(
            self._address, self._kind, name, self.journal.path, self._seed, has_trouble=has_trouble
        )
        self.members.append(member)
        return member

    def step(self) -> None:
        """Has something happen."""
        self.send(60)
        draw, members = self.chance.random(), self.members
        if len(members) < MEMBERS and draw < 0.6:
            self.join(has_trouble=is_full())
        elif members and draw < 0.8:
            self.leaving.append(members.pop(self.chance.randrange(len(members))))
            self.leaving[-1].leave()
        elif members:
            members.pop(self.chance.randrange(len(members))).kill()
        time.sleep(self.chance.uniform(0.1, 1.0))
        self.check()

    def is_done(self) -> bool:
        """Returns whether all was done."""
        self.check()
        return [len(done) for done in self.journal.done] == self.sent


@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer] if is_full() else [PushConsumer])
def test_processes_that_join_leave_and_are_killed_at_a_server(tmp_path: Path, kind: type):
    seed = commit_seed()
    with repeatable(seed), ExitStack() as opened:
        scene = Scene(tmp_path, kind, seed, opened)
        scene.send(100)
        end_s = time.monotonic() + SECONDS
        while time.monotonic() < end_s:
            scene.step()
        for member in scene.members:
            member.leave()
        scene.leaving += scene.members
        scene.members.clear()
        last = scene.join(has_trouble=False)
        # Locks of members that were killed live for a minute; what failed waits for 10 s, 30 s, a minute.
        wait_until(scene.is_done, "all messages done", idle_s=90, look_s=0.2)
        last.leave()
        last.wait()
        scene.check()
        assert [scene.committed(queue_id) for queue_id in range(QUEUES)] == scene.sent
        given = scene.journal.given
        print(f"seed {seed}: {sum(scene.sent)} messages, {given} times given, {scene.count} members")

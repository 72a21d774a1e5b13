"""A broker that many connections ask by deferred answers is killed at any moment, and lives on on one store.

Nothing acknowledged is lost or moved, what waits for its time comes once, queues are consumed in order, and
the owners of queues at the ends of connections have them again, while embedded ones cost nothing.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import SystemClock, VirtualClock
from tests.support.brokers import on_a_roomy_disk
from tests.support.crash import deferred_life as life
from tests.support.machine.children import child
from tests.support.machine.patience import looks
from tests.support.material.stores import read_all
from tests.support.scale import chance, scaled

ROOT = Path(__file__).resolve().parents[2]
LIVES = max(2, scaled(3, 25))
DURABILITIES = ("sync", "async")
DELAYS_S = (None, 0.0, 0.1, 0.4, 1.0, 1.5)
"""How long a life works before it is killed; None for one that is killed while it opens."""


@pytest.mark.parametrize("seed", range(scaled(2, 4)))
def test_killed_at_work_with_deferred_answers_it_keeps_what_it_said(tmp_path, seed, record_property):
    dice, killed = chance("deferred", seed), Killed(tmp_path / "store")
    first = dice.randrange(2)
    for number in range(LIVES):
        delay_s = dice.choice(DELAYS_S) if number else 0.5
        killed.live(number, DURABILITIES[(first + number) % 2], delay_s, dice)
        killed.check()
    killed.check_the_end()
    record_property("counts", dict(killed.counts))
    print(f"seed {seed}: {LIVES} kills, {dict(killed.counts)}")
    assert killed.counts["sent"] > LIVES, "it was killed at work"
    assert killed.counts["got"] > LIVES, "its consumers were too"


@dataclass
class Said:
    """What one life said."""

    sent: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    others: dict[str, set[int]] = field(default_factory=dict)
    owners: dict[int, set[str | None]] = field(default_factory=dict)
    """Whose each queue may be: one, or before and after a change."""
    saved: dict[int, int] = field(default_factory=dict)
    committing: dict[int, int] = field(default_factory=dict)


class Killed:
    """One store through many lives of its broker."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.counts: Counter[str] = Counter()
        self.later: set[int] = set()
        self.kept: dict[tuple[str, int], list[int]] = defaultdict(list)
        """Ids by topic and queue, as the store had them after the last kill."""
        self.owners: dict[int, str | None] = dict.fromkeys(life.QUEUE_IDS)
        self.offsets: dict[int, int] = dict.fromkeys(life.QUEUE_IDS, 0)
        self.got: dict[int, dict[int, int]] = {queue_id: {} for queue_id in life.QUEUE_IDS}
        self.said = Said()
        self._next_offsets: dict[int, int] = {}

    def live(self, number: int, durability: str, delay_s: float | None, dice: random.Random) -> None:
        """Lets a broker run for a while, kills it and notes what it said.

        Args:
            number: Of the life.
            durability: Of its store.
            delay_s: How long it works; None to kill it while it opens.
            dice: Choose when that is.
        """
        heard = self.root.with_name("said")
        command = [sys.executable, "-m", life.__name__, str(self.root), str(number), durability]
        with heard.open("wb") as out, child(command, cwd=ROOT, stdout=out) as broker:
            if delay_s is None:
                time.sleep(dice.uniform(0.2, 0.9))
            else:
                for _waited_s in looks("the broker's first word", idle_s=15):
                    assert broker.poll() is None, "it lives until it is killed"
                    if b"ready\n" in heard.read_bytes():
                        break
                time.sleep(delay_s)
            assert broker.poll() is None, "it lives until it is killed"
        self.counts["kills"] += 1
        self.said = Said(owners={queue_id: {owner} for queue_id, owner in self.owners.items()})
        for line in heard.read_text().splitlines(keepends=True):
            assert line.endswith("\n"), "a line is written in one piece"
            self._hear(*line.split())

    def _hear(self, word: str, *of: str) -> None:
        self.counts[word] += 1
        said = self.said
        if word in {"frees", "free", "wants", "owns"}:
            self._hear_of_owner(word, int(of[0]), of[-1])
            return
        match word, [int(each) for each in of if each.isdecimal()]:
            case "sent", [queue_id, offset, count, first]:
                said.sent.append((of[0], queue_id, offset, count, first))
                self.counts["messages"] += count
            case "later", [number]:
                self.later.add(number)
            case "rival" | "embedded", queue_ids:
                said.others[word] = set(queue_ids)
            case "from", [queue_id, offset]:
                self._begin(queue_id, offset)
            case "got", [queue_id, offset, number]:
                self._get(queue_id, offset, number)
            case "commits", [queue_id, offset]:
                said.committing[queue_id] = offset
            case "saved", [queue_id, offset]:
                said.saved[queue_id] = offset
            case _:
                assert word in {"committed", "ready", "refused"}, (word, of)

    def _hear_of_owner(self, word: str, queue_id: int, client: str) -> None:
        may_be = self.said.owners[queue_id]
        match word:
            case "frees":
                may_be.add(None)
            case "wants" if None in may_be:
                may_be.add(client)
            case "free":
                self.said.owners[queue_id] = {None}
            case "owns":
                self.said.owners[queue_id] = {client}

    def _begin(self, queue_id: int, offset: int) -> None:
        known = self.said.committing.get(queue_id)
        assert known is not None or offset == self.offsets[queue_id], "it goes on where the store says"
        assert known in (None, offset), "and the next owner where the one before committed"
        self._next_offsets[queue_id] = offset

    def _get(self, queue_id: int, offset: int, number: int) -> None:
        assert offset == self._next_offsets[queue_id], "one message after the other"
        self._next_offsets[queue_id] = offset + 1
        assert self.got[queue_id].setdefault(offset, number) == number, "the same each time"

    def check(self) -> None:
        """Holds what the next broker finds against what the killed one said."""
        said = self.said
        self._check_others()
        with opened(self.root) as broker:
            for queue in broker.store.queues():
                self._read_on(broker, queue.topic, queue.queue_id)
            for topic, queue_id, offset, count, first in said.sent:
                stored = self.kept[topic, queue_id][offset : offset + count]
                assert stored == list(range(first, first + count)), "what was acknowledged is in its place"
            for queue_id in life.QUEUE_IDS:
                found = broker.offsets.query(life.GROUP, life.TOPIC, queue_id) or 0
                before = self.offsets[queue_id]
                assert said.saved.get(queue_id, before) <= found <= said.committing.get(queue_id, before)
                self.offsets[queue_id] = found
                owner = broker.locks.owner(life.GROUP, life.QUEUES[queue_id])
                assert owner in said.owners[queue_id], "an owner has its queue again"
                self.owners[queue_id] = owner
                embedded = broker.locks.owner(life.EMBEDDED_GROUP, life.QUEUES[queue_id])
                assert embedded is None, "one that died with the broker has none"

    def _check_others(self) -> None:
        others = self.said.others
        free = {queue_id for queue_id, owner in self.owners.items() if owner is None}
        assert others.get("rival", free) == free, "queues of before are not for others"
        assert others.get("embedded", set(life.QUEUE_IDS)) == set(life.QUEUE_IDS)

    def _read_on(self, broker: Broker, topic: str, queue_id: int) -> None:
        if topic.startswith("SCHEDULE"):
            return
        kept = self.kept[topic, queue_id]
        while found := broker.store.get(topic, queue_id, len(kept), 1_000).messages:
            kept += [int(bytes(message.body)) for message in found]

    def check_the_end(self) -> None:
        """Lets time pass, and holds everything that was ever sent or consumed against the store."""
        with opened(self.root) as broker:
            broker.advance("1m")
            for (topic, queue_id), kept in self.kept.items():
                now = [int(bytes(message.body)) for message in read_all(broker.store, topic, queue_id)]
                assert now[: len(kept)] == kept, "no life changes what one before it had"
                if topic != "Later":
                    check_order(now)
            delivered = Counter(int(bytes(each.body)) for each in read_all(broker.store, "Later", 0))
        assert self.later <= delivered.keys(), "what was accepted for later has come"
        assert set(delivered.values()) <= {1}, "and once"
        self.counts["delivered"] = len(delivered)
        for queue_id, got in self.got.items():
            kept = self.kept[life.TOPIC, queue_id]
            assert sorted(got) == list(range(len(got))), "nothing was passed over"
            assert [got[offset] for offset in range(len(got))] == kept[: len(got)]


def check_order(numbers: list[int]) -> None:
    """Ids of a queue: those of each connection rise, so none is there twice either."""
    last: dict[int, int] = {}
    for number in numbers:
        producer = number % life.IDS_OF_LIFE // life.IDS_OF_PRODUCER
        assert number > last.get(producer, -1), "sends of a connection keep their order"
        last[producer] = number


def opened(root: Path) -> Broker:
    """Returns a broker whose time stands still."""
    config = on_a_roomy_disk(BrokerConfig(delay_levels=life.DELAY_LEVELS))
    return Broker.open(root, clock=VirtualClock(SystemClock().now_ms()), config=config)

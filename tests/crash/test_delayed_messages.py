"""Delayed messages survive kills and power cuts at any moment: none is lost, none comes twice."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.errors import StoreError
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.store import MessageStore
from tests.support.brokers import send, send_delayed
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.crash.crash_work import StillClock
from tests.support.material.stores import read_all
from tests.support.scale import scaled, seed_number

STORE = Path("/store")
LIVES = 6
LEVELS = (1, 1, 1, 2, 2, 3)


class Story:
    """Brokers on one disk, each of which ends before its time.

    Attributes:
        powers_cut: How often everything that was not synced could be lost.
        kills: How often only the process ended.
    """

    def __init__(self, seed: int, *, may_lose_power: bool) -> None:
        self._dice = random.Random(seed)
        self._files = CrashFiles(self._dice)
        self._clock = StillClock(1_800_000_000_000)
        self._may_lose_power = may_lose_power
        self._sent = 0
        self.powers_cut = 0
        self.kills = 0

    def live(self) -> None:
        """Lets a broker work until its process dies, perhaps while it opens."""
        self._files.calls_left = self._dice.randrange(5, 250)
        broker: Broker | None = None
        try:
            broker = self.open()
            while True:
                self._step(broker)
        except KilledError:
            pass
        if self._may_lose_power and self._dice.random() < 0.5:
            self._files = self._files.after_power_loss()
            self.powers_cut += 1
        else:
            self._files = self._files.after_kill()
            self.kills += 1
        if broker is not None:
            with pytest.raises((KilledError, StoreError)):
                broker.close()

    def open(self) -> Broker:
        """Opens a broker for what is left."""
        store = MessageStore.open(
            STORE,
            segment_size_bytes=16_384,
            queue_file_size_bytes=2_000,
            index_geometry=IndexGeometry(16, 64),
            flush_interval_ms=1 << 40,
            clock=self._clock,
            files=self._files,
        )
        return Broker(store, clock=self._clock)

    def last(self) -> Broker:
        """Opens a broker that does not die."""
        self._files.calls_left = None
        return self.open()

    def _step(self, broker: Broker) -> None:
        for _ in range(self._dice.randrange(4)):
            body = b"%d:" % self._sent + b"x" * self._dice.randrange(300)
            self._sent += 1
            send_delayed(broker, self._dice.choice(LEVELS), body, queue_id=self._dice.randrange(2))
            if self._dice.random() < 0.3:
                send(broker, "T", body, queue_id=self._dice.randrange(2))
        if self._dice.random() < 0.2:
            broker.store.flush()
        broker.advance(self._dice.choice((0, 1, 500, 1_000, 3_000)))


def delayed_and_delivered(broker: Broker) -> tuple[Counter[bytes], Counter[bytes]]:
    waiting: Counter[bytes] = Counter()
    delivered: Counter[bytes] = Counter()
    for queue in broker.store.queues():
        for message in read_all(broker.store, queue.topic, queue.queue_id):
            if queue.topic == SCHEDULE_TOPIC:
                waiting[message.body] += 1
            elif "REAL_TOPIC" in message.properties:
                delivered[message.body] += 1
    return waiting, delivered


@pytest.mark.parametrize("seed", range(scaled(24, 1_000)))
def test_a_kill_at_any_moment_loses_nothing_and_has_nothing_come_twice(seed):
    story = Story(seed_number("kills", seed), may_lose_power=False)
    for _ in range(LIVES):
        story.live()
    with story.last() as broker:
        broker.advance("1d")
        waiting, delivered = delayed_and_delivered(broker)
    assert story.kills == LIVES
    assert waiting == delivered


@pytest.mark.parametrize("seed", range(scaled(24, 1_000)))
def test_a_power_cut_at_any_moment_loses_nothing_that_waits(seed):
    story = Story(seed_number("power cuts", seed), may_lose_power=True)
    for _ in range(LIVES):
        story.live()
    with story.last() as broker:
        broker.advance("1d")
        waiting, delivered = delayed_and_delivered(broker)
    assert waiting.keys() <= delivered.keys()
    assert all(count == 1 for count in delivered.values())

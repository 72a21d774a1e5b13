"""Java's clients go on by themselves when `seglog serve` is killed, and what was acknowledged is there."""

from __future__ import annotations

import random
import signal
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from seglog import MessageStore
from tests.interop.judging.java_worker import JavaWorker, Place
from tests.support.machine.patience import wait_until
from tests.support.machine.serving import Serving
from tests.support.scale import commit_seed, scaled

pytestmark = pytest.mark.interop

QUEUES: Final = 4
KILLS: Final = scaled(3, 100)
PRODUCERS: Final = ("p1", "p2", "p3")
BETWEEN_S: Final = (0.2, 1.5)
"""How long the server runs between a message that was acknowledged after one kill and the next kill."""


def stored(path: Path, topic: str) -> set[Place]:
    """Returns what a store has of a topic."""
    found: set[Place] = set()
    with MessageStore.open(path) as store:
        for queue_id in range(QUEUES):
            at = store.min_offset(topic, queue_id)
            while at < store.max_offset(topic, queue_id):
                page = store.get(topic, queue_id, at, 1_000)
                found |= {
                    Place(message.queue_id, message.queue_offset, bytes(message.body).decode())
                    for message in page.messages
                }
                at = page.next_offset
    return found


def have_gone_on(producing: JavaWorker, before: list[int]) -> bool:
    """Returns whether each producer had more acknowledged than so many messages."""
    return all(len(producing.sent[name]) > count for name, count in zip(PRODUCERS, before, strict=True))


def test_everything_acknowledged_to_java_before_kills_of_the_server_is_there_and_is_consumed(
    judge, tmp_path, record_property
):
    chance, path = random.Random(commit_seed()), tmp_path / "served"
    with ExitStack() as running:
        serving = running.enter_context(closing(Serving([str(path), "--sync"])))
        port = int(serving.address.rpartition(":")[2])
        producing = running.enter_context(JavaWorker(serving.address, tmp_path / "producing"))
        consuming = running.enter_context(JavaWorker(serving.address, tmp_path / "consuming"))
        for name in PRODUCERS:
            producing.send(name, "T", QUEUES)
        wait_until(lambda: all(producing.sent.values()), idle_s=60)
        consuming.join("c", "g", "T", "CLUSTERING")
        wait_until(lambda: consuming.given["c"], idle_s=60)
        for _ in range(KILLS):
            before = [len(producing.sent[name]) for name in PRODUCERS]
            time.sleep(chance.uniform(*BETWEEN_S))
            serving.end(signal.SIGKILL)
            serving = running.enter_context(closing(Serving([str(path), "--sync"], port=port)))
            wait_until(partial(have_gone_on, producing, before), idle_s=120)
        counts = [producing.hush(name) for name in PRODUCERS]
        acknowledged = {place for places in producing.sent.values() for place in places}
        assert len(acknowledged) == sum(counts)
        wait_until(lambda: acknowledged <= set(consuming.given["c"]), idle_s=120)
        code, _ = serving.end(signal.SIGTERM)
        assert code == 0
        given = consuming.given["c"]
    there = stored(path, "T")
    assert acknowledged <= there
    assert set(given) <= there
    assert len({place.body for place in acknowledged}) == len(acknowledged)
    for name, value in (
        ("kills", KILLS),
        ("acknowledged", len(acknowledged)),
        ("stored twice", len(there) - len({place.body for place in there})),
        ("given twice", len(given) - len(set(given))),
        ("tried again", sum(producing.failures.values())),
    ):
        record_property(name, value)
        print(f"{name}: {value}")

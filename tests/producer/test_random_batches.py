"""A batch is sent only if each of its messages, sent by itself, would be there as soon.

No broker looks into a batch: a message that says when it is due would be consumed at once.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from seglog import AsyncProducer, NewMessage, Producer
from seglog.broker.broker import Broker
from seglog.errors import InvalidArgumentError, SeglogError
from tests.support.brokers import open_broker
from tests.support.faces import driven
from tests.support.scale import chance, scaled

NAMES = ("DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "colour", "trace")
VALUES = ("0", "1", "3", "18", "99", "-1", "x", "", " 2", "1800000000000")
OVER = ("0", "-1")
"""Times that are over. A broker without timers refuses them by themselves, and RocketMQ's does not."""


def drawn(dice: random.Random, number: int) -> NewMessage:
    """Returns a message, seldom one with a delay."""
    count = dice.choice((0, 0, 0, 1, 2))
    found = {name: dice.choice(VALUES) for name in dice.sample(NAMES, count)}
    is_of_timer_over = [name for name, value in found.items() if name.startswith("TIMER") and value in OVER]
    left = {name: value for name, value in found.items() if value and name not in is_of_timer_over}
    return NewMessage(b"%d" % number, properties=left)


def is_there_at_once(broker: Broker, producer: Any, message: NewMessage) -> bool:
    """Returns whether a message that is sent by itself is in its topic when the send returns."""
    before = broker.store.max_offset("Single", 0)
    properties = dict(message.properties or {})
    try:
        level = int(properties.pop("DELAY", "0"))
        producer.send("Single", message.body, properties=properties, queue_id=0, delay_level=max(0, level))
    except (SeglogError, ValueError):
        return False
    return broker.store.max_offset("Single", 0) == before + 1


@pytest.mark.parametrize("kind", [Producer, AsyncProducer])
def test_no_message_of_a_batch_comes_sooner_than_it_would_by_itself(kind: Any, tmp_path: Path):
    dice, outcomes = chance("batches", kind.__name__), {True: 0, False: 0}
    with open_broker(tmp_path / "s") as broker, driven(kind, broker, "g") as producer:
        for _ in range(scaled(160, 4_000)):
            batch = [drawn(dice, number) for number in range(dice.randint(1, 5))]
            before = broker.store.max_phy_offset, broker.store.max_offset("T", 0)
            try:
                producer.send_batch("T", batch, queue_id=0)
            except InvalidArgumentError:
                assert (broker.store.max_phy_offset, broker.store.max_offset("T", 0)) == before
                outcomes[False] += 1
            else:
                assert broker.store.max_offset("T", 0) == before[1] + len(batch)
                outcomes[True] += 1
                late = [one for one in batch if not is_there_at_once(broker, producer, one)]
                assert late == [], "by itself it is not there yet"
    assert min(outcomes.values()) > 0, outcomes

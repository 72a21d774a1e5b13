"""Groups whose queues are shared, and how RocketMQ's own classes share them.

``tests/golden/allocations.jsonl.xz`` has a line a group: queues and members as Java sorts them, and by
strategy the share of each member and of a stranger, as places in the sorted queues. Java made it:
``tests/interop/test_allocations.py`` rebuilds it, and writes it where ``SEGLOG_WRITE_GOLDEN`` is set.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

GOLDEN: Final = Path(__file__).resolve().parents[2] / "golden" / "allocations.jsonl.xz"
STRANGER: Final = "nobody"
GROUPS: Final = 160
_SEED: Final = 20
_BROKERS: Final = (
    "broker-a", "broker-b", "broker-a-1", "room1@broker-a", "room1@broker-b", "room2@broker-a", "room3@b",
    "room2@", "@broker-c", "room1@broker-a@x", "room1@broker@", "room2@@b", "@", "", "Broker-a", "zimmer3@b",
)  # fmt: skip
_INSTANCES: Final = (
    "#1",
    "#DEFAULT",
    "",
    "-0",
    "-10",
    "#é",
    "#中",
    "#\U0001f600",
    "#\uff5e",
    "#\ue000",
    "#Z",
    "#z",
)


def groups() -> Iterator[dict[str, Any]]:
    """Yields questions for the judge: the same groups each time."""
    chance = random.Random(_SEED)
    for number in range(GROUPS):
        has_rooms = number % 2 == 0
        queues = _queues(chance, has_rooms=has_rooms)
        yield {
            "queues": queues,
            "members": _members(chance, has_rooms=has_rooms, may_repeat=number % 5 == 4),
            "rooms": chance.sample(("room1", "room2", "room3", ""), chance.randint(1, 3)),
            "configured": [chance.randrange(len(queues)) for _ in range(chance.randint(0, 3))],
            "virtualNodes": chance.choice((0, 1, 2, 10, 10, 10, 17)),
        }


def golden_groups() -> list[dict[str, Any]]:
    """Returns the lines of the golden file, with what was asked."""
    with lzma.open(GOLDEN, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _queues(chance: random.Random, *, has_rooms: bool) -> list[tuple[str, str, str]]:
    topics = ["T", "t", "%RETRY%G", "orders-2"][: 1 if chance.random() < 0.8 else 3]
    brokers = [name for name in _BROKERS if not has_rooms or name.find("@") > 0]
    if chance.random() < 0.6:
        brokers = [name for name in brokers if name.count("@") == has_rooms and not name.endswith("@")]
    found = [
        (topic, broker, str(queue_id))
        for topic in topics
        for broker in chance.sample(brokers, chance.randint(1, min(4, len(brokers))))
        for queue_id in range(chance.choice((1, 2, 3, 4, 4, 5, 8, 11)))
    ]
    chance.shuffle(found)
    return found


def _members(chance: random.Random, *, has_rooms: bool, may_repeat: bool) -> list[str]:
    names: dict[str, None] = {}
    rooms = chance.sample(("room1", "room2", "room3", "room4"), chance.randint(1, 3))
    for _ in range(chance.choice((1, 2, 2, 3, 3, 4, 5, 7, 10, 13))):
        room = f"{chance.choice(rooms)}@" if has_rooms else ""
        names[
            f"{room}10.0.0.{chance.randint(1, 12)}@{chance.choice((7, 71, 7100))}{chance.choice(_INSTANCES)}"
        ] = None
    members = list(names)
    if may_repeat:
        members += chance.choices(members, k=2)
    chance.shuffle(members)
    return members

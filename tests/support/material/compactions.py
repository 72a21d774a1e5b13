"""Random stores for compaction, and plain Python that says what must be left of them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from seglog.clock import VirtualClock
from seglog.spark.compact.policy import Policy
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.record import PLACEHOLDER_FLAG, PLACEHOLDER_PROPERTY
from seglog.storage.format.record.message import Message
from seglog.storage.format.record.properties import CRC32
from seglog.storage.store import MessageStore
from tests.support.material.stores import Served, served

STEP_MS: Final = 1000
BEGIN_MS: Final = 1_800_000_000_000
SIZES: Final[dict[str, Any]] = {
    "segment_size_bytes": 16384,
    "queue_file_size_bytes": 2000,
    "index_geometry": IndexGeometry(500, 2000),
}
Place = tuple[str, int, int]


@dataclass(frozen=True)
class Filled:
    """A store with messages.

    Attributes:
        root: Where it is.
        messages: All of it.
        now_ms: When the last message was stored.
        offsets: Where each group continues, by group, topic and queue.
    """

    root: Path
    messages: Served
    now_ms: int
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)


def fill_random(
    root: Path, seed: int, count: int = 700, *, record_crc: bool | None = None, begin_ms: int = BEGIN_MS
) -> Filled:
    """Makes a store of keyed and other messages in three topics, tombstones among them, and two groups."""
    rng = random.Random(seed)
    clock = VirtualClock(begin_ms)
    with MessageStore.open(root, clock=clock, record_crc=record_crc, **SIZES) as store:
        for number in range(count):
            topic, queue_id = rng.choice(["Prices", "Events", "Long" * 40]), rng.randrange(2)
            keys = rng.choice([None, "a b", f"k{rng.randrange(25)}", f"longer-key-{rng.randrange(9)}"])
            body = b"" if rng.random() < 0.08 else b"%d " % number * rng.randrange(1, 60)
            store.put(topic, body, queue_id=queue_id, keys=keys, tags=rng.choice([None, "T"]))
            clock.advance(STEP_MS)
        messages = served(store)
    offsets = {
        (group, topic, queue_id): rng.randrange(len(messages[topic, queue_id]))
        for group, topic in (("slow", "Prices"), ("other", "Events"))
        for queue_id in (0, 1)
    }
    write_offsets(root, offsets)
    return Filled(root, messages, clock.now_ms(), offsets)


def write_offsets(root: Path, offsets: dict[tuple[str, str, int], int]) -> None:
    """Writes the offsets of groups as a broker does."""
    table: dict[str, dict[str, int]] = {}
    for (group, topic, queue_id), offset in offsets.items():
        table.setdefault(f"{topic}@{group}", {})[str(queue_id)] = offset
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))


def survivors(filled: Filled, policies: dict[str, Policy], *, allow_undelivered: bool = False) -> set[Place]:
    """Returns the places of the messages that stay: one dict of keys for each queue, and a few rules."""
    kept: set[Place] = set()
    for (topic, queue_id), messages in filled.messages.items():
        policy = policies.get(topic, Policy())
        last: dict[str, int] = {}
        for message in messages:
            if _key(message) is not None and _is_cleanable(message, policy, filled.now_ms):
                last[str(_key(message))] = message.queue_offset
        room = policy.retention_bytes
        for message in reversed(messages):
            age_ms = filled.now_ms - message.store_timestamp_ms
            goes = False
            if policy.compact and _key(message) is not None and _is_cleanable(message, policy, filled.now_ms):
                is_last = last[str(_key(message))] == message.queue_offset
                goes = not is_last or (not message.body and age_ms >= policy.delete_retention_ms)
            if room is not None:
                room -= message.size_bytes
                goes |= room < 0
            goes |= policy.retention_ms is not None and age_ms > policy.retention_ms
            goes |= not policy.erased.isdisjoint([*message.keys, message.properties.get("KEYS", "")])
            groups = {group for group, of_topic, _queue in filled.offsets if of_topic == topic}
            floors = [filled.offsets.get((group, topic, queue_id), 0) for group in groups]
            is_held = not allow_undelivered and bool(floors) and message.queue_offset >= min(floors)
            if not goes or is_held:
                kept.add((topic, queue_id, message.queue_offset))
    return kept


def assert_survived(root: Path, filled: Filled, kept: set[Place]) -> None:
    """Asserts that a store serves exactly those messages of what it held, each where it was."""
    with MessageStore.open(root, read_only=True) as store:
        now = served(store)
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}
    assert ends == {key: messages[-1].queue_offset + 1 for key, messages in filled.messages.items()}
    before = {(*key, m.queue_offset): m for key, messages in filled.messages.items() for m in messages}
    after = {(*key, m.queue_offset): m for key, messages in now.items() for m in messages}
    placeholders = {place for place, message in after.items() if message.flag == PLACEHOLDER_FLAG}
    assert after.keys() - placeholders == kept
    assert {place: said(after[place]) for place in kept} == {place: said(before[place]) for place in kept}
    for topic, queue_id in filled.messages:
        own = sorted(at for t, q, at in after if (t, q) == (topic, queue_id))
        assert own == list(range(own[0], ends[topic, queue_id]))
        is_first = (topic, queue_id, own[0]) in kept
        assert is_first or own == [ends[topic, queue_id] - 1]
    for place in placeholders:
        old, new = before[place], after[place]
        assert new.properties.keys() <= {PLACEHOLDER_PROPERTY, CRC32}
        assert (new.body, new.store_timestamp_ms, new.store_host) == (
            b"",
            old.store_timestamp_ms,
            old.store_host,
        )


def said(message: Message) -> tuple[object, ...]:
    """Returns all of a message that does not depend on its place."""
    fields = {name: getattr(message, name) for name in Message.__dataclass_fields__}
    properties = {name: value for name, value in message.properties.items() if name != CRC32}
    del fields["phy_offset"], fields["properties_raw"]
    return (*fields.values(), tuple(sorted(properties.items())))


def _key(message: Message) -> str | None:
    return message.properties.get("KEYS")


def _is_cleanable(message: Message, policy: Policy, now_ms: int) -> bool:
    return now_ms - message.store_timestamp_ms >= policy.min_compaction_lag_ms


def is_kept(queue_offset: int, last_of_key: int, body_bytes: int, last_mapped: int) -> bool:
    """Returns whether a compaction keeps a record that has a key.

    Args:
        queue_offset: Of the record.
        last_of_key: Queue offset of the last mapped record of its key, -1 for none.
        body_bytes: Size of its body; a record without body deletes its key, and itself.
        last_mapped: Queue offset of the last record that was mapped; later ones are kept.
    """
    return queue_offset > last_mapped or (queue_offset >= last_of_key and body_bytes > 0)

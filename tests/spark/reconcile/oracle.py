"""What became of each message, in plain Python over dicts: no numpy, no Spark, no code of the jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from seglog.storage.format.record.message import message_id
from seglog.storage.format.record.properties import decode_properties
from seglog.storage.format.record.record import Damage, examine
from tests.spark.reconcile.planted import DELAY, HALF, OP, WHEEL, Planted
from tests.support.material.log_records import iter_log

Row = tuple[
    Any, ...
]  # group, store, topic, queueId, queueOffset, physicalOffset, storeTimestamp, msgId, verdict


@dataclass(frozen=True)
class Entry:
    """A record that is whole."""

    store: str
    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    time_ms: int
    place_id: str
    properties: dict[str, str]
    body: bytes

    @property
    def unique(self) -> str | None:
        return self.properties.get("UNIQ_KEY")

    @property
    def name(self) -> str:
        return self.unique or self.place_id

    @property
    def slots(self) -> range:
        first = int(self.properties.get("INNER_BASE", self.queue_offset))
        return range(first, first + int(self.properties.get("INNER_NUM", 1)))


class Oracle:
    """Reads planted stores and judges."""

    def __init__(self, planted: list[Planted]) -> None:
        self.planted = {str(one.root): one for one in planted}
        self.entries: list[Entry] = []
        self.ends: dict[tuple[str, str, int], tuple[int, int]] = {}
        for one in planted:
            self.read(one)
        self.groups: dict[str, list[str]] = defaultdict(list)
        for one in planted:
            for group, topic, _queue_id in one.offsets:
                if is_business(topic) and group not in self.groups[topic]:
                    self.groups[topic].append(group)

    def read(self, one: Planted) -> None:
        slots: dict[tuple[str, int], list[int]] = defaultdict(list)
        for record in iter_log(one.root):
            message = record.row
            properties = decode_properties(record.properties)
            host = record.message().store_host if is_whole(record) else None
            entry = Entry(
                str(one.root),
                record.topic,
                message.queue_id,
                message.queue_offset,
                record.phy_offset,
                message.store_timestamp_ms,
                message_id(host, record.phy_offset) if host is not None else "",
                properties,
                record.record[message.body_at : message.body_at + message.body_bytes],
            )
            slots[record.topic, message.queue_id] += entry.slots
            if host is not None:
                self.entries.append(entry)
        for (topic, queue_id), end in one.ends.items():
            # Of a queue without any record left only its end is known.
            self.ends[str(one.root), topic, queue_id] = min(slots[topic, queue_id], default=end), end

    def rows(self, receipts: list[dict[str, Any]] | None = None) -> Counter[Row]:
        there = list(self.present())
        seen = {row[1:5] for row in there}
        absent = list(self.absent(seen))
        lost = {row[2:5] for row in absent if row[-1] == "lost"}
        found = there + absent
        for entry, verdict in self.waiting():
            topic, queue_id = entry.properties["REAL_TOPIC"], int(entry.properties["REAL_QID"])
            row = (entry.store, topic, queue_id, None, entry.phy_offset, entry.time_ms, entry.name, verdict)
            found += [(group, *row) for group in self.groups_of(topic)]
        for msg_id, topic, queue_id, slot in self.unanswered(receipts or [], lost):
            row = (None, topic, queue_id, slot, None, None, msg_id, "lost")
            found += [(group, *row) for group in self.groups_of(topic)]
        return Counter(found)

    def present(self):
        """Yields the rows of messages that are where they belong."""
        states = self.copies()
        earlier: set[tuple[str, str]] = set()
        for entry in sorted(self.entries, key=lambda one: (one.time_ms, one.store, one.phy_offset)):
            if not is_business(entry.topic):
                continue
            is_again = (entry.topic, entry.unique) in earlier
            if entry.unique is not None:
                earlier.add((entry.topic, entry.unique))
            queue = entry.store, entry.topic, entry.queue_id
            for slot in entry.slots:
                for group in self.groups_of(entry.topic):
                    state = max(states.get((group, name), 0) for name in (entry.name, entry.place_id))
                    passed = self.has_passed(group, *queue, slot)
                    verdict = (None, "retrying", "dead")[state] or ("delivered" if passed else "pending")
                    rest = (entry.phy_offset, entry.time_ms, entry.name)
                    yield (group, *queue, slot, *rest, "duplicated" if is_again else verdict)

    def absent(self, seen: set[Row]):
        """Yields the rows of slots that have no message."""
        for queue, (low, high) in self.ends.items():
            if not is_business(queue[1]):
                continue
            groups = self.groups_of(queue[1])
            known = [self.offset(group, *queue) for group in groups]
            start = min([low, *(offset for offset in known if offset is not None)])
            for slot in range(start, high):
                if (*queue, slot) in seen:
                    continue
                for group in groups:
                    gone = "passed" if self.has_passed(group, *queue, slot) else "expired"
                    yield (group, *queue, slot, None, None, None, "lost" if slot >= low else gone)

    def groups_of(self, topic: str | None) -> list[str]:
        return (topic and self.groups.get(topic)) or [""]

    def offset(self, group: str, store: str, topic: str, queue_id: int) -> int | None:
        return self.planted[store].offsets.get((group, topic, queue_id))

    def has_passed(self, group: str, store: str, topic: str, queue_id: int, slot: int) -> bool:
        offset = self.offset(group, store, topic, queue_id)
        return offset is not None and slot < offset

    def copies(self) -> dict[tuple[str, str], int]:
        states: dict[tuple[str, str], int] = {}
        for entry in self.entries:
            one = self.planted[entry.store]
            topic = entry.properties["REAL_TOPIC"] if entry.topic == DELAY else entry.topic
            if topic.startswith("%DLQ%"):
                group, state = topic[5:], 2
            elif topic.startswith("%RETRY%"):
                group = topic[7:]
                if entry.topic == DELAY:
                    done = one.delays.get(entry.queue_id, 0)
                else:
                    done = one.offsets.get((group, topic, entry.queue_id), 0)
                state = 1 if entry.queue_offset >= done else 0
            else:
                continue
            for name in (entry.unique, entry.properties.get("ORIGIN_MESSAGE_ID")):
                if name and state:
                    states[group, name] = max(state, states.get((group, name), 0))
        return states

    def waiting(self):
        """Yields what is not in its topic yet, and why."""
        settled: dict[str, set[int]] = defaultdict(set)
        newest: dict[tuple[str, str], Entry] = {}
        for entry in sorted(self.entries, key=lambda one: one.phy_offset):
            if entry.topic == OP:
                settled[entry.store] |= {int(text) for text in entry.body.decode().split(",") if text}
            if entry.topic == WHEEL:
                newest[entry.store, entry.properties.get("TIMER_DEL_UNIQKEY", entry.name)] = entry
        for entry in self.entries:
            one = self.planted[entry.store]
            if entry.topic == HALF:
                begin = one.offsets["CID_RMQ_SYS_TRANS", HALF, entry.queue_id]
                if entry.queue_offset >= begin and entry.queue_offset not in settled[entry.store]:
                    yield entry, "uncommitted"
            elif entry.topic == DELAY:
                has_time = entry.queue_offset >= one.delays.get(entry.queue_id, 0)
                if has_time and not entry.properties["REAL_TOPIC"].startswith("%RETRY%"):
                    yield entry, "scheduled"
        for (store, _name), entry in newest.items():
            is_due = int(entry.properties["TIMER_OUT_MS"]) < self.planted[store].timer_read_ms
            if not is_due and "TIMER_DEL_UNIQKEY" not in entry.properties:
                yield entry, "scheduled"

    def unanswered(self, receipts: list[dict[str, Any]], lost: set[tuple[str, int, int]]):
        names = {name for entry in self.entries for name in (entry.name, entry.place_id)}
        distinct: set[Row] = {
            tuple(receipt.get(name) for name in ("msgId", "topic", "queueId", "queueOffset"))
            for receipt in receipts
        }
        for msg_id, topic, queue_id, slot in distinct:
            ends = [
                end
                for (_store, *queue), end in self.ends.items()
                if queue == [topic, queue_id] and is_business(topic)
            ]
            is_expired = slot is not None and any(slot < low for low, _high in ends)
            if is_expired or (topic, queue_id, slot) in lost or msg_id in names:
                continue
            if msg_id is not None or (slot is not None and all(slot >= high for _low, high in ends)):
                yield msg_id, topic, queue_id, slot


def is_business(topic: str) -> bool:
    """Whether a topic is none of the broker's own, among those that are planted."""
    return not topic.startswith("%") and topic not in (DELAY, WHEEL, HALF, OP)


def is_whole(record) -> bool:
    """Whether the checksum of a record is right."""
    return not isinstance(examine(memoryview(record.record), 0, record.phy_offset), Damage)

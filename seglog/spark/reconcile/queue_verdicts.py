"""One verdict for each group and queue, from offsets and the ends of queues alone. Uses no Spark.

A group has a row for every queue of a topic in which it has an offset, also for queues without an offset of
the group, and for the queues of its own retry and dead-letter topics. The delay service has a row for every
level, under the name that RocketMQ gives its group.

Each verdict has a status with Burrow's words: OK; STALL if a group that lags did not move in this queue since
an earlier result but moved in others; STOP if it moved in none; WARN for everything else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from seglog.spark.reconcile import verdicts
from seglog.spark.reconcile.facts import BROADCAST_SUFFIX, StoreFacts
from seglog.storage.format.names import (
    DLQ_PREFIX,
    HALF_TOPIC,
    LMQ_PREFIX,
    OP_TOPIC,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
)
from seglog.storage.format.system_names import DELAY_GROUP, TRANSACTION_GROUP, needs_no_registration

_NOTHING_WAITS: Final = (SCHEDULE_TOPIC, OP_TOPIC)
"""Topics in which messages after the offset wait for their time, or for half messages that they settle."""


class QueueKey(NamedTuple):
    """Store, group and queue of an offset."""

    store: str
    group: str
    topic: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class QueueVerdict:
    """The verdict about a group in a queue.

    Attributes:
        key: Store, group and queue.
        offset: The queue offset at which the group continues; None if it never committed.
        lag: Number of messages that the group has not received and that still exist.
        missed: Number of messages that retention removed before the group received them.
        verdict: A key of :data:`~seglog.spark.reconcile.verdicts.QUEUE_VERDICTS`.
        status: ``OK``, ``WARN``, ``STALL`` or ``STOP``.
    """

    key: QueueKey
    offset: int | None
    min_offset: int
    max_offset: int
    lag: int
    missed: int
    verdict: str
    status: str

    def fields(self) -> dict[str, object]:
        """Returns the fields of the verdict for JSON."""
        return {
            "store": self.key.store,
            "group": self.key.group,
            "topic": self.key.topic,
            "queueId": self.key.queue_id,
            "offset": self.offset,
            "minOffset": self.min_offset,
            "maxOffset": self.max_offset,
            "lag": self.lag,
            "missed": self.missed,
            "verdict": self.verdict,
            "status": self.status,
        }


class Earlier(NamedTuple):
    """The facts of an earlier result about a group in a queue."""

    offset: int | None
    lag: int


def queue_verdicts(
    stores: Iterable[StoreFacts], earlier: Mapping[QueueKey, Earlier] | None = None
) -> list[QueueVerdict]:
    """Returns the verdict for each group and queue, sorted by store, group, topic and queue id.

    Args:
        stores: The stores.
        earlier: An earlier result; without one no group is stalled.
    """
    found = [verdict for facts in stores for verdict in _of_store(facts)]
    return sorted(_with_stalled(found, earlier or {}), key=lambda verdict: verdict.key)


def _of_store(facts: StoreFacts) -> Iterator[QueueVerdict]:
    offsets: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for at in facts.tables.offsets:
        offsets[at.group, at.topic][at.queue_id] = at.offset
    for level, offset in (facts.tables.delays or {}).items():
        if (SCHEDULE_TOPIC, level - 1) in facts.queues:  # the table lists levels before their first message
            offsets[DELAY_GROUP, SCHEDULE_TOPIC][level - 1] = offset
    numbers: dict[str, set[int]] = defaultdict(set)
    for topic, queue_id in facts.queues:
        numbers[topic].add(queue_id)
    # Retry topics of pop consumers are named after group and topic, and have an offset of the group.
    consumed = {topic for _group, topic in offsets}
    for topic in facts.topics:
        if topic.startswith(DLQ_PREFIX):
            offsets.setdefault((topic.removeprefix(DLQ_PREFIX), topic), {})
        elif topic.startswith(RETRY_PREFIX) and topic not in consumed:
            offsets[topic.removeprefix(RETRY_PREFIX), topic] = {}
        elif topic == SCHEDULE_TOPIC:
            offsets.setdefault((DELAY_GROUP, topic), {})
    for (group, topic), known in offsets.items():
        for queue_id in numbers[topic] | known.keys():
            yield _judge(facts, QueueKey(facts.store, group, topic, queue_id), known.get(queue_id))


def _judge(facts: StoreFacts, key: QueueKey, offset: int | None) -> QueueVerdict:
    queue = facts.queues.get((key.topic, key.queue_id))
    first, end = (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)
    lag = end - max(first, min(end, offset or 0))
    if key.topic == HALF_TOPIC and key.group == TRANSACTION_GROUP:
        lag = sum(half.pending for half in facts.halves if half.queue_id == key.queue_id)
    missed = 0 if offset is None else max(0, first - offset)
    verdict = _verdict(facts, key, offset, end, lag, missed)
    return QueueVerdict(
        key, offset, first, end, lag, missed, verdict, "OK" if verdict == verdicts.OK else "WARN"
    )


def _verdict(facts: StoreFacts, key: QueueKey, offset: int | None, end: int, lag: int, missed: int) -> str:
    if not (_is_group(facts, key) and _is_topic(facts, key.topic)):
        return verdicts.ORPHAN
    if offset is not None and offset > end:
        return verdicts.AHEAD
    if missed:
        return verdicts.BELOW_MIN
    if not lag or key.topic in _NOTHING_WAITS:
        return verdicts.OK
    if key.topic == f"{DLQ_PREFIX}{key.group}":
        return verdicts.DEAD
    return verdicts.RETRYING if key.topic.startswith(f"{RETRY_PREFIX}{key.group}") else verdicts.LAG


def _is_group(facts: StoreFacts, key: QueueKey) -> bool:
    known = facts.tables.groups
    group = key.group.removesuffix(BROADCAST_SUFFIX)
    if known is None or group in known or needs_no_registration(group):
        return True
    # Retry topics of pop consumers are named after group and topic.
    return key.topic.startswith(RETRY_PREFIX) and any(
        group.startswith((f"{one}_", f"{one}+")) for one in known
    )


def _is_topic(facts: StoreFacts, topic: str) -> bool:
    known = facts.tables.topics
    is_there = topic in facts.topics or topic.startswith(LMQ_PREFIX)
    return is_there or (known is not None and topic in known)


def _with_stalled(
    found: Iterable[QueueVerdict], earlier: Mapping[QueueKey, Earlier]
) -> Iterator[QueueVerdict]:
    found = list(found)
    moved = {
        (one.key.store, one.key.group)
        for one in found
        if (before := earlier.get(one.key)) is not None and before.offset != one.offset
    }
    for one in found:
        before = earlier.get(one.key)
        is_still = before is not None and before.offset == one.offset and before.lag > 0
        if is_still and one.lag > 0 and one.verdict in (verdicts.LAG, verdicts.RETRYING):
            status = "STALL" if (one.key.store, one.key.group) in moved else "STOP"
            yield replace(one, verdict=verdicts.STALLED, status=status)
        else:
            yield one

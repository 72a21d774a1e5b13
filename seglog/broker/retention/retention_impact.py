"""The groups that would lose messages if the start of the log were deleted, by queue offsets alone.

Deleting a file of the log takes a range of queue offsets from every queue. A group loses the messages of a
range that it has not consumed yet. Dead and parked messages that no client has fetched count too, and so do
delayed messages that are not due and open half messages. In a topic that no group reads, messages older than
the retention time have no victims; their number is ``unread``. Younger ones, which only a full disk would
delete, do count: producers rely on the retention time.

A group counts if it has an offset in some queue of the topic. In a queue where it has none, it needs every
message: RocketMQ's broker starts it at 0 there as long as the log has the queue's start. A group that never
committed in the topic may want to begin at its end, and does not count. A retry topic belongs to one group,
so all its messages count from the first on. Offsets of broadcasting clients do not count: any of these
clients may have left for good.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from seglog.broker.offsets.offset_history_query import QueueKey
from seglog.storage.format.names import (
    DLQ_PREFIX,
    HALF_TOPIC,
    OP_TOPIC,
    PARK_PREFIX,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SYSTEM_PREFIX,
)
from seglog.storage.format.system_names import TRANSACTION_GROUP
from seglog.storage.retention import LogSegment, Retention


class Why(enum.Enum):
    """Why a message is still needed."""

    UNDELIVERED = "undelivered"
    """Its group has not consumed it."""
    DEAD = "dead letters"
    """No client has fetched the dead letters of a group."""
    PARKED = "parked"
    """No client has fetched the messages parked for a group."""
    DELAYED = "delayed"
    """It is delayed and not due yet."""
    HALF = "half messages"
    """No producer has committed or rolled it back."""
    UNREAD = "unread"
    """No group reads its queue, and its retention time is not over."""


class Victim(NamedTuple):
    """Messages of one queue that are still needed.

    Attributes:
        why: The reason.
        group: The group; empty for delayed and half messages.
        offsets: Their queue offsets.
    """

    why: Why
    group: str
    topic: str
    queue_id: int
    offsets: range


@dataclass(frozen=True, slots=True)
class Standing:
    """The positions of all readers.

    Attributes:
        offsets: The committed offsets of groups.
        delay_offsets: Queue offset by delay level: all below it was delivered.
        ignored_groups: Groups that are ignored.
    """

    offsets: Mapping[QueueKey, int]
    delay_offsets: Mapping[int, int] = field(default_factory=dict)
    ignored_groups: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Doomed:
    """A file of the log, and the messages deleted with it.

    Attributes:
        ranges: Queue offsets by topic and queue; queues that lose nothing are left out.
        victims: The messages that are still needed.
        unread_by_topic: How many messages no group reads, by topic.
    """

    segment: LogSegment
    ranges: Mapping[tuple[str, int], range]
    victims: tuple[Victim, ...]
    unread_by_topic: Mapping[str, int]

    @property
    def unread(self) -> int:
        """The number of messages that no group reads."""
        return sum(self.unread_by_topic.values())

    @property
    def count(self) -> int:
        """The number of messages deleted with it."""
        return sum(map(len, self.ranges.values()))


class _Need(NamedTuple):
    """From which queue offset on a group needs a queue."""

    why: Why
    group: str
    queue_offset: int


def plan(
    retention: Retention, segments: Sequence[LogSegment], standing: Standing, *, are_young: bool = False
) -> list[Doomed]:
    """Returns the messages deleted with each of some consecutive files of the log.

    Args:
        retention: The retention calls of the store.
        segments: The files, oldest first.
        standing: The positions of all readers.
        are_young: Whether their messages are younger than the retention time.
    """
    if not segments:
        return []
    cuts = [segments[0].first_phy_offset, *(segment.end_phy_offset for segment in segments)]
    places = retention.offsets_from(cuts)
    # Compaction topics lose nothing with the log's files.
    places = {key: at for key, at in places.items() if key[0] not in retention.compaction_topics}
    needs = _needs(places.keys(), standing)
    found: list[Doomed] = []
    for number, segment in enumerate(segments):
        ranges = {key: range(*at[number : number + 2]) for key, at in places.items()}
        ranges = {key: offsets for key, offsets in sorted(ranges.items()) if offsets}
        victims: list[Victim] = []
        unread: Counter[str] = Counter()
        for (topic, queue_id), offsets in ranges.items():
            wanted = needs.get((topic, queue_id))
            if wanted is None:
                unread[topic] += len(offsets)
                wanted = [_Need(Why.UNREAD, "", 0)] if are_young else []
            for why, group, first in wanted:
                left = range(max(offsets.start, first), offsets.stop)
                if left:
                    victims.append(Victim(why, group, topic, queue_id, left))
        found.append(Doomed(segment, ranges, tuple(victims), unread))
    return found


def by_group(victims: Iterable[Victim]) -> dict[tuple[str, str], int]:
    """Returns how many messages are needed by reason and group, most first."""
    counts: dict[tuple[str, str], int] = {}
    for victim in victims:
        key = victim.why.value, victim.group
        counts[key] = counts.get(key, 0) + len(victim.offsets)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def victims_text(victims: Iterable[Victim], most: int = 3) -> str:
    """Returns the groups and how many messages they need, in words; only the first few."""
    counts = by_group(victims)
    named = [f"{f'group {group}: ' if group else ''}{count} {why}" for (why, group), count in counts.items()]
    more = [f"{len(named) - most} more"] * (len(named) > most)
    return ", ".join([*named[:most], *more])


def _needs(queues: Iterable[tuple[str, int]], standing: Standing) -> dict[tuple[str, int], list[_Need]]:
    """Returns the groups that need each queue, with the offset from which they need it."""
    readers: dict[str, dict[str, dict[int, int]]] = {}
    for (group, topic, queue_id), offset in standing.offsets.items():
        if "@" not in group:  # the progress of one broadcasting client
            readers.setdefault(topic, {}).setdefault(group, {})[queue_id] = offset
    found: dict[tuple[str, int], list[_Need]] = {}
    for topic, queue_id in queues:
        firsts = {group: offsets.get(queue_id, 0) for group, offsets in readers.get(topic, {}).items()}
        needs = _needs_of(topic, queue_id, firsts, standing)
        if needs is not None:
            found[topic, queue_id] = needs
    return found


def _needs_of(
    topic: str, queue_id: int, readers: Mapping[str, int], standing: Standing
) -> list[_Need] | None:
    if topic == SCHEDULE_TOPIC:
        return [_Need(Why.DELAYED, "", standing.delay_offsets.get(queue_id + 1, 0))]
    if topic == HALF_TOPIC:
        return [_Need(Why.HALF, "", readers.get(TRANSACTION_GROUP, 0))]
    if topic == OP_TOPIC or topic.startswith(SYSTEM_PREFIX):
        return []
    for prefix, why in ((DLQ_PREFIX, Why.DEAD), (PARK_PREFIX, Why.PARKED)):
        if topic.startswith(prefix):
            fetched = max(readers.values(), default=0)
            return _counting([_Need(why, topic.removeprefix(prefix), fetched)], standing)
    needs = {group: _Need(Why.UNDELIVERED, group, offset) for group, offset in readers.items()}
    if topic.startswith(RETRY_PREFIX):
        owner = topic.removeprefix(RETRY_PREFIX)
        needs.setdefault(owner, _Need(Why.UNDELIVERED, owner, 0))
    return _counting(needs.values(), standing) if needs else None


def _counting(needs: Iterable[_Need], standing: Standing) -> list[_Need]:
    return [need for need in needs if need.group not in standing.ignored_groups]

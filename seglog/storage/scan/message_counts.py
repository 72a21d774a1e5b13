"""Counts the messages of a store, and the queue offsets without a message: lost now, or until a repair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeAlias

from seglog.storage.directory.log_facts import MOST_RECORD_BYTES
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.format.record.tombstone import LostRecord, is_tombstone
from seglog.storage.overlay import BatchQueueState, LostMessages, QueueState, lost_in_gaps
from seglog.storage.scan.doubt import Doubt
from seglog.storage.scan.holes_file import (
    LOST_END,
    OTHERS,
    TOMBSTONES,
    KnownHole,
    load_holes,
    lost_of_tail,
)
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.log_records import record_at

Key: TypeAlias = tuple[str, int]
"""Topic and number of a queue."""


class QueueEnds(Protocol):
    """A queue of any kind, as the counts use it."""

    @property
    def topic(self) -> str:
        """Its topic."""

    @property
    def queue_id(self) -> int:
        """Its number."""

    @property
    def min_offset(self) -> int:
        """Queue offset of its first message."""

    @property
    def max_offset(self) -> int:
        """The queue offset that the next message gets."""


Queues: TypeAlias = Mapping[Key, QueueEnds]
"""By topic and number."""


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """The messages of a store.

    Attributes:
        messages_of: Number of messages in each queue, with placeholders of a compaction.
        lost_of: Number of lost messages, for each queue that lost any.
        placeholders: Number of records that replace messages which a compaction dropped, if they were
            counted.
        earlier: Whether further messages may be lost, by what earlier recoveries wrote down.
    """

    messages_of: Mapping[Key, int]
    lost_of: Mapping[Key, int]
    placeholders: int = 0
    earlier: Doubt = field(default=Doubt())

    @property
    def messages(self) -> int:
        """Number of messages in the queues, without lost ones and placeholders."""
        return sum(self.messages_of.values()) - self.placeholders

    @property
    def lost(self) -> int:
        """Number of queue offsets that lead to no message any more.

        They lead to tombstones, or their units to no record, or they were in holes of the log, and no mend
        brings them back.
        """
        return sum(self.lost_of.values())


def count_messages(queues: Iterable[QueueEnds], lost: Iterable[LostMessages]) -> MessageCounts:
    """Returns the numbers of messages in queues.

    Args:
        queues: The queues.
        lost: The lost messages, from :func:`lost_of_store`.
    """
    known: defaultdict[Key, list[range]] = defaultdict(list)
    for one in lost:
        known[one.topic, one.queue_id].append(one.offsets)
    messages_of: dict[Key, int] = {}
    lost_of: dict[Key, int] = {}
    for queue in queues:
        key, messages = (queue.topic, queue.queue_id), queue.max_offset - queue.min_offset
        end = count = 0
        for offsets in sorted(known.get(key, ()), key=lambda one: one.start):
            first, stop = max(end, offsets.start), min(offsets.stop, queue.max_offset)
            count += max(0, stop - first)
            messages -= max(0, stop - max(first, queue.min_offset))
            end = max(end, stop)
        messages_of[key] = messages
        if count:
            lost_of[key] = count
    return MessageCounts(messages_of, lost_of)


def lost_of_store(
    in_holes: Iterable[Iterable[LostMessages]],
    states: Iterable[QueueState | BatchQueueState],
    tail: Iterable[LostRecord],
    standing: Iterable[KnownHole],
) -> list[LostMessages]:
    """Returns all messages that a store is known to have lost; some may be listed twice.

    Args:
        in_holes: The messages that were in each hole of its log, without those that mends bring back.
        states: The right content of its queues.
        tail: Lost records behind the end of its log, without those that mends bring back.
        standing: The result of :func:`standing_losses`.
    """
    return [
        *chain.from_iterable(in_holes),
        *chain.from_iterable(map(lost_in_gaps, states)),
        *lost_of_tail(tail),
        *chain.from_iterable(known.lost for known in standing),
    ]


def standing_losses(
    files: Files, root: Path, segment: int, log: tuple[int, int], holes: Iterable[Hole]
) -> list[KnownHole]:
    """Returns what is lost where the log has no hole now, as earlier recoveries wrote it down.

    Args:
        files: The file layer of the store.
        root: The store directory.
        segment: Length of the log's files, in bytes.
        log: Start and end of the log.
        holes: Its unreadable stretches.
    """
    start, end = log
    standing: list[KnownHole] = []
    with closing(LogReader(files, root, segment)) as reader:
        for known in load_holes(files, root):
            if known.why == LOST_END:
                if start <= known.phy_offset and not _is_older(reader, known):
                    standing.append(known)
                continue
            # Tombstones are written from the start of a stretch on. A hole behind the start is the rest of a
            # stopped repair, or newer damage; the messages before it are lost in both cases.
            is_seen = any(hole.phy_offset <= known.phy_offset < hole.end for hole in holes)
            if known.why not in {TOMBSTONES, OTHERS} or not start <= known.phy_offset < end or is_seen:
                continue
            if not is_back(reader, known):
                standing.append(known)
    return standing


def is_back(reader: LogReader, known: KnownHole) -> bool:
    """Returns whether a place has a message again, which shows that its file was restored.

    Args:
        reader: The log.
        known: What an earlier recovery wrote down about a stretch in which messages were lost.
    """
    of = known.lost[0] if known.why == OTHERS and known.lost else None
    return _is_message(reader, known.phy_offset, of)


def _is_older(reader: LogReader, known: KnownHole) -> bool:
    """Returns whether the log has a message again where it ended, stored before that was seen."""
    found = record_at(reader, known.phy_offset, most_bytes=MOST_RECORD_BYTES)
    is_message = found is not None and not is_tombstone(found[0])
    return found is not None and is_message and found[1].store_timestamp_ms < known.first_seen_ms


def _is_message(reader: LogReader, phy_offset: int, of: LostMessages | None = None) -> bool:
    """Returns whether a place has a record that is no tombstone; if ``of`` is given, its first message."""
    found = record_at(reader, phy_offset, most_bytes=MOST_RECORD_BYTES)
    if found is None or is_tombstone(found[0]):
        return False
    row = found[1]
    place = (row.topic.decode("utf-8", "surrogateescape"), row.queue_id, row.queue_offset)
    return of is None or place == (of.topic, of.queue_id, of.offsets.start)

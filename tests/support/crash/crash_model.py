"""What a store owes after any crash: the messages that it acknowledged or served, and nothing else.

A message is *certain* once it was put with SYNC, flushed, or served by a store that had recovered; then it
must exist for ever, at its offsets, byte for byte. Others may be lost in a power cut: the last ones of the
log, or those of pages that did not reach the disk while later ones did. The store must name those, as a hole
or to a reader of their queue. A queue that was served once never ends before where it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from seglog.errors import NotFoundError
from seglog.storage.findings.findings import Finding
from seglog.storage.format.queue.lmq import multi_queues
from seglog.storage.format.record.message import Message
from seglog.storage.format.record.sys_flag import takes_queue_offset
from seglog.storage.format.record.tombstone import FILLER_TOPIC
from seglog.storage.store import MessageStore

Place: TypeAlias = tuple[str, int, int]
"""Topic, queue and queue offset."""


class ViolationError(AssertionError):
    """A promise that was not kept.

    Attributes:
        kind: Which one, in a few words.
    """

    def __init__(self, kind: str, detail: object = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Wanted:
    """A message that is being put."""

    topic: str
    queue_id: int
    body: bytes
    properties: Mapping[str, str]
    sys_flag: int = 0

    def is_in(self, message: Message) -> bool:
        """Returns whether a stored message is this one."""
        return (
            (message.topic, message.queue_id, message.body) == (self.topic, self.queue_id, self.body)
            and message.sys_flag == self.sys_flag
            and self.properties.items() <= message.properties.items()
        )


@dataclass(eq=False, slots=True)
class Kept:
    """A message of the log, and where it is served."""

    message: Message
    places: frozenset[Place]
    is_certain: bool = False


@dataclass(slots=True)
class Model:
    """The log as it must be.

    Attributes:
        log: Messages by physical offset, in log order.
        in_flight: What is being put, in order.
        in_flight_at: Where the first of it may go.
        has_holes: Whether the store has named a hole.
        lost: Messages that the last crash took, in log order.
    """

    log: dict[int, Kept] = field(default_factory=dict)
    in_flight: Sequence[Wanted] = ()
    in_flight_at: Sequence[int] = ()
    has_holes: bool = False
    lost: list[Message] = field(default_factory=list)
    _taken: dict[Place, Kept] = field(default_factory=dict)
    _gone: set[int] = field(default_factory=set)
    _ends: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where queues ended when they were served after the last crash."""

    @property
    def end_phy_offset(self) -> int:
        """Where the last message ends."""
        if not self.log:
            return 0
        message = self.log[next(reversed(self.log))].message
        return message.phy_offset + message.size_bytes

    def add(self, message: Message, wanted: Wanted) -> None:
        """Takes up a message that was put."""
        if not wanted.is_in(message):
            raise ViolationError("other message than put", (wanted, message))
        if message.phy_offset < self.end_phy_offset:
            raise ViolationError("log went back", (message.phy_offset, self.end_phy_offset))
        kept = Kept(message, places_of(message))
        for place in kept.places:
            if place in self._taken:
                raise ViolationError("offset given twice", place)
            self._taken[place] = kept
        self.log[message.phy_offset] = kept
        self._gone.discard(message.phy_offset)

    def make_certain(self) -> None:
        """Everything put so far is on the disk, or was served."""
        for kept in reversed(self.log.values()):
            if kept.is_certain:
                return
            kept.is_certain = True

    def check(self, store: MessageStore) -> None:
        """Holds what a store serves after a crash against what it owes; what it serves it owes from now on.

        Raises:
            ViolationError: It is not the same.
        """
        served, told = read_everything(store)
        found = {message.phy_offset: message for message in served.values()}
        places: dict[int, set[Place]] = {}
        for place, message in served.items():
            places.setdefault(message.phy_offset, set()).add(place)
        placeless = [phy_offset for phy_offset, kept in self.log.items() if not kept.places]
        for phy_offset in (*placeless, *self.in_flight_at):
            if phy_offset not in found:
                found |= _message_at(store, phy_offset)
        self._take_up(found)
        holes = [_stretch(finding) for finding in store.recovery.findings if finding.code in _LOSSES]
        ranges = {(info.topic, info.queue_id): (info.min_offset, info.max_offset) for info in store.queues()}
        last = max(found, default=-1)
        self.has_holes = bool(holes)
        self.lost = []
        for phy_offset, kept in list(self.log.items()):
            if phy_offset not in found:
                silent = {place for place in kept.places - told if _is_within(place, ranges)}
                if (
                    silent
                    and phy_offset < last
                    and not any(start <= phy_offset < end for start, end in holes)
                ):
                    raise ViolationError("lost without a word", kept.message)
                self._lose(kept)
            elif found[phy_offset] != kept.message:
                raise ViolationError("other message than put", (found[phy_offset], kept.message))
            elif places.get(phy_offset, set()) != kept.places:
                raise ViolationError("not in its queues", (kept.places, places.get(phy_offset)))
        self.make_certain()
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}
        for queue, end in self._ends.items():
            if ends.get(queue, 0) < end:
                raise ViolationError("offsets went back", (queue, end, ends.get(queue)))
        self._ends = ends

    def _take_up(self, found: Mapping[int, Message]) -> None:
        """Adds what the crash interrupted, as far as it exists."""
        news = [message for phy_offset, message in sorted(found.items()) if phy_offset not in self.log]
        left = list(self.in_flight)
        self.in_flight = self.in_flight_at = ()
        for message in news:
            while left and not left[0].is_in(message):
                del left[0]
            if not left:
                kind = "stale message came back" if message.phy_offset in self._gone else "never written"
                raise ViolationError(kind, message)
            self.add(message, left.pop(0))

    def _lose(self, kept: Kept) -> None:
        at = kept.message.phy_offset
        if kept.is_certain:
            raise ViolationError("lost", kept.message)
        del self.log[at]
        self._gone.add(at)
        self.lost.append(kept.message)
        for place in kept.places:
            del self._taken[place]


def places_of(message: Message) -> frozenset[Place]:
    """Returns where a message is to be served: its own queue, if it has a place there, and further ones."""
    if not takes_queue_offset(message.sys_flag):
        return frozenset()
    further = multi_queues(message.topic, message.queue_id, message.properties_raw)
    return frozenset({(message.topic, message.queue_id, message.queue_offset), *further})


def read_everything(store: MessageStore) -> tuple[dict[Place, Message], set[Place]]:
    """Returns what a store serves, each queue read from its minimum to its maximum, and what it says is lost.

    Raises:
        ViolationError: Something is served in a place that it does not belong to.
    """
    found: dict[Place, Message] = {}
    told: set[Place] = set()
    for queue in store.queues():
        at = queue.min_offset
        while at < queue.max_offset:
            result = store.get(queue.topic, queue.queue_id, at)
            if result.next_offset <= at:
                raise ViolationError("a reader gets stuck", (queue, at, result.status))
            for message in result:
                own = [place for place in places_of(message) if place[:2] == (queue.topic, queue.queue_id)]
                if len(own) != 1 or not at <= own[0][2] < result.next_offset:
                    raise ViolationError("in a queue of others", (queue, message))
                found[own[0]] = message
            told |= {(queue.topic, queue.queue_id, lost) for each in result.lost for lost in each}
            at = result.next_offset
    return found, told


def _message_at(store: MessageStore, phy_offset: int) -> dict[int, Message]:
    try:
        message = store.message_at(phy_offset)
    except NotFoundError:
        return {}
    return {} if message.topic == FILLER_TOPIC else {phy_offset: message}


def _is_within(place: Place, ranges: Mapping[tuple[str, int], tuple[int, int]]) -> bool:
    low, high = ranges.get(place[:2], (0, 0))
    return low <= place[2] < high


_LOSSES: Final = frozenset({"log-hole", "log-tail-lost", "tombstones"})
"""Findings that say where messages were lost."""


def _stretch(hole: Finding) -> tuple[int, int]:
    start = int(Path(hole.file).name) + hole.position_bytes
    return start, start + hole.size_bytes

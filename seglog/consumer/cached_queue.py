"""One queue as a consumer has it in memory: what was pulled, what is with a listener, and how far it is done.

A message is waiting, then taken, then done and gone. Only :meth:`CachedQueue.floor` is ever committed: the
lowest offset that is not done, or the end of what was pulled where all of it is. So after a crash a message
may come again, and none is skipped. Nothing here can be rebuilt, and nothing need be: it is pulled again.

Lowest and highest offsets are kept in heaps from which what is gone is dropped when it comes to the top, so
a message costs O(log n) in any order of offsets.

Source: ``ProcessQueue.java``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from seglog.storage.format.record import Message

_SPARE: Final = 64
"""How many offsets that are gone a heap may hold before it is looked at."""


@dataclass(frozen=True, slots=True)
class CachedCounts:
    """How much of a queue is in memory, at one moment.

    Attributes:
        messages: Waiting and taken.
        taken: Those that a listener has.
        size_bytes: Of their bodies as they are stored; RocketMQ counts no properties either.
        span: Highest offset minus lowest.
    """

    messages: int
    taken: int
    size_bytes: int
    span: int


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of messages.

    Attributes:
        first: The lowest; 0 where there are none, as the highest.
        last: The highest.
        count: How many there are.
    """

    first: int
    last: int
    count: int


class CachedPlaces(NamedTuple):
    """Where the messages are that are in memory.

    Attributes:
        cached: Waiting and taken.
        taken: Those that a listener has.
        size_bytes: Of the former's bodies.
    """

    cached: Span
    taken: Span
    size_bytes: int


class CachedQueue:
    """Messages of one queue between their pull and their end. Any thread.

    Attributes:
        is_frozen: Whether nothing is to be committed any more.
    """

    def __init__(self) -> None:
        self.is_frozen = False
        self._lock = threading.Lock()
        self._cached: dict[int, Message] = {}
        self._taken: dict[int, Message] = {}
        self._size_bytes = 0
        self._is_dispatched = False
        self._end: int | None = None
        self._lowest: list[int] = []
        self._highest: list[int] = []
        self._waiting: list[int] = []

    def put(self, messages: Iterable[Message]) -> bool:
        """Takes in what was pulled; an offset that is here already is left as it is.

        Returns:
            Whether a worker is to be sent for them: some wait, and none is on its way. It is on its way until
            its :meth:`take` finds nothing.
        """
        with self._lock:
            cached, end = self._cached, self._end or 0
            for message in messages:
                offset = message.queue_offset
                if offset in cached:
                    continue
                cached[offset] = message
                self._size_bytes += len(message.body)
                heappush(self._lowest, offset)
                heappush(self._highest, -offset)
                heappush(self._waiting, offset)
                if offset >= end:
                    self._end = end = offset + 1
            if self._is_dispatched or len(cached) == len(self._taken):
                return False
            self._is_dispatched = True
            return True

    def pulled_to(self, queue_offset: int) -> None:
        """Notes that all below an offset was pulled and put here, but for what is not wanted.

        Args:
            queue_offset: Where the next pull begins. It is the floor once all that was put is done.
        """
        with self._lock:
            if self._end is None or queue_offset > self._end:
                self._end = queue_offset

    def take(self, count: int) -> tuple[Message, ...]:
        """Hands over the lowest messages that wait.

        Args:
            count: At most, from 1 on.

        Returns:
            In order; empty where none waits, and then the next :meth:`put` asks for a worker again.
        """
        found: list[Message] = []
        with self._lock:
            waiting, cached, taken = self._waiting, self._cached, self._taken
            while waiting and len(found) < count:
                offset = heappop(waiting)
                message = cached.get(offset)
                if message is not None and offset not in taken:
                    taken[offset] = message
                    found.append(message)
            if not found:
                self._is_dispatched = False
        return tuple(found)

    def remove(self, messages: Iterable[Message]) -> int | None:
        """Ends messages, taken or not; those that are not here are passed.

        Returns:
            The floor, to be committed; None where nothing is, because the queue is frozen.
        """
        with self._lock:
            self._forget(message.queue_offset for message in messages)
            return self._committable()

    def put_back(self, messages: Iterable[Message]) -> None:
        """Lets taken messages wait again, in their old places; the caller sends a worker for them.

        Args:
            messages: As they are to be handed over next: with one attempt more, say. Those that are not taken
                are passed.
        """
        with self._lock:
            for message in messages:
                offset = message.queue_offset
                before = self._taken.pop(offset, None)
                if before is not None:
                    self._cached[offset] = message
                    self._size_bytes += len(message.body) - len(before.body)
                    heappush(self._waiting, offset)

    def floor(self) -> int | None:
        """Returns the lowest offset that is not done; where all is done, the end of what was pulled.

        Returns:
            None where there is nothing to commit: nothing was pulled yet, or the queue is frozen.
        """
        with self._lock:
            return None if self.is_frozen else self._floor()

    def position(self) -> int | None:
        """Returns the lowest offset that waits; where none does, the end of what was pulled.

        Returns:
            None where nothing was pulled yet.
        """
        with self._lock:
            waiting, cached, taken = self._waiting, self._cached, self._taken
            while waiting and (waiting[0] not in cached or waiting[0] in taken):
                heappop(waiting)
            return waiting[0] if waiting else self._end

    def freeze(self) -> None:
        """Refuses all later commits: the offset was corrected elsewhere."""
        with self._lock:
            self.is_frozen = True

    def holds(self, message: Message) -> bool:
        """Returns whether a message is not done: what was waiting for another try may be."""
        with self._lock:
            return message.queue_offset in self._cached

    def counts(self) -> CachedCounts:
        """Returns how much is here, for bounds on pulls."""
        with self._lock:
            cached = self._cached
            span = 0
            if cached:
                highest = -_first(self._highest, lambda negative: -negative in cached)
                span = highest - _first(self._lowest, cached.__contains__)
            return CachedCounts(len(cached), len(self._taken), self._size_bytes, span)

    @property
    def waiting(self) -> int:
        """How many messages no one has, about, and at little cost: many queues are asked for it."""
        return max(0, len(self._cached) - len(self._taken))

    def places(self) -> CachedPlaces:
        """Returns where they are, for people who ask; it looks at every message."""
        with self._lock:
            return CachedPlaces(_span(self._cached), _span(self._taken), self._size_bytes)

    def _floor(self) -> int | None:
        return _first(self._lowest, self._cached.__contains__) if self._cached else self._end

    def _committable(self) -> int | None:
        return None if self.is_frozen else self._floor()

    def _forget(self, offsets: Iterable[int]) -> None:
        cached, taken = self._cached, self._taken
        for offset in offsets:
            message = cached.pop(offset, None)
            if message is not None:
                taken.pop(offset, None)
                self._size_bytes -= len(message.body)
        if not cached:
            self._lowest, self._highest, self._waiting = [], [], []
            return
        # An offset that stays lowest must not keep all behind it that are gone.
        most = 2 * len(cached) + _SPARE
        if len(self._lowest) > most:
            self._lowest = _heap(cached)
        if len(self._highest) > most:
            self._highest = _heap(-offset for offset in cached)
        if len(self._waiting) > most:
            self._waiting = _heap(offset for offset in cached if offset not in taken)


def _span(messages: Mapping[int, Message]) -> Span:
    return Span(min(messages, default=0), max(messages, default=0), len(messages))


def _heap(numbers: Iterable[int]) -> list[int]:
    heap = list(numbers)
    heapify(heap)
    return heap


def _first(heap: list[int], is_here: Callable[[int], bool]) -> int:
    """Returns the least number that is here, dropping others on the way to it."""
    while not is_here(heap[0]):
        heappop(heap)
    return heap[0]

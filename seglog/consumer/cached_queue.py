"""One queue as a consumer has it in memory: what was pulled, what is with a listener, and how far it is done.

A message is waiting, then taken, then done and gone. Only :meth:`CachedQueue.floor` is ever committed: the
lowest offset that is not done, or the end of what was pulled where all of it is. So after a crash a message
may come again, and none is skipped. Nothing here can be rebuilt, and nothing need be: it is pulled again.

Pulls bring messages in order and behind those that are here, and what is taken is done soon. For that case
each step is a few calls for all messages of a pull or a hand. Offsets are kept in order; what is gone of them
is dropped when it comes to an end of theirs. What comes in another order has them sorted anew.

Source: ``ProcessQueue.java``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, lt
from typing import Final, NamedTuple

from seglog.storage.format.record import Message

_SPARE: Final = 64
"""How many offsets that are gone are kept before they are dropped."""
_OFFSET: Final = attrgetter("queue_offset")
_BODY: Final = attrgetter("body")


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
        self._taken: set[int] = set()
        self._size_bytes = 0
        self._is_dispatched = False
        self._end: int | None = None
        # In order: offsets of what is cached and of what is gone, and those of what is cached and not taken.
        self._offsets: deque[int] = deque()
        self._waiting: deque[int] = deque()

    def put(self, messages: Iterable[Message]) -> bool:
        """Takes in what was pulled; an offset that is here already is left as it is.

        Returns:
            Whether a worker is to be sent for them: some wait, and none is on its way. It is on its way until
            its :meth:`take` finds nothing.
        """
        pulled = messages if isinstance(messages, list) else list(messages)
        offsets = list(map(_OFFSET, pulled))
        with self._lock:
            if pulled:
                self._put(pulled, offsets)
            if self._is_dispatched or not self._waiting:
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
        with self._lock:
            waiting = self._waiting
            if not waiting:
                self._is_dispatched = False
                return ()
            offsets = [waiting.popleft() for _ in range(min(count, len(waiting)))]
            self._taken.update(offsets)
            return tuple(map(self._cached.__getitem__, offsets))

    def remove(self, messages: Iterable[Message]) -> int | None:
        """Ends messages, taken or not; those that are not here are passed.

        Returns:
            The floor, to be committed; None where nothing is, because the queue is frozen.
        """
        offsets = list(map(_OFFSET, messages))
        with self._lock:
            self._forget(offsets)
            return self._committable()

    def put_back(self, messages: Iterable[Message]) -> None:
        """Lets taken messages wait again, in their old places; the caller sends a worker for them.

        Args:
            messages: As they are to be handed over next: with one attempt more, say. Those that are not taken
                are passed.
        """
        with self._lock:
            cached, taken, again = self._cached, self._taken, []
            for message in messages:
                offset = message.queue_offset
                if offset in taken:
                    taken.remove(offset)
                    self._size_bytes += len(message.body) - len(cached[offset].body)
                    cached[offset] = message
                    again.append(offset)
            again.sort()
            if again and self._waiting and again[-1] > self._waiting[0]:
                self._waiting = deque(sorted((*self._waiting, *again)))
            else:
                self._waiting.extendleft(reversed(again))

    def floor(self) -> int | None:
        """Returns the lowest offset that is not done; where all is done, the end of what was pulled.

        Returns:
            None where there is nothing to commit: nothing was pulled yet, or the queue is frozen.
        """
        with self._lock:
            return self._committable()

    def position(self) -> int | None:
        """Returns the lowest offset that waits; where none does, the end of what was pulled.

        Returns:
            None where nothing was pulled yet.
        """
        with self._lock:
            return self._waiting[0] if self._waiting else self._end

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
            cached, offsets = self._cached, self._offsets
            span = 0
            if cached:
                while offsets[-1] not in cached:
                    offsets.pop()
                span = offsets[-1] - self._lowest()
            return CachedCounts(len(cached), len(self._taken), self._size_bytes, span)

    @property
    def waiting(self) -> int:
        """How many messages no one has, about, and at little cost: many queues are asked for it."""
        return len(self._waiting)

    def places(self) -> CachedPlaces:
        """Returns where they are, for people who ask; it looks at every message."""
        with self._lock:
            return CachedPlaces(_span(self._cached), _span(self._taken), self._size_bytes)

    def _lowest(self) -> int:
        """Returns the lowest offset of what is cached, which is something."""
        cached, offsets = self._cached, self._offsets
        while offsets[0] not in cached:
            offsets.popleft()
        return offsets[0]

    def _committable(self) -> int | None:
        if self.is_frozen:
            return None
        return self._lowest() if self._cached else self._end

    def _put(self, pulled: list[Message], offsets: list[int]) -> None:
        cached = self._cached
        is_behind = not self._offsets or offsets[0] > self._offsets[-1]
        if is_behind and all(map(lt, offsets, islice(offsets, 1, None))):
            cached.update(zip(offsets, pulled, strict=True))
            self._offsets.extend(offsets)
            self._waiting.extend(offsets)
        else:
            new: list[Message] = []
            for offset, message in zip(offsets, pulled, strict=True):
                if offset not in cached:
                    cached[offset] = message
                    new.append(message)
            pulled = new
            self._offsets = deque(sorted(cached))
            self._waiting = deque(sorted((*self._waiting, *map(_OFFSET, new))))
        self._size_bytes += sum(map(len, map(_BODY, pulled)))
        self._end = max(self._end or 0, max(offsets) + 1)

    def _forget(self, offsets: Sequence[int]) -> None:
        cached, taken = self._cached, self._taken
        gone = [message for offset in offsets if (message := cached.pop(offset, None)) is not None]
        if not gone:
            return
        self._size_bytes -= sum(map(len, map(_BODY, gone)))
        taken_before = len(taken)
        taken.difference_update(offsets)
        if not cached:
            self._offsets.clear()
            self._waiting.clear()
            return
        if taken_before - len(taken) < len(gone):  # some waited still
            self._waiting = deque(offset for offset in self._waiting if offset in cached)
        # An offset that stays lowest must not keep all behind it that are gone.
        if len(self._offsets) > 2 * len(cached) + _SPARE:
            self._offsets = deque(offset for offset in self._offsets if offset in cached)


def _span(offsets: Collection[int]) -> Span:
    return Span(min(offsets, default=0), max(offsets, default=0), len(offsets))

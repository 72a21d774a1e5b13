"""The messages of one queue in a consumer's memory: pulled, taken by a listener, and done.

A message first waits, then is taken, then is done and removed. Only :meth:`CachedQueue.floor` is ever
committed: the lowest offset that is not done, or the end of the pulled messages if all are done. So after a
crash a message may be delivered again, and none is skipped. This state need not be rebuilt: the messages are
pulled again.

Pulls normally add messages in order behind those in the cache, and taken messages are done soon. In that case
each step takes a few calls for all messages of a pull or a hand. Offsets are kept in order; removed offsets
are dropped when they reach either end. Messages in another order cause a sort.

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
"""Most removed offsets that are kept before they are dropped."""
_OFFSET: Final = attrgetter("queue_offset")
_BODY: Final = attrgetter("body")


@dataclass(frozen=True, slots=True)
class CachedCounts:
    """The size of a queue in memory, at one moment.

    Attributes:
        messages: Number of messages, waiting and taken.
        taken: Those that a listener has.
        size_bytes: Bytes of their bodies as stored; like RocketMQ without properties.
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
        first: The lowest; 0 if there are none, as for the highest.
        last: The highest.
        count: How many there are.
    """

    first: int
    last: int
    count: int


class CachedPlaces(NamedTuple):
    """The offsets of the messages in memory.

    Attributes:
        cached: Waiting and taken.
        taken: Those that a listener has.
        size_bytes: Bytes of the bodies of the cached messages.
    """

    cached: Span
    taken: Span
    size_bytes: int


class CachedQueue:
    """Messages of one queue between their pull and their end. Any thread may call it.

    Attributes:
        is_frozen: Whether nothing may be committed any more.
    """

    def __init__(self) -> None:
        self.is_frozen = False
        self._lock = threading.Lock()
        self._cached: dict[int, Message] = {}
        self._taken: set[int] = set()
        self._size_bytes = 0
        self._is_dispatched = False
        self._end: int | None = None
        # In order: offsets of cached and of removed messages; and offsets of cached messages that are not
        # taken.
        self._offsets: deque[int] = deque()
        self._waiting: deque[int] = deque()

    def put(self, messages: Iterable[Message]) -> bool:
        """Adds pulled messages; an offset that is cached already is left unchanged.

        Returns:
            Whether the caller must start a worker: messages wait, and no worker is active. A worker is active
            until its :meth:`take` finds nothing.
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
        """Notes that all wanted messages below an offset were pulled and added.

        Args:
            queue_offset: Where the next pull begins. It is the floor once all cached messages are done.
        """
        with self._lock:
            if self._end is None or queue_offset > self._end:
                self._end = queue_offset

    def take(self, count: int) -> tuple[Message, ...]:
        """Takes the lowest waiting messages.

        Args:
            count: The most messages, from 1 on.

        Returns:
            The messages in order; empty if none waits, and then the next :meth:`put` asks for a worker again.
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
        """Removes messages, taken or not; messages that are not cached are ignored.

        Returns:
            The floor, to be committed; None if the queue is frozen.
        """
        offsets = list(map(_OFFSET, messages))
        with self._lock:
            self._forget(offsets)
            return self._committable()

    def put_back(self, messages: Iterable[Message]) -> None:
        """Returns taken messages to their old places, where they wait again; the caller starts a worker.

        Args:
            messages: The messages as they will be given next, for example with one attempt more. Messages
                that are not taken are ignored.
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
        """Returns the lowest offset that is not done; if all are done, the end of the pulled messages.

        Returns:
            None if there is nothing to commit: nothing was pulled yet, or the queue is frozen.
        """
        with self._lock:
            return self._committable()

    def position(self) -> int | None:
        """Returns the lowest waiting offset; if no message waits, the end of the pulled messages.

        Returns:
            None if nothing was pulled yet.
        """
        with self._lock:
            return self._waiting[0] if self._waiting else self._end

    def freeze(self) -> None:
        """Refuses all later commits: the offset was corrected elsewhere."""
        with self._lock:
            self.is_frozen = True

    def holds(self, message: Message) -> bool:
        """Returns whether a message is not done yet; it may have been done while it waited for a retry."""
        with self._lock:
            return message.queue_offset in self._cached

    def counts(self) -> CachedCounts:
        """Returns the size of the cache, for the bounds on pulls."""
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
        """The approximate number of waiting messages, cheap to compute: it is read of many queues."""
        return len(self._waiting)

    def places(self) -> CachedPlaces:
        """Returns the offsets of the messages, for reports; it looks at every message."""
        with self._lock:
            return CachedPlaces(_span(self._cached), _span(self._taken), self._size_bytes)

    def _lowest(self) -> int:
        """Returns the lowest cached offset; the cache must not be empty."""
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
        if taken_before - len(taken) < len(gone):  # some were still waiting
            self._waiting = deque(offset for offset in self._waiting if offset in cached)
        # A lowest offset that is never done must not keep all removed ones behind it in memory.
        if len(self._offsets) > 2 * len(cached) + _SPARE:
            self._offsets = deque(offset for offset in self._offsets if offset in cached)


def _span(offsets: Collection[int]) -> Span:
    return Span(min(offsets, default=0), max(offsets, default=0), len(offsets))

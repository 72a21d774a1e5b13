"""Pulls that wait for a message: a table by queue, and nothing else. None of them has a thread.

Each is parked with a function that is called once, when the pull is to be asked again: a message arrived
that it wants, its time has passed, or the broker closes. What calls it is the thread that put the message, or
a duty; so it only passes the word on, to a thread that waits or to an event loop.

A message is tested against the filter where it arrives, each one once. Whatever is in the queue but was not
wanted has the pull asked again by the sweep, every five seconds: then its client is told where to go on.

Source: ``PullRequestHoldService.java``. Difference: a pull whose time has passed ends then, not with the next
sweep.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from seglog.broker.pull import HeldPull
from seglog.clock import Clock
from seglog.errors import SeglogError
from seglog.storage.get_status import GetStatus
from seglog.storage.message_filter import MessageFilter
from seglog.storage.store import MessageStore

SWEEP_MS: Final = 5_000
MIN_DEADLINES: Final = 64
"""So many may be out of date before they are cleared away."""

_Key = tuple[str, int]


class ParkedPull:
    """A held pull in the table.

    Attributes:
        held: The pull.
        key: Topic and queue.
        deadline_ms: Monotonic time at which it ends.
    """

    __slots__ = ("deadline_ms", "held", "key", "seen_offset", "wake")

    def __init__(self, held: HeldPull, deadline_ms: float, wake: Callable[[], None]) -> None:
        self.held = held
        self.key: _Key = (held.header.topic, held.header.queue_id)
        self.deadline_ms = deadline_ms
        self.wake = wake
        self.seen_offset = held.header.queue_offset
        """Queue offset before which nothing is wanted."""


class _Queue:
    """The pulls that wait at one queue."""

    __slots__ = ("arrived", "parked")

    def __init__(self, arrived: Callable[[], None]) -> None:
        self.arrived = arrived
        self.parked: dict[ParkedPull, None] = {}


class HeldPulls:
    """All pulls that wait. Any thread may call it.

    Args:
        store: Where messages arrive.
        clock: Its monotonic time ends the pulls.
    """

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._queues: dict[_Key, _Queue] = {}
        self._deadlines: list[tuple[float, int, ParkedPull]] = []
        self._numbers = itertools.count()
        self._count = 0
        self._next_sweep_ms = 0.0
        self._is_closed = False
        self.due_earlier: Callable[[], None] | None = None
        """Called after a pull was parked that ends before all others, for whoever sleeps until then."""

    def __len__(self) -> int:
        return self._count

    def park(self, held: HeldPull, wake: Callable[[], None]) -> ParkedPull:
        """Keeps a pull until it is to be asked again.

        Args:
            held: The pull.
            wake: Called then, once, by any thread, perhaps before this returns; it neither waits nor raises.
        """
        now_ms = self._clock.monotonic_ms()
        parked = ParkedPull(held, now_ms + held.hold_ms, wake)
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                queue = self._queues.get(parked.key)
                if queue is None:
                    if not self._queues:
                        self._next_sweep_ms = now_ms + SWEEP_MS
                    queue = self._queues[parked.key] = _Queue(partial(self._arrived, parked.key))
                    self._store.listen(*parked.key, queue.arrived)
                queue.parked[parked] = None
                self._count += 1
                self._push(parked)
            is_earlier = bool(self._deadlines) and self._deadlines[0][2] is parked
        if is_closed:
            wake()
            return parked
        if is_earlier and self.due_earlier is not None:
            self.due_earlier()
        # What arrived between the pull and this has told nobody.
        if self._is_met(parked, {}):
            self._end([parked])
        return parked

    def leave(self, parked: ParkedPull) -> None:
        """Takes a pull out whose client does not wait any more; it is not woken."""
        with self._lock:
            self._take_out(parked)

    def wait(self, held: HeldPull) -> None:
        """Keeps the calling thread until the pull is to be asked again, by the clock and without any duty."""
        bell = threading.Condition()
        is_over = False

        def wake() -> None:
            nonlocal is_over
            with bell:
                is_over = True
                bell.notify_all()

        parked = self.park(held, wake)
        try:
            with bell:
                while not is_over:
                    left_ms = parked.deadline_ms - self._clock.monotonic_ms()
                    if left_ms <= 0:
                        break
                    is_sweep = not self._clock.wait(bell, min(left_ms, SWEEP_MS))
                    if is_sweep and self._has_grown(parked):
                        break
        finally:
            self.leave(parked)

    def left_ms(self) -> float | None:
        """Returns how long until :meth:`sweep` has something to do, None if nothing waits."""
        with self._lock:
            while self._deadlines and not self._is_parked(self._deadlines[0][2]):
                heapq.heappop(self._deadlines)
            if not self._deadlines:
                return None
            return min(self._deadlines[0][0], self._next_sweep_ms) - self._clock.monotonic_ms()

    def sweep(self) -> None:
        """Ends the pulls whose time has passed, and every five seconds those whose queue has grown."""
        now_ms = self._clock.monotonic_ms()
        over: list[ParkedPull] = []
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= now_ms:
                over.append(heapq.heappop(self._deadlines)[2])
            waiting: list[ParkedPull] = []
            if now_ms >= self._next_sweep_ms:
                self._next_sweep_ms = now_ms + SWEEP_MS
                waiting = [parked for queue in self._queues.values() for parked in queue.parked]
        self._end([*over, *filter(self._has_grown, waiting)])

    def close(self) -> None:
        """Ends all pulls; those that come later end at once."""
        with self._lock:
            self._is_closed = True
            everyone = [parked for queue in self._queues.values() for parked in queue.parked]
        self._end(everyone)

    def _arrived(self, key: _Key) -> None:
        queue = self._queues.get(key)
        if queue is None:
            return
        with self._lock:
            waiting = list(queue.parked)
        seen: dict[tuple[MessageFilter, int], int | None] = {}
        self._end([parked for parked in waiting if self._is_met(parked, seen)])

    def _has_grown(self, parked: ParkedPull) -> bool:
        return self._store.max_offset(*parked.key) > parked.held.header.queue_offset

    def _is_met(self, parked: ParkedPull, seen: dict[tuple[MessageFilter, int], int | None]) -> bool:
        """Returns whether a message is there that the pull wants.

        Args:
            parked: The pull.
            seen: What others at the same queue found just now: a filter and an offset from which nothing was
                wanted up to another offset, None where something was.
        """
        wanted = parked.held.wanted
        if wanted is None:
            return self._has_grown(parked)
        asked = wanted, parked.seen_offset
        if asked not in seen:
            seen[asked] = self._next_unseen(parked.key, wanted, parked.seen_offset)
        found = seen[asked]
        if found is not None:
            parked.seen_offset = found
        return found is None

    def _next_unseen(self, key: _Key, wanted: MessageFilter, queue_offset: int) -> int | None:
        """Returns the queue offset up to which nothing is wanted, None if something is from there on."""
        try:
            end = self._store.max_offset(*key)
            while queue_offset < end:
                found = self._store.get(*key, queue_offset, 1, wanted)
                if found.status is not GetStatus.NO_MATCHED_MESSAGE:
                    return None
                queue_offset = found.next_offset
        except SeglogError:
            return None  # the pull meets the same error, and tells its client; the put has none
        return queue_offset

    def _end(self, over: list[ParkedPull]) -> None:
        with self._lock:
            ended = [parked for parked in over if self._take_out(parked)]
        for parked in ended:
            parked.wake()

    def _push(self, parked: ParkedPull) -> None:
        """Adds a deadline; those of pulls that ended earlier stay until they are the greater part."""
        if len(self._deadlines) > 2 * self._count + MIN_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if self._is_parked(entry[2])]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (parked.deadline_ms, next(self._numbers), parked))

    def _is_parked(self, parked: ParkedPull) -> bool:
        queue = self._queues.get(parked.key)
        return queue is not None and parked in queue.parked

    def _take_out(self, parked: ParkedPull) -> bool:
        """Takes a pull out, under the lock; returns whether it was still there."""
        if not self._is_parked(parked):
            return False
        queue = self._queues[parked.key]
        del queue.parked[parked]
        self._count -= 1
        if not queue.parked:
            del self._queues[parked.key]
            self._store.unlisten(*parked.key, queue.arrived)
        return True

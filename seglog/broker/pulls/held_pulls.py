"""Pulls that wait for a message: a table by queue, and nothing else. None of them has a thread.

Each is parked with a function that is called once, when the pull is to be asked again: a message arrived
that it wants, its time has passed, or the broker closes. What calls it is the thread that put the message, or
a duty; so it only passes the word on, to a thread that waits or to an event loop.

A message is tested against a filter where it arrives, each one once, however many wait with it; where many
filters wait, a thread of the table's own tests it, and what put it goes on. All that is
in the queue but was not wanted has the pull asked again by the sweep, every five seconds: then its client is
sent the next offset.

Source: ``PullRequestHoldService.java``. Difference: a pull whose time has passed ends then, not with the next
sweep.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from typing_extensions import override

from seglog.broker.pulls.pull import HeldPull
from seglog.clock import Clock
from seglog.errors import SeglogError
from seglog.schedule import Duty
from seglog.storage.format.get_status import GetStatus
from seglog.storage.reads import MessageFilter
from seglog.storage.store import MessageStore
from seglog.storage.threads import OnDemand

SWEEP_MS: Final = 5_000
FEW_CROWDS: Final = 4
"""Filters at one queue that what puts a message tests by itself."""
MIN_DEADLINES: Final = 64
"""So many may be out of date before they are cleared away."""

_Key = tuple[str, int]


class ParkedPull:
    """A held pull in the table.

    Attributes:
        held: The pull.
        deadline_ms: Monotonic time at which it ends.
    """

    __slots__ = ("crowd", "deadline_ms", "held", "wake")

    def __init__(self, held: HeldPull, deadline_ms: float, wake: Callable[[], None]) -> None:
        self.held = held
        self.deadline_ms = deadline_ms
        self.wake = wake
        self.crowd: _Crowd | None = None
        """Where it waits, None once it does not wait any more."""


class _Crowd:
    """Pulls of one queue that want the same and have seen the same: one look answers all of them.

    Attributes:
        wanted: Their filter, None for all messages.
        seen_offset: Queue offset before which nothing is wanted.
    """

    __slots__ = ("key", "pulls", "seen_offset", "wanted")

    def __init__(self, key: _Key, wanted: MessageFilter | None, seen_offset: int) -> None:
        self.key = key
        self.wanted = wanted
        self.seen_offset = seen_offset
        self.pulls: dict[ParkedPull, None] = {}


class _Queue:
    """The pulls that wait at one queue, by what they want and have seen."""

    __slots__ = ("arrived", "crowds")

    def __init__(self, arrived: Callable[[], None]) -> None:
        self.arrived = arrived
        self.crowds: dict[tuple[MessageFilter | None, int], _Crowd] = {}


class HeldPulls:
    """All pulls that wait. Any thread may call it.

    Args:
        store: Where messages arrive.
        clock: Its monotonic time ends the pulls.
        has_thread: Whether there is a thread for many filters; on virtual time all is done where it begins.
    """

    def __init__(self, store: MessageStore, clock: Clock, *, has_thread: bool = False) -> None:
        self._has_thread = has_thread
        self._arrivals: dict[_Key, None] = {}
        self._looker = OnDemand("seglog-held-pulls", self._look_at_arrivals)
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
        """Called after a pull was parked that ends before all others, to wake what sleeps until then."""

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
            crowd = None if self._is_closed else self._let_in(parked, now_ms)
            is_earlier = bool(self._deadlines) and self._deadlines[0][2] is parked
        if crowd is None:
            wake()
            return parked
        if is_earlier and self.due_earlier is not None:
            self.due_earlier()
        # What arrived between the pull and this has woken no thread.
        if self._has_grown(parked):
            self._look(crowd)
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
            while self._deadlines and self._deadlines[0][2].crowd is None:
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
                waiting = self._everyone()
        self._end([*over, *filter(self._has_grown, waiting)])

    def close(self) -> None:
        """Ends all pulls; those that come later end at once."""
        with self._lock:
            self._is_closed = True
            everyone = self._everyone()
        self._end(everyone)
        self._looker.stop()

    def _arrived(self, key: _Key) -> None:
        with self._lock:
            queue = self._queues.get(key)
            crowds = [] if queue is None else list(queue.crowds.values())
            is_aside = self._has_thread and len(crowds) > FEW_CROWDS
            if is_aside:
                self._arrivals[key] = None
        if is_aside:
            self._looker.ask()
            crowds = [crowd for crowd in crowds if crowd.wanted is None]
        for crowd in crowds:
            self._look(crowd)

    def _look_at_arrivals(self) -> None:
        with self._lock:
            keys, self._arrivals = self._arrivals, {}
            queues = [self._queues[key] for key in keys if key in self._queues]
            crowds = [crowd for queue in queues for crowd in queue.crowds.values()]
        for crowd in crowds:
            if self._is_closed:
                return
            self._look(crowd)

    def _look(self, crowd: _Crowd) -> None:
        """Ends the pulls of a crowd if a message exists that they want, or notes how far there is none."""
        seen_offset = self._next_unseen(crowd)
        if seen_offset is None:
            with self._lock:
                over = list(crowd.pulls)
            self._end(over)
        elif seen_offset > crowd.seen_offset:
            with self._lock:
                joined = self._move(crowd, seen_offset)
            # Another put may have looked at one crowd before they were joined and at the other after.
            if joined is not None:
                self._look(joined)

    def _next_unseen(self, crowd: _Crowd) -> int | None:
        """Returns the queue offset up to which nothing is wanted, None if something is from there on."""
        wanted, at = crowd.wanted, crowd.seen_offset
        try:
            end = self._store.max_offset(*crowd.key)
            while at < end:
                if wanted is None:
                    return None
                found = self._store.get(*crowd.key, at, 1, wanted)
                if found.status is not GetStatus.NO_MATCHED_MESSAGE:
                    return None
                at = found.next_offset
        except SeglogError:
            return None  # the pull meets the same error, and reports it to its client; the put has none
        return at

    def _has_grown(self, parked: ParkedPull) -> bool:
        header = parked.held.header
        return self._store.max_offset(header.topic, header.queue_id) > header.queue_offset

    def _everyone(self) -> list[ParkedPull]:
        """Returns all pulls, under the lock."""
        crowds = (crowd for queue in self._queues.values() for crowd in queue.crowds.values())
        return [parked for crowd in crowds for parked in crowd.pulls]

    def _end(self, over: list[ParkedPull]) -> None:
        with self._lock:
            ended = [parked for parked in over if self._take_out(parked)]
        for parked in ended:
            parked.wake()

    def _let_in(self, parked: ParkedPull, now_ms: float) -> _Crowd:
        """Puts a pull into its crowd, under the lock."""
        header = parked.held.header
        key = header.topic, header.queue_id
        queue = self._queues.get(key)
        if queue is None:
            if not self._queues:
                self._next_sweep_ms = now_ms + SWEEP_MS
            queue = self._queues[key] = _Queue(partial(self._arrived, key))
            self._store.listen(*key, queue.arrived)
        place = parked.held.wanted, header.queue_offset
        crowd = queue.crowds.get(place)
        if crowd is None:
            crowd = queue.crowds[place] = _Crowd(key, *place)
        crowd.pulls[parked] = None
        parked.crowd = crowd
        self._count += 1
        if len(self._deadlines) > 2 * self._count + MIN_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if entry[2].crowd is not None]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (parked.deadline_ms, next(self._numbers), parked))
        return crowd

    def _take_out(self, parked: ParkedPull) -> bool:
        """Takes a pull out, under the lock; returns whether it was still there."""
        crowd, parked.crowd = parked.crowd, None
        if crowd is None:
            return False
        self._count -= 1
        del crowd.pulls[parked]
        if not crowd.pulls:
            queue = self._queues[crowd.key]
            del queue.crowds[crowd.wanted, crowd.seen_offset]
            if not queue.crowds:
                del self._queues[crowd.key]
                self._store.unlisten(*crowd.key, queue.arrived)
        return True

    def _move(self, crowd: _Crowd, seen_offset: int) -> _Crowd | None:
        """Has a crowd look from another offset on, under the lock; returns the one that it joins, if any."""
        if not crowd.pulls or seen_offset <= crowd.seen_offset:
            return None
        crowds = self._queues[crowd.key].crowds
        del crowds[crowd.wanted, crowd.seen_offset]
        there = crowds.get((crowd.wanted, seen_offset))
        if there is None:
            crowd.seen_offset = seen_offset
            crowds[crowd.wanted, seen_offset] = crowd
            return None
        for parked in crowd.pulls:
            parked.crowd = there
        there.pulls.update(crowd.pulls)
        crowd.pulls = {}
        return there


class HoldSweep(Duty):
    """Ends held pulls whose time has passed; every five seconds, those whose queue has grown too.

    It is woken when a pull comes that ends before all others.
    """

    name: ClassVar[str] = "hold-sweep"

    def __init__(self, held: HeldPulls) -> None:
        super().__init__()
        self._held = held
        held.due_earlier = self.wake

    @override
    def left_ms(self) -> float | None:
        return self._held.left_ms()

    @override
    def run(self) -> None:
        self._held.sweep()

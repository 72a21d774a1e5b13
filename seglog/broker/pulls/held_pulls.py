"""The table of pulls that wait for a message, by queue. A held pull occupies no thread.

Each pull is parked with a wake function. It is called once, when the pull must be answered: a message that
matches arrived, the hold has timed out, or the broker closes. The thread that put the message or a duty calls
it, so it must only notify a waiting thread or an event loop.

A new message is tested against each filter once, by the thread that put it, however many pulls share the
filter; if many filters wait at the queue, the table's own thread tests them instead, and the put continues.
If a queue has grown by messages that a pull does not want, the sweep wakes the pull after at most five
seconds, so that its client is sent the next offset.

Source: ``PullRequestHoldService.java``. Difference: a pull ends exactly at its timeout, not with the next
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
"""Most filters at one queue that the putting thread tests itself."""
MIN_DEADLINES: Final = 64
"""Number of outdated entries at which they are removed."""

_Key = tuple[str, int]


class ParkedPull:
    """A held pull in the table.

    Attributes:
        held: The pull.
        deadline_ms: Monotonic time at which the hold ends.
    """

    __slots__ = ("crowd", "deadline_ms", "held", "wake")

    def __init__(self, held: HeldPull, deadline_ms: float, wake: Callable[[], None]) -> None:
        self.held = held
        self.deadline_ms = deadline_ms
        self.wake = wake
        self.crowd: _Crowd | None = None
        """The crowd that it waits in, None once it waits no more."""


class _Crowd:
    """Pulls of one queue with the same filter and offset: one look at the queue serves all of them.

    Attributes:
        wanted: Their filter, None for all messages.
        seen_offset: Queue offset before which no message matches.
    """

    __slots__ = ("key", "pulls", "seen_offset", "wanted")

    def __init__(self, key: _Key, wanted: MessageFilter | None, seen_offset: int) -> None:
        self.key = key
        self.wanted = wanted
        self.seen_offset = seen_offset
        self.pulls: dict[ParkedPull, None] = {}


class _Queue:
    """The pulls that wait at one queue, by filter and seen offset."""

    __slots__ = ("arrived", "crowds")

    def __init__(self, arrived: Callable[[], None]) -> None:
        self.arrived = arrived
        self.crowds: dict[tuple[MessageFilter | None, int], _Crowd] = {}


class HeldPulls:
    """All held pulls of a broker. Any thread may call it.

    Args:
        store: Notifies the table of new messages.
        clock: Its monotonic time ends the pulls.
        has_thread: Whether a thread tests many filters; on virtual time the calling thread does everything.
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
        """Called after a pull is parked that ends before all others, to wake the sleeping duty."""

    def __len__(self) -> int:
        return self._count

    def park(self, held: HeldPull, wake: Callable[[], None]) -> ParkedPull:
        """Parks a pull until it must be answered.

        Args:
            held: The pull.
            wake: Called then, once, by any thread, perhaps before this method returns; it must neither wait
                nor raise.
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
        # A message that arrived between the pull's read and this point has woken nothing.
        if self._has_grown(parked):
            self._look(crowd)
        return parked

    def leave(self, parked: ParkedPull) -> None:
        """Removes a pull whose client no longer waits; it is not woken."""
        with self._lock:
            self._take_out(parked)

    def wait(self, held: HeldPull) -> None:
        """Blocks the calling thread until the pull must be answered; uses the clock and needs no duty."""
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
        """Returns the time in ms until :meth:`sweep` has work to do, None if no pull waits."""
        with self._lock:
            while self._deadlines and self._deadlines[0][2].crowd is None:
                heapq.heappop(self._deadlines)
            if not self._deadlines:
                return None
            return min(self._deadlines[0][0], self._next_sweep_ms) - self._clock.monotonic_ms()

    def sweep(self) -> None:
        """Ends the pulls that have timed out, and every five seconds those whose queue has grown."""
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

    def end_topic(self, topic: str) -> None:
        """Ends the pulls of a deleted topic: their clients learn of it before one of its name is created."""
        with self._lock:
            over = [parked for parked in self._everyone() if parked.held.header.topic == topic]
        self._end(over)

    def close(self) -> None:
        """Ends all pulls; a pull parked later ends at once."""
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
        """Ends the pulls of a crowd if a message matches, or notes the offset before which none does."""
        seen_offset = self._next_unseen(crowd)
        if seen_offset is None:
            with self._lock:
                over = list(crowd.pulls)
            self._end(over)
        elif seen_offset > crowd.seen_offset:
            with self._lock:
                joined = self._move(crowd, seen_offset)
            # Another put may have looked at one of the two crowds before they were joined, and at the other
            # after.
            if joined is not None:
                self._look(joined)

    def _next_unseen(self, crowd: _Crowd) -> int | None:
        """Returns the queue offset up to which no message matches, None if a message does."""
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
            return None  # the pull meets the same error and reports it; the put must not fail
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
        """Adds a pull to its crowd, under the lock."""
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
        """Removes a pull, under the lock; returns whether it was still parked."""
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
        """Sets the seen offset of a crowd, under the lock; returns the crowd it is merged into, if any."""
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
    """Ends held pulls that have timed out; every five seconds, those whose queue has grown too.

    It is woken when a pull is parked that ends before all others.
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

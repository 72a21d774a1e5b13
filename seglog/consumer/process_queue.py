"""One queue that a consumer has: what was pulled of it and is not done yet, how far it is, and its lease.

Its cache may be called by any thread; all else is changed on the client's home. What may be committed is the
floor of the cache: the lowest offset that is not done, never how far it was pulled.

Source: ``ProcessQueue.java``, ``PullRequest.java``.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Final

from seglog.client.home import Bell, Flow, Home
from seglog.consumer.cached_queue import CachedQueue
from seglog.consumer.counts import Counts, Rates
from seglog.consumer.hands.handed import Handed
from seglog.consumer.lease import Lease
from seglog.consumer.offsets.begin import Begin
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import Subscription
from seglog.storage.format.record import Message

NOT_KNOWN: Final = -1
MOST_IDLE_PULL_MS: Final = 120_000
"""``rocketmq.client.pull.pullMaxIdleTime``."""


class ProcessQueue:
    """A queue that this consumer has.

    Attributes:
        queue: Which.
        subscription: What is wanted of it.
        cache: What was pulled.
        lease: Its lock; one that never ends where queues are not locked (None for that is given).
        pull_offset: Where the next pull begins; ``NOT_KNOWN`` before the group's offset was read.
        is_dropped: Whether nothing more of it is to be pulled or given to the listener.
        is_lost: Whether another client may have it, so that nothing more is committed.
        is_given_up: Whether the application wants it no more; what was polled of it is committed still.
        is_at_end: Whether its last pull came to its end; None where no answer says that yet. Then the next
            pull is not held, so that it is soon known.
        is_paused: Whether nothing of it is pulled or given for now.
        is_by_hand: Whether only what the application commits is to be committed.
        approved: What that is, None before it has; of no use where it is not by hand.
        is_held: Whether its broker holds the pull that is on its way until there is something.
        looks: How often it was asked whether more has come; answers to what was asked before do not say.
        is_resting: Whether it waits after a failure.
        trouble: What its last pull failed with; None where it did not.
        pulls: Rung where a pull may go on.
        work: Rung where there may be something for the listener.
        ending: Done once it is dropped.
        progress: Rung where there may be more to commit.
        committed_offset: What its broker has taken; ``NOT_KNOWN`` before it has taken or said one.
        doubts: How often the connection to its broker was lost or made, which may have lost offsets by then.
        settled: How many of these there were when its broker last took an offset, or was asked for it.
        counts: What was done of it.
        flows: What runs for it.
        in_hand: What the listener was given and has not come back yet.
        hands: How many hands of messages are on their way to the listener, or with it.
        is_locked: Whether its broker gives it to one client at a time.
        pulled_ms: When it was pulled last, on the wall clock.
        consumed_ms: When a listener was given messages of it last, likewise.
        full_ms: On the monotonic clock: since when it is not pulled because it is full; None where it is not.
        full_warnings: How often that was warned of.
        looked_ms: On the monotonic clock: until when it was seen to that it is pulled.
        continuous_ms: On the same: since when it is consumed in order without a pause.
        open: Messages that were consumed in order, and that a ``COMMIT`` of the listener ends.
        ask_for_lock: Asks its broker for its lock; returns whether it has got that.
    """

    def __init__(
        self,
        queue: MessageQueue,
        subscription: Subscription,
        home: Home,
        lease: Lease | None,
        progress: Bell,
        rates: Rates,
        ask_for_lock: Callable[[ProcessQueue], Awaitable[bool]],
    ) -> None:
        self.ask_for_lock = ask_for_lock
        self.progress = progress
        self._rates = rates
        self._clock = home.clock
        self.queue = queue
        self.subscription = subscription
        self.cache = CachedQueue()
        self.is_locked = lease is not None
        self.lease = lease or _endless_lease()
        self.pull_offset = NOT_KNOWN
        self.committed_offset = NOT_KNOWN
        self._first_offset = NOT_KNOWN
        self._begin = Begin.KEPT
        self.doubts = self.settled = 0
        self.suggested_broker_id = 0
        self.is_dropped = False
        self.is_lost = self.is_given_up = False
        self.is_at_end: bool | None = None
        self.is_held = False
        self.is_paused = False
        self.is_by_hand = False
        self.approved: int | None = None
        self.looks = 0
        self.is_resting = False
        self.trouble: str | None = None
        self.pulls = Bell(home)
        self.work = Bell(home)
        self.ending: Deferred[None] = Deferred()
        self.counts = Counts()
        self.flows: list[Flow[None]] = []
        self.in_hand: list[Handed] = []
        self.hands = 0
        self.open: list[Message] = []
        self.full_ms: float | None = None
        self.full_warnings = 0
        self.pulled_ms = self.consumed_ms = home.clock.now_ms()
        self.looked_ms = self.continuous_ms = home.clock.monotonic_ms()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do now: all that is stored was pulled, and is done."""
        if self.is_dropped or self.is_resting:
            return True
        return self.is_at_end is True and not self.cache.counts().messages

    @property
    def is_lease_over(self) -> bool:
        """Whether nothing of it may be consumed until its lock is renewed."""
        return self._clock.monotonic_ms() > self.lease.work_until_ms

    @property
    def is_pull_lost(self) -> bool:
        """Whether what pulls it has not been heard of for so long that there is none any more."""
        return self._clock.monotonic_ms() > self.looked_ms + MOST_IDLE_PULL_MS

    @property
    def why_busy(self) -> str | None:
        """Why it is not idle, for errors; None where it is, or only a listener is at work."""
        if self.is_idle:
            return None
        if self.trouble is not None:
            return self.trouble
        if self.is_lease_over:
            return "its lock is not renewed yet"
        if self.open:
            return f"{len(self.open)} messages wait for a COMMIT of the listener"
        return "its broker has not said yet whether there is more" if self.is_at_end is None else None

    def look(self) -> None:
        """Has it not be idle before a pull that is asked from now on has come to the end."""
        self.looks += 1
        self.is_at_end = None

    def begin_at(self, queue_offset: int, begin: Begin) -> None:
        """Goes on from what the group has committed, or where it begins or is moved, which is committed too.

        Else a group that begins at the end of a queue would begin there again in its next life, behind what
        came meanwhile.
        """
        self.cache = CachedQueue()
        self.cache.pulled_to(queue_offset)
        self.pull_offset = self._first_offset = queue_offset
        self._begin = begin
        # Brokers say 0 of a young queue without an offset too.
        self.committed_offset = queue_offset if begin is Begin.KEPT and queue_offset else NOT_KNOWN
        self._begin_anew()

    def start_over(self) -> None:
        """Forgets what was pulled: another client may have consumed the queue."""
        self.cache = CachedQueue()
        self.pull_offset = self.committed_offset = NOT_KNOWN
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.is_at_end = self.trouble = self.approved = None
        self.is_resting = False

    def note_trouble(self, trouble: str) -> None:
        """Notes what a pull failed with; the next one is not held, so that its end is soon known."""
        self.trouble = trouble
        self.is_at_end = None

    def to_commit(self, now_ms: float) -> int | None:
        """Returns the offset to commit, None where it is committed, or another client may have the queue."""
        if self.is_lost or now_ms > self.lease.ours_until_ms:
            return None
        offset = self.approved if self.is_by_hand else self.done_offset()
        return offset if offset != self.committed_offset or self.settled != self.doubts else None

    def to_commit_in_pull(self, now_ms: float) -> int | None:
        """Returns the offset that a pull is to commit, None where its broker is to be asked before."""
        offset = self.to_commit(now_ms)
        if offset is None or offset == self.committed_offset:
            return None
        # That a new group has no offset was answered just now, but not to an application that commits later.
        is_new = self._begin is Begin.ANEW and not self.is_by_hand
        return offset if is_new or not self._is_begin(offset) else None

    def must_ask(self, queue_offset: int) -> bool:
        """Returns whether its broker is to be asked what it has before an offset is committed.

        That is where nothing was done since it has, or since the queue was taken, and where the queue was
        given up, while a listener was at it still: another member may have gone on from there.
        """
        return self.is_dropped or queue_offset == self.committed_offset or self._is_begin(queue_offset)

    def is_wanted(self, queue_offset: int, kept: int | None) -> bool:
        """Returns whether an offset is to be committed over the one that the broker has."""
        if kept is None:
            return True
        if self._begin is Begin.MOVED and not self.is_dropped:
            return kept != queue_offset
        return kept < queue_offset and not self._is_begin(queue_offset)

    def note_committed(self, queue_offset: int, doubts: int) -> None:
        """Notes that its broker has an offset, or one of another member behind it.

        Args:
            queue_offset: Which.
            doubts: How many there were when it was sent.
        """
        self.committed_offset, self.settled = queue_offset, doubts

    def _is_begin(self, queue_offset: int) -> bool:
        return queue_offset == self._first_offset and self._begin is not Begin.MOVED

    def is_fenced(self, now_ms: float) -> bool:
        """Returns whether something of it was done that cannot be committed: another client may have it."""
        return (self.is_lost or now_ms > self.lease.ours_until_ms) and self.is_ahead

    @property
    def is_ahead(self) -> bool:
        """Whether something of it is done that is neither committed nor to be."""
        done, approved = self.done_offset(), NOT_KNOWN if self.approved is None else self.approved
        return done is not None and done > max(self.committed_offset, self._first_offset, approved)

    def is_settled(self, now_ms: float) -> bool:
        """Returns whether nothing of a dropped queue is left to be committed, now or later."""
        is_open = self.cache.counts().taken > 0 or (self.is_by_hand and self.is_ahead)
        return not is_open and self.to_commit(now_ms) is None

    def done_offset(self) -> int | None:
        """Returns up to where it is done, None before the group's offset was read."""
        return None if self.pull_offset == NOT_KNOWN else self.cache.floor()

    def position(self) -> int | None:
        """Returns the first offset that was not given, None before the group's offset was read.

        Any thread may ask.
        """
        cache = self.cache
        position = None if self.pull_offset == NOT_KNOWN else cache.position()
        if position is None:
            return None
        for handed in tuple(self.in_hand):  # handed to a pool whose threads have not come to them yet
            first = handed.first_waiting()
            if first is not None and first.queue_offset < position and cache.holds(first):
                position = first.queue_offset
        return position

    def at_work(self) -> list[int]:
        """Returns the offsets of the messages that listeners have now; any thread may ask."""
        found = [handed.at_work for handed in tuple(self.in_hand)]
        return sorted(message.queue_offset for messages in found for message in messages)

    def settle(self) -> None:
        """Counts as done what listeners are done with of what they were given; the queue is dropped.

        So they begin nothing more, and what they have not begun is taken back.
        """
        for handed in self.in_hand:
            self.cache.put_back(handed.take_waiting())
            self.cache.remove(handed.done.copy())

    def note_pull(self, count: int, took_ms: float) -> None:
        """Counts a pull that has found messages."""
        self._rates.pulled(count, took_ms)

    def note_handed(self, handed: Handed) -> None:
        """Counts what became of messages that were handed over."""
        done = len(handed.done) - handed.expired
        self.counts.delivered += done
        self.counts.expired += handed.expired
        self._rates.consumed(done, len(handed.failed), handed.spent_ms)

    def drop(self, *, is_lost: bool = False) -> None:
        """Lets nothing more of it begin."""
        self.is_dropped = True
        self.is_lost = self.is_lost or is_lost
        if is_lost:
            self.lease.lose()
        self.pulls.ring()
        self.work.ring()
        self.ending.resolve(None)


def _endless_lease() -> Lease:
    """Returns the lease of a queue that is not locked."""
    lease = Lease()
    lease.work_until_ms = lease.ours_until_ms = math.inf
    return lease

"""One queue that a consumer has: its pulled and unfinished messages, its offsets, and its lease.

Any thread may call its cache; all else is changed only on the client's home. The offset to commit is the
floor of the cache: the lowest offset that is not done, never the offset of the last pull.

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
    """A queue of this consumer.

    Attributes:
        queue: The queue.
        subscription: The subscription of its topic.
        cache: The pulled messages.
        lease: Its lock; if queues are not locked (None is given), a lease that never ends.
        pull_offset: The offset of the next pull; ``NOT_KNOWN`` before the group's offset was read.
        is_dropped: Whether no more messages are pulled or given to the listener.
        is_taken: Whether it was dropped because another member has begun in it.
        is_lost: Whether another client may have the queue, so that nothing more is committed.
        is_loss_said: Whether a call of the application has raised because of that.
        is_given_up: Whether the application gave it up; its polled messages are still committed.
        is_at_end: Whether its last pull reached the end; None if not known. Then the next pull is not held,
            so that the answer comes soon.
        is_gone: Whether its topic did not exist when its broker was last asked: nothing is committed until
            the queue is begun again, in a new topic of that name.
        is_paused: Whether its pulls and deliveries are paused.
        is_by_hand: Whether only the application commits.
        approved: The offset that the application has committed, None before; used only if ``is_by_hand``.
        is_held: Whether its broker may hold the pull in flight until a message arrives.
        looks: Counter of checks for new messages; an answer to a pull sent before the last check does not
            count.
        is_resting: Whether it pauses after a failure.
        trouble: The error of its last pull; None after a success.
        pulls: Rung when pulling may continue.
        work: Rung when messages may be available for the listener.
        ending: Done when it is dropped.
        progress: Rung when there may be more to commit.
        committed_offset: The offset that its broker has; ``NOT_KNOWN`` before the broker took or reported
            one.
        doubts: How often the connection to its broker was lost or made: the broker may have lost offsets
            then.
        settled: The value of ``doubts`` when its broker last took or reported an offset.
        counts: Its counts.
        flows: The flows that run for it.
        in_hand: Hands of messages that were given to the listener and have not returned.
        hands: The number of hands in the pool, waiting or running.
        is_alone: Whether a quick listener has many of its messages in one hand, and no other hand is begun.
        is_locked: Whether its broker gives it to one client at a time.
        pulled_ms: Wall-clock time of the last pull.
        consumed_ms: Wall-clock time when a listener was last given messages.
        full_ms: Monotonic time since when it is not pulled because it is full; None if it is not full.
        full_warnings: The number of warnings about that.
        looked_ms: Monotonic time up to which it is known to be pulled: the present, or the end of a hold.
        continuous_ms: Monotonic time since when it is consumed in order without a pause.
        open: Messages consumed in order that await a ``COMMIT`` of the listener.
        ask_for_lock: Requests its lock from the broker; returns whether the lock was granted.
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
        self.is_lost = self.is_given_up = self.is_taken = self.is_loss_said = False
        self.is_at_end: bool | None = None
        self.is_held = False
        self.is_gone = self.is_alone = False
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
        """Whether it is idle: all stored messages were pulled and are done."""
        if self.is_dropped or self.is_resting:
            return True
        return self.is_at_end is True and not self.cache.counts().messages

    @property
    def is_lease_over(self) -> bool:
        """Whether its lease has ended, so that it must not be consumed until its lock is renewed."""
        return self._clock.monotonic_ms() > self.lease.work_until_ms

    @property
    def is_pull_lost(self) -> bool:
        """Whether its pulling flow has shown no sign of life for too long."""
        return self._clock.monotonic_ms() > self.looked_ms + MOST_IDLE_PULL_MS

    @property
    def why_busy(self) -> str | None:
        """Why it is not idle, for errors; None if it is idle, or only a listener is running."""
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
        """Makes it busy until a pull sent from now on reaches the end of the queue."""
        self.looks += 1
        self.is_at_end = None

    def begin_at(self, queue_offset: int, begin: Begin) -> None:
        """Continues at the group's committed offset, or at a begin or a moved offset, which is committed too.

        Otherwise a group that begins at the end of a queue would begin at the end again after a restart, and
        skip the messages stored in between.
        """
        self.cache = CachedQueue()
        self.cache.pulled_to(queue_offset)
        self.pull_offset = self._first_offset = queue_offset
        self._begin = begin
        # Brokers also answer 0 for a young queue without an offset.
        self.committed_offset = queue_offset if begin is Begin.KEPT and queue_offset else NOT_KNOWN
        self._begin_anew()

    def start_over(self) -> None:
        """Drops the pulled messages: another client may have consumed the queue."""
        self.cache = CachedQueue()
        self.pull_offset = self.committed_offset = NOT_KNOWN
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.is_at_end = self.trouble = self.approved = None
        self.is_gone = False
        self.is_resting = False

    def note_trouble(self, trouble: str) -> None:
        """Notes the error of a pull; the next pull is not held, so that its result is known soon."""
        self.trouble = trouble
        self.is_at_end = None

    def to_commit(self, now_ms: float) -> int | None:
        """Returns the offset to commit, None if it is committed, or another client may have the queue."""
        if self.is_lost or now_ms > self.lease.ours_until_ms:
            return None
        offset = self.approved if self.is_by_hand else self.done_offset()
        return offset if offset != self.committed_offset or self.settled != self.doubts else None

    def to_commit_in_pull(self, now_ms: float) -> int | None:
        """Returns the offset for a pull to commit, None if its broker must be asked first."""
        offset = self.to_commit(now_ms)
        if offset is None or offset == self.committed_offset or self.is_gone:
            return None
        # For a new group the broker has just answered that it has no offset; an application commits later.
        is_new = self._begin is Begin.ANEW and not self.is_by_hand
        return offset if is_new or not self._is_begin(offset) else None

    def must_ask(self, queue_offset: int) -> bool:
        """Returns whether the broker's offset must be read before an offset is committed.

        This is so if nothing was done since its last commit or since the queue was taken, and if the queue
        was given up while a listener still ran: another member may have continued from there.
        """
        return self.is_dropped or queue_offset == self.committed_offset or self._is_begin(queue_offset)

    def is_wanted(self, queue_offset: int, kept: int | None) -> bool:
        """Returns whether an offset replaces the one that the broker has."""
        if kept is None:
            return True
        if self._begin is Begin.MOVED and not self.is_dropped:
            return kept != queue_offset
        return kept < queue_offset and not self._is_begin(queue_offset)

    def note_committed(self, queue_offset: int, doubts: int) -> None:
        """Notes that its broker has an offset, or a later one of another member.

        Args:
            queue_offset: The offset.
            doubts: The value of ``doubts`` when it was sent.
        """
        self.committed_offset, self.settled = queue_offset, doubts

    def _is_begin(self, queue_offset: int) -> bool:
        return queue_offset == self._first_offset and self._begin is not Begin.MOVED

    def is_fenced(self, now_ms: float) -> bool:
        """Returns whether it has done messages that cannot be committed, since another client may have it."""
        return (self.is_lost or now_ms > self.lease.ours_until_ms) and self.is_ahead

    @property
    def is_ahead(self) -> bool:
        """Whether it has done messages that are neither committed nor will be."""
        done, approved = self.done_offset(), NOT_KNOWN if self.approved is None else self.approved
        return done is not None and done > max(self.committed_offset, self._first_offset, approved)

    def is_settled(self, now_ms: float) -> bool:
        """Returns whether a dropped queue has nothing left to commit, now or later."""
        is_open = self.cache.counts().taken > 0 or (self.is_by_hand and self.is_ahead)
        return not is_open and self.to_commit(now_ms) is None

    def done_offset(self) -> int | None:
        """Returns the offset up to which it is done, None before the group's offset was read.

        A message is done once its listener has returned, also while a later one of its hand is at work.
        """
        if self.pull_offset == NOT_KNOWN:
            return None
        self._end_done()
        return self.cache.floor()

    def position(self) -> int | None:
        """Returns the first offset that was not given yet, None before the group's offset was read.

        Any thread may call it.
        """
        cache = self.cache
        position = None if self.pull_offset == NOT_KNOWN else cache.position()
        if position is None:
            return None
        for handed in tuple(self.in_hand):  # handed to a pool whose threads have not begun them yet
            first = handed.first_waiting()
            if first is not None and first.queue_offset < position and cache.holds(first):
                position = first.queue_offset
        return position

    def at_work(self) -> list[int]:
        """Returns the offsets of the messages that listeners are processing; any thread may call it."""
        found = [handed.at_work for handed in tuple(self.in_hand)]
        return sorted(message.queue_offset for messages in found for message in messages)

    def settle(self) -> None:
        """Marks messages as done that listeners have finished; the queue is dropped.

        Listeners begin no further message of it, and messages not begun are taken back.
        """
        for handed in self.in_hand:
            waiting = handed.take_waiting()
            if handed.cache is self.cache:
                self.cache.put_back(waiting)
        self._end_done()

    def _end_done(self) -> None:
        """Removes what listeners have finished from the cache, also of hands that have not returned."""
        for handed in tuple(self.in_hand):
            if handed.done and handed.cache is self.cache:
                self.cache.remove(handed.done.copy())

    def note_pull(self, count: int, took_ms: float) -> None:
        """Counts a pull that has found messages."""
        self._rates.pulled(count, took_ms)

    def note_handed(self, handed: Handed) -> None:
        """Counts the results of messages that were handed over."""
        done = len(handed.done) - handed.expired
        self.counts.delivered += done
        self.counts.expired += handed.expired
        self._rates.consumed(done, len(handed.failed), handed.spent_ms)

    def take_away(self) -> bool:
        """Begins no further message, at once; returns whether it was not dropped before.

        Any thread may call it; :meth:`drop` follows on the home.
        """
        was_dropped = self.is_dropped
        if not was_dropped:
            self.is_taken = self.is_dropped = True
        return not was_dropped

    def drop(self, *, is_lost: bool = False) -> None:
        """Stops its pulls and deliveries."""
        self.is_dropped = True
        self.is_lost = self.is_lost or is_lost
        if is_lost:
            self.lease.lose()
        self.pulls.ring()
        self.work.ring()
        self.ending.resolve(None)


def _endless_lease() -> Lease:
    """Returns a lease for queues that are not locked."""
    lease = Lease()
    lease.work_until_ms = lease.ours_until_ms = math.inf
    return lease

"""The queues that a member has, from taking a queue until its release.

A queue is pulled and served until it belongs to another member; then its finished messages are committed and,
if queues are locked, its lock is released. Queues are independent: a failure in one delays only that one.

Source: ``RebalanceImpl.java``, ``RebalancePushImpl.java``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from seglog.client.client import Client
from seglog.client.home import Flow, rest, sleep, start, until
from seglog.consumer.counts import Counts, Rates
from seglog.consumer.lease import BROKER_LIVE_MS, Lease
from seglog.consumer.offsets.begin import Begin
from seglog.consumer.offsets.offset_store import OffsetStore
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.pulling import Pulling
from seglog.consumer.queues.commits import Commits
from seglog.consumer.queues.parted import PartedQueues
from seglog.consumer.services.serving import Serving
from seglog.consumer.settings import ConsumerSettings
from seglog.consumer.shares.locks import LockClient
from seglog.consumer.shares.words import in_words
from seglog.consumer.subscriptions import Subscriptions
from seglog.logs import logger
from seglog.remoting.heartbeat import TopicRates
from seglog.remoting.message_queue import MessageQueue

CORRECTION_MS: Final = 10_000
"""How long a queue stays dropped before its offset is corrected, unless that is done at once."""
FORCE_MS: Final = 20_000
"""How long after its last renewal the lock of a dropped queue is released in any case."""
_TOGETHER_MS: Final = 100
"""How long lost queues are gathered, to be logged in one line."""

_log = logger(__name__)


class HeldQueues:
    """The queues of one member. Its flows run on the client's home.

    Args:
        client: Its home and clock are used.
        settings: The settings of the consumer.
        offsets: Where the group's offsets are.
        service: Gives messages to the listener.
        locks: Locks queues; None if they are not locked.
        subscriptions: The subscriptions of the member.

    Attributes:
        all: The queues by name.
        parted: Queues that the application has given up and that still have messages to commit.
        commits: Commits their offsets.
        pulling: Pulls them.
        is_leaving: Whether the member is leaving the group, with all queues together.
        is_cut_short: Whether it leaves while listeners are running.
    """

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        offsets: OffsetStore,
        service: Serving,
        locks: LockClient | None,
        subscriptions: Subscriptions,
    ) -> None:
        self._client = client
        self._settings = settings
        self._service = service
        self._locks = locks
        self._subscriptions = subscriptions
        self._past = Counts()
        self.all: dict[MessageQueue, ProcessQueue] = {}
        self.parted = PartedQueues(client.clock, self._past)
        self.commits = Commits(
            client, settings.group, offsets, self.all, self.parted, self.lose, settings.commit_interval_ms
        )
        self.pulling = Pulling(
            client,
            settings,
            offsets,
            subscriptions,
            self._correct,
            self.lose,
            queues=self.all,
            is_in_order=service.IS_IN_ORDER,
            is_polled=service.IS_POLLED,
        )
        self._rates: dict[str, Rates] = {}
        self._lost: list[MessageQueue] = []
        self.is_leaving = self.is_cut_short = False
        self._share_anew: Callable[[], None] | None = None

    @property
    def counts(self) -> Counts:
        """The counts of all queues, including released ones."""
        total = Counts()
        for counts in (self._past, *(held.counts for held in (*self.all.copy().values(), *self.parted))):
            total.add(counts)
        return total

    def at_work(self) -> Sequence[str]:
        """Returns the messages that listeners are processing."""
        found: list[str] = []
        for queue, held in self.all.copy().items():
            at_work = held.at_work()
            if at_work:
                place = f"{queue.topic}, queue {queue.queue_id} of {queue.broker_name}"
                first, last = at_work[0], at_work[-1]
                has_gaps = last - first >= len(at_work)
                many = f"{len(at_work)} messages between offsets" if has_gaps else "offsets"
                found.append(f"{place}, {many} {first} {'and' if has_gaps else 'to'} {last}")
        return found

    def rates_now(self) -> Mapping[str, TopicRates]:
        """Returns the member's rates in the last minute, by topic."""
        return {topic: self._rates_of(topic).now() for topic in self._subscriptions.wanted}

    def take(self, queue: MessageQueue, lease: Lease | None) -> None:
        """Begins to pull and to serve a queue."""
        wanted, rates = self._subscriptions.wanted[queue.topic], self._rates_of(queue.topic)
        home, progress = self._client.home, self.commits.progress
        held = ProcessQueue(queue, wanted, home, lease, progress, rates, self._ask_for_lock)
        held.is_by_hand = not self._settings.auto_commit
        self.all[queue] = held
        for steps, name in (
            (self.pulling.keep_pulling(held), "pulls"),
            (self._service.keep_serving(held), "messages"),
        ):
            held.flows.append(start(home, steps, f"{name} of {queue}"))

    def _rates_of(self, topic: str) -> Rates:
        return self._rates.setdefault(topic, Rates(self._client.clock))

    def on_given_back(self, share_anew: Callable[[], None]) -> None:
        """Sets a function that is called when a queue was released."""
        self._share_anew = share_anew

    def start_over(self, held: ProcessQueue) -> None:
        """Continues at the committed offset, after a time in which another client may have had the queue."""
        self.pulling.restart(held)
        held.start_over()

    def begin_to_let_go(self, held: ProcessQueue) -> Flow[None]:
        """Stops a queue; returns a flow that ends when the queue is released."""
        held.drop()
        return start(self._client.home, self._let_go(held), f"handing over of {held.queue}")

    def lose(self, held: ProcessQueue) -> None:
        """Gives up a queue that another member has; it is begun again where that is no longer so.

        Nothing more of it is committed: the other member gets what is not committed.
        """
        if held.is_lost:
            return
        is_going = held.is_dropped and not held.is_taken
        held.drop(is_lost=True)
        if not is_going:
            if not self._lost:
                start(self._client.home, self._say_lost(), f"word of lost queues of {self._settings.group}")
            self._lost.append(held.queue)
            start(self._client.home, self._let_go(held), f"loss of {held.queue}")

    async def _say_lost(self) -> None:
        """Logs lost queues, those of one topic together: another member takes its share at once."""
        await sleep(self._client.home, _TOGETHER_MS)
        lost, self._lost = self._lost, []
        for topic in sorted({queue.topic for queue in lost}):
            of_topic = sorted(queue for queue in lost if queue.topic == topic)
            what = "group %s gives up %s: another member's share"
            _log.info(what, self._settings.group, in_words(of_topic))

    async def _correct(self, held: ProcessQueue, queue_offset: int) -> None:
        """Moves to the broker's offset: ours is out of range. Messages being processed are not counted."""
        held.cache.freeze()
        if self._settings.offset_illegal == "freeze":
            held.begin_at(queue_offset, Begin.MOVED)
            held.work.ring()
            await self.commits.commit(held)
        else:
            held.drop()
            start(self._client.home, self._correct_later(held, queue_offset), f"new offset of {held.queue}")

    async def _correct_later(self, held: ProcessQueue, queue_offset: int) -> None:
        await sleep(self._client.home, CORRECTION_MS)
        now_ms = self._client.clock.monotonic_ms()
        if self.is_leaving or held.is_lost or now_ms > held.lease.ours_until_ms:
            return
        await self.commits.commit_at(held.queue, queue_offset)
        await self._let_go(held)

    async def _let_go(self, held: ProcessQueue) -> None:
        """Waits for the listener, then commits a queue and releases it."""
        pulls, messages = held.flows
        pulls.stop()
        if self._locks is not None and not held.is_lost:
            await self._wait_or_force(held, messages, self._locks)
        with suppress(Exception):  # it is logged; the commit and the release of the lock follow
            await until(messages)
        if held.is_locked or not self.is_cut_short:
            await self.commits.commit(held)
            if not self.is_leaving:  # otherwise once for all queues
                await self.commits.persist()
        if self.all.get(held.queue) is held:
            del self.all[held.queue]
            is_said = held.is_loss_said or self._service.IS_POLLED
            if held.is_lost and held.is_ahead and not is_said:
                self.commits.lost.add(held.queue)
            if held.is_given_up:
                self.parted.add(held)
            else:
                self._past.add(held.counts)
            for other in self.all.values():  # each may cache more messages now
                other.pulls.ring()
        if self._locks is not None and not held.is_lost:
            await self._locks.unlock([held.queue], held.lease.ours_until_ms)
            if not self.is_leaving:  # otherwise once for all queues
                self._locks.say_kept()
        if self._share_anew is not None:
            self._share_anew()

    async def _wait_or_force(self, held: ProcessQueue, messages: Flow[None], locks: LockClient) -> None:
        """Waits for the listener, but releases the lock once it was not renewed for long.

        A close waits for the listener in any case.
        """
        home, clock = self._client.home, self._client.clock
        force_ms = held.lease.ours_until_ms - BROKER_LIVE_MS + FORCE_MS
        await rest(home, max(0, force_ms + 1 - clock.monotonic_ms()), messages)
        if messages.is_done or self.is_leaving or held.is_lost:
            return
        held.settle()
        await self.commits.commit(held)
        until_ms = held.lease.ours_until_ms
        held.drop(is_lost=True)
        _log.warning(
            "group %s gives back the lock of %s, though a listener is at offsets %s yet: it took longer than "
            "%d ms, and another member gets them too",
            self._settings.group,
            in_words([held.queue]),
            ", ".join(map(str, held.at_work())),
            FORCE_MS,
        )
        await locks.unlock([held.queue], until_ms)
        locks.say_kept()

    async def _ask_for_lock(self, held: ProcessQueue) -> bool:
        """Requests a lock that has expired; returns whether this member has it again."""
        if self._locks is None:
            return True
        locked, answered, asked_ms = await self._locks.lock([held.queue])
        if held.queue in locked:
            if held.lease.renew(asked_ms):
                self.start_over(held)
            held.pulls.ring()
            return True
        if held.queue.broker_name in answered:  # another client has it, and continues at the committed offset
            held.lease.lose()
        return False

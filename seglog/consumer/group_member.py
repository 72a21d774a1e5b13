"""GroupMember: the part of a consumer that has queues of a group, without a listener.

A queue that is its share is pulled and served until it is another's; then what is done of it is committed,
and, where queues are locked, its lock is given back. Queues are independent: what fails in one delays only
that one.

All of it runs on the client's home.

Source: ``RebalanceImpl.java``, ``RebalancePushImpl.java``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from seglog.client.client import Client
from seglog.client.home import Bell, Flow, VirtualHome, rest, sleep, start, until
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers
from seglog.consumer.counts import Counts, Rates
from seglog.consumer.lease import BROKER_LIVE_MS, Lease
from seglog.consumer.message_bodies import of_its_topic
from seglog.consumer.offsets.offset_store import OffsetStore
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.pulling import Pulling
from seglog.consumer.reports.running_info import properties_of, reports_of
from seglog.consumer.services.service import Service
from seglog.consumer.settings import ConsumerSettings
from seglog.consumer.shares.locks import RENEW_INTERVAL_MS, LockClient
from seglog.consumer.shares.sharing import Sharing
from seglog.consumer.shares.words import in_words
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.logs import logger
from seglog.remoting.heartbeat import ConsumedDirectlyBody, ConsumerData, RunningInfoBody
from seglog.remoting.later import CancelledError
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import Subscription, is_tag_type
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import Message

FIRST_COMMIT_MS: Final = 10_000
COMMIT_INTERVAL_MS: Final = 5_000
FIRST_RENEWAL_MS: Final = 1_000
CORRECTION_MS: Final = 10_000
"""How long a queue is dropped before its offset is corrected, where that is not done at once."""
FORCE_MS: Final = 20_000
"""How long after its last renewal the lock of a dropped queue is given back in any case."""

_log = logger(__name__)


class GroupMember:
    """One member of a consumer group.

    Args:
        client: Whose member it is.
        settings: Of the consumer.
        offsets: Where the group's offsets are.
        service: Gives messages to the listener.
    """

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        offsets: OffsetStore,
        service: Service,
    ) -> None:
        self._client = client
        self._settings = settings
        self._offsets = offsets
        self._service = service
        self._is_in_order = service.IS_IN_ORDER
        locks = self._is_in_order and not settings.is_broadcasting
        self._locks = LockClient(client, settings.group) if locks else None
        self._brokers = Brokers(client)
        self._version = client.clock.now_ms()
        self._pulling = Pulling(
            client, settings, offsets, self._correct, is_in_order=self._is_in_order, version=self._version
        )
        self._subscriptions = dict(settings.subscriptions)
        if not settings.is_broadcasting:  # a client that broadcasts retries nothing
            self._subscriptions[f"{RETRY_PREFIX}{settings.group}"] = Subscription("*", None)
        self._queues: dict[MessageQueue, ProcessQueue] = {}
        self._rates = {topic: Rates(client.clock) for topic in self._subscriptions}
        self._past = Counts()
        self._done_bell = Bell(client.home)
        self._flows: list[Flow[None]] = []
        self._is_leaving = self._is_cut_short = False
        self._leaving: Flow[None] | None = None
        self._sharing = Sharing(
            client,
            settings,
            self._subscriptions,
            self._locks,
            self._queues,
            self._take,
            self._begin_to_let_go,
        )

    @property
    def group(self) -> str:
        """Its group."""
        return self._settings.group

    @property
    def topics(self) -> Iterable[str]:
        """What it subscribes to."""
        return self._subscriptions.keys()

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that it has, in order."""
        return tuple(sorted(self._queues.copy()))

    @property
    def counts(self) -> Counts:
        """What it has done since it was made."""
        total = Counts()
        for counts in (self._past, *(held.counts for held in self._queues.copy().values())):
            total.add(counts)
        return total

    @property
    def is_idle(self) -> bool:
        """Whether all that is stored of its share is done."""
        return not self._sharing.lacking and all(held.is_idle for held in self._queues.copy().values())

    @property
    def late_ms(self) -> float:
        """How long no other member can have a queue that it has locked; without locks one can at once."""
        return 0 if self._locks is None else BROKER_LIVE_MS

    @property
    def is_filtered(self) -> bool:
        """Whether it has a subscription that brokers may refuse: one by another language than tags."""
        return any(not is_tag_type(wanted.expression_type) for wanted in self._subscriptions.values())

    def heartbeat(self) -> ConsumerData:
        """Returns what it says of itself in heartbeats."""
        return ConsumerData(
            self.group,
            tuple(wanted.in_heartbeat(topic, self._version) for topic, wanted in self._subscriptions.items()),
            message_model=self._settings.message_model,
            consume_from=self._settings.consume_from.value,
        )

    def suspend(self, *, is_suspended: bool) -> None:
        """Has nothing be pulled any more, or again; any thread may call it. What was pulled is consumed."""
        self._pulling.is_suspended = is_suspended
        for held in self._queues.copy().values():
            held.pulls.ring()

    def look_again(self) -> None:
        """Has it share the queues anew."""
        self._sharing.soon()

    async def look(self) -> None:
        """Has it not be idle before all that is stored now is done, in what is its share by now.

        On virtual time nothing is on its way, and what was pulled is all that there is.
        """
        self._sharing.look()
        if not isinstance(self._client.home, VirtualHome):
            home, queues = self._client.home, list(self._queues.values())
            looks = [start(home, self._pulling.look(held), f"a look at {held.queue}") for held in queues]
            for flow in looks:
                await until(flow)

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        """Returns the offsets up to which the queues of a topic are done."""
        found: dict[MessageQueue, int] = {}
        for queue, held in self._queues.items():
            done = held.done_offset()
            if queue.topic == topic and done is not None:
                found[queue] = done
        return found

    def running_info(self) -> RunningInfoBody:
        """Returns how it runs."""
        data = self.heartbeat()
        return RunningInfoBody(
            properties_of(self._settings, data, is_in_order=self._is_in_order, started_ms=self._version),
            data.subscriptions,
            reports_of(self._queues.values(), self._client.clock),
            {topic: self._rates[topic].now() for topic in self._subscriptions},
        )

    def reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Goes on elsewhere, as a broker says, and commits that; what a listener is at is not counted."""
        for queue, queue_offset in offsets.items():
            held = self._queues.get(queue)
            if queue.topic == topic and held is not None and not held.is_dropped:
                _log.info("%s goes on at %d: its offsets were reset", queue, queue_offset)
                self._pulling.move(held, queue_offset)
        start(self._client.home, self.commit(), f"commit of a reset of group {self.group}")

    async def consume_directly(self, message: Message, broker_name: str) -> ConsumedDirectlyBody:
        """Gives a message to the listener that people have picked."""
        _log.info("message %s of broker %s is consumed by hand", message.message_id, broker_name)
        is_retry = message.topic == f"{RETRY_PREFIX}{self.group}"
        given = of_its_topic(message) if is_retry else message
        queue = MessageQueue(given.topic, broker_name, message.queue_id)
        return await self._service.consume_directly(given, queue)

    def why_busy(self) -> Sequence[str]:
        """Returns what keeps it from being idle, for errors."""
        queues = sorted(self._queues.copy().items())
        found = [f"{queue}: {held.why_busy}" for queue, held in queues if held.why_busy is not None]
        at_work = [f"a listener is at {what}" for what in self.at_work()]
        suspended = ["it is suspended"] if self._pulling.is_suspended else []
        return [*self._sharing.lacking, *suspended, *found, *at_work]

    def at_work(self) -> Sequence[str]:
        """Returns the messages that listeners have now."""
        found: list[str] = []
        for queue, held in self._queues.copy().items():
            at_work = held.at_work()
            if at_work:
                place = f"{queue.topic}, queue {queue.queue_id} of {queue.broker_name}"
                found.append(f"{place}, offsets {at_work[0]} to {at_work[-1]}")
        return found

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of its own listener that would wait for that; see ``Service``."""
        self._service.refuse_from_inside(call, is_bounded=is_bounded)

    def end_listeners(self) -> bool:
        """Has its listener not called any more."""
        return self._service.end()

    async def refusal(self) -> RemoteProtocolError | None:
        """Returns what a broker has against a subscription, before it is consumed; None where all are served.

        One that does not answer is not waited for: pulls that fail are tried again.
        """
        for topic, wanted in self._subscriptions.items():
            if not is_tag_type(wanted.expression_type):
                try:
                    found = await self._brokers.refusal_of(
                        self.group, wanted.in_heartbeat(topic, self._version)
                    )
                except SeglogError as error:
                    _log.log(level_of(error), "the subscription to topic %s is not checked: %s", topic, error)
                else:
                    if found is not None:
                        return found
        return None

    async def begin(self) -> None:
        """Joins the group: routes, a heartbeat, its share, and what is done by time from then on."""
        self._client.add_member(self)
        for topic in self._subscriptions:
            try:
                await self._client.routes.refresh(topic)
            except SeglogError as error:
                _log.log(level_of(error), "topic %s has no route yet: %s", topic, error)
        await self._client.beat()
        if not self._is_leaving:
            keepers = [
                (self._sharing.keep(), "shares"),
                (self._keep_committing(), "commits"),
                (self._service.keep_expiring(self._queues.values), "time-outs"),
            ]
            if self._locks is not None:
                keepers.append((self._keep_renewing(self._locks), "renewal of locks"))
            for steps, name in keepers:
                self._flows.append(start(self._client.home, steps, f"{name} of group {self.group}"))

    async def leave(self) -> None:
        """Lets no message begin, waits for listeners at work, commits, and gives its queues back.

        Its client may ask for that once more, which waits for the same.
        """
        await until(self._begin_to_leave())

    def _begin_to_leave(self) -> Flow[None]:
        """Lets no message begin any more; returns what says that all is given back."""
        if self._leaving is None:
            self._is_leaving = True
            self._sharing.end()
            for flow in self._flows:
                flow.stop()
            if self._queues:
                _log.info("group %s gives up %s: this member is closed", self.group, in_words(self._queues))
            leaving = [self._begin_to_let_go(held) for held in self._queues.values()]
            self._leaving = start(self._client.home, self._leave(leaving), f"farewell of group {self.group}")
        return self._leaving

    async def _leave(self, leaving: Iterable[Flow[None]]) -> None:
        for flow in leaving:
            await until(flow)
        self.end_listeners()
        if self._locks is not None:
            until_ms = self._client.clock.monotonic_ms() + BROKER_LIVE_MS
            await self._locks.unlock(self._sharing.left_locks, until_ms)
            self._locks.say_kept()
        await self._persist()
        await self._client.remove_member(self)
        self._client.release(self)

    async def cut_short(self) -> None:
        """Commits what is done beside what listeners are at still, and leaves the group without them.

        What they come back with counts as long as no other member can have the queue, which only a lock says.
        """
        self._begin_to_leave()
        self._is_cut_short = True
        for held in list(self._queues.values()):
            held.settle()
            await self._commit(held)
        await self._persist()
        await self._client.remove_member(self)

    async def commit(self) -> None:
        """Brings what is done to the brokers; a queue whose broker refuses is tried again with the next."""
        for held in list(self._queues.values()):
            await self._commit(held)
        await self._persist()

    # Queues

    def _take(self, queue: MessageQueue, lease: Lease | None) -> None:
        """Begins to pull and to serve a queue that it has got."""
        wanted, rates = self._subscriptions[queue.topic], self._rates[queue.topic]
        held = ProcessQueue(
            queue, wanted, self._client.home, lease, self._done_bell, rates, self._ask_for_lock
        )
        self._queues[queue] = held
        for steps, name in (
            (self._pulling.keep_pulling(held), "pulls"),
            (self._service.keep_serving(held), "messages"),
        ):
            held.flows.append(start(self._client.home, steps, f"{name} of {queue}"))

    def _start_over(self, held: ProcessQueue) -> None:
        """Goes on from what is committed, after a time in which another client may have had the queue."""
        self._pulling.restart(held)
        held.start_over()

    async def _correct(self, held: ProcessQueue, queue_offset: int) -> None:
        """Goes on where the broker says: the offset is out of the queue. What is at work is not counted."""
        held.cache.freeze()
        if self._settings.offset_illegal == "freeze":
            held.begin_at(queue_offset)
            held.work.ring()
            await self._commit(held)
        else:
            held.drop()
            start(self._client.home, self._correct_later(held, queue_offset), f"new offset of {held.queue}")

    async def _correct_later(self, held: ProcessQueue, queue_offset: int) -> None:
        await sleep(self._client.home, CORRECTION_MS)
        now_ms = self._client.clock.monotonic_ms()
        if self._is_leaving or held.is_lost or now_ms > held.lease.ours_until_ms:
            return
        try:
            await self._offsets.commit(held.queue, queue_offset)
        except SeglogError as error:
            _log.log(level_of(error), "%s is not committed at %d: %s", held.queue, queue_offset, error)
        await self._let_go(held)

    def _begin_to_let_go(self, held: ProcessQueue) -> Flow[None]:
        held.drop()
        return start(self._client.home, self._let_go(held), f"handing over of {held.queue}")

    async def _let_go(self, held: ProcessQueue) -> None:
        """Waits for the listener, then commits a queue and gives it back."""
        pulls, messages = held.flows
        pulls.stop()
        if self._locks is not None and not held.is_lost:
            await self._wait_or_force(held, messages, self._locks)
        with suppress(CancelledError):
            await until(messages)
        if held.is_locked or not self._is_cut_short:
            await self._commit(held)
            if not self._is_leaving:  # else it is done for all queues together
                await self._persist()
        if self._queues.get(held.queue) is held:
            del self._queues[held.queue]
            self._past.add(held.counts)
        if self._locks is not None and not held.is_lost:
            await self._locks.unlock([held.queue], held.lease.ours_until_ms)
            if not self._is_leaving:  # else it is said of all queues together
                self._locks.say_kept()
        self._sharing.soon()

    async def _wait_or_force(self, held: ProcessQueue, messages: Flow[None], locks: LockClient) -> None:
        """Waits for the listener, but gives the lock back once it was not renewed for long.

        A close waits for the listener in any case.
        """
        home, clock = self._client.home, self._client.clock
        force_ms = held.lease.ours_until_ms - BROKER_LIVE_MS + FORCE_MS
        await rest(home, max(0, force_ms + 1 - clock.monotonic_ms()), messages)
        if messages.is_done or self._is_leaving or held.is_lost:
            return
        held.settle()
        await self._commit(held)
        until_ms = held.lease.ours_until_ms
        held.drop(is_lost=True)
        _log.warning(
            "group %s gives back the lock of %s, though a listener is at offsets %s yet: it took longer than "
            "%d ms, and another member gets them too",
            self.group,
            in_words([held.queue]),
            ", ".join(map(str, held.at_work())),
            FORCE_MS,
        )
        await locks.unlock([held.queue], until_ms)
        locks.say_kept()

    # Commits and locks

    async def _ask_for_lock(self, held: ProcessQueue) -> bool:
        """Asks for a lock that is over; returns whether it is this member's again."""
        if self._locks is None:
            return True
        locked, answered, asked_ms = await self._locks.lock([held.queue])
        if held.queue in locked:
            if held.lease.renew(asked_ms):
                self._start_over(held)
            held.pulls.ring()
            return True
        if held.queue.broker_name in answered:  # another client has it, and goes on from what is committed
            held.lease.lose()
        return False

    async def _keep_committing(self) -> None:
        home, clock = self._client.home, self._client.clock
        next_ms = clock.monotonic_ms() + FIRST_COMMIT_MS
        while not self._client.is_over:
            await self._done_bell.wait()
            late_ms = max(0.0, clock.monotonic_ms() - next_ms)
            next_ms += math.ceil(late_ms / COMMIT_INTERVAL_MS) * COMMIT_INTERVAL_MS  # idle ones are left out
            await sleep(home, next_ms - clock.monotonic_ms())
            await self.commit()
            next_ms += COMMIT_INTERVAL_MS

    async def _commit(self, held: ProcessQueue) -> None:
        queue_offset = held.to_commit(self._client.clock.monotonic_ms())
        if queue_offset is None:
            return
        try:
            await self._offsets.commit(held.queue, queue_offset)
        except SeglogError as error:
            level = self._client.troubles.level(f"commit of {held.queue} for {self.group}", error)
            _log.log(level, "%s is not committed at %d: %s", held.queue, queue_offset, error)
        else:
            held.committed_offset = queue_offset

    async def _persist(self) -> None:
        try:
            await self._offsets.persist()
        except SeglogError as error:
            level = self._client.troubles.level(f"offsets of {self.group}", error)
            _log.log(level, "the offsets of group %s are not written: %s", self.group, error)

    async def _keep_renewing(self, locks: LockClient) -> None:
        await sleep(self._client.home, FIRST_RENEWAL_MS)
        while not self._client.is_over:
            held_queues = {queue: held for queue, held in self._queues.items() if not held.is_dropped}
            locked, answered, asked_ms = await locks.lock(held_queues)
            gone = [one for one in held_queues if one not in locked and one.broker_name in answered]
            if gone:
                _log.info("group %s gives up %s: another client has the lock", self.group, in_words(gone))
            for queue, held in held_queues.items():
                if queue in locked:
                    if held.lease.renew(asked_ms):
                        self._start_over(held)
                    held.pulls.ring()
                    held.work.ring()
                elif queue in gone:
                    held.drop(is_lost=True)
                    self._begin_to_let_go(held)
            await sleep(self._client.home, RENEW_INTERVAL_MS)

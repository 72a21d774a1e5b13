"""GroupMember: the part of a consumer that shares the queues of a group, without a listener.

Each member of a group asks who its members are, and computes its own share; it does so at its start, every
20 s, and when a broker says that members came or went. A queue that is its share is pulled and served until
it is another's; then what is done of it is committed, and, where queues are locked, its lock is given back.
Queues are independent: what fails in one delays only that one.

All of it runs on the client's home.

Source: ``RebalanceImpl.java``, ``RebalanceService.java``, ``RebalancePushImpl.java``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from seglog.client.allocation import share_of
from seglog.client.client import Client
from seglog.client.home import Bell, Flow, sleep, start, until
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers
from seglog.consumer.counts import Counts, Rates
from seglog.consumer.lease import Lease
from seglog.consumer.leases import RENEW_INTERVAL_MS, LockClient
from seglog.consumer.message_bodies import of_its_topic
from seglog.consumer.offset_store import OffsetStore
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.pulling import Pulling
from seglog.consumer.reports.running_info import properties_of, reports_of
from seglog.consumer.service import Service
from seglog.consumer.settings import ConsumerSettings
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.remoting.client_headers import ConsumerGroupHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.heartbeat import ConsumedDirectlyBody, ConsumerData, ConsumerListBody, RunningInfoBody
from seglog.remoting.later import CancelledError
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import Subscription, is_tag_type
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import Message

SHARE_INTERVAL_MS: Final = 20_000
"""``rocketmq.client.rebalance.waitInterval``."""
MIN_SHARE_INTERVAL_MS: Final = 1_000
"""``rocketmq.client.rebalance.minInterval``; also after a share that was not got whole."""
FIRST_COMMIT_MS: Final = 10_000
COMMIT_INTERVAL_MS: Final = 5_000
FIRST_RENEWAL_MS: Final = 1_000

_log = logging.getLogger(__name__)


class GroupMember:
    """One member of a consumer group.

    Args:
        client: Whose member it is.
        settings: Of the consumer.
        offsets: Where the group's offsets are.
        service: Gives messages to the listener.
        locks: Whether a queue is locked at its broker before it is consumed.
        retries: Whether it consumes the group's retry topic as well.
    """

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        offsets: OffsetStore,
        service: Service,
        *,
        locks: bool,
        retries: bool,
    ) -> None:
        self._client = client
        self._settings = settings
        self._offsets = offsets
        self._service = service
        self._locks = LockClient(client, settings.group) if locks else None
        self._brokers = Brokers(client)
        self._version = client.clock.now_ms()
        self._pulling = Pulling(
            client, settings, offsets, is_in_order=locks, version=self._version, moved=self._correct
        )
        self._subscriptions = dict(settings.subscriptions)
        if retries:
            self._subscriptions[f"{RETRY_PREFIX}{settings.group}"] = Subscription("*", None)
        self._queues: dict[MessageQueue, ProcessQueue] = {}
        self._rates = {topic: Rates(client.clock) for topic in self._subscriptions}
        self._past = Counts()
        self._share_soon = Bell(client.home)
        self._done_bell = Bell(client.home)
        self._flows: list[Flow[None]] = []
        self._shared_ms = -float(MIN_SHARE_INTERVAL_MS)
        self._is_leaving = False
        self._leaving: Flow[None] | None = None
        self._unshared = dict.fromkeys(self._subscriptions, "its queues are not known yet")

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
        return not self._unshared and all(held.is_idle for held in self._queues.copy().values())

    @property
    def is_filtered(self) -> bool:
        """Whether it has a subscription that brokers may refuse: one by another language than tags."""
        return any(not is_tag_type(wanted.expression_type) for wanted in self._subscriptions.values())

    def heartbeat(self) -> ConsumerData:
        """Returns what it says of itself in heartbeats."""
        return ConsumerData(
            self.group,
            tuple(wanted.in_heartbeat(topic, self._version) for topic, wanted in self._subscriptions.items()),
            consume_from=self._settings.consume_from.value,
        )

    def look_again(self) -> None:
        """Has it share the queues anew."""
        self._share_soon.ring()

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
        is_in_order = self._locks is not None
        return RunningInfoBody(
            properties_of(self._settings, data, is_in_order=is_in_order, started_ms=self._version),
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
                self._restart_pulls(held)
                self._correct(held, queue_offset)
                held.work.ring()
        start(self._client.home, self.commit(), f"commit of a reset of group {self.group}")

    async def consume_directly(self, message: Message, broker_name: str) -> ConsumedDirectlyBody:
        """Gives a message to the listener that people have picked."""
        _log.info("message %s of broker %s is consumed by hand", message.message_id, broker_name)
        is_retry = message.topic == f"{RETRY_PREFIX}{self.group}"
        return await self._service.consume_directly(of_its_topic(message) if is_retry else message)

    def why_busy(self) -> Sequence[str]:
        """Returns what keeps it from being idle, for errors."""
        found = [f"topic {topic}: {why}" for topic, why in self._unshared.copy().items()]
        busy = [held for held in self._queues.copy().values() if not held.is_idle]
        found += [f"{held.queue}: {held.trouble}" for held in busy if held.trouble is not None]
        return [*found, *(f"a listener is at {what}" for what in self.at_work())]

    def at_work(self) -> Sequence[str]:
        """Returns the messages that listeners have now."""
        found: list[str] = []
        for queue, held in self._queues.copy().items():
            taken = held.cache.places().taken
            if taken.count:
                place = f"{queue.topic}, queue {queue.queue_id} of {queue.broker_name}"
                found.append(f"{place}, offsets {taken.first} to {taken.last}")
        return found

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of its own listener that would wait for that; see ``Service``."""
        self._service.refuse_from_inside(call, is_bounded=is_bounded)

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
            keepers = [(self._keep_sharing(), "shares"), (self._keep_committing(), "commits")]
            if self._locks is not None:
                keepers.append((self._keep_renewing(self._locks), "renewal of locks"))
            for steps, name in keepers:
                self._flows.append(start(self._client.home, steps, f"{name} of group {self.group}"))

    async def leave(self) -> None:
        """Lets no message begin, waits for listeners at work, commits, and gives its queues back.

        Its client may ask for that once more, which waits for the same.
        """
        if self._leaving is None:
            self._leaving = start(self._client.home, self._leave(), f"farewell of group {self.group}")
        await until(self._leaving)

    async def _leave(self) -> None:
        self._is_leaving = True
        for flow in self._flows:
            flow.stop()
        leaving = [self._begin_to_let_go(held) for held in self._queues.values()]
        for flow in leaving:
            await until(flow)
        await self._client.remove_member(self)

    async def commit(self) -> None:
        """Brings what is done to the brokers; a queue whose broker refuses is tried again with the next."""
        for held in list(self._queues.values()):
            await self._commit(held)

    # Shares

    async def _keep_sharing(self) -> None:
        clock = self._client.clock
        while not self._client.is_over:
            rest_ms = self._shared_ms + MIN_SHARE_INTERVAL_MS - clock.monotonic_ms()
            if rest_ms > 0:
                await sleep(self._client.home, rest_ms)
            self._shared_ms = clock.monotonic_ms()
            is_whole = True
            for topic in self._subscriptions:
                is_whole &= await self._share(topic)
            await self._share_soon.wait(SHARE_INTERVAL_MS if is_whole else MIN_SHARE_INTERVAL_MS)

    async def _share(self, topic: str) -> bool:
        """Takes its share of a topic; returns whether it has all of it."""
        try:
            queues = self._client.routes.known_to_read(topic)
            if not queues and not await self._client.routes.refresh(topic):
                self._unshared.pop(topic, None)  # there is nothing to consume
                return topic.startswith(RETRY_PREFIX)  # the broker makes it with a heartbeat
            queues = self._client.routes.known_to_read(topic)
            members = await self._members(queues) if queues else ()
            if members is None:
                self._note_unshared(topic, "its broker does not know the group yet")
                return False
            share = share_of(self._settings.strategy, self.group, self._client.client_id, queues, members)
        except SeglogError as error:
            _log.log(
                level_of(error),
                "queues of topic %s stay as they are for group %s: %s",
                topic,
                self.group,
                error,
            )
            self._note_unshared(topic, str(error))
            return False
        mine = {queue: held for queue, held in self._queues.items() if queue.topic == topic}
        for queue, held in mine.items():
            if queue not in share and not held.is_dropped:
                self._begin_to_let_go(held)
        return await self._take(topic, set(share) - mine.keys()) and all(
            not mine[q].is_dropped for q in mine.keys() & share
        )

    async def _members(self, queues: Collection[MessageQueue]) -> tuple[str, ...] | None:
        """Returns the ids of the group's members, None if the broker knows of none yet."""
        request = Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(self.group))
        answer = await self._brokers.ask(min(queues).broker_name, request)
        if answer.code is ResponseCode.SYSTEM_ERROR:
            self._client.beat_soon()
            return None
        return expect_body(answer, ConsumerListBody).client_ids

    async def _take(self, topic: str, missing: Collection[MessageQueue]) -> bool:
        asked_ms = 0.0
        locked: Collection[MessageQueue] = missing
        silent: Collection[str] = ()
        if self._locks is not None and missing:
            locked, answered, asked_ms = await self._locks.lock(missing)
            silent = {queue.broker_name for queue in missing} - answered
        if silent:
            self._note_unshared(topic, f"no locks of broker {', '.join(sorted(silent))}")
        else:
            self._unshared.pop(topic, None)
        for queue in sorted(locked):
            if self._is_leaving or queue in self._queues:
                continue
            lease = None
            if self._locks is not None:
                lease = Lease()
                lease.renew(asked_ms)
            wanted, rates = self._subscriptions[topic], self._rates[topic]
            held = ProcessQueue(queue, wanted, self._client.home, lease, self._done_bell, rates)
            self._queues[queue] = held
            for steps, name in (
                (self._pulling.keep_pulling(held), "pulls"),
                (self._service.keep_serving(held), "messages"),
            ):
                held.flows.append(start(self._client.home, steps, f"{name} of {queue}"))
        return len(locked) == len(missing)

    def _note_unshared(self, topic: str, why: str) -> None:
        """Notes why a topic has no share yet; one that had one once keeps its queues."""
        if topic in self._unshared:
            self._unshared[topic] = why

    def _start_over(self, held: ProcessQueue) -> None:
        """Goes on from what is committed, after a time in which another client may have had the queue."""
        self._restart_pulls(held)
        held.start_over()

    def _restart_pulls(self, held: ProcessQueue) -> None:
        """Ends the pull that is on its way, which a broker may hold for long, and begins anew, soon."""
        pulls, messages = held.flows
        pulls.stop()
        pulls = start(self._client.home, self._pulling.keep_pulling(held), f"pulls of {held.queue}")
        held.flows = [pulls, messages]

    def _begin_to_let_go(self, held: ProcessQueue) -> Flow[None]:
        held.drop()
        return start(self._client.home, self._let_go(held), f"handing over of {held.queue}")

    async def _let_go(self, held: ProcessQueue) -> None:
        """Waits for the listener, then commits a queue and gives it back."""
        pulls, messages = held.flows
        pulls.stop()
        with suppress(CancelledError):
            await until(messages)
        await self._commit(held)
        if self._queues.get(held.queue) is held:
            del self._queues[held.queue]
            self._past.add(held.counts)
        if self._locks is not None and not held.is_lost:
            await self._locks.unlock([held.queue])
        self._share_soon.ring()

    def _correct(self, held: ProcessQueue, queue_offset: int) -> None:
        """Goes on where the broker says, after an offset that it does not have."""
        held.begin_at(queue_offset)

    # Commits and locks

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
            _log.log(level_of(error), "%s is not committed at %d: %s", held.queue, queue_offset, error)
        else:
            held.committed_offset = queue_offset

    async def _keep_renewing(self, locks: LockClient) -> None:
        await sleep(self._client.home, FIRST_RENEWAL_MS)
        while not self._client.is_over:
            held_queues = {queue: held for queue, held in self._queues.items() if not held.is_lost}
            locked, answered, asked_ms = await locks.lock(held_queues)
            for queue, held in held_queues.items():
                if queue in locked:
                    if held.lease.renew(asked_ms):
                        self._start_over(held)
                    held.pulls.ring()
                    held.work.ring()
                elif queue.broker_name in answered:
                    held.drop(is_lost=True)
                    self._begin_to_let_go(held)
            await sleep(self._client.home, RENEW_INTERVAL_MS)

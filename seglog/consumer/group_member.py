"""GroupMember: the part of a consumer that holds queues of a group, without a listener.

It joins the group, represents the consumer to its client and to brokers, and leaves the group. The work on
its queues is in :mod:`seglog.consumer.queues`, the choice of queues in :mod:`seglog.consumer.shares`.

All of it runs on the client's home.

Source: ``DefaultMQPushConsumerImpl.java``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from seglog.client.client import Client
from seglog.client.dropped import LoopEnd
from seglog.client.home import Flow, VirtualHome, start, until
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers
from seglog.consumer.counts import Counts
from seglog.consumer.lease import BROKER_LIVE_MS
from seglog.consumer.message_bodies import of_its_topic
from seglog.consumer.offsets.first_offsets import max_offset
from seglog.consumer.offsets.local_offset_store import LocalOffsetStore
from seglog.consumer.offsets.offset_store import OffsetStore
from seglog.consumer.process_queue import NOT_KNOWN, ProcessQueue
from seglog.consumer.queues.held_queues import HeldQueues
from seglog.consumer.queues.renewal import keep_renewing
from seglog.consumer.reports.running_info import properties_of, reports_of
from seglog.consumer.services.serving import Serving
from seglog.consumer.settings import ConsumerSettings
from seglog.consumer.shares.locks import LockClient
from seglog.consumer.shares.sharing import Sharing
from seglog.consumer.shares.words import in_words
from seglog.consumer.subscriptions import Subscriptions
from seglog.errors import ConsumerError, RemoteProtocolError, SeglogError
from seglog.logs import logger
from seglog.remoting.heartbeat import ConsumedDirectlyBody, ConsumerData, ConsumeType, RunningInfoBody
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import Subscription
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import Message

_log = logger(__name__)


class GroupMember:
    """One member of a consumer group.

    Args:
        client: The client that it belongs to.
        settings: The settings of the consumer.
        offsets: Where the group's offsets are.
        service: Gives messages to the listener.

    Attributes:
        loop_end: Warns if its event loop ends before it; None for a consumer with blocking calls.
        unwritten: Why its last offsets could not be written when it left; None if they are, or it is there.
    """

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        offsets: OffsetStore,
        service: Serving,
    ) -> None:
        self.loop_end: LoopEnd | None = None
        self.unwritten: SeglogError | None = None
        self._client = client
        self._settings = settings
        self._offsets = offsets
        self._service = service
        locks = service.IS_IN_ORDER and not settings.is_broadcasting
        self._locks = LockClient(client, settings.group) if locks else None
        self._subscriptions = Subscriptions(client, settings, has_retries=not service.IS_POLLED)
        self._started_ms = self._subscriptions.version
        self._held = HeldQueues(client, settings, offsets, service, self._locks, self._subscriptions)
        self._queues = self._held.all
        self._sharing = Sharing(
            client,
            settings,
            self._subscriptions.wanted,
            self._locks,
            self._queues,
            self._held.take,
            self._held.begin_to_let_go,
            offsets.saw,
        )
        self._held.on_given_back(self._sharing.soon)
        self._held.commits.ask_for_others = self._sharing.others
        self._flows: list[Flow[None]] = []
        self._has_begun = False
        self._leaving: Flow[None] | None = None

    @property
    def group(self) -> str:
        """Its group."""
        return self._settings.group

    @property
    def topics(self) -> Iterable[str]:
        """The topics that it subscribes to."""
        return self._subscriptions.wanted.keys()

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        """Its present subscriptions, without its retry topic."""
        found = dict(self._subscriptions.wanted)
        found.pop(f"{RETRY_PREFIX}{self.group}", None)
        return found

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that are assigned to it, in order."""
        return tuple(sorted(self._queues.copy()))

    @property
    def counts(self) -> Counts:
        """Counts of messages since the consumer was made."""
        return self._held.counts

    @property
    def is_idle(self) -> bool:
        """Whether all stored messages of its share are done."""
        return not self._sharing.lacking and all(held.is_idle for held in self._queues.copy().values())

    @property
    def offset_path(self) -> Path | None:
        """The offset file of a broadcasting member; None if brokers keep the offsets."""
        return self._offsets.path if isinstance(self._offsets, LocalOffsetStore) else None

    @property
    def is_suspended(self) -> bool:
        """Whether pulling is suspended."""
        return self._held.pulling.is_suspended

    @property
    def late_ms(self) -> float:
        """How long, in ms, no other member can get a queue that it has locked; 0 without locks."""
        return 0 if self._locks is None else BROKER_LIVE_MS

    @property
    def is_filtered(self) -> bool:
        """Whether it has a subscription that brokers may refuse: one in another language than tags."""
        return self._subscriptions.is_filtered

    def heartbeat(self) -> ConsumerData:
        """Returns its data for heartbeats."""
        return ConsumerData(
            self.group,
            self._subscriptions.in_heartbeat(),
            ConsumeType.ACTIVELY if self._service.IS_POLLED else ConsumeType.PASSIVELY,
            message_model=self._settings.message_model,
            consume_from=self._settings.consume_from.value,
        )

    def suspend(self, *, is_suspended: bool) -> None:
        """Suspends or resumes pulling; any thread may call it. Pulled messages are still consumed."""
        self._held.pulling.is_suspended = is_suspended
        for held in self._queues.copy().values():
            held.pulls.ring()

    def look_again(self) -> None:
        """Requests a rebalance."""
        self._sharing.soon()

    def taken(self, queue: MessageQueue) -> None:
        """Gives no more of a queue that another member has begun in; any thread may call it."""
        held = self._queues.get(queue)
        if held is not None and self._offsets.owner is not None and held.take_away():
            self._client.home.post(partial(self._held.lose, held))

    def doubt(self, broker_names: Collection[str], *, are_back: bool) -> None:
        """Commits offsets again that brokers may have lost since they took them."""
        for held in self._queues.values():
            if held.queue.broker_name in broker_names:
                held.doubts += 1
                if are_back:
                    held.progress.ring()

    async def look(self) -> None:
        """Makes it busy until all messages stored by now in its present share are done.

        On virtual time no request is in flight, and all stored messages were pulled.
        """
        self._sharing.look()
        if not isinstance(self._client.home, VirtualHome):
            home, queues = self._client.home, list(self._queues.values())
            looks = [start(home, self._held.pulling.look(held), f"a look at {held.queue}") for held in queues]
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

    def position(self, queue: MessageQueue) -> int | None:
        """Returns the first offset of a queue that was not given yet; any thread may call it.

        Raises:
            ConsumerError: It does not have the queue.
        """
        return self.held(queue).position()

    async def begin_of(self, queue: MessageQueue) -> int:
        """Returns the same for a queue that was not pulled yet; its pulls then begin there.

        Raises:
            ConsumerError: It does not have the queue.
            SeglogError: The broker refuses, or there is no answer.
        """
        held = self.held(queue)
        start_offset, begin = await self._offsets.start_of(queue)
        if held.pull_offset == NOT_KNOWN:  # else a pull has set it meanwhile, or a seek
            held.begin_at(start_offset, begin)
            held.pulls.ring()
        position = self.position(queue)
        return start_offset if position is None else position

    def held(self, queue: MessageQueue) -> ProcessQueue:
        """Returns a queue that it has; any thread may call it.

        Raises:
            ConsumerError: It does not have the queue.
        """
        held = self._queues.get(queue)
        if held is None or held.is_dropped:
            mine = in_words(self.queues) or "no queue"
            raise ConsumerError(
                f"{in_words([queue])} is none of this consumer's of group {self.group}: it has {mine}",
                help="it may be another member's since: ask for queues that it has now",
            )
        return held

    async def committed(self, queue: MessageQueue) -> int | None:
        """Returns the committed offset of a queue; None if there is none.

        Raises:
            SeglogError: The broker refuses, or there is no answer.
        """
        return await self._offsets.kept(queue)

    async def lag(self) -> Mapping[MessageQueue, int]:
        """Returns how many messages are stored in each of its queues behind those that are done.

        For a queue that was not pulled yet, the broker is asked where the group continues.

        Raises:
            SeglogError: A broker refuses, or there is no answer.
        """
        brokers, found = Brokers(self._client), dict[MessageQueue, int]()
        for queue, held in sorted(self._queues.items()):
            if held.is_dropped:
                continue
            done = held.done_offset()
            if done is None:
                done, _begin = await self._offsets.start_of(queue)
            found[queue] = max(0, await max_offset(brokers, queue) - done)
        return found

    def running_info(self) -> RunningInfoBody:
        """Returns its running info, for ``mqadmin``."""
        data = self.heartbeat()
        return RunningInfoBody(
            properties_of(
                self._settings, data, is_in_order=self._service.IS_IN_ORDER, started_ms=self._started_ms
            ),
            data.subscriptions,
            reports_of(self._queues.values(), self._client.clock),
            self._held.rates_now(),
        )

    def reset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Moves to a broker's offsets, and commits them; messages of running listeners are not counted."""
        for queue, queue_offset in offsets.items():
            held = self._queues.get(queue)
            if queue.topic == topic and held is not None and not held.is_dropped:
                _log.info("%s continues at %d: its offsets were reset", queue, queue_offset)
                self._held.pulling.move(held, queue_offset)
        start(self._client.home, self.commit(), f"commit of a reset of group {self.group}")

    async def consume_directly(self, message: Message, broker_name: str) -> ConsumedDirectlyBody:
        """Gives a message chosen by an operator to the listener."""
        _log.info("message %s of broker %s is consumed by hand", message.message_id, broker_name)
        is_retry = message.topic == f"{RETRY_PREFIX}{self.group}"
        given = of_its_topic(message) if is_retry else message
        queue = MessageQueue(given.topic, broker_name, message.queue_id)
        return await self._service.consume_directly(given, queue)

    def why_busy(self) -> Sequence[str]:
        """Returns the reasons why it is not idle, for errors."""
        queues = sorted(self._queues.copy().items())
        found = [f"{queue}: {held.why_busy}" for queue, held in queues if held.why_busy is not None]
        at_work = [f"a listener is at {what}" for what in self.at_work()]
        suspended = ["it is suspended"] if self._held.pulling.is_suspended else []
        return [*self._sharing.lacking, *suspended, *found, *at_work]

    def at_work(self) -> Sequence[str]:
        """Returns the messages that listeners are processing."""
        return self._held.at_work()

    def refuse_from_inside(self, call: str, *, is_bounded: bool) -> None:
        """Refuses a call of its own listener that would wait for that; see ``Service``."""
        self._service.refuse_from_inside(call, is_bounded=is_bounded)

    def end_listeners(self) -> bool:
        """Stops calls of its listener."""
        return self._service.end()

    def end_with_loop(self) -> None:
        """Starts no further message, and commits nothing: its event loop is about to end."""
        for held in tuple(self._queues.values()):
            held.drop()
        self.end_listeners()

    async def refusal(self) -> RemoteProtocolError | None:
        """Returns a broker's refusal of a subscription; see :meth:`Subscriptions.refusal`."""
        return await self._subscriptions.refusal()

    def load_offsets(self) -> None:
        """Reads the offsets that the client keeps itself, before it starts.

        Raises:
            SeglogError: They cannot be read.
        """
        self._offsets.load()

    @property
    def is_seeing_first(self) -> bool:
        """Whether its start waits for the queues of its topics: later messages in new queues are for it.

        For other groups brokers decide where to begin in a new queue.
        """
        return self._settings.is_broadcasting

    async def see_topics(self) -> None:
        """Asks for the queues of its topics; does not wait for a topic without an answer."""
        routes = self._client.routes
        for topic in tuple(self._subscriptions.wanted):
            try:
                has_route = await routes.refresh(topic)
            except SeglogError as error:
                _log.log(level_of(error), "topic %s has no route yet: %s", topic, error)
            else:
                self._offsets.saw(topic, routes.known_to_read(topic) if has_route else ())

    async def begin(self) -> None:
        """Joins the group: routes, a heartbeat, its share, and the timed work from then on."""
        self._has_begun = True
        self._client.add_member(self)
        await self.see_topics()
        await self._client.beat()
        if not self._held.is_leaving:
            keepers = [
                (self._keep_sharing(), "shares"),
                (self._held.commits.keep_committing(), "commits"),
                (self._service.keep_expiring(self._queues.values), "time-outs"),
            ]
            if self._locks is not None:
                renewing = keep_renewing(self._client, self.group, self._locks, self._held)
                keepers.append((renewing, "renewal of locks"))
            for steps, name in keepers:
                self._flows.append(start(self._client.home, steps, f"{name} of group {self.group}"))

    async def _keep_sharing(self) -> None:
        await self._sharing.keep()

    async def leave(self) -> None:
        """Starts no further message, waits for running listeners, commits, and releases its queues.

        A second call, by its client, waits for the same.
        """
        await until(self._begin_to_leave())

    def _begin_to_leave(self) -> Flow[None]:
        """Starts no further message; returns a flow that ends when all queues are released."""
        if self._leaving is None:
            self._held.is_leaving = True
            self._sharing.end()
            for flow in self._flows:
                flow.stop()
            if self._queues:
                _log.info("group %s gives up %s: this member is closed", self.group, in_words(self._queues))
            leaving = [self._held.begin_to_let_go(held) for held in self._queues.values()]
            self._leaving = start(self._client.home, self._leave(leaving), f"farewell of group {self.group}")
        return self._leaving

    async def _leave(self, leaving: Iterable[Flow[None]]) -> None:
        for flow in leaving:
            with suppress(Exception):  # it is logged; the others, and the group, are left all the same
                await until(flow)
        self.end_listeners()
        if self._locks is not None:
            until_ms = self._client.clock.monotonic_ms() + BROKER_LIVE_MS
            await self._locks.unlock(self._sharing.left_locks, until_ms)
            self._locks.say_kept()
        await self._held.commits.commit_parted(is_last=True)
        if self._held.is_cut_short:  # its close has ended, and can raise nothing
            await self._held.commits.persist()
        else:
            self.unwritten = await self._held.commits.why_unwritten()
        await self._client.remove_member(self)
        self._client.release(self)

    async def cut_short(self) -> None:
        """Commits what is done while listeners still run, and leaves the group without waiting for them.

        Their results count as long as no other member can have the queue, which only a lock ensures.
        """
        self._begin_to_leave()
        self._held.is_cut_short = True
        for held in list(self._queues.values()):
            held.settle()
            await self._held.commits.commit(held)
        await self._held.commits.commit_parted()
        await self._held.commits.persist()
        await self._client.remove_member(self)

    async def subscribe(self, topic: str, wanted: Subscription) -> None:
        """Subscribes to a topic, or changes the filter of a topic.

        Raises:
            RemoteProtocolError: The broker refuses it; the old subscription stays.
        """
        if self._has_begun and (why := await self._subscriptions.refusal_of(topic, wanted)) is not None:
            raise why
        is_new = topic not in self._subscriptions.wanted
        self._subscriptions.set(topic, wanted)
        for queue, held in self._queues.items():
            if queue.topic == topic:
                held.subscription = wanted
                self._held.pulling.restart(held)  # a broker may hold a pull with the old filter
        if self._has_begun:
            await self._client.beat()
            if is_new:
                self._sharing.add(topic)

    async def unsubscribe(self, topic: str) -> None:
        """Ends the subscription to a topic."""
        self._subscriptions.remove(topic)
        self._sharing.remove(topic)
        if self._has_begun:
            await self._client.beat()

    async def commit(self) -> None:
        """Commits what is done; the next commit tries queues again whose broker refused."""
        await self._held.commits.commit_all()

    async def commit_or_raise(self) -> Deferred[None]:
        """Commits what is done, for a call of the application.

        Returns:
            What the call waits for: it is resolved once the offsets survive the client, or fails with a
            SeglogError.

        Raises:
            CommitError: A broker does not take an offset.
            FencedError: All uncommitted offsets are of queues that another member has, or may have.
            SeglogError: The offsets cannot be written.
        """
        return await self._held.commits.commit_or_raise()

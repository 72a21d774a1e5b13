"""LiteMember: a member of a group whose application polls, seeks, and may assign queues.

All of it runs on the client's home unless noted.

Source: ``DefaultLitePullConsumerImpl.java``, ``AssignedMessageQueue.java``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias

from typing_extensions import override

from seglog.client.client import Client
from seglog.client.home import until
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers
from seglog.consumer.group_member import GroupMember
from seglog.consumer.lite.handing import Handing
from seglog.consumer.offsets.first_offsets import max_offset, min_offset, offset_at
from seglog.consumer.offsets.offset_store import OffsetStore
from seglog.consumer.settings import ConsumerSettings
from seglog.consumer.shares.words import in_words
from seglog.errors import ConsumerError, RemoteProtocolError, SeglogError
from seglog.logs import logger
from seglog.remoting.codes import ResponseCode
from seglog.remoting.heartbeat import ConsumerData
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import ALL_TAGS, Subscription, parse_subscription

Place: TypeAlias = int | datetime | Literal["begin", "end"]
"""A place in a queue: an offset, the first message of a time, the oldest message, or the end."""
_ALL: Final = parse_subscription(ALL_TAGS)

_log = logger(__name__)


class LiteMember(GroupMember):
    """One member of a group.

    Args:
        client: Whose member it is.
        settings: Of the consumer.
        offsets: Where the group's offsets are.
        handing: Hands out the messages.
    """

    def __init__(
        self, client: Client, settings: ConsumerSettings, offsets: OffsetStore, handing: Handing
    ) -> None:
        super().__init__(client, settings, offsets, handing)
        self._handing = handing
        self._assigned: frozenset[MessageQueue] | None = None
        self._has_begun = False

    @override
    def heartbeat(self) -> ConsumerData:
        """Returns its data for heartbeats; with assigned queues it subscribes to nothing, as in Java."""
        data = super().heartbeat()
        if self._assigned is None:
            return data
        return ConsumerData(data.group, (), data.consume_type, data.message_model, data.consume_from)

    @override
    async def begin(self) -> None:
        """Joins the group, and takes its queues if the application has assigned them."""
        self._has_begun = True
        await super().begin()
        if self._assigned is not None:
            await self._become_assigned(self._assigned)

    @override
    async def _keep_sharing(self) -> None:
        if self._assigned is None:
            await super()._keep_sharing()
        else:
            self._sharing.end()

    @override
    def position(self, queue: MessageQueue) -> int | None:
        """Returns the first offset of a queue that was not given yet; any thread may call it.

        Raises:
            ConsumerError: It does not have the queue.
        """
        ahead = self._handing.first_ahead(self.held(queue))
        return super().position(queue) if ahead is None else ahead

    # What it consumes

    async def check_there(self, queues: Collection[MessageQueue]) -> None:
        """Refuses queues that do not exist; if no name server answers, they are not checked.

        Raises:
            ConsumerError: One of them does not exist.
        """
        routes = self._client.routes
        for topic in sorted({queue.topic for queue in queues}):
            try:
                has_route = await routes.refresh(topic)
            except SeglogError as error:
                _log.log(level_of(error), "the queues of topic %s are not checked: %s", topic, error)
                continue
            known = routes.known_to_read(topic) if has_route else ()
            missing = [queue for queue in queues if queue.topic == topic and queue not in known]
            if missing:
                there = f"has {in_words(known)}" if known else "does not exist, or has no queue to read"
                raise ConsumerError(
                    f"{in_words(missing)} cannot be assigned: topic {topic} {there}",
                    help="assign queues that there are, or make the topic first",
                )

    async def queues_of(self, topic: str) -> tuple[MessageQueue, ...]:
        """Returns the readable queues of a topic, in order.

        Raises:
            RemoteProtocolError: The topic has none.
            SeglogError: There is no answer.
        """
        routes = self._client.routes
        queues = routes.known_to_read(topic) if await routes.refresh(topic) else ()
        if not queues:
            raise RemoteProtocolError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic {topic} has no queue to read from",
                help="check the topic's name; a broker with autoCreateTopicEnable=true makes it with the"
                " first message",
            )
        return queues

    async def assign(self, queues: Collection[MessageQueue]) -> None:
        """Takes exactly these queues, even if members share them; queues that it has already continue."""
        self._assigned = frozenset(queues)
        self._offsets.owner = None
        for queue in queues:
            self._subscriptions.wanted.setdefault(queue.topic, _ALL)
        if self._has_begun:
            await self._become_assigned(self._assigned)

    async def _become_assigned(self, wanted: frozenset[MessageQueue]) -> None:
        going = [held for queue, held in self._queues.items() if queue not in wanted or held.is_dropped]
        for held in going:
            held.is_given_up = True
        for flow in [self._held.begin_to_let_go(held) for held in going]:
            await until(flow)
        await self._held.commits.commit_parted()
        if self._assigned is wanted and not self._held.is_leaving:
            for queue in sorted(wanted - self._queues.keys()):
                self._held.take(queue, None)

    @override
    async def subscribe(self, topic: str, wanted: Subscription) -> None:
        await self._held.commits.commit_parted()  # this includes a topic that was given up before
        await super().subscribe(topic, wanted)

    @override
    async def unsubscribe(self, topic: str) -> None:
        for queue, held in self._queues.items():
            if queue.topic == topic and not held.is_dropped:  # else it is another member's share
                held.is_given_up = True
        await super().unsubscribe(topic)

    # Positions

    async def seek(self, queue: MessageQueue, place: Place) -> int:
        """Moves to another place in a queue; returns the offset.

        Raises:
            ConsumerError: It does not have the queue, or the queue has no such offset.
            SeglogError: The broker refuses, or there is no answer.
        """
        held, brokers = self.held(queue), Brokers(self._client)
        if isinstance(place, datetime):
            queue_offset = await offset_at(brokers, queue, int(place.timestamp() * 1000))
        elif place == "begin":
            queue_offset = await min_offset(brokers, queue)
        elif place == "end":
            queue_offset = await max_offset(brokers, queue)
        else:
            least, most = await min_offset(brokers, queue), await max_offset(brokers, queue)
            if not least <= place <= most:
                raise ConsumerError(
                    f"offset {place} is none of {in_words([queue])}: it has {least} to {most}",
                    help='seek an offset of the queue, "begin", "end" or a datetime',
                )
            queue_offset = place
        if self._queues.get(queue) is not held or held.is_dropped:
            self.held(queue)  # raises ConsumerError
        self._held.parted.forget(queue)  # the place that was chosen last counts
        self._held.pulling.move(held, queue_offset)
        held.progress.ring()
        return queue_offset

    def pause(self, queues: Iterable[MessageQueue], *, is_paused: bool) -> None:
        """Pauses or resumes the pulls and polls of some queues; any thread may call it.

        Raises:
            ConsumerError: It does not have one of them; nothing is changed.
        """
        for held in [self.held(queue) for queue in queues]:
            held.is_paused = is_paused
            held.pulls.ring()
            self._handing.ready.ring()
        self.make_room()

    # Polls

    def done_with_given(self) -> None:
        """Marks polled messages as done; any thread may call it."""
        self._handing.end_given()
        self.make_room()

    def make_room(self) -> None:
        """Resumes pulls that waited because all queues together were full; any thread may call it."""
        self._held.pulling.make_room()

    async def commit_given(self) -> Deferred[None]:
        """Commits polled messages, which the application has finished.

        Returns:
            What :meth:`commit_or_raise` returns.

        Raises:
            As :meth:`commit_or_raise`; and if polled messages are of a queue that it has lost.
        """
        self.done_with_given()
        for held in [*self._held.parted, *self._queues.values()]:
            held.approved = held.done_offset()
        try:
            return await self._held.commits.commit_or_raise(self._handing.take_lost())
        finally:
            self._go_on_behind_parted()

    def _go_on_behind_parted(self) -> None:
        """In queues that it has again, skips messages that it polled and committed before it gave them up."""
        now_ms = self._client.clock.monotonic_ms()
        for parted in self._held.parted:
            again, committed = self._queues.get(parted.queue), parted.committed_offset
            if again is None or again.is_dropped or parted.to_commit(now_ms) is not None:
                continue
            position = again.position()
            if position is not None and position < committed:
                self._held.pulling.move(again, committed)
        self._held.parted.forget()

    async def wait_for_messages(self, timeout_ms: float | None) -> None:
        """Waits until messages may be available."""
        await self._handing.ready.wait(timeout_ms)

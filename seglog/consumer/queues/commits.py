"""Commits of a member: the offsets of its queues are sent to the offset store from time to time.

A refusal of one broker delays only its own queues, which are tried again with the next commit.

Source: ``MQClientInstance.java persistAllConsumerOffset``.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Final

from seglog.client.client import Client
from seglog.client.home import Bell, sleep, until
from seglog.consumer.brokers import is_fenced
from seglog.consumer.offsets.offset_store import OffsetStore
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.queues.parted import PartedQueues
from seglog.consumer.shares.words import in_words
from seglog.errors import ClosedError, CommitError, FencedError, RemoteProtocolError, SeglogError, Uncommitted
from seglog.logs import logger
from seglog.remoting.codes import ResponseCode
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue

FIRST_COMMIT_MS: Final = 10_000
COMMIT_INTERVAL_MS: Final = 5_000
_QUEUE: Final = attrgetter("queue")

_log = logger(__name__)


class Commits:
    """The commits of one member. Its flows run on the client's home.

    Args:
        client: Its home and troubles are used.
        group: The consumer group.
        offsets: Where the group's offsets are.
        queues: The queues of the member.
        parted: Queues that the application has given up, which may still have messages to commit.
        lose: Called with a queue that another member has, to give it up.
        interval_ms: The time between two timed commits.

    Attributes:
        progress: Rung when there may be more to commit.
        lost: Released queues with finished messages that were not committed, for the next call.
        ask_for_others: Returns queues of a topic that are other members' shares by now; see ``Sharing``.
    """

    def __init__(
        self,
        client: Client,
        group: str,
        offsets: OffsetStore,
        queues: Mapping[MessageQueue, ProcessQueue],
        parted: PartedQueues,
        lose: Callable[[ProcessQueue], None],
        interval_ms: float = COMMIT_INTERVAL_MS,
    ) -> None:
        self._client = client
        self._group = group
        self._offsets = offsets
        self._queues = queues
        self._parted = parted
        self._lose = lose
        self.lost: set[MessageQueue] = set()
        self.ask_for_others: Callable[[str], Awaitable[Collection[MessageQueue]]] | None = None
        self._interval_ms = interval_ms
        self.progress = Bell(client.home)

    async def keep_committing(self) -> None:
        """Commits finished messages from time to time; waits while nothing is done and no listener runs.

        A hand does not say when a listener ends one of its messages, so its queue is looked at each time.
        """
        home, clock = self._client.home, self._client.clock
        next_ms = clock.monotonic_ms() + FIRST_COMMIT_MS
        while not self._client.is_over:
            if not any(held.in_hand for held in (*self._parted, *self._queues.values())):
                await self.progress.wait()
            late_ms = max(0.0, clock.monotonic_ms() - next_ms)
            next_ms += math.ceil(late_ms / self._interval_ms) * self._interval_ms  # skips idle intervals
            await sleep(home, next_ms - clock.monotonic_ms())
            await self.commit_all()
            next_ms += self._interval_ms

    async def commit_all(self) -> None:
        """Commits all queues; a queue whose broker refuses is tried again with the next commit.

        Queues that were lost before it are forgotten: the next call is about what was done since.
        """
        self.lost.clear()
        for held in [*self._parted, *self._queues.values()]:
            await self.commit(held)
        self._parted.forget()
        await self.persist()

    async def commit_parted(self, *, is_last: bool = False) -> None:
        """Commits queues that the application has given up, before it may take them again.

        Args:
            is_last: Whether the caller then makes the offsets survive the client.
        """
        parted = list(self._parted)
        for held in parted:
            await self.commit(held)
        if parted:
            self._parted.forget()
            if not is_last:
                await self.persist()

    async def commit_or_raise(self, lost: Iterable[MessageQueue] = ()) -> Deferred[None]:
        """Commits all queues for a call of the application; a refusal of one broker does not stop the others.

        Args:
            lost: Queues with finished messages that can no longer be committed.

        Returns:
            What the call waits for: it is resolved once the offsets survive the client, or fails with a
            SeglogError.

        Raises:
            CommitError: A broker refuses, or does not answer.
            FencedError: All uncommitted offsets are of queues that another member has, or may have.
            SeglogError: The offsets cannot be written.
        """
        clock = self._client.clock
        gone = {*lost, *(self.lost - self._queues.keys())}
        self.lost.clear()
        failures: list[Uncommitted] = []
        now_ms = clock.monotonic_ms()
        queues = [held for held in (*self._parted, *self._queues.values()) if _is_due(held, now_ms)]
        queues.sort(key=_QUEUE)
        due = {held for held in queues if not held.is_fenced(now_ms)}
        await self._lose_others(due)
        for held in queues:  # also one that another member begins in meanwhile, and that is released then
            queue, now_ms = held.queue, clock.monotonic_ms()
            if held.is_fenced(now_ms) or (held.is_lost and held in due):
                held.is_loss_said = True
                gone.add(queue)
            queue_offset = held.to_commit(now_ms)
            if queue_offset is None:
                continue
            try:
                await self._bring(held, queue_offset, is_asked=self._must_ask)
            except FencedError:
                held.is_loss_said = True
                gone.add(queue)
            except SeglogError as error:
                failures.append(
                    Uncommitted(queue.topic, queue.broker_name, queue.queue_id, queue_offset, error)
                )
        settled = self._offsets.persist()
        if failures or gone:
            await until(settled)
        if failures:
            raise CommitError(self._group, tuple(failures))
        if gone:
            raise FencedError(
                f"what group {self._group} has done of {in_words(gone)} is not committed: another member has,"
                " or may have, that since"
            )
        return settled

    @property
    def _must_ask(self) -> bool:
        """Whether brokers may be RocketMQ's, which take every commit, and the group shares its queues."""
        return not self._client.is_in_process and self._offsets.owner is not None

    async def _lose_others(self, due: Collection[ProcessQueue]) -> None:
        """Gives up queues with offsets to commit that are other members' shares by now."""
        if not self._must_ask or self.ask_for_others is None:
            return
        asked = {held.queue: held for held in due if not (held.is_dropped or held.is_locked)}
        for topic in sorted({queue.topic for queue in asked}):
            for queue in await self.ask_for_others(topic):
                if queue in asked:
                    self._lose(asked[queue])

    async def commit(self, held: ProcessQueue) -> None:
        """Commits the offset of a queue, unless its broker has it already."""
        queue_offset = held.to_commit(self._client.clock.monotonic_ms())
        if queue_offset is not None:
            try:
                await self._bring(held, queue_offset)
            except FencedError as error:
                _log.info("%s is not committed at %d: %s", held.queue, queue_offset, error)
            except SeglogError as error:
                self._say(held.queue, queue_offset, error)

    async def _bring(self, held: ProcessQueue, queue_offset: int, *, is_asked: bool = False) -> None:
        """Commits an offset, unless the broker has it already, or one of another member.

        Args:
            held: The queue.
            queue_offset: The offset.
            is_asked: Whether the broker's offset is read before in any case.

        Raises:
            FencedError: Another member has begun in the queue; it is given up.
            SeglogError: The broker refuses, or there is no answer.
        """
        if held.is_gone:  # else it may reach a new topic of that name
            raise _gone(held.queue)
        doubts, cache = held.doubts, held.cache
        try:
            if is_asked or held.must_ask(queue_offset):
                is_wanted = held.is_wanted(queue_offset, await self._offsets.kept(held.queue))
            else:
                is_wanted = True
            if is_wanted:
                await self._offsets.commit(held.queue, queue_offset)
        except RemoteProtocolError as error:
            held.is_gone |= error.code is ResponseCode.TOPIC_NOT_EXIST
            if is_fenced(error):
                self._lose(held)
                raise FencedError(str(error)) from None
            raise
        if held.cache is cache:  # else the queue was moved meanwhile, and its new offset is not committed yet
            held.note_committed(queue_offset, doubts)

    async def commit_at(self, queue: MessageQueue, queue_offset: int) -> None:
        """Commits an offset; a failure is logged."""
        try:
            await self._offsets.commit(queue, queue_offset)
        except SeglogError as error:
            self._say(queue, queue_offset, error)

    def _say(self, queue: MessageQueue, queue_offset: int, error: SeglogError) -> None:
        level = self._client.troubles.level(f"commit of {queue} for {self._group}", error)
        _log.log(level, "%s is not committed at %d: %s", queue, queue_offset, error)

    async def persist(self) -> None:
        """Makes committed offsets survive the client; a failure is logged."""
        error = await self.why_unwritten()
        if error is not None:
            level = self._client.troubles.level(f"offsets of {self._group}", error)
            _log.log(level, "the offsets of group %s are not written: %s", self._group, error)

    async def why_unwritten(self) -> SeglogError | None:
        """Makes committed offsets survive the client; returns why they cannot be written, None if they are.

        A broker in this process that is closed has said itself what it could not save.
        """
        try:
            await until(self._offsets.persist())
        except ClosedError:
            return None
        except SeglogError as error:
            return error
        return None


def _is_due(held: ProcessQueue, now_ms: float) -> bool:
    """Returns whether a queue has an offset to commit, or one that cannot be committed any more."""
    return held.to_commit(now_ms) is not None or held.is_fenced(now_ms)


def _gone(queue: MessageQueue) -> RemoteProtocolError:
    """Returns the refusal of a broker that does not have the topic of a queue."""
    return RemoteProtocolError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {queue.topic} not exist!")

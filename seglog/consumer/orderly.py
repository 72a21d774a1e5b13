"""OrderlyConsumer: consumes its share of a group's queues, each queue one message after another.

    with OrderlyConsumer(link, "billing", {"orders": "paid || refunded"}, handle) as consumer:
        consumer.start()                        # threads consume until the end of the block, or:
        consumer.run_until_idle()               # the calling thread consumes all that is stored

Before it consumes a queue it locks it at the broker, so of several consumers of a group one has each
queue at a time. A message is committed after its success: after a crash the last ones come again.

Source: ``ConsumeMessageOrderlyService.java``, ``RebalanceImpl.java``, ``MQClientInstance.java``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Final, Self

from seglog.arguments import MAX_I32, as_enum, as_int, as_mapping, as_number, as_text, refusal
from seglog.client.allocation import AllocateAveragely, share_of
from seglog.client.links import Link, clock_for, new_client_id
from seglog.client.routes import Routes
from seglog.clock import Clock
from seglog.consumer.leases import RENEW_INTERVAL_MS, LockClient
from seglog.consumer.listener import ConsumeFrom, Listener
from seglog.consumer.offset_store import OffsetStore
from seglog.consumer.process_queue import ConsumerSettings, Counts, ProcessQueue
from seglog.consumer.send_back import ENDLESS, SendBack
from seglog.errors import ConsumerError, SeglogError
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import ALL_TAGS, parse_subscription
from seglog.storage.format.names import check_group

REBALANCE_INTERVAL_MS: Final = 20_000
RETRY_MS: Final = 1_000
"""After a rebalance that did not get every queue it should have, and after anything that was refused."""
FIRST_RENEWAL_MS: Final = 1_000
COMMIT_INTERVAL_MS: Final = 5_000
SUSPEND_MS: Final = 1_000
IDLE_WAIT_MS: Final = 10
DROP_WAIT_S: Final = 0.5
"""How long a rebalance waits for a listener at work before it leaves the queue for the next time."""

_STRATEGY: Final = AllocateAveragely()
_log = logging.getLogger(__name__)


class OrderlyConsumer:
    """One member of a consumer group; close it, or use it in a ``with`` statement.

    Either step it (:meth:`poll`, :meth:`run_until_idle`) from one thread, or :meth:`start` it; then one
    thread consumes and another keeps the locks, so that a slow listener does not lose its queue.

    Args:
        link: To the broker.
        group: Who shares the queues and the offsets.
        subscription: A topic, or topics and what is wanted of each: ``*``, or ``TagA || TagB``.
        listener: Called with each message, see :data:`~seglog.consumer.listener.Listener`.
        client_id: Unique in the group; made up if it is not given.
        members: Client ids of the whole group; None for a consumer that takes every queue it can lock.
        clock: All intervals and leases go by it; by default that of the broker, where the link is in process.
        consume_from: Where to begin without a committed offset.
        pull_count: Messages of one pull at most.
        pull_bytes: Bytes of one pull at most, but for its first message.
        suspend_ms: How long a queue waits after a failure.
        max_reconsume_times: After how many further attempts a message is given up: it goes to the group's
            dead letters, and its queue continues. None for never.

    Raises:
        InvalidNameError: No group can be called so.
        InvalidArgumentError: A subscription names no tag.
    """

    def __init__(
        self,
        link: Link,
        group: str,
        subscription: str | Mapping[str, str],
        listener: Listener,
        *,
        client_id: str | None = None,
        members: Iterable[str] | None = None,
        clock: Clock | None = None,
        consume_from: ConsumeFrom = ConsumeFrom.LAST,
        pull_count: int = 1_024,
        pull_bytes: int = 4 << 20,
        suspend_ms: float = SUSPEND_MS,
        max_reconsume_times: int | None = None,
    ) -> None:
        if not callable(listener):
            raise refusal("listener", listener, "a function that takes a message")
        consume_from = as_enum("consume_from", ConsumeFrom, consume_from)
        as_int("pull_count", pull_count, 1, MAX_I32)
        as_int("pull_bytes", pull_bytes, 1, MAX_I32)
        as_number("suspend_ms", suspend_ms)
        if max_reconsume_times is not None:
            as_int("max_reconsume_times", max_reconsume_times, 0, MAX_I32)
        self.client_id = new_client_id() if client_id is None else as_text("client_id", client_id)
        topics = _topics_of(subscription)
        self._subscriptions = {topic: parse_subscription(wanted) for topic, wanted in topics.items()}
        self._clock = clock_for(link, clock)
        self._members = _members_of(members)
        self._routes = Routes(link, self._clock)
        self._locks = LockClient(link, check_group(group), self.client_id, self._clock)
        self._settings = ConsumerSettings(
            link,
            group,
            listener,
            self._clock,
            OffsetStore(link, group, consume_from),
            pull_count,
            pull_bytes,
            suspend_ms,
            SendBack(link, group, self._clock, max_reconsume_times),
            ENDLESS if max_reconsume_times is None else max_reconsume_times,
        )
        self._queues: dict[MessageQueue, ProcessQueue] = {}  # replaced, never changed: two threads read it
        self._past = Counts()  # of queues that were given up
        self._keeping = threading.Lock()
        now_ms = self._clock.monotonic_ms()
        self._rebalance_at_ms = now_ms
        self._renew_at_ms = now_ms + FIRST_RENEWAL_MS
        self._commit_at_ms = now_ms + COMMIT_INTERVAL_MS
        self._wake = threading.Condition()
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that it has locked, in order."""
        return tuple(sorted(self._queues))

    @property
    def counts(self) -> Counts:
        """What it has done since it was made."""
        total = Counts()
        for counts in (self._past, *(held.counts for held in self._queues.values())):
            total.add(counts)
        return total

    @property
    def is_idle(self) -> bool:
        """Whether it had nothing to do when it last looked."""
        return all(held.is_idle for held in self._queues.values())

    def set_members(self, members: Iterable[str] | None) -> None:
        """Sets who is in the group now; it takes its new share at its next step."""
        with self._wake:
            self._members = _members_of(members)
            self._rebalance_at_ms = self._clock.monotonic_ms()
            self._wake.notify_all()

    def poll(self) -> int:
        """Keeps locks and offsets, then consumes of each queue what was pulled already or one pull.

        Returns:
            How many messages the listener was done with.

        Raises:
            ConsumerError: It was started or closed.
            RemoteProtocolError: The broker refuses.
        """
        if self._threads or self._is_closed:
            raise ConsumerError("a consumer that was started or closed cannot be stepped")
        self._keep()
        return self._serve_all()

    def run_until_idle(self) -> int:
        """Polls until all that can be consumed now is consumed and committed; returns how many it was.

        Raises:
            As :meth:`poll`.
        """
        done = self.poll()
        while not self.is_idle:
            done += self.poll()
        return done

    def commit(self) -> None:
        """Brings everything consumed to the broker now.

        Raises:
            RemoteProtocolError: The broker refuses.
        """
        for held in self._queues.values():
            with held.turn:
                held.commit()

    def start(self) -> None:
        """Starts to consume in the background.

        Raises:
            ConsumerError: It was started or closed before.
        """
        if self._threads or self._is_closed:
            raise ConsumerError("a consumer can be started once")
        for target in (self._keep_forever, self._serve_forever):
            thread = threading.Thread(target=target, name=f"seglog-{self._settings.group}", daemon=True)
            self._threads.append(thread)
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Ends the message at work, commits and gives the queues back; a second call does nothing.

        Raises:
            ConsumerError: One of its threads died, which is its cause.
            RemoteProtocolError: The broker refuses the commit; its messages will come again.
        """
        with self._wake:
            if self._is_closed:
                return
            self._is_closed = True
            for held in self._queues.values():
                held.stop()
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()
        with self._keeping:
            try:
                self.commit()
            finally:
                leaving = self._queues
                self._remove(leaving)
                self._locks.unlock(leaving.keys())
        if self._failure is not None:
            raise ConsumerError(f"consumer {self.client_id} died: {self._failure}") from self._failure

    def _serve_all(self) -> int:
        done = 0
        for held in self._queues.values():
            with held.turn:
                done += held.serve()
        return done

    def _keep(self) -> None:
        """Does what is due: new shares, renewals, commits."""
        with self._keeping:
            now_ms = self._clock.monotonic_ms()
            if now_ms >= self._rebalance_at_ms:
                self._rebalance(now_ms)
            if now_ms >= self._renew_at_ms:
                self._renew_at_ms = now_ms + RETRY_MS  # should the broker not answer
                self._renew()
                self._renew_at_ms = now_ms + RENEW_INTERVAL_MS
            if now_ms >= self._commit_at_ms:
                self._commit_at_ms = now_ms + COMMIT_INTERVAL_MS
                self._commit_free()

    def _rebalance(self, now_ms: float) -> None:
        again_at_ms = self._rebalance_at_ms = now_ms + RETRY_MS
        share: set[MessageQueue] = set()
        for topic in self._subscriptions:
            queues = self._routes.to_read(topic)
            if self._members is not None:
                queues = share_of(_STRATEGY, self._settings.group, self.client_id, queues, self._members)
            share.update(queues)
        # One that was stopped and could not be given up then is given up now, even if it is ours again.
        self._give_up([held for held in self._queues.values() if held.is_stopped or held.queue not in share])
        missing = share - self._queues.keys()
        locked, asked_ms = self._locks.lock(missing)
        taken: dict[MessageQueue, ProcessQueue] = {}
        for queue in locked:
            held = taken[queue] = ProcessQueue(queue, self._subscriptions[queue.topic], self._settings)
            held.renewed(asked_ms)
        self._queues = {**self._queues, **dict(sorted(taken.items()))}
        if share and share == self._queues.keys() and self._rebalance_at_ms == again_at_ms:
            self._rebalance_at_ms = now_ms + REBALANCE_INTERVAL_MS

    def _give_up(self, leaving: list[ProcessQueue]) -> None:
        """Commits and unlocks queues that are another member's now, but for those a listener is at."""
        free: dict[MessageQueue, ProcessQueue] = {}
        for held in leaving:
            held.stop()
            if held.turn.acquire(timeout=DROP_WAIT_S):
                try:
                    held.commit()
                finally:
                    held.turn.release()
                free[held.queue] = held
        self._locks.unlock(free.keys())
        self._remove(free)

    def _renew(self) -> None:
        held_queues = self._queues
        locked, asked_ms = self._locks.lock(held_queues.keys())
        lost = {queue: held for queue, held in held_queues.items() if queue not in locked}
        for queue in locked:
            held_queues[queue].renewed(asked_ms)
        for held in lost.values():
            held.stop(is_lost=True)
        if lost:
            self._remove(lost)
            self._rebalance_at_ms = asked_ms + RETRY_MS

    def _commit_free(self) -> None:
        """Commits queues at which no thread works; one at work commits with its next pull."""
        for held in self._queues.values():
            if held.turn.acquire(blocking=False):
                try:
                    held.commit()
                finally:
                    held.turn.release()

    def _remove(self, gone: Mapping[MessageQueue, ProcessQueue]) -> None:
        for held in gone.values():
            self._past.add(held.counts)
        self._queues = {queue: held for queue, held in self._queues.items() if queue not in gone}

    def _keep_forever(self) -> None:
        while self._try(self._keep):
            due_ms = min(self._rebalance_at_ms, self._renew_at_ms, self._commit_at_ms)
            self._pause(due_ms - self._clock.monotonic_ms())

    def _serve_forever(self) -> None:
        while self._try(self._serve_all):
            if self.is_idle:
                self._pause(IDLE_WAIT_MS)

    def _try(self, step: Callable[[], object]) -> bool:
        """Takes one step of a thread; returns whether there is to be another."""
        if self._is_closed:
            return False
        try:
            step()
        except SeglogError as error:
            _log.warning("consumer %s tries again in %d ms: %s", self.client_id, RETRY_MS, error)
            self._pause(RETRY_MS)
        except Exception as error:  # noqa: BLE001 - the top of a thread: close() reports it
            self._failure = error
            return False
        return not self._is_closed

    def _pause(self, wait_ms: float) -> None:
        with self._wake:
            if not self._is_closed and wait_ms > 0:
                self._clock.wait(self._wake, wait_ms)


def _topics_of(subscription: str | Mapping[str, str]) -> Mapping[str, str]:
    topics = {subscription: ALL_TAGS} if isinstance(subscription, str) else subscription
    for topic, wanted in as_mapping("subscription", topics).items():
        as_text("the topic of a subscription", topic)
        as_text(f"the subscription of {topic}", wanted)
    return topics


def _members_of(members: Iterable[str] | None) -> tuple[str, ...] | None:
    if members is None:
        return None
    if isinstance(members, str | bytes) or not isinstance(members, Iterable):
        raise refusal("members", members, "client ids, as a list")
    return tuple({as_text("members", member): None for member in members})

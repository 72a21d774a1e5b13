"""One queue of an orderly consumer: what was pulled of it, how far it is consumed, and its lease.

Messages are given to the listener one at a time in the order of the queue, and only while the lease
allows work. A message that fails stays first; nothing after it is looked at until it succeeds, or until it
is given up after its last attempt. One whose TTL is over is passed.

Two threads may meet here: the one that consumes holds :attr:`turn`; the one that keeps the leases calls
:meth:`renewed` and :meth:`stop` at any time.

Source: ``ProcessQueue.java``, ``ConsumeMessageOrderlyService.java ConsumeRequest``.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from seglog.arguments import as_enum
from seglog.client.links import Link
from seglog.clock import Clock
from seglog.consumer.leases import Lease
from seglog.consumer.listener import Consume, Listener
from seglog.consumer.offset_store import OffsetStore
from seglog.consumer.send_back import SendBack
from seglog.errors import ProtocolError, RemoteProtocolError
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_body, expect_header
from seglog.remoting.expiry import is_expired
from seglog.remoting.headers import PullMessageHeader, PullMessageResponseHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import Subscription
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.decode import decode_message

SLICE_MS = 1_000
"""How long one queue is consumed before others and the leases have their turn."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """What all queues of a consumer share.

    Attributes:
        pull_count: Messages of one pull at most.
        pull_bytes: Bytes of one pull; it ends with the message that reaches this.
        suspend_ms: How long a queue waits after a failure.
        give_up: Where a message goes after its last attempt.
        max_reconsume_times: Attempts after the first.
    """

    link: Link
    group: str
    listener: Listener
    clock: Clock
    offsets: OffsetStore
    pull_count: int
    pull_bytes: int
    suspend_ms: float
    give_up: SendBack
    max_reconsume_times: int


class Counts:
    """What a consumer has done.

    Attributes:
        delivered: Messages that are done: the listener was, or they were given up.
        expired: Messages that the listener did not get because their TTL was over.
        failed: Calls of the listener that failed.
        filtered: Messages that came although their tag is not wanted: codes of tags collide.
        given_up: Messages that were sent away after their last attempt.
    """

    __slots__ = ("delivered", "expired", "failed", "filtered", "given_up")

    def __init__(self) -> None:
        self.delivered = 0
        self.expired = 0
        self.failed = 0
        self.filtered = 0
        self.given_up = 0

    def add(self, other: Counts) -> None:
        """Adds what another has done."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class ProcessQueue:
    """A queue that this consumer has locked.

    Attributes:
        turn: Held while the queue is consumed; a thread that takes it finds no listener at work.
        is_idle: Nothing can be done now: all is consumed, or the queue is suspended or not ours.
        counts: Of this queue.
    """

    def __init__(self, queue: MessageQueue, subscription: Subscription, settings: ConsumerSettings) -> None:
        self.queue = queue
        self.turn = threading.Lock()
        self.is_idle = False
        self.counts = Counts()
        self._settings = settings
        self._subscription = subscription
        self._wanted = None if subscription.tags is None else {tag.encode() for tag in subscription.tags}
        self._lease = Lease()
        self._is_stopped = False
        self._must_restart = True
        self._records: Sequence[memoryview] = ()
        self._at = 0
        self._pull_offset = 0
        self._consumed_offset = 0
        self._committed_offset = 0
        self._failures = 0
        self._suspended_until_ms = -1.0

    @property
    def is_stopped(self) -> bool:
        """Whether it will never be consumed again."""
        return self._is_stopped

    def renewed(self, asked_ms: float) -> None:
        """Notes that the broker has confirmed the lock for a request sent at ``asked_ms``."""
        if asked_ms > self._lease.ours_until_ms:
            self._must_restart = True  # before the lease: others may have consumed meanwhile
        self._lease.renew(asked_ms)

    def stop(self, *, is_lost: bool = False) -> None:
        """Lets no further message begin.

        Args:
            is_lost: The queue is another client's now, so what was consumed must not be committed.
        """
        self._is_stopped = True
        if is_lost:
            self._lease.lose()

    def serve(self) -> int:
        """Consumes for a while, pulling first if it has no records; returns how many messages were done.

        Call it with :attr:`turn`.

        Raises:
            RemoteProtocolError: The broker refuses the pull.
        """
        now_ms = self._settings.clock.monotonic_ms()
        deadline_ms = min(self._lease.work_until_ms, now_ms + SLICE_MS)
        if self._is_stopped or now_ms > deadline_ms or now_ms < self._suspended_until_ms:
            self.is_idle = True
            return 0
        self.is_idle = False
        if self._must_restart:
            self._restart()
        if self._at == len(self._records):
            self._pull()
        return self._consume(deadline_ms)

    def commit(self) -> None:
        """Brings what was consumed to the broker, as long as no other client can have the queue.

        Call it with :attr:`turn`.

        Raises:
            RemoteProtocolError: The broker refuses.
        """
        if self._has_uncommitted():
            offset = self._consumed_offset
            self._settings.offsets.commit(self.queue, offset)
            self._committed_offset = offset

    def _has_uncommitted(self) -> bool:
        return (
            self._consumed_offset != self._committed_offset
            and not self._must_restart
            and self._settings.clock.monotonic_ms() <= self._lease.ours_until_ms
        )

    def _restart(self) -> None:
        """Continues from what is committed: another client may have had the queue."""
        self._must_restart = False
        start = self._settings.offsets.start_of(self.queue)
        self._records, self._at = (), 0
        self._pull_offset = self._consumed_offset = self._committed_offset = start
        self._failures = 0
        self._suspended_until_ms = -1.0

    def _pull(self) -> None:
        settings = self._settings
        flags = PullFlag.SUBSCRIPTION
        commits = self._has_uncommitted()
        if commits:
            flags |= PullFlag.COMMIT_OFFSET
        header = PullMessageHeader(
            settings.group,
            self.queue.topic,
            self.queue.queue_id,
            self._pull_offset,
            settings.pull_count,
            int(flags),
            self._consumed_offset if commits else 0,
            0,
            0,
            self._subscription.expression,
            max_msg_bytes=settings.pull_bytes,
        )
        response = settings.link.invoke(Request(RequestCode.PULL_MESSAGE, header))
        found = _found_or_raise(response)
        if commits:
            self._committed_offset = self._consumed_offset
        self._pull_offset = found.next_begin_offset
        if response.code is ResponseCode.SUCCESS:
            self._records, self._at = expect_body(response, RecordsBody).records, 0
        else:
            self._records, self._at = (), 0
        self.is_idle = response.code is ResponseCode.PULL_NOT_FOUND

    def _consume(self, deadline_ms: float) -> int:
        """Gives the pulled records to the listener; one call a message, nothing else in this loop."""
        settings, records, wanted = self._settings, self._records, self._wanted
        monotonic_ms = settings.clock.monotonic_ms
        done = 0
        for at in range(self._at, len(records)):
            if self._is_stopped or self._must_restart or monotonic_ms() > deadline_ms:
                break
            message = decode_message(records[at])
            if wanted is not None and props.find_property(message.properties_raw, b"TAGS") not in wanted:
                self.counts.filtered += 1
            elif message.properties_raw.find(_TTL) >= 0 and self._is_expired(message):
                self.counts.expired += 1
            elif self._is_done(message):
                done += 1
            else:
                break
            self._at = at + 1
            self._consumed_offset = message.queue_offset + 1
        else:
            # What the broker filtered out after the last message is consumed as well.
            self._consumed_offset = self._pull_offset
        self.counts.delivered += done
        return done

    def _is_done(self, message: Message) -> bool:
        if self._failures:
            message = dataclasses.replace(message, reconsume_times=message.reconsume_times + self._failures)
        try:
            result: object = self._settings.listener(message)
            if isinstance(result, str):
                result = as_enum("what the listener returned", Consume, result)
        except Exception:  # noqa: BLE001 - the application's code: on any error the message stays first
            _log.warning(
                "the listener failed at %s, offset %d", self.queue, message.queue_offset, exc_info=True
            )
            result = Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT
        if result is Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT:
            self.counts.failed += 1
            if message.reconsume_times >= self._settings.max_reconsume_times and self._is_given_up(message):
                self._failures = 0
                return True
            self._failures += 1
            self._suspended_until_ms = self._settings.clock.monotonic_ms() + self._settings.suspend_ms
            self.is_idle = True
            return False
        self._failures = 0
        return True

    def _is_expired(self, message: Message) -> bool:
        now_ms = self._settings.clock.now_ms()
        return is_expired(message.properties_raw, message.born_timestamp_ms, now_ms)

    def _is_given_up(self, message: Message) -> bool:
        """Returns whether a message is on its way to the dead letters, so that the queue can go on."""
        try:
            self._settings.give_up.send_anew(message, message.reconsume_times)
        except ProtocolError as error:
            _log.warning("%s, offset %d cannot be given up: %s", self.queue, message.queue_offset, error)
            return False
        self.counts.given_up += 1
        return True


_TTL: Final = props.TTL.encode() + b"\x01"
_ANSWERS = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


def _found_or_raise(response: Response) -> PullMessageResponseHeader:
    if response.code not in _ANSWERS:
        raise RemoteProtocolError(response.code, response.remark or response.code.name)
    return expect_header(response, PullMessageResponseHeader)

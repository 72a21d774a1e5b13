"""Pulls of one queue: one after another, each held by the broker until there is something.

A failure concerns this queue only: it is tried again after a second, apart from all others.

Source: ``DefaultMQPushConsumerImpl.java pullMessage``, ``PullAPIWrapper.java processPullResult``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from seglog.client.client import Client
from seglog.client.home import VirtualHome
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers
from seglog.consumer.message_bodies import of_its_topic, unwrap_all
from seglog.consumer.offset_store import OffsetStore
from seglog.consumer.process_queue import NOT_KNOWN, ProcessQueue
from seglog.consumer.settings import ConsumerSettings
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_body, expect_header
from seglog.remoting.headers import PullMessageHeader, PullMessageResponseHeader
from seglog.remoting.subscription import PullForm
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import Message
from seglog.storage.kernels.decode import decode_message

RETRY_MS: Final = 1_000
"""After a pull that was refused, ``pullTimeDelayMillsWhenException``."""
PROBE_MS: Final = 5_000
"""How often it is asked whether the offsets of a queue were reset at which nothing is done."""
BUSY_MS: Final = 20
"""After a broker has said that it is overloaded, ``PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL``."""
HOLD_MS: Final = 15_000
"""How long the broker may hold a pull, ``brokerSuspendMaxTimeMillis``."""
VIRTUAL_HOLD_MS: Final = 600_000
"""The same on virtual time, where no connection can be cut meanwhile and each pull costs the test."""
GRACE_MS: Final = 15_000
"""How long its answer may come late; both together are ``consumerTimeoutMillisWhenSuspend``."""
_ANSWERS: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)
_UNKNOWN_HERE: Final = (ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST)

_log = logging.getLogger(__name__)


class Pulling:
    """Pulls the queues of one consumer. Its flows run on the client's home.

    Args:
        client: Whose link, routes and clock.
        settings: Of the consumer.
        offsets: Where the group's offsets are.
        is_in_order: Whether the span of what is cached does not matter.
        version: Of the subscriptions, as heartbeats say it.
        moved: Called with a queue whose pull offset the broker corrected.
    """

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        offsets: OffsetStore,
        *,
        is_in_order: bool,
        version: int,
        moved: Callable[[ProcessQueue, int], None],
    ) -> None:
        self._client = client
        self._brokers = Brokers(client)
        self._settings = settings
        self._offsets = offsets
        self._is_in_order = is_in_order
        self._version = version
        self._hold_ms = VIRTUAL_HOLD_MS if isinstance(client.home, VirtualHome) else HOLD_MS
        self._moved = moved

    async def keep_pulling(self, held: ProcessQueue) -> None:
        """Pulls a queue until it is dropped."""
        clock = self._client.clock
        while not held.is_dropped and not self._client.is_over:
            if clock.monotonic_ms() > held.lease.work_until_ms:
                await held.pulls.wait(RETRY_MS)
            elif self._is_full(held):
                if not await held.pulls.wait(PROBE_MS):
                    await self._probe(held)
            else:
                wait_ms = await self._try_pull(held)
                if wait_ms and not held.is_dropped:
                    await held.pulls.wait(wait_ms)

    def _is_full(self, held: ProcessQueue) -> bool:
        cached, settings = held.cache.counts(), self._settings
        if cached.messages > settings.max_cached or cached.size_bytes > settings.max_cached_bytes:
            return True
        return not self._is_in_order and cached.span > settings.max_span

    async def _probe(self, held: ProcessQueue) -> None:
        """Asks whether the offset was reset, where messages that fail keep the queue from being pulled."""
        header = self._header(held, held.subscription.in_pull(self._version), PullFlag(0), None, 1)
        try:
            answer = await self._brokers.ask(
                held.queue.broker_name, Request(RequestCode.PULL_MESSAGE, header), GRACE_MS
            )
            if answer.code is ResponseCode.PULL_OFFSET_MOVED and not held.is_dropped:
                self._moved(held, expect_header(answer, PullMessageResponseHeader).next_begin_offset)
        except SeglogError as error:
            _log.log(level_of(error), "%s is asked again in %d ms: %s", held.queue, PROBE_MS, error)

    def _header(
        self, held: ProcessQueue, form: PullForm, flags: PullFlag, to_commit: int | None, count: int
    ) -> PullMessageHeader:
        return PullMessageHeader(
            self._settings.group,
            held.queue.topic,
            held.queue.queue_id,
            held.pull_offset,
            count,
            int(form.flags | flags),
            to_commit or 0,
            self._hold_ms,
            form.sub_version,
            form.subscription,
            form.expression_type,
            max_msg_bytes=self._settings.pull_bytes,
        )

    async def _try_pull(self, held: ProcessQueue) -> float:
        """Pulls once; returns how long to wait until the next pull."""
        try:
            if held.pull_offset == NOT_KNOWN:
                held.begin_at(await self._offsets.start_of(held.queue))
            wait_ms = await self._pull(held)
        except SeglogError as error:
            held.trouble = str(error)
            code = error.code if isinstance(error, RemoteProtocolError) else None
            if code in _UNKNOWN_HERE:
                self._client.beat_soon()
            elif code is ResponseCode.FLOW_CONTROL:
                return BUSY_MS
            _log.log(level_of(error), "%s is pulled again in %d ms: %s", held.queue, RETRY_MS, error)
            return RETRY_MS
        held.trouble = None
        return wait_ms

    async def _pull(self, held: ProcessQueue) -> float:
        queue, settings = held.queue, self._settings
        # The first one is not held: so it is soon known whether there is anything.
        flags = PullFlag.SUSPEND if held.is_looked_at else PullFlag(0)
        to_commit = held.to_commit(self._client.clock.monotonic_ms())
        if not to_commit:  # 0 is committed by itself, as in Java
            to_commit = None
        else:
            flags |= PullFlag.COMMIT_OFFSET
        form = held.subscription.in_pull(self._version)
        header = self._header(held, form, flags, to_commit, settings.pull_count)
        cache, asked_ms = held.cache, self._client.clock.monotonic_ms()
        held.pulled_ms = self._client.clock.now_ms()
        answer = await self._brokers.ask(
            queue.broker_name,
            Request(RequestCode.PULL_MESSAGE, header),
            self._hold_ms + GRACE_MS,
            held.suggested_broker_id,
        )
        if held.is_dropped or held.cache is not cache:
            return 0
        if answer.code not in _ANSWERS:
            raise RemoteProtocolError(answer.code, answer.remark or answer.code.name)
        found = expect_header(answer, PullMessageResponseHeader)
        if to_commit is not None:
            held.committed_offset = to_commit
        held.suggested_broker_id = found.suggest_which_broker_id
        held.is_looked_at = True
        held.is_at_end = found.next_begin_offset >= found.max_offset
        if answer.code is ResponseCode.PULL_OFFSET_MOVED:
            self._moved(held, found.next_begin_offset)
            return 0
        held.pull_offset = found.next_begin_offset
        if answer.code is ResponseCode.SUCCESS:
            wanted = self._wanted(held, answer)
            cache.put(wanted)
            held.note_pull(len(wanted), self._client.clock.monotonic_ms() - asked_ms)
            held.work.ring()
        cache.pulled_to(found.next_begin_offset)
        held.progress.ring()
        return settings.pull_interval_ms

    def _wanted(self, held: ProcessQueue, answer: Response) -> list[Message]:
        """Returns the messages that were found, those of inner batches one by one; codes of tags collide."""
        readable: list[Message] = []
        for record in expect_body(answer, RecordsBody).records:
            try:
                readable.append(decode_message(record))
            except SeglogError as error:
                held.counts.unreadable += 1
                _log.error("a message of %s cannot be read, and is passed: %s", held.queue, error)
        messages, _errors = unwrap_all(readable)  # an error comes again when the message is handed over
        wants = held.subscription.wants
        found = [message for message in messages if wants(message.properties_raw)]
        held.counts.filtered += len(messages) - len(found)
        is_retry = held.queue.topic.startswith(RETRY_PREFIX)
        return [of_its_topic(message) for message in found] if is_retry else found

"""Pulls of one queue: one after another, each held by the broker until a message arrives.

A failure affects only this queue: the pull is tried again after a second, independently of all others.

Source: ``DefaultMQPushConsumerImpl.java pullMessage``, ``PullAPIWrapper.java processPullResult``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from seglog.client.client import Client
from seglog.client.home import VirtualHome, start
from seglog.consumer.brokers import Brokers, is_fenced
from seglog.consumer.message_bodies import add_offsets, added_offsets, of_its_topic, unwrap_all
from seglog.consumer.offsets.begin import Begin
from seglog.consumer.offsets.offset_store import OffsetStore
from seglog.consumer.process_queue import NOT_KNOWN, ProcessQueue
from seglog.consumer.settings import ConsumerSettings
from seglog.consumer.subscriptions import Subscriptions
from seglog.errors import RemoteProtocolError, SeglogError
from seglog.logs import logger
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_body, expect_header
from seglog.remoting.headers import PullMessageHeader, PullMessageResponseHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import PullForm
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import Message
from seglog.storage.kernels.decode import decode_message, decode_runs

RETRY_MS: Final = 1_000
"""Pause after a refused pull, ``pullTimeDelayMillsWhenException``."""
PROBE_MS: Final = 5_000
"""How often a queue without progress is checked for a reset of its offset."""
FULL_MS: Final = 50
"""How often Java's client looks at a full queue, ``PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL``.

Here the code that makes room rings a bell, and nothing polls meanwhile.
"""
WARN_LOOKS: Final = 1_000
"""After this many of these checks a full queue is logged as a warning."""
BUSY_MS: Final = 20
"""Pause after an overload answer of a broker, ``PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL``."""
HOLD_MS: Final = 15_000
"""How long the broker may hold a pull, ``brokerSuspendMaxTimeMillis``."""
VIRTUAL_HOLD_MS: Final = 600_000
"""The same on virtual time: no connection can break meanwhile, and each pull costs the test time."""
GRACE_MS: Final = 15_000
"""How late its answer may be; both together are ``consumerTimeoutMillisWhenSuspend``."""
_ANSWERS: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)
_UNKNOWN_HERE: Final = (ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST)

_log = logger(__name__)


class Pulling:
    """Pulls the queues of one consumer. Its flows run on the client's home.

    Args:
        client: Its link, routes and clock are used.
        settings: Of the consumer.
        offsets: Where the group's offsets are.
        subscriptions: Their version is sent with pulls.
        correct: Called with a queue whose offset is out of its range, and the offset that the broker gives.
        lose: Called with a queue that another member has.
        queues: The queues of the member.
        is_in_order: Whether the queues are consumed in order; then the span of cached messages is not
            limited.
        is_polled: Whether the application polls; then pulls are those of Java's ``LitePullConsumer``.

    Attributes:
        is_suspended: Whether pulling is suspended.
        is_full_in_all: Whether a pull waits because all queues together are full.
    """

    def __init__(
        self,
        client: Client,
        settings: ConsumerSettings,
        offsets: OffsetStore,
        subscriptions: Subscriptions,
        correct: Callable[[ProcessQueue, int], Awaitable[None]],
        lose: Callable[[ProcessQueue], None],
        *,
        queues: Mapping[MessageQueue, ProcessQueue],
        is_in_order: bool,
        is_polled: bool,
    ) -> None:
        self._client = client
        self._brokers = Brokers(client)
        self._settings = settings
        self._offsets = offsets
        self._correct = correct
        self._lose = lose
        self.is_suspended = False
        self.is_full_in_all = False
        self._in_all, self._counted_ms = 0, -math.inf
        self._queues = queues
        self._is_in_order = is_in_order
        self._is_polled = is_polled
        self._code = RequestCode.LITE_PULL_MESSAGE if is_polled else RequestCode.PULL_MESSAGE
        self._subscriptions = subscriptions
        self._hold_ms = VIRTUAL_HOLD_MS if isinstance(client.home, VirtualHome) else HOLD_MS

    async def keep_pulling(self, held: ProcessQueue) -> None:
        """Pulls a queue until it is dropped."""
        clock = self._client.clock
        while not held.is_dropped and not self._client.is_over:
            held.looked_ms = clock.monotonic_ms()
            if held.is_lease_over or held.is_paused or self.is_suspended:
                await held.pulls.wait(RETRY_MS)
            elif held.pull_offset != NOT_KNOWN and (why := self._why_full(held)) is not None:
                wait_ms = self._note_full(held, why)
                if not await held.pulls.wait(min(PROBE_MS, wait_ms)):
                    await self._probe(held)
            else:
                held.full_ms, held.full_warnings = None, 0
                wait_ms = await self._try_pull(held)
                if wait_ms and not held.is_dropped:
                    await self._rest(held, wait_ms)

    async def _rest(self, held: ProcessQueue, wait_ms: float) -> None:
        """Waits for a time; a bell that rings because messages were done does not end the wait."""
        clock = self._client.clock
        until_ms = clock.monotonic_ms() + wait_ms
        while not held.is_dropped and (left_ms := until_ms - clock.monotonic_ms()) > 0:
            await held.pulls.wait(left_ms)

    def _why_full(self, held: ProcessQueue) -> str | None:
        """Returns the exceeded bound that prevents another pull; None if there is room."""
        cached, settings = held.cache.counts(), self._settings
        bounds = settings.bounds_of(len(self._queues))
        if cached.messages > bounds.messages:
            return f"{cached.messages} messages are cached, of {bounds.messages}"
        if cached.size_bytes > bounds.size_bytes:
            return f"{cached.size_bytes} bytes are cached, of {bounds.size_bytes}"
        if not self._is_in_order and cached.span > settings.max_span:
            return f"messages over {cached.span} offsets are cached, of {settings.max_span}"
        if settings.max_cached_all is None:
            return None
        if self._count_is_old(settings.max_cached_all):
            self.is_full_in_all = self._count_all() > settings.max_cached_all
        if not self.is_full_in_all:
            return None
        return f"{self._in_all} messages of all queues are cached, of {settings.max_cached_all}"

    def _count_is_old(self, most: int) -> bool:
        """Returns whether all queues must be counted again; not at each pull, since there may be many."""
        if self._client.clock.monotonic_ms() >= self._counted_ms + FULL_MS:
            return True
        return not self.is_full_in_all and self._in_all > most

    def _count_all(self) -> int:
        """Counts the waiting messages of all queues; later pulls are added to the count."""
        self._counted_ms = self._client.clock.monotonic_ms()
        # A paused queue may wait for any time, and must not keep the other queues from being pulled.
        counts = (one.cache.waiting for one in tuple(self._queues.values()) if not one.is_paused)
        self._in_all = sum(counts)
        return self._in_all

    def _note_full(self, held: ProcessQueue, why: str) -> float:
        """Warns of a queue that stays full, as often as Java's client; returns ms until the next warning."""
        now_ms = self._client.clock.monotonic_ms()
        if held.full_ms is None:
            held.full_ms = now_ms
        warnings = int((now_ms - held.full_ms) / (WARN_LOOKS * FULL_MS))
        if warnings > held.full_warnings:
            held.full_warnings = warnings
            _log.warning(
                "%s is not pulled for group %s since %d ms: %s; offset %s is the first that is not done",
                held.queue,
                self._settings.group,
                now_ms - held.full_ms,
                why,
                held.done_offset(),
            )
        return held.full_ms + (held.full_warnings + 1) * WARN_LOOKS * FULL_MS - now_ms

    def make_room(self) -> None:
        """Resumes pulls that waited because all queues together were full; any thread may call it.

        If they are still full no queue is woken: there may be many, and this is called for each message.
        """
        most = self._settings.max_cached_all
        if self.is_full_in_all and most is not None and self._count_all() <= most:
            self.is_full_in_all = False
            for held in tuple(self._queues.values()):
                held.pulls.ring()

    def restart(self, held: ProcessQueue) -> None:
        """Cancels the pull in flight, which a broker may hold for long, and pulls again soon."""
        pulls, messages = held.flows
        pulls.stop()
        pulls = start(self._client.home, self.keep_pulling(held), f"pulls of {held.queue}")
        held.flows = [pulls, messages]

    def move(self, held: ProcessQueue, queue_offset: int) -> None:
        """Moves to another offset, without waiting for the pull in flight."""
        self.restart(held)
        held.begin_at(queue_offset, Begin.MOVED)
        held.work.ring()

    async def look(self, held: ProcessQueue) -> None:
        """Checks for new messages while a pull is held; new messages are pulled at once.

        The answer to an earlier pull may be in flight, and does not count. A pull that is not held is
        answered soon, and the pull after it is not held either.
        """
        held.look()
        if not held.is_held:
            return
        looks, cache, offset = held.looks, held.cache, held.pull_offset
        try:
            answer = await self._ask_beside(held)
            found = expect_header(answer, PullMessageResponseHeader)
            is_at_end = found.max_offset <= found.next_begin_offset == offset
        except SeglogError:
            is_at_end = False  # the next regular pull meets the same error, and is tried again
        else:
            if answer.code is ResponseCode.PULL_OFFSET_MOVED and not held.is_dropped:
                self._warn_of_move(held, found)
                self.restart(held)
                await self._correct(held, found.next_begin_offset)
        if held.is_dropped or held.looks != looks or held.cache is not cache or held.pull_offset != offset:
            return
        if is_at_end:
            held.is_at_end = True
        elif held.is_held:
            self.restart(held)

    async def _probe(self, held: ProcessQueue) -> None:
        """Checks for a reset of the offset while failing messages keep the queue from being pulled."""
        try:
            answer = await self._ask_beside(held)
            if answer.code is ResponseCode.PULL_OFFSET_MOVED and not held.is_dropped:
                found = expect_header(answer, PullMessageResponseHeader)
                self._warn_of_move(held, found)
                await self._correct(held, found.next_begin_offset)
        except SeglogError as error:
            level = self._client.troubles.level(f"probe of {held.queue}", error)
            _log.log(level, "%s is asked again in %d ms: %s", held.queue, PROBE_MS, error)

    def _warn_of_move(self, held: ProcessQueue, found: PullMessageResponseHeader) -> None:
        """Logs that the broker moved the group: messages are skipped by that, or delivered again."""
        _log.warning(
            "group %s goes on in %s at offset %d, not %d: its broker has offsets %d to %d; the group was "
            "reset, or the broker has lost messages or has another store",
            self._settings.group,
            held.queue,
            found.next_begin_offset,
            held.pull_offset,
            found.min_offset,
            found.max_offset,
        )

    async def _ask_beside(self, held: ProcessQueue) -> Response:
        """Pulls one message, which is not consumed, to learn the state of the queue from the answer."""
        asked = Request(self._code, self._header(held, self._form(held), PullFlag(0), None, 1))
        return await self._brokers.ask(held.queue.broker_name, asked, GRACE_MS)

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
            owner=None if to_commit is None else self._offsets.owner,
        )

    async def _try_pull(self, held: ProcessQueue) -> float:
        """Pulls once; returns how long to wait until the next pull."""
        try:
            wait_ms = 0.0
            if held.pull_offset == NOT_KNOWN:  # the bounds are checked after that
                found = await self._offsets.start_of(held.queue)
                if held.pull_offset == NOT_KNOWN:  # else a call of position() has set it meanwhile
                    held.begin_at(*found)
            else:
                wait_ms = await self._pull(held)
        except SeglogError as error:
            if is_fenced(error):
                self._lose(held)
                return 0
            is_new = held.trouble != str(error)
            held.note_trouble(str(error))
            code = error.code if isinstance(error, RemoteProtocolError) else None
            held.is_gone |= code is ResponseCode.TOPIC_NOT_EXIST
            if code in _UNKNOWN_HERE:
                self._client.beat_soon()
            elif code is ResponseCode.FLOW_CONTROL:
                return BUSY_MS
            if code in _UNKNOWN_HERE and is_new:  # the heartbeat to a restarted broker is in flight
                level = logging.DEBUG
            else:
                kind = f"pulls of {held.queue} for {self._settings.group}"
                level = self._client.troubles.level(kind, error)
            _log.log(level, "%s is pulled again in %d ms: %s", held.queue, RETRY_MS, error)
            return RETRY_MS
        held.trouble = None
        return wait_ms

    def _form(self, held: ProcessQueue) -> PullForm:
        """Returns the form of a subscription in pulls: its version, or the whole of it for polled members."""
        form = held.subscription.in_pull(self._subscriptions.version, is_posted=self._is_polled)
        return form._replace(flags=form.flags | PullFlag.LITE) if self._is_polled else form

    async def _pull(self, held: ProcessQueue) -> float:
        queue, settings = held.queue, self._settings
        is_held = held.is_at_end is not None
        flags = PullFlag.SUSPEND if is_held else PullFlag(0)
        doubts = held.doubts
        to_commit = held.to_commit_in_pull(self._client.clock.monotonic_ms())
        if not to_commit or settings.is_broadcasting:  # 0 is committed in its own request, as in Java
            to_commit = None
        else:
            flags |= PullFlag.COMMIT_OFFSET
        form = self._form(held)
        header = self._header(held, form, flags, to_commit, settings.pull_count)
        cache, looks, asked_ms = held.cache, held.looks, self._client.clock.monotonic_ms()
        held.pulled_ms = self._client.clock.now_ms()
        held.is_held = is_held
        if is_held:
            held.looked_ms = asked_ms + self._hold_ms
        try:
            answer = await self._brokers.ask(
                queue.broker_name,
                Request(self._code, header),
                self._hold_ms + GRACE_MS,
                held.suggested_broker_id,
            )
        finally:
            held.is_held = False
        if held.is_dropped or held.cache is not cache:
            return 0
        if answer.code not in _ANSWERS:
            raise RemoteProtocolError(answer.code, answer.remark or answer.code.name)
        found = expect_header(answer, PullMessageResponseHeader)
        if held.is_gone:  # it is another topic, where our offset means nothing
            self._offsets.forget(queue)
            held.start_over()
            return 0
        if to_commit is not None:
            held.note_committed(to_commit, doubts)
        held.suggested_broker_id = found.suggest_which_broker_id
        if held.looks == looks:
            held.is_at_end = found.next_begin_offset >= found.max_offset
        if answer.code is ResponseCode.PULL_OFFSET_MOVED:
            self._warn_of_move(held, found)
            await self._correct(held, found.next_begin_offset)
            return 0
        held.pull_offset = found.next_begin_offset
        wait_ms = 0.0
        if answer.code is ResponseCode.SUCCESS:
            wanted = self._wanted(held, answer, found)
            cache.put(wanted)
            self._in_all += len(wanted)
            held.note_pull(len(wanted), self._client.clock.monotonic_ms() - asked_ms)
            held.work.ring()
            wait_ms = settings.pull_interval_ms if wanted else 0
        cache.pulled_to(found.next_begin_offset)
        held.progress.ring()
        return wait_ms

    def _wanted(
        self, held: ProcessQueue, answer: Response, header: PullMessageResponseHeader
    ) -> list[Message]:
        """Returns the wanted messages, with inner batches split; compares tags, since their codes collide."""
        body = expect_body(answer, RecordsBody)
        messages = decode_runs(body.runs, added_offsets(header.min_offset, header.max_offset))
        is_fast = messages is not None and len(messages) == body.count
        if messages is None or not is_fast:
            messages = self._one_by_one(held, body)
        found = messages
        if not held.subscription.wants_all:
            wants = held.subscription.wants
            found = [message for message in messages if wants(message.properties_raw)]
            held.counts.filtered += len(messages) - len(found)
        if not is_fast:
            add_offsets(found, header.min_offset, header.max_offset)
        is_retry = held.queue.topic.startswith(RETRY_PREFIX)
        return [of_its_topic(message) for message in found] if is_retry else found

    def _one_by_one(self, held: ProcessQueue, body: RecordsBody) -> list[Message]:
        """Decodes records one by one: one may be unreadable, or an inner batch."""
        readable: list[Message] = []
        for record in body.records:
            try:
                readable.append(decode_message(record))
            except SeglogError as error:
                held.counts.unreadable += 1
                _log.error("a message of %s cannot be read, and is passed: %s", held.queue, error)
        messages, _errors = unwrap_all(readable)  # the error is raised again when the message is given
        return messages

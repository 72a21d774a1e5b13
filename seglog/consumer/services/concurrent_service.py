"""Gives the messages of a queue to the listener concurrently; a failed message is sent back to its broker.

The broker delivers it again from the group's retry topic, after a delay that grows with each failure, so
attempts survive this process.

Source: ``ConsumeMessageConcurrentlyService.java ConsumeRequest, processConsumeResult``,
``ProcessQueue.java cleanExpiredMsg``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from typing_extensions import override

from seglog.client.home import Flow, rest, sleep, start, until
from seglog.client.links import level_of
from seglog.consumer.cached_queue import CachedQueue
from seglog.consumer.hands.handed import Handed, named
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.send_back import FIRST_LEVEL
from seglog.consumer.services.service import AGAIN_MS, Service, is_too_long
from seglog.errors import SeglogError
from seglog.logs import logger
from seglog.remoting.later import CancelledError
from seglog.schedule import Timer
from seglog.storage.format.record import Message

MOST_EXPIRED: Final = 16
"""Most messages of a queue sent back at a time because the listener takes too long."""
MOST_HANDED: Final = 128
"""Most messages given to a thread of the pool at a time."""
QUICK_MS: Final = 0.1
"""A listener faster than this gets many messages in one thread: threads and tasks that switch cost more."""
SHARED_AFTER_MS: Final = 2
"""If one of many messages takes this long, other threads get those behind it."""
_FORGOTTEN: Final = 0.98
"""Decay of the remembered longest time with each hand: it is remembered for some hundred hands."""

_log = logger(__name__)


class ConcurrentService(Service):
    """Serves the queues of one consumer. Its flows run on the client's home.

    The messages of a queue begin in order: each thread or task gets one, or, if the listener is quick, one of
    them gets many.
    """

    IS_IN_ORDER: ClassVar[bool] = False
    _message_ms: float | None = None
    """The recent time of the listener for one message; None before the first one."""

    @override
    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and running listeners have ended."""
        at_work: set[Flow[None]] = set()
        name = f"messages of {held.queue}"
        while not held.is_dropped:
            cache = held.cache  # read each time: a reset replaces it
            # Messages that the pool cannot begin yet wait in the cache.
            is_quick = self._is_quick
            is_full = held.hands >= self._settings.threads or (is_quick and held.is_alone)
            messages = () if is_full else cache.take(self._count(held))
            if not messages:
                await held.work.wait()
                continue
            held.consumed_ms = self._client.clock.now_ms()
            held.hands += 1
            held.is_alone |= is_quick
            flow = start(self._client.home, self._serve(held, cache, messages, is_alone=is_quick), name)
            at_work.add(flow)
            flow.then(at_work.discard)
        for flow in tuple(at_work):
            await until(flow)

    @property
    def _is_quick(self) -> bool:
        return self._message_ms is not None and self._message_ms < QUICK_MS

    def _count(self, held: ProcessQueue) -> int:
        """Returns how many messages to give to a thread now: a multiple of the batch size."""
        batch_size = self._settings.batch_size
        if not self._is_quick:
            return batch_size
        cached = held.cache.counts()
        share = min(MOST_HANDED, cached.messages - cached.taken)
        return max(batch_size, share - share % batch_size)

    async def _serve(
        self, held: ProcessQueue, cache: CachedQueue, messages: Sequence[Message], *, is_alone: bool
    ) -> None:
        handed, timers = Handed.of(messages), self._client.home.timers
        timer: Timer | None = None

        def share(after_ms: float) -> None:
            nonlocal timer, is_alone
            if handed.is_begun:
                self._message_ms = max(self._message_ms or 0.0, SHARED_AFTER_MS)
                held.is_alone &= not is_alone
                is_alone = False
                cache.put_back(handed.take_waiting())
                _end_done(held, cache, handed)  # the current message may take long
                held.work.ring()
            else:  # all threads are busy: check less and less often
                timer = timers.after(2 * after_ms, lambda: share(2 * after_ms))

        if is_alone:
            timer = timers.after(SHARED_AFTER_MS, lambda: share(SHARED_AFTER_MS))
        try:
            await self.run(held, cache, handed)
        except CancelledError:
            return  # the pool was closed first: the next owner pulls the messages again
        finally:
            held.hands -= 1
            held.is_alone &= not is_alone
            if timer is not None:
                timers.cancel(timer)
            held.work.ring()
        given = len(handed.done) + len(handed.failed)
        self._message_ms = max(_FORGOTTEN * (self._message_ms or 0.0), handed.spent_ms / max(1, given))
        _end_done(held, cache, handed)
        if handed.error is not None:
            self._pool.surface(handed.error)
            cache.put_back(handed.take_waiting())
            held.work.ring()
        ends = [self._end_failed(held, cache, message, handed.delay_levels) for message in handed.failed]
        if len(ends) == 1:
            await ends[0]
            return
        name = f"failures of {held.queue}"  # none waits for another
        for flow in [start(self._client.home, end, name) for end in ends]:
            await until(flow)

    async def _end_failed(
        self, held: ProcessQueue, cache: CachedQueue, message: Message, levels: Mapping[int, int]
    ) -> None:
        """Retries a failed message, or gives it up, by its group and its failures."""
        if held.cache is not cache or not cache.holds(message):  # sent back already, or the queue was moved
            held.counts.failed += 1
        elif self._is_dropped(held, message) or await self._is_sent_away(held, cache, message, levels):
            cache.remove([message])
            held.pulls.ring()
            held.progress.ring()

    @override
    def _may_go_on(self, held: ProcessQueue, cache: CachedQueue) -> Callable[[], bool]:
        return lambda: not (held.is_dropped or self._is_forked) and held.cache is cache

    @override
    async def keep_expiring(self, queues: Callable[[], Iterable[ProcessQueue]]) -> None:
        """Sends messages back that the listener takes too long for, so that their queues continue."""
        while not self._client.is_over:
            await sleep(self._client.home, self._settings.consume_timeout_ms)
            for held in tuple(queues()):
                await self._expire(held)

    async def _expire(self, held: ProcessQueue) -> None:
        """Sends back the first messages of a queue, one after another, while they have taken too long."""
        cache, most_ms = held.cache, self._settings.consume_timeout_ms
        for _ in range(MOST_EXPIRED):
            begun_ms = self._client.clock.monotonic_ms() - most_ms
            hands = [handed for handed in held.in_hand if handed.cache is cache]
            for handed in hands:
                _end_done(held, cache, handed)
            late = [handed.at_work for handed in hands if handed.began_ms < begun_ms]
            first = cache.floor()
            message = next((one for batch in late for one in batch if one.queue_offset == first), None)
            if message is None or held.is_dropped or not cache.holds(message):
                return
            try:
                await self._send_back.retry_later(message, held.queue.broker_name, FIRST_LEVEL)
            except SeglogError as error:
                _log.log(level_of(error), "%s, offset %d is not given back: %s", held.queue, first, error)
                return
            _log.warning(
                "given back to its broker, for the listener is at it for more than %d ms: %s",
                most_ms,
                named(self._settings.group, held.queue, message),
            )
            held.counts.given_up += 1
            cache.remove([message])
            held.pulls.ring()
            held.progress.ring()

    def _is_dropped(self, held: ProcessQueue, message: Message) -> bool:
        """Returns whether a message is dropped because its group broadcasts, so that nothing retries it."""
        if not self._settings.is_broadcasting:
            return False
        held.counts.failed += 1
        _log.warning(
            "dropped, since group %s broadcasts: %s",
            self._settings.group,
            named(self._settings.group, held.queue, message),
        )
        return True

    async def _is_sent_away(
        self, held: ProcessQueue, cache: CachedQueue, message: Message, levels: Mapping[int, int]
    ) -> bool:
        """Requests a later retry of a message; a message that cannot be sent back is retried here.

        Returns whether it is done here.
        """
        held.counts.failed += 1
        again, is_said = message, False
        while not held.is_dropped:
            level = levels.get(message.queue_offset, 0)
            is_last = again.reconsume_times >= self._most or level < 0
            try:
                await self._send_back.retry_later(again, held.queue.broker_name, level, is_said=is_said)
            except SeglogError as error:
                if is_too_long(error):
                    if is_last and await self._has_ended_as_it_is(held, again):
                        held.counts.given_up += 1
                        return True
                    self.warn_of_too_long(held, again, error, is_said=is_said)
                    is_said = True
                else:
                    _log.log(
                        level_of(error),
                        "%s, offset %d is tried again in %d ms: %s",
                        held.queue,
                        message.queue_offset,
                        AGAIN_MS,
                        error,
                    )
            else:
                held.counts.given_up += 1
                if is_last:
                    self.warn_of_end(held, again)
                return True
            await rest(self._client.home, AGAIN_MS, held.ending)
            if held.cache is not cache or not cache.holds(message):
                return False
            again = replace(again, reconsume_times=again.reconsume_times + 1)
            try:
                handed = await self.run(held, cache, Handed.of([again]))
            except CancelledError:
                return False
            if handed.done:
                return True
            levels = handed.delay_levels
            held.counts.failed += len(handed.failed)
        return False


def _end_done(held: ProcessQueue, cache: CachedQueue, handed: Handed) -> None:
    """Ends finished messages; the listener may still be processing others, which the queue waits for."""
    cache.remove(handed.done.copy())
    held.pulls.ring()
    held.progress.ring()

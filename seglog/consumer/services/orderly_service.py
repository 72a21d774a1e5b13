"""Gives the messages of a queue to the listener one after another; a failed message stays first.

Later messages wait until it succeeds, or until it is given up after its last attempt. The number of its
failures is in memory, as in Java: it starts at 0 with the next owner of the queue.

A queue is consumed only under its lock. When the lease has ended, the lock is requested again: soon if the
queue was being consumed, and every 3 s while the broker refuses it. After a minute of continuous work a queue
pauses, so that few threads serve many queues.

Source: ``ConsumeMessageOrderlyService.java ConsumeRequest, tryLockLaterAndReconsume, checkReconsumeTimes``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

from typing_extensions import override

from seglog.client.home import rest
from seglog.consumer.cached_queue import CachedQueue
from seglog.consumer.contexts import AS_SET
from seglog.consumer.hands.handed import Handed
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.services.service import Service, is_too_long
from seglog.consumer.settings import MAX_SUSPEND_MS, MIN_SUSPEND_MS
from seglog.errors import SeglogError
from seglog.logs import logger
from seglog.remoting.later import CancelledError
from seglog.storage.format.record import Message

GATE_MS: Final = 100
"""Delay of the lock request if the lease has ended before a queue is consumed."""
LOOP_MS: Final = 10
"""Delay of the lock request if the lease ends while the queue is consumed."""
RESUBMIT_MS: Final = 10
"""Delay until a queue continues after it got its lock, or after a pause."""
NOT_OURS_MS: Final = 3_000
"""Delay until a refused lock is requested again, unless the renewal of all locks is sooner."""
MOST_CONTINUOUS_MS: Final = 60_000
"""``rocketmq.client.maxTimeConsumeContinuously``."""
MOST_HANDED: Final = 32
"""Most messages given to a thread of the pool at a time, unless a batch is larger."""
SLICE_MS: Final = 1_000
"""After this time a thread takes another waiting queue, if there is one."""

_log = logger(__name__)


class OrderlyService(Service):
    """Serves the queues of one consumer. Its flows run on the client's home."""

    IS_IN_ORDER: ClassVar[bool] = True

    @override
    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and the running listener has ended."""
        home, clock = self._client.home, self._client.clock
        most = max(MOST_HANDED, self._settings.batch_size)
        began_ms: float | None = None  # since when it is consumed without a pause
        cache = held.cache
        while not held.is_dropped and not self._client.is_over:
            if held.cache is not cache:  # the queue was moved: another message is first
                cache, held.open = held.cache, []
            if held.is_lease_over:
                await self._ask_for_lock(held, GATE_MS if began_ms is None else LOOP_MS)
                began_ms = None
                continue
            now_ms = clock.monotonic_ms()
            if began_ms is not None and now_ms - began_ms > MOST_CONTINUOUS_MS:
                await rest(home, RESUBMIT_MS, held.ending)
                began_ms = None
                continue
            taken = cache.take(most)
            if not taken:
                began_ms = None
                await held.work.wait()
                continue
            held.consumed_ms = clock.now_ms()
            began_ms = held.continuous_ms = now_ms if began_ms is None else began_ms
            handed = Handed.of(taken)
            handed.open = held.open
            try:
                await self.run(held, cache, handed)
            except CancelledError:
                return  # the pool was closed before its turn
            cache.remove(handed.done)
            cache.put_back(handed.take_waiting())
            if handed.done:
                held.pulls.ring()
                held.progress.ring()
            if handed.failed:
                await self._end_of_failed(held, handed)
                began_ms = None if held.is_resting else began_ms
                held.is_resting = False

    @override
    def _may_go_on(self, held: ProcessQueue, cache: CachedQueue) -> Callable[[], bool]:
        clock = self._client.clock
        end_ms = min(clock.monotonic_ms() + SLICE_MS, held.continuous_ms + MOST_CONTINUOUS_MS)

        def may_go_on() -> bool:
            if held.is_dropped or self._is_forked or held.cache is not cache:
                return False
            return clock.monotonic_ms() <= min(end_ms, held.lease.work_until_ms)

        return may_go_on

    async def _ask_for_lock(self, held: ProcessQueue, delay_ms: float) -> None:
        """Waits until an expired lock is held again, if there are messages to consume."""
        counts = held.cache.counts()
        if counts.messages == counts.taken:
            await held.work.wait()
            return
        if await self._is_lease_over_after(held, delay_ms):
            if await held.ask_for_lock(held):
                await rest(self._client.home, RESUBMIT_MS, held.ending)
            else:
                await self._is_lease_over_after(held, NOT_OURS_MS)

    async def _is_lease_over_after(self, held: ProcessQueue, delay_ms: float) -> bool:
        """Returns whether a queue still waits for its lock after a time; the timed renewal may get it."""
        clock = self._client.clock
        until_ms = clock.monotonic_ms() + delay_ms
        while not held.is_dropped and held.is_lease_over:
            left_ms = until_ms - clock.monotonic_ms()
            if left_ms <= 0:
                return True
            await held.work.wait(left_ms)
        return False

    async def _end_of_failed(self, held: ProcessQueue, handed: Handed) -> None:
        """Sends messages after their last attempt to the dead letters; the others are retried after a pause.

        If the listener commits by itself, the former are committed with the next messages.
        """
        cache = held.cache
        if handed.is_rolled_back:
            cache.put_back(handed.failed)
            await self._rest(held, handed)
            return
        again: list[Message] = []
        held.counts.failed += len(handed.failed)
        for message in handed.failed:
            if message.reconsume_times >= self._most and await self._is_given_up(held, message):
                held.counts.given_up += 1
                held.open.append(message)
            else:
                again.append(replace(message, reconsume_times=message.reconsume_times + 1))
        if not (again or handed.waits_for_commit):
            cache.remove(held.open)
            held.open.clear()
            held.pulls.ring()
            held.progress.ring()
        cache.put_back(again)
        if again:
            if handed.error is not None:
                self._pool.surface(handed.error)
            await self._rest(held, handed)

    async def _rest(self, held: ProcessQueue, handed: Handed) -> None:
        """Makes a queue wait for the time that the listener or its consumer has set."""
        suspend_ms = self._settings.suspend_ms
        if handed.suspend_ms != AS_SET:
            suspend_ms = max(MIN_SUSPEND_MS, min(handed.suspend_ms, MAX_SUSPEND_MS))
        held.is_resting = True
        await rest(self._client.home, suspend_ms, held.ending)

    async def _is_given_up(self, held: ProcessQueue, message: Message) -> bool:
        """Returns whether a message was sent to the dead letters, so that the queue can continue."""
        try:
            await self._send_back.send_anew(message, message.reconsume_times)
        except SeglogError as error:
            if is_too_long(error) and await self._has_ended_as_it_is(held, message):
                return True
            _log.log(
                self._client.troubles.level(f"end of a message of {held.queue}", error),
                "%s, offset %d cannot be given up: %s",
                held.queue,
                message.queue_offset,
                error,
            )
            return False
        self.warn_of_end(held, message)
        return True

"""Gives the messages of a queue to the listener one after another; one that fails stays first.

Nothing after it is looked at until it succeeds, or until it is given up after its last attempt. The number of
its failures is in memory, as in Java: it begins anew with the next owner of the queue.

Source: ``ConsumeMessageOrderlyService.java ConsumeRequest``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from typing_extensions import override

from seglog.client.home import rest, until
from seglog.client.links import level_of
from seglog.consumer.handing import Handed, hand
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.service import Service
from seglog.errors import SeglogError
from seglog.remoting.later import CancelledError
from seglog.storage.format.record import Message

LEASE_LOOK_MS: Final = 100
"""How soon a queue is looked at again whose lease is over."""
MOST_HANDED: Final = 32
"""Messages that a thread of the pool is given at a time."""
SLICE_MS: Final = 1_000
"""After so long a thread takes another queue."""

_log = logging.getLogger(__name__)


class OrderlyService(Service):
    """Serves the queues of one consumer. Its flows run on the client's home."""

    IS_IN_ORDER: ClassVar[bool] = True

    @override
    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and the listener has ended with what it was at."""
        failures = 0
        cache = held.cache
        while not held.is_dropped and not self._client.is_over:
            if self._client.clock.monotonic_ms() > held.lease.work_until_ms:
                await held.work.wait(LEASE_LOOK_MS)
                continue
            if held.cache is not cache:  # the offset was set elsewhere: another message is first
                cache, failures = held.cache, 0
            taken = cache.take(MOST_HANDED)
            if not taken:
                await held.work.wait()
                continue
            held.consumed_ms = self._client.clock.now_ms()
            given = list(taken)
            if failures:
                given[0] = replace(taken[0], reconsume_times=taken[0].reconsume_times + failures)
            try:
                handed = await until(self._pool.run(partial(self._hand, held, given)))
            except CancelledError:
                return  # the pool was closed before its turn
            cache.remove(handed.done)
            cache.put_back(taken[len(handed.done) :])
            held.note_handed(handed)
            if handed.done:
                failures = 0
                held.pulls.ring()
                held.progress.ring()
            for message in handed.failed:
                held.counts.failed += 1
                if message.reconsume_times >= self._most and await self._is_given_up(held, message):
                    failures = 0
                else:
                    failures += 1
                    if handed.error is not None:
                        self._pool.surface(handed.error)
                    held.is_resting = True
                    await rest(self._client.home, self._settings.suspend_ms, held.ending)
                    held.is_resting = False

    async def _hand(self, held: ProcessQueue, messages: Sequence[Message]) -> Handed:
        clock = self._client.clock
        end_ms = clock.monotonic_ms() + SLICE_MS

        def may_go_on() -> bool:
            return not held.is_dropped and clock.monotonic_ms() <= min(end_ms, held.lease.work_until_ms)

        return await hand(
            self._listener,
            self._settings.group,
            held.queue,
            messages,
            clock,
            may_go_on,
            is_async=self._is_async,
            stops_at_failure=True,
        )

    async def _is_given_up(self, held: ProcessQueue, message: Message) -> bool:
        """Returns whether a message is on its way to the dead letters, so that the queue can go on."""
        try:
            await self._send_back.send_anew(message, message.reconsume_times)
        except SeglogError as error:
            _log.log(
                level_of(error),
                "%s, offset %d cannot be given up: %s",
                held.queue,
                message.queue_offset,
                error,
            )
            return False
        self.warn_of_end(held, message)
        held.counts.given_up += 1
        held.counts.delivered += 1
        held.cache.remove([message])
        held.pulls.ring()
        held.progress.ring()
        return True

"""Gives the messages of a queue to the listener side by side; one that fails goes back to its broker.

The broker brings it again after a while that grows with each failure, by the group's retry topic, so attempts
outlive this process.

Source: ``ConsumeMessageConcurrentlyService.java ConsumeRequest, processConsumeResult``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from typing_extensions import override

from seglog.client.home import Flow, rest, start, until
from seglog.client.links import level_of
from seglog.consumer.handing import Handed, hand
from seglog.consumer.process_queue import ProcessQueue
from seglog.consumer.service import Service
from seglog.errors import SeglogError
from seglog.remoting.later import CancelledError
from seglog.storage.format.record import Message

AGAIN_MS: Final = 5_000
"""How long a message rests that failed and could not be sent back."""
MOST_HANDED: Final = 32
"""Messages that a thread of the pool is given at a time."""

_log = logging.getLogger(__name__)


class ConcurrentService(Service):
    """Serves the queues of one consumer. Its flows run on the client's home."""

    IS_IN_ORDER: ClassVar[bool] = False

    @override
    async def keep_serving(self, held: ProcessQueue) -> None:
        """Serves a queue until it is dropped and the listener has ended with what it was at."""
        at_work: set[Flow[None]] = set()
        while not held.is_dropped:
            # A hop to a thread costs more than many listeners: the fuller the cache, the more go at a time.
            cached = held.cache.counts()
            count = max(1, min(MOST_HANDED, (cached.messages - cached.taken) // self._settings.threads))
            messages = held.cache.take(count)
            if not messages:
                await held.work.wait()
                continue
            held.consumed_ms = self._client.clock.now_ms()
            flow = start(self._client.home, self._serve(held, messages), f"messages of {held.queue}")
            at_work = {one for one in at_work if not one.is_done} | {flow}
        for flow in at_work:
            await until(flow)

    async def _serve(self, held: ProcessQueue, messages: Sequence[Message]) -> None:
        cache = held.cache  # that of now: after a reset there is another one, which these are not of
        try:
            handed = await until(self._pool.run(partial(self._hand, held, messages)))
        except CancelledError:
            return  # the pool was closed before its turn: they are pulled again by who comes next
        held.note_handed(handed)
        cache.remove(handed.done)
        held.pulls.ring()
        held.progress.ring()
        if handed.error is not None:
            self._pool.surface(handed.error)
            left = messages[len(handed.done) + len(handed.failed) :]
            cache.put_back(left)
            held.work.ring()
        for message in handed.failed:
            if await self._is_sent_away(held, message):
                cache.remove([message])
                held.pulls.ring()
                held.progress.ring()

    async def _hand(self, held: ProcessQueue, messages: Sequence[Message]) -> Handed:
        return await hand(
            self._listener,
            self._settings.group,
            held.queue,
            messages,
            self._client.clock,
            lambda: not held.is_dropped,
            is_async=self._is_async,
            stops_at_failure=False,
        )

    async def _is_sent_away(self, held: ProcessQueue, message: Message) -> bool:
        """Has a message brought again later; what cannot be sent back is tried here again.

        Returns whether it is done here.
        """
        held.counts.failed += 1
        again = message
        while not held.is_dropped:
            try:
                await self._send_back.retry_later(again, held.queue.broker_name)
            except SeglogError as error:
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
                if again.reconsume_times >= self._most:
                    self.warn_of_end(held, again)
                return True
            await rest(self._client.home, AGAIN_MS, held.ending)
            again = replace(again, reconsume_times=again.reconsume_times + 1)
            try:
                handed = await until(self._pool.run(partial(self._hand, held, [again])))
            except CancelledError:
                return False
            held.note_handed(handed)
            if handed.done:
                return True
            held.counts.failed += len(handed.failed)
        return False

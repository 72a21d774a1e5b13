"""Takes, renews and releases queue locks.

Source: ``RebalanceImpl.java lock, lockAll, unlock``.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Collection
from typing import Final

from seglog.client.client import Client
from seglog.consumer.brokers import Brokers, check
from seglog.consumer.shares.words import in_words
from seglog.errors import ClientClosedError, SeglogError
from seglog.logs import logger
from seglog.remoting.bodies import LockBatchBody, LockedQueuesBody
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.message_queue import MessageQueue

RENEW_INTERVAL_MS: Final = 20_000

_log = logger(__name__)


class LockClient:
    """Locks queues of a group for one client. Its flows run on the client's home.

    Args:
        client: Its link, routes, clock and id are used.
        group: The group.
    """

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._brokers = Brokers(client)
        self._group = group
        self._kept: dict[MessageQueue, float] = {}
        self._why_kept: SeglogError | None = None

    async def lock(
        self, queues: Collection[MessageQueue]
    ) -> tuple[frozenset[MessageQueue], frozenset[str], float]:
        """Takes or renews locks, those of each broker in one request.

        Returns:
            The queues that are ours now, the brokers that have answered, and the moment before that.
        """
        asked_ms = self._client.clock.monotonic_ms()
        locked: set[MessageQueue] = set()
        answered: set[str] = set()
        for broker_name, wanted in self._by_broker(queues).items():
            try:
                answer = await self._brokers.ask(
                    broker_name, Request(RequestCode.LOCK_BATCH_MQ, body=self._body(wanted))
                )
                locked |= expect_body(answer, LockedQueuesBody).queues
            except SeglogError as error:
                _log.log(
                    self._client.troubles.level(f"locks of {broker_name} for {self._group}", error),
                    "broker %s locks no queue of group %s: %s",
                    broker_name,
                    self._group,
                    error,
                )
            else:
                answered.add(broker_name)
        return frozenset(locked), frozenset(answered), asked_ms

    async def unlock(self, queues: Collection[MessageQueue], until_ms: float) -> None:
        """Releases locks; locks whose broker does not answer expire by themselves, see :meth:`say_kept`.

        Args:
            queues: The queues.
            until_ms: Monotonic time at which they expire otherwise.
        """
        for broker_name, mine in self._by_broker(queues).items():
            request = Request(RequestCode.UNLOCK_BATCH_MQ, body=self._body(mine))
            try:
                check(await self._brokers.ask(broker_name, request))
            except SeglogError as error:
                self._kept.update(dict.fromkeys(mine, until_ms))
                self._why_kept = error

    def say_kept(self) -> None:
        """Logs the locks that could not be released since its last call, and how long they last."""
        kept, self._kept = self._kept, {}
        if not kept:
            return
        left_s = math.ceil((max(kept.values()) - self._client.clock.monotonic_ms()) / 1000)
        is_said = left_s > 0 and not isinstance(self._why_kept, ClientClosedError)
        _log.log(
            logging.WARNING if is_said else logging.DEBUG,
            "group %s could not give back the locks of %s: %s; other members get them in %d s at most",
            self._group,
            in_words(kept.keys()),
            self._why_kept,
            max(0, left_s),
        )

    def _body(self, queues: Collection[MessageQueue]) -> LockBatchBody:
        return LockBatchBody(self._group, self._client.client_id, frozenset(queues))

    def _by_broker(self, queues: Collection[MessageQueue]) -> dict[str, list[MessageQueue]]:
        found: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue in sorted(queues):
            found[queue.broker_name].append(queue)
        return found

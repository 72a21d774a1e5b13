"""Takes and renews locks of queues, and gives them back.

Source: ``RebalanceImpl.java lock, lockAll, unlock``.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection
from typing import Final

from seglog.client.client import Client
from seglog.client.links import level_of
from seglog.consumer.brokers import Brokers, check
from seglog.errors import SeglogError
from seglog.remoting.bodies import LockBatchBody, LockedQueuesBody
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.message_queue import MessageQueue

RENEW_INTERVAL_MS: Final = 20_000

_log = logging.getLogger(__name__)


class LockClient:
    """Locks queues of a group for one client. Its flows run on the client's home.

    Args:
        client: Whose link, routes, clock and id.
        group: The group.
    """

    def __init__(self, client: Client, group: str) -> None:
        self._client = client
        self._brokers = Brokers(client)
        self._group = group

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
                    level_of(error),
                    "broker %s locks no queue of group %s: %s",
                    broker_name,
                    self._group,
                    error,
                )
            else:
                answered.add(broker_name)
        return frozenset(locked), frozenset(answered), asked_ms

    async def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Gives locks back; those that a broker does not take back end by themselves."""
        for broker_name, mine in self._by_broker(queues).items():
            request = Request(RequestCode.UNLOCK_BATCH_MQ, body=self._body(mine))
            try:
                check(await self._brokers.ask(broker_name, request))
            except SeglogError as error:
                _log.log(
                    level_of(error), "broker %s keeps locks of group %s: %s", broker_name, self._group, error
                )

    def _body(self, queues: Collection[MessageQueue]) -> LockBatchBody:
        return LockBatchBody(self._group, self._client.client_id, frozenset(queues))

    def _by_broker(self, queues: Collection[MessageQueue]) -> dict[str, list[MessageQueue]]:
        found: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue in sorted(queues):
            found[queue.broker_name].append(queue)
        return found

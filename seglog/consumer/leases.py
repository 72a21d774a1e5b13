"""Queue locks as their holder sees them.

The broker lets a lock live 60 s after its last renewal. Its holder counts from before it asked, renews
every 20 s, and stops working 30 s after the last success: so it has stopped long before anyone else can
begin, even if renewals fail.

Between 30 s and 60 s no other client can have had the queue, so a renewal continues where work stopped. Later
someone may have, and the new owner starts from what is committed.

Source: ``RebalanceImpl.java lockAll``, ``ProcessQueue.java REBALANCE_LOCK_MAX_LIVE_TIME``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from seglog.client.links import Link
from seglog.clock import Clock
from seglog.errors import RemoteProtocolError
from seglog.remoting.bodies import LockBatchBody, LockedQueuesBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.message_queue import MessageQueue

WORK_MS: Final = 30_000
BROKER_LIVE_MS: Final = 60_000
RENEW_INTERVAL_MS: Final = 20_000


class Lease:
    """One queue's lock.

    Attributes:
        work_until_ms: On the monotonic clock: until then the queue may be consumed.
        ours_until_ms: Until then no other client can have got it.
    """

    __slots__ = ("ours_until_ms", "work_until_ms")

    def __init__(self) -> None:
        self.work_until_ms = -1.0
        self.ours_until_ms = -1.0

    def renew(self, asked_ms: float) -> None:
        """Notes a success of a request that was sent at ``asked_ms``."""
        self.ours_until_ms = asked_ms + BROKER_LIVE_MS
        self.work_until_ms = asked_ms + WORK_MS

    def lose(self) -> None:
        """Notes that the queue is not ours any more."""
        self.work_until_ms = self.ours_until_ms = -1.0


class LockClient:
    """Locks queues of a group for one client.

    Args:
        link: To the broker.
        group: The group.
        client_id: The client, unique in the group.
        clock: Its monotonic time.
    """

    def __init__(self, link: Link, group: str, client_id: str, clock: Clock) -> None:
        self._link = link
        self._group = group
        self._client_id = client_id
        self._clock = clock

    def lock(self, queues: Collection[MessageQueue]) -> tuple[frozenset[MessageQueue], float]:
        """Takes or renews locks.

        Returns:
            The queues that are ours now, and the moment before the broker was asked.

        Raises:
            RemoteProtocolError: The broker refuses.
        """
        asked_ms = self._clock.monotonic_ms()
        if not queues:
            return frozenset(), asked_ms
        body = LockBatchBody(self._group, self._client_id, frozenset(queues))
        response = self._link.invoke(Request(RequestCode.LOCK_BATCH_MQ, body=body))
        return expect_body(response, LockedQueuesBody).queues, asked_ms

    def unlock(self, queues: Collection[MessageQueue]) -> None:
        """Gives locks back.

        Raises:
            RemoteProtocolError: The broker refuses.
        """
        if queues:
            body = LockBatchBody(self._group, self._client_id, frozenset(queues))
            response = self._link.invoke(Request(RequestCode.UNLOCK_BATCH_MQ, body=body))
            if response.code is not ResponseCode.SUCCESS:
                raise RemoteProtocolError(response.code, response.remark or response.code.name)

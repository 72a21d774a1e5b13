"""Renews the locks of a member's queues; a queue whose lock another client has is given up.

Source: ``ConsumeMessageOrderlyService.java lockMQPeriodically``, ``RebalanceImpl.java lockAll``.
"""

from __future__ import annotations

from typing import Final

from seglog.client.client import Client
from seglog.client.home import sleep
from seglog.consumer.queues.held_queues import HeldQueues
from seglog.consumer.shares.locks import RENEW_INTERVAL_MS, LockClient
from seglog.consumer.shares.words import in_words
from seglog.logs import logger

FIRST_RENEWAL_MS: Final = 1_000

_log = logger(__name__)


async def keep_renewing(client: Client, group: str, locks: LockClient, queues: HeldQueues) -> None:
    """Renews the locks of all queues of a member periodically.

    Args:
        client: Its home and clock are used.
        group: The consumer group.
        locks: The locks of its queues.
        queues: Its queues.
    """
    await sleep(client.home, FIRST_RENEWAL_MS)
    while not client.is_over:
        held_queues = {queue: held for queue, held in queues.all.items() if not held.is_dropped}
        locked, answered, asked_ms = await locks.lock(held_queues)
        gone = [one for one in held_queues if one not in locked and one.broker_name in answered]
        if gone:
            _log.info("group %s gives up %s: another client has the lock", group, in_words(gone))
        for queue, held in held_queues.items():
            if queue in locked:
                if held.lease.renew(asked_ms):
                    queues.start_over(held)
                held.pulls.ring()
                held.work.ring()
            elif queue in gone:
                held.drop(is_lost=True)
                queues.begin_to_let_go(held)
        await sleep(client.home, RENEW_INTERVAL_MS)

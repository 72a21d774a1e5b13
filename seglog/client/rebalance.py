"""Which queues of a topic are a member's, when every member computes it for itself.

Source: ``AllocateMessageQueueAveragely.java``.
"""

from __future__ import annotations

from collections.abc import Iterable

from seglog.remoting.message_queue import MessageQueue


def allocate_averagely(
    client_id: str, members: Iterable[str], queues: Iterable[MessageQueue]
) -> tuple[MessageQueue, ...]:
    """Returns the member's share: neighbouring queues, the first members one more if it does not divide.

    Args:
        client_id: Whose share.
        members: All of the group, in any order; without ``client_id`` its share is empty.
        queues: All of the topic, in any order.
    """
    everyone, all_queues = sorted(set(members)), sorted(queues)
    if client_id not in everyone:
        return ()
    index = everyone.index(client_id)
    share, rest = divmod(len(all_queues), len(everyone))
    start = index * share + min(index, rest)
    return tuple(all_queues[start : start + share + (index < rest)])

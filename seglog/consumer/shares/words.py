"""The text that names queues in the log, short for any number of queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from seglog.remoting.message_queue import MessageQueue

MOST_NAMED: Final = 16
"""Most queues named one by one; for more only their number is given."""


def in_words(queues: Collection[MessageQueue]) -> str:
    """Returns queues as "queue 0, 1 of orders at broker-a", topic by topic; the first 16 by number."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for queue in sorted(queues)[:MOST_NAMED]:
        places[queue.topic, queue.broker_name].append(queue.queue_id)
    found = [
        f"queue {', '.join(map(str, numbers))} of {topic} at {broker_name}"
        for (topic, broker_name), numbers in places.items()
    ]
    left = len(queues) - MOST_NAMED
    return "; ".join(found) + (f"; and {left} more" if left > 0 else "")

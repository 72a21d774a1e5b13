"""The queue as clients and locks name it: topic, broker and number.

Source: ``MessageQueue.java``, whose order (topic, broker name, queue id) every member of a group must
share, because each computes its own share of the sorted queues.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """One queue of one topic on one broker."""

    topic: str
    broker_name: str
    queue_id: int

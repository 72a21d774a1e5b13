"""Overlays: what each queue must hold, worked out from the log and held against the queue's files.

Holds the rules for plain and batch queues, for messages that only queue units still know, and for queue
offsets that a hole took. Pure decisions over arrays; nothing is written here.

Called by surveys, audits and readers, so that all three say the same of a queue.
Truth: the log; a unit counts only for records that the log lost.
"""

from __future__ import annotations

from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.overlay.lost_messages import UNIT, LostMessages, lost_in_gaps, lost_in_holes
from seglog.storage.overlay.queue_overlay import QueueState, has_own_tags_code, is_message

__all__ = [
    "UNIT",
    "BatchQueueState",
    "LostMessages",
    "QueueState",
    "has_own_tags_code",
    "is_message",
    "lost_in_gaps",
    "lost_in_holes",
]

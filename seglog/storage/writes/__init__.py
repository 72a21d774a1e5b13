"""Appends: from the arguments of a put to bytes in the log, units in queues and an acknowledgement.

Holds the writer of an open store, the appends of threads and event loops, group commit, and the deletion of
old files beside them. ``fast_path`` hands single puts to the native kernel; ``flush`` decides how durable an
acknowledgement is.

Called by ``store`` and ``opening``; other top rooms take the plain values of a put from here.
Truth: the tail of the log in memory, under the append lock. A record is consumable when its put returns.
"""

from __future__ import annotations

from seglog.storage.writes.compaction_writer import CompactionWriter
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, QueueInfo, RawMessage

__all__ = [
    "BatchResult",
    "CompactionWriter",
    "Durability",
    "NewMessage",
    "PutResult",
    "QueueInfo",
    "RawMessage",
]

"""Offsets: how far each group has consumed each queue, and the history of every move.

Called by pulls, handlers, retention and the doctor.
Truth: the table in memory; ``config/consumerOffset.json`` and the history follow it.
"""

from __future__ import annotations

from seglog.broker.offsets.idle_groups import idle_groups
from seglog.broker.offsets.offset_history import OffsetHistory
from seglog.broker.offsets.offset_history_query import OffsetPast
from seglog.broker.offsets.offsets import SEPARATOR, ConsumerOffsets

__all__ = [
    "SEPARATOR",
    "ConsumerOffsets",
    "OffsetHistory",
    "OffsetPast",
    "idle_groups",
]

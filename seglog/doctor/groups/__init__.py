"""Consumer groups of a store that no broker has open: offsets, dead letters, transactions, parked messages.

Holds what an operator does to a group: move, skip, park, send again, commit or roll back.

Called by the commands of ``seglog`` for groups.
Truth: the broker's own tables, changed through the broker's own codecs.
"""

from __future__ import annotations

from seglog.doctor.groups.broker_tables import hold_tables, read_groups, read_topics
from seglog.doctor.groups.dead_letters import TO_ORIGIN, TO_RETRY, Letter, iter_letters, list_graves, resend
from seglog.doctor.groups.offset_moves import (
    Move,
    Target,
    reset,
    restore,
    to_end,
    to_offset,
    to_start,
    to_time,
)
from seglog.doctor.groups.park import park
from seglog.doctor.groups.retention import RetentionPlan, RetentionRules, plan_retention, run_retention
from seglog.doctor.groups.skip import Skipped, skip
from seglog.doctor.groups.transactions import Ended, OpenHalf, end_transaction, open_transactions
from seglog.doctor.groups.unpark import list_parked, unpark

__all__ = [
    "TO_ORIGIN",
    "TO_RETRY",
    "Ended",
    "Letter",
    "Move",
    "OpenHalf",
    "RetentionPlan",
    "RetentionRules",
    "Skipped",
    "Target",
    "end_transaction",
    "hold_tables",
    "iter_letters",
    "list_graves",
    "list_parked",
    "open_transactions",
    "park",
    "plan_retention",
    "read_groups",
    "read_topics",
    "resend",
    "reset",
    "restore",
    "run_retention",
    "skip",
    "to_end",
    "to_offset",
    "to_start",
    "to_time",
    "unpark",
]

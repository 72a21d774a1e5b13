"""Messages: one message, and all that was made of it, by place, key or id.

Holds a log without a survey, related records (half, delayed, retried, dead, parked), roles and conditions.

Called by ``seglog explain``, ``erase``, ``dlq`` and the other commands that name a message.
Truth: records; copies name their origin in their properties.
"""

from __future__ import annotations

from seglog.doctor.message import copy_names
from seglog.doctor.message.lifecycle import GroupState, Life, Stage, life_of
from seglog.doctor.message.log_access import LogView
from seglog.doctor.message.pending import TIMER_FILE
from seglog.doctor.message.predicates import FIELDS, Condition, parse_conditions
from seglog.doctor.message.related_records import Scan, Search, find_families
from seglog.doctor.message.roles import Role

__all__ = [
    "FIELDS",
    "TIMER_FILE",
    "Condition",
    "GroupState",
    "Life",
    "LogView",
    "Role",
    "Scan",
    "Search",
    "Stage",
    "copy_names",
    "find_families",
    "life_of",
    "parse_conditions",
]

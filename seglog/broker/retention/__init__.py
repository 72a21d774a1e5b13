"""Retention: which old files go, which groups still need them, and what becomes of their messages.

Holds the policy, its impact in queue offsets, parked side files, and the refusal of sends on a full disk.

Called by the broker's background tasks and by the doctor.
Truth: the store's queues and the groups' offsets.
"""

from __future__ import annotations

from seglog.broker.retention.retention_impact import Doomed, Standing, Victim, Why, by_group, plan
from seglog.broker.retention.retention_side_files import PARKED, SUFFIX, park_victims, parked_file

__all__ = [
    "PARKED",
    "SUFFIX",
    "Doomed",
    "Standing",
    "Victim",
    "Why",
    "by_group",
    "park_victims",
    "parked_file",
    "plan",
]

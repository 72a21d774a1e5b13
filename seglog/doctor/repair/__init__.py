"""Repairs: from a survey to the bytes that would change, on a draft of the store, and then for good.

Holds one module for each part of a store that can be repaired, in the order of ``repair``; ``verdict`` says
what a repair leaves.

Called by ``seglog repair``.
Truth: the survey, and after the repair a survey of the draft. What cannot be proved is left and named.
"""

from __future__ import annotations

from seglog.doctor.repair.repair import Plan, locked, plan_repair, repair_store
from seglog.doctor.repair.verdict import add_left, wrong_now

__all__ = [
    "Plan",
    "add_left",
    "locked",
    "plan_repair",
    "repair_store",
    "wrong_now",
]

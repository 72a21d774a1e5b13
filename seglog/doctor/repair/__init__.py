"""Repairs: computes the bytes to change from a survey, on a draft of the store, and then applies them.

Holds one module for each part of a store that can be repaired, in the order of ``repair``; ``verdict``
reports the findings that a repair leaves.

Called by ``seglog repair``.
Truth: the survey, and after the repair a survey of the draft. Faults without a proof are named and left.
"""

from seglog.doctor.repair.repair import Plan as Plan
from seglog.doctor.repair.repair import locked as locked
from seglog.doctor.repair.repair import plan_repair as plan_repair
from seglog.doctor.repair.repair import repair_store as repair_store
from seglog.doctor.repair.verdict import judge as judge
from seglog.doctor.repair.verdict import wrong_now as wrong_now

"""Audits: the walk over a log in splits, in any order and in any process, and what follows from all of them.

Holds the plan of an audit, what a split reports (``stretches``, plain values of bounded size), and the
conclusion over all splits. It needs no Spark: a check walks splits in threads, a Spark job in tasks, with the
same outcome.

Called by the doctor's check and the Spark jobs.
Truth: the records of the log; files are held against them.
"""

from __future__ import annotations

from seglog.storage.audit.conclude import Stitched, conclude_log, report_on
from seglog.storage.audit.plan import AuditPlan, plan_audit
from seglog.storage.audit.report import AuditQueue, AuditReport
from seglog.storage.audit.split_scan import SplitScan
from seglog.storage.audit.splits import DEFAULT_SPLIT_BYTES, MIN_SPLIT_BYTES
from seglog.storage.audit.stitch import LogOutcome
from seglog.storage.audit.stretches import BatchRun, Interval, QueueEnd, Stretch, UnitState
from seglog.storage.audit.unit_files import UnitFiles

__all__ = [
    "DEFAULT_SPLIT_BYTES",
    "MIN_SPLIT_BYTES",
    "AuditPlan",
    "AuditQueue",
    "AuditReport",
    "BatchRun",
    "Interval",
    "LogOutcome",
    "QueueEnd",
    "SplitScan",
    "Stitched",
    "Stretch",
    "UnitFiles",
    "UnitState",
    "conclude_log",
    "plan_audit",
    "report_on",
]

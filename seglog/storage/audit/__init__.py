"""Audits: the walk over a log in splits, in any order and in any process, and what follows from all of them.

Holds the plan of an audit, what a split reports (``stretches``, plain values of bounded size), and the
conclusion over all splits. It needs no Spark: a check walks splits in threads, a Spark job in tasks, with the
same outcome.

Called by the doctor's check and the Spark jobs.
Truth: the records of the log; files are held against them.
"""

from seglog.storage.audit.conclude import Stitched as Stitched
from seglog.storage.audit.conclude import conclude_log as conclude_log
from seglog.storage.audit.conclude import report_on as report_on
from seglog.storage.audit.plan import AuditPlan as AuditPlan
from seglog.storage.audit.plan import plan_audit as plan_audit
from seglog.storage.audit.report import AuditQueue as AuditQueue
from seglog.storage.audit.report import AuditReport as AuditReport
from seglog.storage.audit.split_scan import SplitScan as SplitScan
from seglog.storage.audit.splits import DEFAULT_SPLIT_BYTES as DEFAULT_SPLIT_BYTES
from seglog.storage.audit.splits import MIN_SPLIT_BYTES as MIN_SPLIT_BYTES
from seglog.storage.audit.stitch import LogOutcome as LogOutcome
from seglog.storage.audit.stretches import BatchRun as BatchRun
from seglog.storage.audit.stretches import Interval as Interval
from seglog.storage.audit.stretches import QueueEnd as QueueEnd
from seglog.storage.audit.stretches import Stretch as Stretch
from seglog.storage.audit.stretches import UnitState as UnitState
from seglog.storage.audit.unit_files import UnitFiles as UnitFiles

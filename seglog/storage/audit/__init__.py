"""Audits: what follows from the splits of a log, wherever they were walked.

Holds the plan of an audit and its report: what each queue's files hold, held against what the splits saw. It
needs no Spark: a check walks splits in threads, a Spark job in tasks, with the same outcome.

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

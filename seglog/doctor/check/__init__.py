"""Checks: walks the log, examines every other file, and reports what is wrong.

Holds the check, its progress file (a check can be stopped and resumed), the list of what a check cannot see,
and the verification of the log alone, which runs a whole check if anything differs from what was written.

Called by ``seglog check``, ``seglog verify`` and ``seglog report``; the Spark audit uses the same observer of
records.
Truth: the log. A check writes nothing; a verification writes seals if the caller requests them.
"""

from seglog.doctor.check.check import SPLIT_BYTES as SPLIT_BYTES
from seglog.doctor.check.check import StoreCheck as StoreCheck
from seglog.doctor.check.check import check_store as check_store
from seglog.doctor.check.check_progress_file import default_resume_file as default_resume_file
from seglog.doctor.check.check_report import CheckReport as CheckReport
from seglog.doctor.check.log_walk import SplitOutcome as SplitOutcome
from seglog.doctor.check.log_walk import walk_split as walk_split
from seglog.doctor.check.recovery_walk import RecoveryWalk as RecoveryWalk
from seglog.doctor.check.triage import Triage as Triage
from seglog.doctor.check.triage import ending_of_check as ending_of_check
from seglog.doctor.check.triage import verdict_on as verdict_on
from seglog.doctor.check.verdict_text import verdict_facts as verdict_facts
from seglog.doctor.check.verify import VerifyReport as VerifyReport
from seglog.doctor.check.verify import verify_store as verify_store

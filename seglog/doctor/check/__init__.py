"""Checks: a walk over the log and a look at every other file, and what is wrong.

Holds the check, its progress file (a check can be stopped and resumed), what it cannot see, and the
verification of the log alone, which runs a check as soon as anything is other than it was written.

Called by ``seglog check``, ``seglog verify`` and ``seglog report``; the Spark audit shares its records'
observer.
Truth: the log. A check writes nothing; a verification writes seals where it is asked to.
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
from seglog.doctor.check.triage import verdict_on as verdict_on
from seglog.doctor.check.verdict_text import verdict_facts as verdict_facts
from seglog.doctor.check.verify import VerifyReport as VerifyReport
from seglog.doctor.check.verify import verify_store as verify_store

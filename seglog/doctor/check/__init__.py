"""Checks: a walk over the log and a look at every other file, and what is not as it should be.

Holds the check, its progress file (a check can be stopped and resumed), and what it cannot tell.

Called by ``seglog check`` and ``seglog report``; the Spark audit shares its records' observer.
Truth: the log. A check writes nothing.
"""

from __future__ import annotations

from seglog.doctor.check.check import SPLIT_BYTES, StoreCheck, check_store
from seglog.doctor.check.check_progress_file import default_resume_file
from seglog.doctor.check.check_report import CheckReport
from seglog.doctor.check.log_walk import SplitOutcome, walk_split
from seglog.doctor.check.record_observer import Seen

__all__ = [
    "SPLIT_BYTES",
    "CheckReport",
    "Seen",
    "SplitOutcome",
    "StoreCheck",
    "check_store",
    "default_resume_file",
    "walk_split",
]

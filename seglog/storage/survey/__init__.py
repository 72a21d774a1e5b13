"""Surveys: what a store directory holds, what state it is in, and what opening it would serve.

Holds the survey of a whole store, the one that begins at a recovery point, the verification of checksums
alone, and the file of known holes. A survey reads and reports; it writes nothing.

Called by openings, readers, repairs and the commands that look at a store.
Truth: the walk over the log. What queues, index and tables say is held against it.
"""

from __future__ import annotations

from seglog.storage.survey.moving_store import leave_front, look_again, start_now, survey_moving
from seglog.storage.survey.survey import Survey, survey
from seglog.storage.survey.verify import VerifyReport, verify_store

__all__ = [
    "Survey",
    "VerifyReport",
    "leave_front",
    "look_again",
    "start_now",
    "survey",
    "survey_moving",
    "verify_store",
]

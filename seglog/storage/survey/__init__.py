"""Surveys: the content of a store directory, its state, and the messages that opening it would serve.

Holds the survey of a whole store, the survey that begins at a recovery point, and the survey of a store whose
owner writes meanwhile. A survey reads and reports; it writes nothing.

Called by openings, readers, repairs and the commands that look at a store.
Truth: the walk over the log. Queues, index and tables are compared with it.
"""

from seglog.storage.survey.moving_store import leave_front as leave_front
from seglog.storage.survey.moving_store import look_again as look_again
from seglog.storage.survey.moving_store import start_now as start_now
from seglog.storage.survey.moving_store import survey_moving as survey_moving
from seglog.storage.survey.moving_store import survey_written as survey_written
from seglog.storage.survey.placeholder_counts import count_placeholders as count_placeholders
from seglog.storage.survey.store_survey import Survey as Survey
from seglog.storage.survey.store_survey import survey as survey

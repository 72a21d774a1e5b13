"""Messages: one message and all its copies, by place, key or id.

Holds a log view without a survey, related records (half, delayed, retried, dead, parked), roles and
conditions.

Called by ``seglog explain``, ``erase``, ``dlq`` and the other commands that name a message.
Truth: records; copies name their origin in their properties.
"""

from seglog.doctor.message import copy_names as copy_names
from seglog.doctor.message.lifecycle import GroupState as GroupState
from seglog.doctor.message.lifecycle import Life as Life
from seglog.doctor.message.lifecycle import Stage as Stage
from seglog.doctor.message.lifecycle import life_of as life_of
from seglog.doctor.message.log_access import LogView as LogView
from seglog.doctor.message.pending import TIMER_FILE as TIMER_FILE
from seglog.doctor.message.predicates import FIELDS as FIELDS
from seglog.doctor.message.predicates import Condition as Condition
from seglog.doctor.message.predicates import parse_conditions as parse_conditions
from seglog.doctor.message.related_records import Scan as Scan
from seglog.doctor.message.related_records import Search as Search
from seglog.doctor.message.related_records import find_families as find_families
from seglog.doctor.message.roles import Role as Role

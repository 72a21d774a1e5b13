"""Consumer groups of a store that no broker has open: offsets, dead letters, transactions, parked messages.

Holds the operations of an operator: move, skip, park, send again, commit or roll back.

Called by the commands of ``seglog`` for groups.
Truth: the broker's own tables, changed through the broker's own codecs.
"""

from seglog.doctor.groups.broker_retention import BrokerRules as BrokerRules
from seglog.doctor.groups.broker_retention import Kept as Kept
from seglog.doctor.groups.broker_retention import Rule as Rule
from seglog.doctor.groups.broker_retention import broker_cleaning as broker_cleaning
from seglog.doctor.groups.broker_retention import is_above as is_above
from seglog.doctor.groups.broker_tables import hold_tables as hold_tables
from seglog.doctor.groups.broker_tables import read_groups as read_groups
from seglog.doctor.groups.broker_tables import read_topics as read_topics
from seglog.doctor.groups.dead_letters import TO_ORIGIN as TO_ORIGIN
from seglog.doctor.groups.dead_letters import TO_RETRY as TO_RETRY
from seglog.doctor.groups.dead_letters import Letter as Letter
from seglog.doctor.groups.dead_letters import iter_letters as iter_letters
from seglog.doctor.groups.dead_letters import list_graves as list_graves
from seglog.doctor.groups.dead_letters import resend as resend
from seglog.doctor.groups.offset_moves import Move as Move
from seglog.doctor.groups.offset_moves import Target as Target
from seglog.doctor.groups.offset_moves import reset as reset
from seglog.doctor.groups.offset_moves import restore as restore
from seglog.doctor.groups.offset_moves import to_end as to_end
from seglog.doctor.groups.offset_moves import to_offset as to_offset
from seglog.doctor.groups.offset_moves import to_start as to_start
from seglog.doctor.groups.offset_moves import to_time as to_time
from seglog.doctor.groups.offset_moves import without_offset_at as without_offset_at
from seglog.doctor.groups.parked_messages import list_parked as list_parked
from seglog.doctor.groups.parked_messages import unpark as unpark
from seglog.doctor.groups.parking import park as park
from seglog.doctor.groups.retention import RetentionPlan as RetentionPlan
from seglog.doctor.groups.retention import RetentionRules as RetentionRules
from seglog.doctor.groups.retention import plan_retention as plan_retention
from seglog.doctor.groups.retention import run_retention as run_retention
from seglog.doctor.groups.skipping import Skipped as Skipped
from seglog.doctor.groups.skipping import skip as skip
from seglog.doctor.groups.transactions import Ended as Ended
from seglog.doctor.groups.transactions import OpenHalf as OpenHalf
from seglog.doctor.groups.transactions import count_open_transactions as count_open_transactions
from seglog.doctor.groups.transactions import end_transaction as end_transaction
from seglog.doctor.groups.transactions import open_transactions as open_transactions

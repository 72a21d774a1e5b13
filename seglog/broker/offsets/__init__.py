"""Offsets: how far each group has consumed each queue, and the history of every move.

Called by pulls, handlers, retention and the doctor.
Truth: the table in memory; ``config/consumerOffset.json`` and the history follow it.
"""

from seglog.broker.offsets.idleness import idle_groups as idle_groups
from seglog.broker.offsets.offset_history import OffsetHistory as OffsetHistory
from seglog.broker.offsets.offset_history_query import OffsetPast as OffsetPast
from seglog.broker.offsets.offset_table_file import SEPARATOR as SEPARATOR
from seglog.broker.offsets.offsets import ConsumerOffsets as ConsumerOffsets

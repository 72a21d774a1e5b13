"""Offsets: the committed offset of each group in each queue, and the history of all changes.

Called by pulls, handlers, retention and the doctor.
Truth: the table in memory; ``config/consumerOffset.json`` and the history are written from it.
"""

from seglog.broker.offsets.idleness import idle_groups as idle_groups
from seglog.broker.offsets.offset_history import OffsetHistory as OffsetHistory
from seglog.broker.offsets.offset_history_query import OffsetPast as OffsetPast
from seglog.broker.offsets.offset_history_query import newest_offsets as newest_offsets
from seglog.broker.offsets.offset_table_file import SAVED_WITH_OFFSETS as SAVED_WITH_OFFSETS
from seglog.broker.offsets.offset_table_file import SEPARATOR as SEPARATOR
from seglog.broker.offsets.offset_table_file import offsets_config as offsets_config
from seglog.broker.offsets.offset_table_file import table_of as table_of
from seglog.broker.offsets.offset_table_file import to_config as to_config
from seglog.broker.offsets.offsets import ConsumerOffsets as ConsumerOffsets

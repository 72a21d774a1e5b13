"""Parts of a store other than log, queues and index: filters, timer, transactions, offsets, tables.

Called by checks, and by repairs for the same findings on a surveyed store.
Truth: the log; each of these parts can be rebuilt or clamped.
"""

from seglog.doctor.parts.timer_check import waiting_timers as waiting_timers
from seglog.doctor.parts.tolerant_files import CheckedFiles as CheckedFiles
from seglog.doctor.parts.tolerant_files import ForgivingFiles as ForgivingFiles
from seglog.doctor.parts.tolerant_files import UnreadFiles as UnreadFiles
from seglog.doctor.parts.transaction_check import HalfQueue as HalfQueue
from seglog.doctor.parts.transaction_check import half_queues as half_queues

"""Overlays: the right content of each queue, derived from the log and compared with the queue's files.

Holds the rules for plain and batch queues, for messages that only queue units still prove, and for queue
offsets of records in holes. The rules are pure functions over arrays; this room writes nothing.

Called by surveys, audits and readers, so that all three agree about a queue.
Truth: the log; a unit of a file counts only for records that the log lost.
"""

from seglog.storage.overlay.batch_overlay import BatchQueueState as BatchQueueState
from seglog.storage.overlay.kept_units import is_message as is_message
from seglog.storage.overlay.lost_messages import UNIT as UNIT
from seglog.storage.overlay.lost_messages import LostMessages as LostMessages
from seglog.storage.overlay.lost_messages import lost_in_gaps as lost_in_gaps
from seglog.storage.overlay.lost_messages import lost_in_holes as lost_in_holes
from seglog.storage.overlay.lost_messages import tell_lost as tell_lost
from seglog.storage.overlay.lost_tail import TailFacts as TailFacts
from seglog.storage.overlay.lost_tail import find_lost_tail as find_lost_tail
from seglog.storage.overlay.queue_gaps import QueueGap as QueueGap
from seglog.storage.overlay.queue_overlay import QueueState as QueueState
from seglog.storage.overlay.queue_overlay import has_own_tags_code as has_own_tags_code

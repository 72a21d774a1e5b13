"""The units of queues: ConsumeQueue, batch ConsumeQueue, ConsumeQueueExt, LMQ and compaction queues.

Pure: bytes to values and back.

Called by every room that reads or writes queue files.
Truth: RocketMQ's sources and files, as each module names them.
"""

from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT as BATCH_UNIT
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES as BATCH_UNIT_BYTES
from seglog.storage.format.queue.batch_consume_queue import MAX_BATCH_SIZE as MAX_BATCH_SIZE
from seglog.storage.format.queue.batch_consume_queue import BatchUnits as BatchUnits
from seglog.storage.format.queue.batch_consume_queue import batch_in_use as batch_in_use
from seglog.storage.format.queue.batch_consume_queue import batch_range as batch_range
from seglog.storage.format.queue.batch_consume_queue import valid_batch_prefix as valid_batch_prefix
from seglog.storage.format.queue.batch_consume_queue import view_batch_units as view_batch_units
from seglog.storage.format.queue.compaction import COMPACTION as COMPACTION
from seglog.storage.format.queue.compaction import COMPACTION_LOG as COMPACTION_LOG
from seglog.storage.format.queue.compaction import COMPACTION_QUEUE as COMPACTION_QUEUE
from seglog.storage.format.queue.compaction import POSITION_FILE as POSITION_FILE
from seglog.storage.format.queue.compaction import compaction_record as compaction_record
from seglog.storage.format.queue.compaction import decode_positions as decode_positions
from seglog.storage.format.queue.compaction import encode_positions as encode_positions
from seglog.storage.format.queue.consume_queue import CQ_UNIT as CQ_UNIT
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES as CQ_UNIT_BYTES
from seglog.storage.format.queue.consume_queue import PRE_BLANK_BYTES as PRE_BLANK_BYTES
from seglog.storage.format.queue.consume_queue import Units as Units
from seglog.storage.format.queue.consume_queue import in_use as in_use
from seglog.storage.format.queue.consume_queue import pre_blanks as pre_blanks
from seglog.storage.format.queue.consume_queue_ext import MAX_EXT_ADDRESS as MAX_EXT_ADDRESS
from seglog.storage.format.queue.consume_queue_ext import is_ext_address as is_ext_address
from seglog.storage.format.queue.lmq import lmq_names as lmq_names
from seglog.storage.format.queue.lmq import plain_queue_kind as plain_queue_kind
from seglog.storage.format.queue.lmq import topic_allows_lmq as topic_allows_lmq

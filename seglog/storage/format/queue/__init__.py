"""The units of queues: ConsumeQueue, batch ConsumeQueue, ConsumeQueueExt, LMQ and compaction queues.

Pure: bytes to values and back.

Called by every room that reads or writes queue files.
Truth: RocketMQ's sources and files, as each module names them.
"""

from __future__ import annotations

from seglog.storage.format.queue.batch_consume_queue import (
    BATCH_UNIT,
    BATCH_UNIT_BYTES,
    BatchUnits,
    batch_in_use,
    valid_batch_prefix,
    view_batch_units,
)
from seglog.storage.format.queue.compaction import (
    COMPACTION,
    COMPACTION_LOG,
    COMPACTION_QUEUE,
    POSITION_FILE,
    compaction_record,
    decode_positions,
    encode_positions,
)
from seglog.storage.format.queue.consume_queue import (
    CQ_UNIT,
    CQ_UNIT_BYTES,
    PRE_BLANK_BYTES,
    Units,
    in_use,
    pre_blanks,
)
from seglog.storage.format.queue.consume_queue_ext import MAX_EXT_ADDRESS, is_ext_address
from seglog.storage.format.queue.lmq import plain_queue_kind

__all__ = [
    "BATCH_UNIT",
    "BATCH_UNIT_BYTES",
    "COMPACTION",
    "COMPACTION_LOG",
    "COMPACTION_QUEUE",
    "CQ_UNIT",
    "CQ_UNIT_BYTES",
    "MAX_EXT_ADDRESS",
    "POSITION_FILE",
    "PRE_BLANK_BYTES",
    "BatchUnits",
    "Units",
    "batch_in_use",
    "compaction_record",
    "decode_positions",
    "encode_positions",
    "in_use",
    "is_ext_address",
    "plain_queue_kind",
    "pre_blanks",
    "valid_batch_prefix",
    "view_batch_units",
]

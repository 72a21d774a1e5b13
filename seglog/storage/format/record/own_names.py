"""The names of properties that RocketMQ uses itself, which no application sets or passes on.

Source: ``MessageConst.java STRING_HASH_SET``, ``Message.java putUserProperty``.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.record import properties as props

SYSTEM_NAMES: Final = frozenset(
    [
        "1ST_POP_TIME",
        "ARRIVE_TIME",
        "BORN_TIMESTAMP",
        "BUYER_ID",
        "CLUSTER",
        "CONSUME_START_TIME",
        "CORRECTION_FLAG",
        "CORRELATION_ID",
        "DELAY",
        "DLQ_ORIGIN_MESSAGE_ID",
        "DLQ_ORIGIN_TOPIC",
        "DUP_INFO",
        "EXTEND_UNIQ_INFO",
        "INNER_MULTI_QUEUE_OFFSET",
        "INSTANCE_ID",
        "KEYS",
        "MAX_OFFSET",
        "MAX_RECONSUME_TIMES",
        "MIN_OFFSET",
        "MQ2_FLAG",
        "MSG_REGION",
        "MSG_TYPE",
        "ORIGIN_GROUP",
        "ORIGIN_MESSAGE_ID",
        "PGROUP",
        "POP_CK",
        "POP_CK_OFFSET",
        "PUSH_REPLY_TIME",
        "REAL_QID",
        "REAL_TOPIC",
        "RECONSUME_TIME",
        "REPLY_TO_CLIENT",
        "RETRY_TOPIC",
        "TAGS",
        "TIMER_DELAY_LEVEL",
        "TIMER_DELAY_MS",
        "TIMER_DELAY_SEC",
        "TIMER_DELIVER_MS",
        "TIMER_DEL_UNIQKEY",
        "TIMER_DEQUEUE_MS",
        "TIMER_ENQUEUE_MS",
        "TIMER_OUT_MS",
        "TIMER_ROLL_TIMES",
        "TRACE_ON",
        "TRANSFER_FLAG",
        "TRAN_MSG",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "TTL",
        "UNIQ_KEY",
        "WAIT",
        "_SYS_MSG_PRIORITY_",
        "__BORNHOST",
        "__CRC32#",
    ]
)
"""What ``putUserProperty`` refuses."""
OWN_NAMES: Final = SYSTEM_NAMES | {
    props.SHARDING_KEY,
    props.TRANSACTION_CHECK_TIMES,
    props.INNER_MULTI_DISPATCH,
    props.INNER_NUM,
    props.INNER_BASE,
}
"""Those too that RocketMQ gives a message of its own, though it would take them from an application."""

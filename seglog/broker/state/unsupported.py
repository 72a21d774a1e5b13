"""Requests of RocketMQ 5.4.0 that this broker and name server do not answer, each with the reason.

Such a request is answered with 3, REQUEST_CODE_NOT_SUPPORTED, in RocketMQ's words, as is an unknown code; the
log has the reason. docs/broker.md has the table.

Source: ``RequestCode.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TRANSACTIONS: Final = (
    "messages of transactions are not taken, so there is none to end, to check or to resume"
)
_CLUSTER: Final = "one broker is its own name server, without other brokers, slaves or a controller"
_POP: Final = "consumers pull; the broker does not share out messages by itself"
_ACCESS: Final = "users and permissions are the application's: it gives the broker a function `before`"
_UNITS: Final = "topics of units are marked, and listed with all others only"
_OLD: Final = "RocketMQ has the number and no broker that answers it"
_TIMERS: Final = "there is no timer wheel; messages are delayed by levels"
_ROCKSDB: Final = "tables and queues are files, not RocksDB"
_CLIENTS: Final = "a broker asks its clients that, and answers it to none"
_COLD: Final = "the system's page cache decides what stays in memory"

KNOWN_RELEASE: Final = "5.4.0"
"""The release that these requests are of; it does not depend on ``compatible_with``."""
UNSUPPORTED: Final[Mapping[int, tuple[str, str]]] = {
    code: (name, reason)
    for reason, codes in {
        _TRANSACTIONS: {
            37: "END_TRANSACTION", 39: "CHECK_TRANSACTION_STATE", 323: "RESUME_CHECK_HALF_MESSAGE",
        },
        _POP: {
            402: "GET_ALL_MESSAGE_REQUEST_MODE",
            200050: "POP_MESSAGE", 200051: "ACK_MESSAGE", 200052: "PEEK_MESSAGE",
            200053: "CHANGE_MESSAGE_INVISIBLETIME", 200054: "NOTIFICATION", 200055: "POLLING_INFO",
            200056: "POP_ROLLBACK", 200151: "BATCH_ACK_MESSAGE",
        },
        _TIMERS: {
            60: "GET_TIMER_CHECK_POINT", 61: "GET_TIMER_METRICS", 370: "RECALL_MESSAGE",
            5001: "SWITCH_TIMER_ENGINE",
        },
        _CLUSTER: {
            103: "REGISTER_BROKER", 104: "UNREGISTER_BROKER", 217: "REGISTER_TOPIC_IN_NAMESRV",
            322: "QUERY_DATA_VERSION", 513: "UPDATE_AND_CREATE_STATIC_TOPIC",
            901: "GET_BROKER_MEMBER_GROUP", 902: "ADD_BROKER", 903: "REMOVE_BROKER",
            904: "BROKER_HEARTBEAT", 905: "NOTIFY_MIN_BROKER_ID_CHANGE", 906: "EXCHANGE_BROKER_HA_INFO",
            908: "RESET_MASTER_FLUSH_OFFSET", 1001: "CONTROLLER_ALTER_SYNC_STATE_SET",
            1002: "CONTROLLER_ELECT_MASTER", 1003: "CONTROLLER_REGISTER_BROKER",
            1004: "CONTROLLER_GET_REPLICA_INFO", 1005: "CONTROLLER_GET_METADATA_INFO",
            1006: "CONTROLLER_GET_SYNC_STATE_DATA", 1007: "GET_BROKER_EPOCH_CACHE",
            1008: "NOTIFY_BROKER_ROLE_CHANGED", 1009: "UPDATE_CONTROLLER_CONFIG",
            1010: "GET_CONTROLLER_CONFIG", 1011: "CLEAN_BROKER_DATA",
            1012: "CONTROLLER_GET_NEXT_BROKER_ID", 1013: "CONTROLLER_APPLY_BROKER_ID",
        },
        _ACCESS: {
            3001: "AUTH_CREATE_USER", 3002: "AUTH_UPDATE_USER", 3003: "AUTH_DELETE_USER",
            3004: "AUTH_GET_USER", 3005: "AUTH_LIST_USER", 3006: "AUTH_CREATE_ACL",
            3007: "AUTH_UPDATE_ACL", 3008: "AUTH_DELETE_ACL", 3009: "AUTH_GET_ACL", 3010: "AUTH_LIST_ACL",
        },
        _UNITS: {
            311: "GET_UNIT_TOPIC_LIST", 312: "GET_HAS_UNIT_SUB_TOPIC_LIST",
            313: "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST",
        },
        _ROCKSDB: {354: "CHECK_ROCKSDB_CQ_WRITE_PROGRESS", 355: "EXPORT_ROCKSDB_CONFIG_TO_JSON"},
        _COLD: {
            2001: "UPDATE_COLD_DATA_FLOW_CTR_CONFIG", 2002: "REMOVE_COLD_DATA_FLOW_CTR_CONFIG",
            2003: "GET_COLD_DATA_FLOW_CTR_INFO", 2004: "SET_COMMITLOG_READ_MODE",
        },
        _CLIENTS: {
            40: "NOTIFY_CONSUMER_IDS_CHANGED", 220: "RESET_CONSUMER_CLIENT_OFFSET",
            221: "GET_CONSUMER_STATUS_FROM_CLIENT", 326: "PUSH_REPLY_MESSAGE_TO_CLIENT",
        },
        _OLD: {
            13: "QUERY_BROKER_OFFSET", 22: "GET_TOPIC_CONFIG_LIST", 23: "GET_TOPIC_NAME_LIST",
            27: "TRIGGER_DELETE_FILES", 47: "GET_CLIENT_CONFIG", 209: "SUSPEND_CONSUMER",
            210: "RESUME_CONSUMER", 211: "RESET_CONSUMER_OFFSET_IN_CONSUMER",
            212: "RESET_CONSUMER_OFFSET_IN_BROKER", 213: "ADJUST_CONSUMER_THREAD_POOL",
            214: "WHO_CONSUME_THE_MESSAGE", 301: "REGISTER_FILTER_SERVER",
            302: "REGISTER_MESSAGE_FILTER_CLASS",
        },
    }.items()
    for code, name in codes.items()
}  # fmt: skip
"""Name and reason by request code."""

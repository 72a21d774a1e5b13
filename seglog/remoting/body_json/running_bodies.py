"""Bodies in which a client says how it runs, and what became of a message that it was given.

A broker passes them on as they came, so they are bytes to it, and to the codec.

Source: ``ConsumerRunningInfo.java``, ``ProcessQueueInfo.java``, ``ConsumeStatus.java``,
``ConsumeMessageDirectlyResult.java``.
"""

from __future__ import annotations

from typing import Final

from seglog.remoting.body_json.body_codec import object_body
from seglog.remoting.body_json.client_bodies import SUBSCRIPTION
from seglog.remoting.body_json.fields import (
    BOOL,
    FLOAT,
    INT32,
    INT64,
    TEXT,
    JsonField,
    entries_of,
    items_of,
    member_of,
    object_of,
)
from seglog.remoting.body_json.queue_bodies import QUEUE
from seglog.remoting.heartbeat import (
    ConsumedDirectlyBody,
    DirectEnd,
    QueueReport,
    RunningInfoBody,
    TopicRates,
)

_QUEUE_REPORT: Final = object_of(
    QueueReport,
    done_offset=JsonField("commitOffset", INT64),
    cached_min_offset=JsonField("cachedMsgMinOffset", INT64),
    cached_max_offset=JsonField("cachedMsgMaxOffset", INT64),
    cached_count=JsonField("cachedMsgCount", INT32),
    cached_size_mib=JsonField("cachedMsgSizeInMiB", INT32),
    taken_min_offset=JsonField("transactionMsgMinOffset", INT64),
    taken_max_offset=JsonField("transactionMsgMaxOffset", INT64),
    taken_count=JsonField("transactionMsgCount", INT32),
    is_locked=JsonField("locked", BOOL),
    unlock_tries=JsonField("tryUnlockTimes", INT64),
    locked_ms=JsonField("lastLockTimestamp", INT64),
    is_dropped=JsonField("droped", BOOL),
    pulled_ms=JsonField("lastPullTimestamp", INT64),
    consumed_ms=JsonField("lastConsumeTimestamp", INT64),
)
_RATES: Final = object_of(
    TopicRates,
    pull_ms=JsonField("pullRT", FLOAT),
    pulled_per_s=JsonField("pullTPS", FLOAT),
    consume_ms=JsonField("consumeRT", FLOAT),
    done_per_s=JsonField("consumeOKTPS", FLOAT),
    failed_per_s=JsonField("consumeFailedTPS", FLOAT),
    failed_in_hour=JsonField("consumeFailedMsgs", INT64),
)
RUNNING_INFO: Final = object_body(
    RunningInfoBody,
    derived=lambda _info: {"mqPopTable": {}, "userConsumerInfo": {}},
    properties=JsonField("properties", entries_of(TEXT, TEXT)),
    subscriptions=JsonField("subscriptionSet", items_of(SUBSCRIPTION, tuple)),
    queues=JsonField("mqTable", entries_of(QUEUE, _QUEUE_REPORT)),
    rates=JsonField("statusTable", entries_of(TEXT, _RATES)),
    stacks=JsonField("jstack", TEXT),
)
CONSUMED_DIRECTLY: Final = object_body(
    ConsumedDirectlyBody,
    end=JsonField("consumeResult", member_of(DirectEnd)),
    remark=JsonField("remark", TEXT),
    spent_ms=JsonField("spentTimeMills", INT64),
    is_in_order=JsonField("order", BOOL),
    commits_itself=JsonField("autoCommit", BOOL),
)

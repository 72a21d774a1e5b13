"""Bodies that tools show: units of queues, and facts and figures of brokers and groups.

Source: ``QueryConsumeQueueResponseBody.java``, ``ConsumeQueueData.java``, ``ClusterInfo.java``,
``KVTable.java``, ``ConsumeStatsList.java``, ``BrokerStatsData.java``, ``QuerySubscriptionResponseBody.java``,
``HARuntimeInfo.java``.
"""

from __future__ import annotations

from typing import Final

from seglog.remoting.admin_bodies import (
    BrokerConsumeStatsBody,
    ClusterBody,
    Figure,
    FiguresBody,
    GroupSubscriptionBody,
    HaSlave,
    HaStatusBody,
    KeyValuesBody,
    QueueUnit,
    QueueUnitsBody,
)
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
    object_of,
)
from seglog.remoting.body_json.queue_bodies import BROKER_DATA, CONSUME_STATS_FORM

_UNIT: Final = object_of(
    QueueUnit,
    phy_offset=JsonField("physicOffset", INT64),
    size_bytes=JsonField("physicSize", INT32),
    tags_code=JsonField("tagsCode", INT64),
    is_match=JsonField("eval", BOOL),
)
QUEUE_UNITS: Final = object_body(
    QueueUnitsBody,
    max_offset=JsonField("maxQueueIndex", INT64),
    min_offset=JsonField("minQueueIndex", INT64),
    units=JsonField("queueData", items_of(_UNIT, tuple)),
    subscription=JsonField("subscriptionData", SUBSCRIPTION),
    filter_text=JsonField("filterData", TEXT),
)
KEY_VALUES: Final = object_body(KeyValuesBody, values=JsonField("table", entries_of(TEXT, TEXT)))
CLUSTER: Final = object_body(
    ClusterBody,
    brokers=JsonField("brokerAddrTable", entries_of(TEXT, BROKER_DATA)),
    clusters=JsonField("clusterAddrTable", entries_of(TEXT, items_of(TEXT, frozenset, order=str))),
)
BROKER_CONSUME_STATS: Final = object_body(
    BrokerConsumeStatsBody,
    broker_address=JsonField("brokerAddr", TEXT),
    groups=JsonField(
        "consumeStatsList", items_of(entries_of(TEXT, items_of(CONSUME_STATS_FORM, tuple)), tuple)
    ),
    total_lag=JsonField("totalDiff", INT64),
    total_inflight=JsonField("totalInflightDiff", INT64),
)
_FIGURE: Final = object_of(
    Figure,
    total=JsonField("sum", INT64),
    per_s=JsonField("tps", FLOAT),
    per_call=JsonField("avgpt", FLOAT),
)
FIGURES: Final = object_body(
    FiguresBody,
    minute=JsonField("statsMinute", _FIGURE),
    hour=JsonField("statsHour", _FIGURE),
    day=JsonField("statsDay", _FIGURE),
)
GROUP_SUBSCRIPTION: Final = object_body(
    GroupSubscriptionBody,
    group=JsonField("group", TEXT),
    subscription=JsonField("subscriptionData", SUBSCRIPTION),
    topic=JsonField("topic", TEXT),
)
_HA_SLAVE: Final = object_of(
    HaSlave,
    read_ms=JsonField("lastReadTimestamp", INT64),
    write_ms=JsonField("lastWriteTimestamp", INT64),
    flush_offset=JsonField("masterFlushOffset", INT64),
    max_offset=JsonField("maxOffset", INT64),
    per_s=JsonField("transferredByteInSecond", INT64),
)
HA_STATUS: Final = object_body(
    HaStatusBody,
    as_slave=JsonField("haClientRuntimeInfo", _HA_SLAVE),
    slaves=JsonField("haConnectionInfo", items_of(_HA_SLAVE, tuple)),
    in_sync=JsonField("inSyncSlaveNums", INT32),
    is_master=JsonField("master", BOOL),
    max_offset=JsonField("masterCommitLogMaxOffset", INT64),
)

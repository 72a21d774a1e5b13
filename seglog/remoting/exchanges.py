"""The table of exchanges: for each request code its headers and bodies, and the party that answers.

Other codes are transported too: their fields and bodies are left unchanged.

Source: ``RequestCode.java`` and the header and body classes that the processors of broker, name server and
client decode.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from seglog.remoting import admin_headers as admin
from seglog.remoting import client_headers as client
from seglog.remoting import headers as header
from seglog.remoting.batch import decode_batch, encode_batch
from seglog.remoting.bodies import MessageBatch, RecordsBody
from seglog.remoting.body_json import assignment_bodies as of_assignments
from seglog.remoting.body_json import client_bodies as of_clients
from seglog.remoting.body_json import figure_bodies as of_figures
from seglog.remoting.body_json import queue_bodies as of_queues
from seglog.remoting.body_json import table_bodies as of_tables
from seglog.remoting.body_json.body_codec import BodyCodec
from seglog.remoting.codes import RequestCode as Code
from seglog.remoting.command import Header, WireNames
from seglog.remoting.records import decode_records


class Answerer(enum.Enum):
    """Who answers a request; a broker passes some on that clients answer."""

    BROKER = enum.auto()
    NAME_SERVER = enum.auto()
    CLIENT = enum.auto()


class Exchange(NamedTuple):
    """A request and its answer.

    Attributes:
        request: Class of the request's header.
        response: Class of a success's header; other answers have it too where all its fields are there.
        request_body: None for bytes as they are.
        response_body: Of a success; None for bytes as they are.
        answerer: Who is asked.
        request_names: Names of the request's fields, where they are not those of its class.
    """

    request: type[Header] = Header
    response: type[Header] = Header
    request_body: BodyCodec[Any] | None = None
    response_body: BodyCodec[Any] | None = None
    answerer: Answerer = Answerer.BROKER
    request_names: WireNames | None = None


_BATCH: Final = BodyCodec(
    MessageBatch, lambda body, _dialect: encode_batch(body), lambda data, _limits: decode_batch(data)
)
_RECORDS: Final = BodyCodec(
    RecordsBody, lambda body, _dialect: b"".join(body.runs), lambda data, _limits: decode_records(data)
)
_SEND: Final = Exchange(header.SendMessageHeader, header.SendMessageResponseHeader)
_SEND_V2: Final = _SEND._replace(request_names=header.SendMessageHeader.WIRE_V2)
_PULL: Final = Exchange(header.PullMessageHeader, header.PullMessageResponseHeader, response_body=_RECORDS)
_CONSUMER_STATUS: Final = Exchange(client.ConsumerStatusHeader, response_body=of_queues.CONSUMER_STATUS)
_NAME_SERVER: Final = Exchange(answerer=Answerer.NAME_SERVER)
_TABLE: Final = Exchange(response_body=of_tables.CONFIG)

EXCHANGES: Final[Mapping[int, Exchange]] = {
    Code.SEND_MESSAGE: _SEND,
    Code.SEND_MESSAGE_V2: _SEND_V2,
    Code.SEND_BATCH_MESSAGE: _SEND_V2._replace(request_body=_BATCH),
    Code.SEND_REPLY_MESSAGE: _SEND,
    Code.SEND_REPLY_MESSAGE_V2: _SEND_V2,
    Code.PULL_MESSAGE: _PULL,
    Code.LITE_PULL_MESSAGE: _PULL,
    Code.CONSUMER_SEND_MSG_BACK: Exchange(header.SendBackHeader),
    Code.QUERY_CONSUMER_OFFSET: Exchange(header.QueryConsumerOffsetHeader, header.OffsetResponseHeader),
    Code.UPDATE_CONSUMER_OFFSET: Exchange(header.UpdateConsumerOffsetHeader),
    Code.GET_MAX_OFFSET: Exchange(header.GetMaxOffsetHeader, header.OffsetResponseHeader),
    Code.GET_MIN_OFFSET: Exchange(header.GetMinOffsetHeader, header.OffsetResponseHeader),
    Code.SEARCH_OFFSET_BY_TIMESTAMP: Exchange(header.SearchOffsetHeader, header.OffsetResponseHeader),
    Code.GET_EARLIEST_MSG_STORETIME: Exchange(admin.EarliestTimeHeader, admin.TimestampResponseHeader),
    Code.QUERY_MESSAGE: Exchange(
        admin.QueryMessageHeader, admin.QueryMessageResponseHeader, response_body=_RECORDS
    ),
    Code.VIEW_MESSAGE_BY_ID: Exchange(admin.ViewMessageHeader),
    Code.QUERY_CONSUME_QUEUE: Exchange(admin.QueryQueueHeader, response_body=of_figures.QUEUE_UNITS),
    Code.UPDATE_BROKER_CONFIG: Exchange(),
    Code.GET_BROKER_RUNTIME_INFO: Exchange(response_body=of_figures.KEY_VALUES),
    Code.GET_BROKER_CONFIG: Exchange(response=admin.ConfigVersionResponseHeader),
    Code.INVOKE_BROKER_TO_RESET_OFFSET: Exchange(
        header.ResetOffsetHeader, response_body=of_queues.RESET_OFFSETS
    ),
    Code.CLONE_GROUP_OFFSET: Exchange(header.CloneGroupOffsetHeader),
    Code.QUERY_CORRECTION_OFFSET: Exchange(
        admin.CorrectionOffsetHeader, response_body=of_queues.CORRECTION_OFFSETS
    ),
    Code.LOCK_BATCH_MQ: Exchange(request_body=of_queues.LOCK_BATCH, response_body=of_queues.LOCKED_QUEUES),
    Code.UNLOCK_BATCH_MQ: Exchange(request_body=of_queues.LOCK_BATCH),
    Code.QUERY_ASSIGNMENT: Exchange(
        request_body=of_assignments.QUERY_ASSIGNMENT, response_body=of_assignments.ASSIGNMENTS
    ),
    Code.SET_MESSAGE_REQUEST_MODE: Exchange(request_body=of_assignments.REQUEST_MODE),
    Code.HEART_BEAT: Exchange(request_body=of_clients.HEARTBEAT),
    Code.UNREGISTER_CLIENT: Exchange(client.UnregisterClientHeader),
    Code.CHECK_CLIENT_CONFIG: Exchange(request_body=of_clients.CHECK_CLIENT),
    Code.GET_CONSUMER_LIST_BY_GROUP: Exchange(
        client.ConsumerGroupHeader, response_body=of_clients.CONSUMER_LIST
    ),
    Code.GET_CONSUMER_CONNECTION_LIST: Exchange(
        client.ConsumerGroupHeader, response_body=of_clients.CONSUMER_CONNECTIONS
    ),
    Code.GET_PRODUCER_CONNECTION_LIST: Exchange(
        client.ProducerGroupHeader, response_body=of_clients.PRODUCER_CONNECTIONS
    ),
    Code.GET_ALL_PRODUCER_INFO: Exchange(response_body=of_clients.PRODUCERS),
    Code.GET_CONSUMER_RUNNING_INFO: Exchange(client.RunningInfoHeader),
    Code.CONSUME_MESSAGE_DIRECTLY: Exchange(client.ConsumeDirectlyHeader),
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _CONSUMER_STATUS,
    Code.GET_CONSUMER_STATUS_FROM_CLIENT: _CONSUMER_STATUS._replace(answerer=Answerer.CLIENT),
    Code.NOTIFY_CONSUMER_IDS_CHANGED: Exchange(client.MembersChangedHeader, answerer=Answerer.CLIENT),
    Code.RESET_CONSUMER_CLIENT_OFFSET: Exchange(
        header.ResetOffsetHeader, request_body=of_queues.RESET_OFFSETS, answerer=Answerer.CLIENT
    ),
    Code.PUSH_REPLY_MESSAGE_TO_CLIENT: Exchange(client.ReplyMessageHeader, answerer=Answerer.CLIENT),
    Code.GET_ROUTEINFO_BY_TOPIC: _NAME_SERVER._replace(
        request=header.GetRouteInfoHeader, response_body=of_queues.TOPIC_ROUTE
    ),
    Code.GET_BROKER_CLUSTER_INFO: _NAME_SERVER._replace(response_body=of_figures.CLUSTER),
    Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _NAME_SERVER._replace(response_body=of_tables.TOPIC_NAMES),
    Code.GET_TOPICS_BY_CLUSTER: _NAME_SERVER._replace(
        request=admin.ClusterHeader, response_body=of_tables.TOPIC_NAMES
    ),
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: _NAME_SERVER._replace(response_body=of_tables.TOPIC_NAMES),
    Code.DELETE_TOPIC_IN_NAMESRV: _NAME_SERVER._replace(request=admin.NameServerTopicHeader),
    Code.WIPE_WRITE_PERM_OF_BROKER: _NAME_SERVER._replace(
        request=admin.BrokerNameHeader, response=admin.WipedResponseHeader
    ),
    Code.ADD_WRITE_PERM_OF_BROKER: _NAME_SERVER._replace(
        request=admin.BrokerNameHeader, response=admin.AddedResponseHeader
    ),
    Code.UPDATE_NAMESRV_CONFIG: _NAME_SERVER,
    Code.GET_NAMESRV_CONFIG: _NAME_SERVER,
    Code.PUT_KV_CONFIG: _NAME_SERVER._replace(request=admin.KeyValueHeader),
    Code.GET_KV_CONFIG: _NAME_SERVER._replace(request=admin.KeyHeader, response=admin.ValueResponseHeader),
    Code.DELETE_KV_CONFIG: _NAME_SERVER._replace(request=admin.KeyHeader),
    Code.GET_KVLIST_BY_NAMESPACE: _NAME_SERVER._replace(
        request=admin.NamespaceHeader, response_body=of_figures.KEY_VALUES
    ),
    Code.UPDATE_AND_CREATE_TOPIC: Exchange(header.CreateTopicHeader),
    Code.UPDATE_AND_CREATE_TOPIC_LIST: Exchange(request_body=of_tables.CONFIG),
    Code.DELETE_TOPIC_IN_BROKER: Exchange(admin.DeleteTopicHeader),
    Code.GET_ALL_TOPIC_CONFIG: _TABLE._replace(
        request=admin.PageHeader, response=admin.TopicCountResponseHeader
    ),
    Code.GET_TOPIC_CONFIG: _TABLE._replace(request=admin.TopicHeader),
    Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: Exchange(response_body=of_tables.TOPIC_NAMES),
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Exchange(request_body=of_tables.GROUP),
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Exchange(request_body=of_tables.GROUP_LIST),
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _TABLE._replace(
        request=admin.PageHeader,
        response=admin.GroupCountResponseHeader,
        request_names=admin.PageHeader.WIRE_GROUPS,
    ),
    Code.GET_SUBSCRIPTIONGROUP_CONFIG: _TABLE._replace(request=admin.GroupHeader),
    Code.DELETE_SUBSCRIPTIONGROUP: Exchange(header.DeleteGroupHeader),
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN: Exchange(
        client.GroupForbiddenHeader, response_body=of_clients.GROUP_FORBIDDEN
    ),
    Code.GET_ALL_CONSUMER_OFFSET: _TABLE,
    Code.GET_ALL_DELAY_OFFSET: _TABLE,
    Code.GET_TOPIC_STATS_INFO: Exchange(admin.TopicHeader, response_body=of_queues.TOPIC_STATS),
    Code.GET_CONSUME_STATS: Exchange(admin.ConsumeStatsHeader, response_body=of_queues.CONSUME_STATS),
    Code.VIEW_BROKER_STATS_DATA: Exchange(admin.FiguresHeader, response_body=of_figures.FIGURES),
    Code.GET_BROKER_CONSUME_STATS: Exchange(
        admin.BrokerConsumeStatsHeader, response_body=of_figures.BROKER_CONSUME_STATS
    ),
    Code.QUERY_CONSUME_TIME_SPAN: Exchange(admin.TimeSpanHeader, response_body=of_queues.TIME_SPANS),
    Code.QUERY_TOPIC_CONSUME_BY_WHO: Exchange(admin.TopicHeader, response_body=of_tables.GROUP_NAMES),
    Code.QUERY_TOPICS_BY_CONSUMER: Exchange(admin.GroupHeader, response_body=of_tables.TOPIC_NAMES),
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER: Exchange(
        admin.GroupSubscriptionHeader, response_body=of_figures.GROUP_SUBSCRIPTION
    ),
    Code.GET_BROKER_HA_STATUS: Exchange(response_body=of_figures.HA_STATUS),
    Code.CLEAN_EXPIRED_CONSUMEQUEUE: Exchange(),
    Code.CLEAN_UNUSED_TOPIC: Exchange(),
    Code.DELETE_EXPIRED_COMMITLOG: Exchange(),
}
"""By request code."""
UNKNOWN: Final = Exchange()
"""Of all other codes."""


def is_for_clients(code: int) -> bool:
    """Returns whether clients answer requests of a code, and a broker does not."""
    return EXCHANGES.get(code, UNKNOWN).answerer is Answerer.CLIENT

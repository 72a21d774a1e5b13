"""HEART_BEAT, UNREGISTER_CLIENT, CHECK_CLIENT_CONFIG, and the clients and subscriptions of a group.

Source: ``ClientManageProcessor.java``, ``ConsumerManageProcessor.java getConsumerListByGroup``,
``AdminBrokerProcessor.java getConsumerConnectionList, getProducerConnectionList,
getAllProducerInfo, querySubscriptionByConsumer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.filters.subscription_filter import expression_filter
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import named, of_consumer_group, of_every, of_group
from seglog.broker.pulls.pull_checks import no_such_language
from seglog.broker.sends.group_topics import RetryTopic, retry_topics
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.clients import Client
from seglog.errors import InvalidArgumentError
from seglog.remoting.admin_bodies import GroupSubscriptionBody
from seglog.remoting.admin_headers import GroupSubscriptionHeader
from seglog.remoting.client_headers import ConsumerGroupHeader, ProducerGroupHeader, UnregisterClientHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, expect_body, refuse
from seglog.remoting.heartbeat import (
    CheckClientBody,
    Connection,
    ConsumerConnectionsBody,
    ConsumerListBody,
    ConsumeType,
    HeartbeatBody,
    Producer,
    ProducerConnectionsBody,
    ProducersBody,
)
from seglog.remoting.subscription import is_tag_type
from seglog.storage.threads import check_may_wait

KNOWS_V2: Final = "IS_SUPPORT_HEART_BEAT_V2"
HAS_CHANGED: Final = "IS_SUB_CHANGE"
"""Fields of the answer to a heartbeat: the client may leave its subscriptions out, or must send them."""
MANY_GROUPS: Final = 100
"""From this number of groups or subscriptions on, a heartbeat takes long."""
LONG_EXPRESSIONS: Final = 1 << 14
"""From this number of characters in its expressions on, a heartbeat takes long."""


def heart_beat(state: BrokerState, call: Call[Header]) -> Response:
    """Notes the client in its groups, whose retry topics exist from then on.

    A group that does not exist and may not be created is passed over, as in RocketMQ.
    """
    body = expect_body(call.request, HeartbeatBody)
    if _takes_long(body):
        check_may_wait()
    has_changed = not body.fingerprint
    is_pull_refused = state.config.reject_pull_consumer_enable
    consumers = [
        consumer
        for consumer in body.consumers
        if not (is_pull_refused and consumer.consume_type is ConsumeType.ACTIVELY)
    ]
    groups = state.groups.find_all(consumer.group for consumer in consumers)
    wanted: list[RetryTopic] = []
    for consumer in consumers:
        group = groups[consumer.group]
        if group is not None:
            known = (state.topics.get(subscription.topic) for subscription in consumer.subscriptions)
            is_order = any(topic is not None and topic.is_order for topic in known)
            wanted.append(RetryTopic(group, is_order, consumer.is_unit_mode))
    retry_topics(state, wanted, lazily=True)
    for consumer in consumers:
        has_changed |= state.clients.note_fingerprint(consumer.group, body.fingerprint)
        if groups[consumer.group] is None:
            continue
        keeps = bool(body.fingerprint) and body.is_without_subscriptions
        state.clients.heard_consumer(call.peer, body.client_id, consumer, keeps_subscriptions=keeps)
        if not keeps:
            state.filters.register(consumer.group, consumer.subscriptions)
    for name in body.producer_groups:
        state.clients.heard_producer(call.peer, body.client_id, name)
    return Response(ResponseCode.SUCCESS, ext={KNOWS_V2: "true", HAS_CHANGED: str(has_changed).lower()})


def _takes_long(body: HeartbeatBody) -> bool:
    """Returns whether a heartbeat is so long that a thread that must not wait passes it to another thread."""
    if len(body.consumers) + len(body.producer_groups) > MANY_GROUPS:
        return True
    said = [one for consumer in body.consumers for one in consumer.subscriptions]
    return len(said) > MANY_GROUPS or sum(len(one.expression) for one in said) > LONG_EXPRESSIONS


def unregister_client(state: BrokerState, call: Call[UnregisterClientHeader]) -> Response:
    """Takes the client out of the groups that it names."""
    header = call.header
    if header.producer_group is not None:
        state.clients.leave_producers(call.peer, header.client_id, header.producer_group)
    if header.consumer_group is not None:
        state.clients.leave_consumers(call.peer, header.client_id, header.consumer_group)
    return Response(ResponseCode.SUCCESS)


def check_client(state: BrokerState, call: Call[Header]) -> Response:
    """Says before a client begins whether its subscription can be served; without a body there is none."""
    if call.request.body is None:
        return Response(ResponseCode.SUCCESS)
    subscription = expect_body(call.request, CheckClientBody).subscription
    if subscription is None or is_tag_type(subscription.expression_type):
        return Response(ResponseCode.SUCCESS)
    if not state.config.enable_property_filter:
        return no_such_language(subscription.expression_type)
    try:
        expression_filter(subscription.expression, subscription.expression_type)
    except InvalidArgumentError as error:
        return refuse(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error))
    return Response(ResponseCode.SUCCESS)


def list_consumers(state: BrokerState, call: Call[ConsumerGroupHeader]) -> Response:
    """Says who shares the queues of a group; an empty list would stop clients from asking again."""
    group = state.clients.consumers(call.header.consumer_group)
    if group is None:
        return refuse(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {call.header.consumer_group}")
    ids = tuple(client.client_id for client in group.clients.values())
    return Response(ResponseCode.SUCCESS, body=ConsumerListBody(ids))


def consumer_connections(state: BrokerState, call: Call[ConsumerGroupHeader]) -> Response:
    """Shows a consumer group that is online."""
    group = state.clients.consumers(call.header.consumer_group)
    if group is None:
        return refuse(
            ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{call.header.consumer_group}] not online"
        )
    body = ConsumerConnectionsBody(
        _connections(group.clients.values()),
        group.subscriptions,
        group.consume_type,
        group.message_model,
        group.consume_from,
    )
    return Response(ResponseCode.SUCCESS, body=body)


def subscription_of(state: BrokerState, call: Call[GroupSubscriptionHeader]) -> Response:
    """Returns what a group that is online subscribes to of a topic; nothing for any other."""
    header = call.header
    group = state.clients.consumers(header.group)
    found = None if group is None or header.topic is None else group.subscriptions.get(header.topic)
    return Response(ResponseCode.SUCCESS, body=GroupSubscriptionBody(header.group, header.topic, found))


def producer_connections(state: BrokerState, call: Call[ProducerGroupHeader]) -> Response:
    """Shows a producer group that is online."""
    clients = state.clients.producers(call.header.producer_group)
    if not clients:
        return refuse(
            ResponseCode.SYSTEM_ERROR, f"the producer group[{call.header.producer_group}] not exist"
        )
    return Response(ResponseCode.SUCCESS, body=ProducerConnectionsBody(_connections(clients)))


def all_producers(state: BrokerState, _call: Call[Header]) -> Response:
    """Shows all producer groups that are online."""
    now_ms = state.now_ms()
    groups = {
        name: tuple(
            Producer(
                client.client_id,
                f"/{client.peer.host}",
                client.peer.language,
                client.peer.version,
                now_ms - int(state.clients.silent_ms(client)),
            )
            for client in clients
        )
        for name, clients in state.clients.all_producers().items()
    }
    return Response(ResponseCode.SUCCESS, body=ProducersBody(groups))


def _connections(clients: Iterable[Client]) -> frozenset[Connection]:
    return frozenset(
        Connection(client.client_id, str(client.peer.host), client.peer.language, client.peer.version)
        for client in clients
    )


def _groups_of(_header: Header, request: Request, _state: BrokerState) -> list[str]:
    return [consumer.group for consumer in expect_body(request, HeartbeatBody).consumers]


def _topics_of(_header: Header, request: Request, _state: BrokerState) -> Iterator[str]:
    for consumer in expect_body(request, HeartbeatBody).consumers:
        yield from (subscription.topic for subscription in consumer.subscriptions)


def _producers_of(_header: Header, request: Request, _state: BrokerState) -> tuple[str, ...]:
    return expect_body(request, HeartbeatBody).producer_groups


def _left(header: UnregisterClientHeader, _request: Request, _state: BrokerState) -> tuple[str, ...]:
    return () if header.consumer_group is None else (header.consumer_group,)


def _left_by_producer(
    header: UnregisterClientHeader, _request: Request, _state: BrokerState
) -> tuple[str, ...]:
    return () if header.producer_group is None else (header.producer_group,)


def _checked(_header: Header, request: Request, _state: BrokerState) -> tuple[str]:
    return (expect_body(request, CheckClientBody).group,)


def _checked_topic(_header: Header, request: Request, _state: BrokerState) -> tuple[str, ...]:
    subscription = expect_body(request, CheckClientBody).subscription
    return () if subscription is None else (subscription.topic,)


def _told_topic(header: GroupSubscriptionHeader, _request: Request, _state: BrokerState) -> tuple[str | None]:
    return (header.topic,)


def _producer_group(header: ProducerGroupHeader, _request: Request, _state: BrokerState) -> tuple[str]:
    return (header.producer_group,)


_HEARD: Final = (
    named(Resource.GROUP, _groups_of, Action.SUB),
    named(Resource.TOPIC, _topics_of, Action.SUB),
    named(Resource.PRODUCER_GROUP, _producers_of, Action.PUB),
)
_LEFT: Final = (
    named(Resource.GROUP, _left, Action.SUB),
    named(Resource.PRODUCER_GROUP, _left_by_producer, Action.PUB),
)
_CHECKED: Final = (
    named(Resource.GROUP, _checked, Action.SUB),
    named(Resource.TOPIC, _checked_topic, Action.SUB),
)
HANDLERS: Final = (
    Handler(RequestCode.HEART_BEAT, Header, heart_beat, _HEARD),
    Handler(RequestCode.UNREGISTER_CLIENT, UnregisterClientHeader, unregister_client, _LEFT),
    Handler(RequestCode.CHECK_CLIENT_CONFIG, Header, check_client, _CHECKED),
    Handler(
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        ConsumerGroupHeader,
        list_consumers,
        (of_consumer_group(Action.SUB, Action.GET),),
    ),
    Handler(
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        ConsumerGroupHeader,
        consumer_connections,
        (of_consumer_group(Action.GET),),
    ),
    Handler(
        RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER,
        GroupSubscriptionHeader,
        subscription_of,
        (of_group(Action.GET), named(Resource.TOPIC, _told_topic, Action.GET)),
    ),
    Handler(
        RequestCode.GET_PRODUCER_CONNECTION_LIST,
        ProducerGroupHeader,
        producer_connections,
        (named(Resource.PRODUCER_GROUP, _producer_group, Action.GET),),
    ),
    Handler(
        RequestCode.GET_ALL_PRODUCER_INFO,
        Header,
        all_producers,
        (of_every(Resource.PRODUCER_GROUP, Action.LIST),),
    ),
)

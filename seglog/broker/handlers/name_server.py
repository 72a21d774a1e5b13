"""Requests to a name server besides routes: clusters, topics, values by key, and write permissions.

The name server knows this broker only, and makes its routes from the broker's topics. So a topic disappears
from it when the broker deletes the topic, and no sooner (DELETE_TOPIC_IN_NAMESRV does nothing).

Differences: wiped write permission stays away until it is added; in RocketMQ the next change of a topic
brings it back. After it is added each topic shows its own permissions; RocketMQ gives every topic both.

Source: ``DefaultRequestProcessor.java`` of the name server, ``RouteInfoManager.java``.
"""

from __future__ import annotations

from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import of_cluster, of_every, of_topic
from seglog.broker.state.state import BrokerState
from seglog.remoting.admin_bodies import ClusterBody, KeyValuesBody, NamesBody
from seglog.remoting.admin_headers import (
    AddedResponseHeader,
    BrokerNameHeader,
    ClusterHeader,
    KeyHeader,
    KeyValueHeader,
    NameServerTopicHeader,
    NamespaceHeader,
    ValueResponseHeader,
    WipedResponseHeader,
)
from seglog.remoting.bodies import BrokerData
from seglog.remoting.codes import MASTER_ID, RequestCode, ResponseCode
from seglog.remoting.command import Header, Response, refuse


def get_cluster(state: BrokerState, _call: Call[Header]) -> Response:
    """Names the brokers and their clusters: this one."""
    config = state.config
    broker = BrokerData(config.cluster_name, config.broker_name, {MASTER_ID: config.address})
    body = ClusterBody({config.broker_name: broker}, {config.cluster_name: frozenset((config.broker_name,))})
    return Response(ResponseCode.SUCCESS, body=body)


def get_topics(state: BrokerState, _call: Call[Header]) -> Response:
    """Names all topics."""
    return Response(ResponseCode.SUCCESS, body=NamesBody(_names(state)))


def get_topics_of_cluster(state: BrokerState, call: Call[ClusterHeader]) -> Response:
    """Names the topics of a cluster; one that is not known has none."""
    is_ours = call.header.cluster == state.config.cluster_name
    return Response(ResponseCode.SUCCESS, body=NamesBody(_names(state) if is_ours else frozenset()))


def get_system_topics(state: BrokerState, _call: Call[Header]) -> Response:
    """Names the topics that are called as clusters and brokers are, and a broker that has more of its own."""
    config = state.config
    names = frozenset((config.cluster_name, config.broker_name))
    return Response(ResponseCode.SUCCESS, body=NamesBody(names, config.address))


def delete_topic(_state: BrokerState, _call: Call[NameServerTopicHeader]) -> Response:
    """Does nothing: the route of a topic goes with the topic."""
    return Response(ResponseCode.SUCCESS)


def wipe_permission(state: BrokerState, call: Call[BrokerNameHeader]) -> Response:
    """Has routes say that a broker takes no messages; it still does."""
    is_ours = call.header.broker_name == state.config.broker_name
    if is_ours:
        state.write_permission.wipe()
    return Response(ResponseCode.SUCCESS, WipedResponseHeader(len(_names(state)) if is_ours else 0))


def add_permission(state: BrokerState, call: Call[BrokerNameHeader]) -> Response:
    """Has routes say what topics say."""
    is_ours = call.header.broker_name == state.config.broker_name
    if is_ours:
        state.write_permission.add()
    return Response(ResponseCode.SUCCESS, AddedResponseHeader(len(_names(state)) if is_ours else 0))


def put_value(state: BrokerState, call: Call[KeyValueHeader]) -> Response:
    """Keeps a value under a namespace and a key."""
    state.key_values.put(call.header.namespace, call.header.key, call.header.value)
    return Response(ResponseCode.SUCCESS)


def get_value(state: BrokerState, call: Call[KeyHeader]) -> Response:
    """Returns the value of a namespace and a key."""
    header = call.header
    values = state.key_values.namespace(header.namespace) or {}
    value = None if header.key is None else values.get(header.key)
    if value is None:
        asked = f"Namespace: {_shown(header.namespace)} Key: {_shown(header.key)}"
        return refuse(ResponseCode.QUERY_NOT_FOUND, f"No config item, {asked}")
    return Response(ResponseCode.SUCCESS, ValueResponseHeader(value))


def delete_value(state: BrokerState, call: Call[KeyHeader]) -> Response:
    """Forgets the value of a namespace and a key, if there is one."""
    state.key_values.delete(call.header.namespace, call.header.key)
    return Response(ResponseCode.SUCCESS)


def get_values(state: BrokerState, call: Call[NamespaceHeader]) -> Response:
    """Returns all values of a namespace."""
    values = state.key_values.namespace(call.header.namespace)
    if values is None:
        remark = f"No config item, Namespace: {_shown(call.header.namespace)}"
        return refuse(ResponseCode.QUERY_NOT_FOUND, remark)
    return Response(ResponseCode.SUCCESS, body=KeyValuesBody(values))


def _shown(name: str | None) -> str:
    """Returns a name as Java prints it where the field is missing."""
    return "null" if name is None else name


def _names(state: BrokerState) -> frozenset[str]:
    return frozenset(topic.name for topic in state.topics.all())


_ALL_TOPICS: Final = (of_every(Resource.TOPIC, Action.LIST),)
_READS: Final = (of_cluster(Action.GET),)
_CHANGES: Final = (of_cluster(Action.UPDATE),)
HANDLERS: Final = (
    Handler(RequestCode.GET_BROKER_CLUSTER_INFO, Header, get_cluster, _READS),
    Handler(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Header, get_topics, _ALL_TOPICS),
    Handler(RequestCode.GET_TOPICS_BY_CLUSTER, ClusterHeader, get_topics_of_cluster, _ALL_TOPICS),
    Handler(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, Header, get_system_topics, _ALL_TOPICS),
    Handler(
        RequestCode.DELETE_TOPIC_IN_NAMESRV, NameServerTopicHeader, delete_topic, (of_topic(Action.DELETE),)
    ),
    Handler(RequestCode.WIPE_WRITE_PERM_OF_BROKER, BrokerNameHeader, wipe_permission, _CHANGES),
    Handler(RequestCode.ADD_WRITE_PERM_OF_BROKER, BrokerNameHeader, add_permission, _CHANGES),
    Handler(RequestCode.PUT_KV_CONFIG, KeyValueHeader, put_value, _CHANGES),
    Handler(RequestCode.GET_KV_CONFIG, KeyHeader, get_value, _READS),
    Handler(RequestCode.DELETE_KV_CONFIG, KeyHeader, delete_value, _CHANGES),
    Handler(RequestCode.GET_KVLIST_BY_NAMESPACE, NamespaceHeader, get_values, _READS),
)

"""GET_ROUTEINFO_BY_TOPIC, UPDATE_AND_CREATE_TOPIC, the same for a list, and DELETE_TOPIC_IN_BROKER.

In a cluster the name server answers requests for routes. The codes of name server and broker do not overlap,
so this broker answers both.

Source: ``RouteInfoManager.java pickupTopicRouteData``, ``AdminBrokerProcessor.java updateAndCreateTopic,
updateAndCreateTopicList``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler, check_listed
from seglog.broker.handlers.touching import named, of_topic
from seglog.broker.state.state import BrokerState
from seglog.broker.tables import TopicConfig, alter_attributes, is_system_topic, topic_name_problem
from seglog.broker.tables.attributes import TOPIC_ATTRIBUTES, alter_named_attributes
from seglog.broker.tables.topics import FILTER_TYPES, SINGLE_TAG
from seglog.errors import CorruptError, InvalidArgumentError, ProtocolError, SeglogError
from seglog.remoting.admin_bodies import ConfigBody
from seglog.remoting.admin_headers import DeleteTopicHeader
from seglog.remoting.bodies import BrokerData, QueueData, TopicRouteBody
from seglog.remoting.codes import MASTER_ID, RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response, expect_body, refuse
from seglog.remoting.headers import CreateTopicHeader, GetRouteInfoHeader
from seglog.remoting.topics import PERM_READ_WRITE
from seglog.storage.format.names import RETRY_PREFIX


def get_route(state: BrokerState, call: Call[GetRouteInfoHeader]) -> Response:
    """Says where the queues of a topic are; TOPIC_NOT_EXIST makes producers ask for TBW102 instead."""
    topic = state.topics.get(call.header.topic)
    if topic is None:
        return refuse(
            ResponseCode.TOPIC_NOT_EXIST,
            f"No topic route info in name server for the topic: {call.header.topic}",
        )
    topic.check_listed()  # clients make an object of each queue
    config = state.config
    is_open = config.broker_permission & PERM_READ_WRITE == PERM_READ_WRITE
    perm = topic.perm if is_open else config.broker_permission
    queues = QueueData(
        config.broker_name,
        topic.read_queue_nums,
        topic.write_queue_nums,
        state.write_permission.shown(topic.perm & perm),
        topic.sys_flag,
    )
    broker = BrokerData(config.cluster_name, config.broker_name, {MASTER_ID: config.address})
    return Response(ResponseCode.SUCCESS, body=TopicRouteBody((queues,), (broker,)))


def create_topic(state: BrokerState, call: Call[CreateTopicHeader]) -> Response:
    """Creates a topic or replaces its settings."""
    header = call.header
    filter_type = SINGLE_TAG if header.topic_filter_type is None else header.topic_filter_type
    if filter_type not in FILTER_TYPES:
        return refuse(ResponseCode.SYSTEM_ERROR, f"topicFilterType = [{filter_type}] value invalid")
    problem = _problem(state, header.topic, header.read_queue_nums, header.write_queue_nums)
    if problem is not None:
        return refuse(ResponseCode.INVALID_PARAMETER, problem)
    known = state.topics.get(header.topic)
    try:
        attributes = alter_attributes(known.attributes if known is not None else None, header.attributes)
    except InvalidArgumentError as error:
        return refuse(ResponseCode.SYSTEM_ERROR, str(error))
    state.topics.put(
        TopicConfig(
            header.topic,
            header.read_queue_nums,
            header.write_queue_nums,
            header.perm,
            header.is_order,
            filter_type,
            header.topic_sys_flag,
            attributes,
            known.unknown if known is not None else {},
        )
    )
    return Response(ResponseCode.SUCCESS)


def create_topics(state: BrokerState, call: Call[Header]) -> Response:
    """Creates topics or replaces their settings: all, or none if one cannot be."""
    made: list[TopicConfig] = []
    for topic in _listed(call.request):
        problem = _problem(state, topic.name, topic.read_queue_nums, topic.write_queue_nums)
        if problem is not None:
            return refuse(ResponseCode.INVALID_PARAMETER, problem)
        known = state.topics.get(topic.name)
        before = None if known is None else known.attributes
        try:
            attributes = alter_named_attributes(before, topic.attributes, TOPIC_ATTRIBUTES)
        except InvalidArgumentError as error:
            return refuse(ResponseCode.SYSTEM_ERROR, str(error))
        made.append(replace(topic, attributes=attributes))
    state.topics.put_all(made)
    return Response(ResponseCode.SUCCESS)


def _problem(state: BrokerState, name: str, read_queue_nums: int, write_queue_nums: int) -> str | None:
    """Returns why no such topic can exist, in RocketMQ's words if it has some; None if it can."""
    problem = topic_name_problem(name)
    if problem is None and is_system_topic(name, state.config):
        problem = f"The topic[{name}] is conflict with system topic."
    if problem is None and (read_queue_nums < 0 or write_queue_nums < 0):
        problem = f"The topic[{name}] cannot have fewer than 0 queues."
    return problem


def _listed(request: Request) -> list[TopicConfig]:
    """Returns the topics of a body.

    Raises:
        ProtocolError: It is not a list of topics.
    """
    entries = expect_body(request, ConfigBody).value
    entries = entries.get("topicConfigList") if isinstance(entries, Mapping) else None
    if not isinstance(entries, list):
        raise ProtocolError("a body has no topicConfigList")
    check_listed(len(entries), "topics")
    try:
        return [TopicConfig.parse("", entry) for entry in entries]
    except CorruptError as error:
        raise ProtocolError(f"topicConfigList of a body: {error}") from error


def _names_of_listed(_header: Header, request: Request, _state: BrokerState) -> list[str]:
    return [topic.name for topic in _listed(request)]


def delete_topic(state: BrokerState, call: Call[DeleteTopicHeader]) -> Response:
    """Deletes a topic with its queues, what groups have committed there, and its POP retries.

    A topic that does not exist is deleted too. Its messages stay in the log until retention takes them, but
    no client finds them any more.
    """
    name = call.header.topic
    if not name.strip():
        return refuse(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
    if is_system_topic(name, state.config):
        return refuse(ResponseCode.INVALID_PARAMETER, f"The topic[{name}] is conflict with system topic.")
    retries = [
        retry
        for group in sorted(state.offsets.groups_of(name))
        for retry in (f"{RETRY_PREFIX}{group}+{name}", f"{RETRY_PREFIX}{group}_{name}")
        if state.topics.get(retry) is not None
    ]
    try:
        for topic in (name, *retries):
            if state.topics.get(topic) is not None:
                state.topics.delete(topic)
            state.offsets.delete_topic(topic, call.peer.client_id)
            state.store.retention.delete_topic(topic)
            state.figures.forget_topic(topic)
    except SeglogError as error:
        return refuse(ResponseCode.SYSTEM_ERROR, str(error))
    return Response(ResponseCode.SUCCESS)


HANDLERS: Final = (
    Handler(
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        GetRouteInfoHeader,
        get_route,
        (of_topic(Action.PUB, Action.SUB, Action.GET),),
    ),
    Handler(RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader, create_topic, (of_topic(Action.CREATE),)),
    Handler(
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        Header,
        create_topics,
        (named(Resource.TOPIC, _names_of_listed, Action.CREATE),),
    ),
    Handler(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicHeader, delete_topic, (of_topic(Action.DELETE),)),
)

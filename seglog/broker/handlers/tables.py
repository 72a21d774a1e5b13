"""Requests for the tables of a broker, whole or by entry: topics, groups, offsets, delay levels.

Tables of topics and groups are sent whole or, on request, in pages of at most 2,000 entries by name; if the
table's version has changed since the last page, the first page is sent again.

Source: ``AdminBrokerProcessor.java getAllTopicConfig, getTopicConfig, getAllSubscriptionGroup,
getSubscriptionGroup, getAllConsumerOffset, getAllDelayOffset, getSystemTopicListFromBroker``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from seglog.broker.access import Action, Resource
from seglog.broker.handlers.handler import Call, Handler
from seglog.broker.handlers.touching import of_cluster, of_every, of_group, of_topic
from seglog.broker.state.state import BrokerState
from seglog.broker.tables import DataVersion, as_object
from seglog.broker.tables.groups import FORBIDDEN_TABLE, GROUP_TABLE, group_to_config
from seglog.broker.tables.topics import TOPIC_TABLE, system_topic_names
from seglog.remoting.admin_bodies import ConfigBody, NamesBody
from seglog.remoting.admin_headers import (
    GroupCountResponseHeader,
    GroupHeader,
    PageHeader,
    TopicCountResponseHeader,
    TopicHeader,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Header, Response, refuse
from seglog.storage.format.config import ConfigValue, decode_config

PAGE: Final = 2_000
"""``splitMetadataSize``: entries of one page at most."""


def get_all_topics(state: BrokerState, call: Call[PageHeader]) -> Response:
    """Returns the settings of all topics."""
    table = state.topics.to_config()
    total = len(as_object(table[TOPIC_TABLE], TOPIC_TABLE))
    value = _page(table, TOPIC_TABLE, call.header)
    value |= {"topicQueueMappingDetailMap": {}, "mappingDataVersion": DataVersion().to_config()}
    return Response(ResponseCode.SUCCESS, TopicCountResponseHeader(total), ConfigBody(value))


def get_topic(state: BrokerState, call: Call[TopicHeader]) -> Response:
    """Returns the settings of one topic."""
    topic = state.topics.get(call.header.topic)
    if topic is None:
        return refuse(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {call.header.topic}")
    return Response(ResponseCode.SUCCESS, body=ConfigBody(topic.to_config()))


def get_system_topics(state: BrokerState, _call: Call[Header]) -> Response:
    """Names the topics that are the broker's own."""
    return Response(ResponseCode.SUCCESS, body=NamesBody(system_topic_names(state.config)))


def get_all_groups(state: BrokerState, call: Call[PageHeader]) -> Response:
    """Returns the settings of all groups, and what is forbidden to them."""
    table = state.groups.to_config()
    total = len(as_object(table[GROUP_TABLE], GROUP_TABLE))
    value = _page(table, GROUP_TABLE, call.header)
    forbidden = as_object(value.get(FORBIDDEN_TABLE, {}), FORBIDDEN_TABLE)
    shown = as_object(value[GROUP_TABLE], GROUP_TABLE)
    value[FORBIDDEN_TABLE] = {group: topics for group, topics in forbidden.items() if group in shown}
    return Response(ResponseCode.SUCCESS, GroupCountResponseHeader(total), ConfigBody(value))


def get_group(state: BrokerState, call: Call[GroupHeader]) -> Response:
    """Returns the settings of one group, which is created if it may be."""
    group = state.groups.find(call.header.group)
    if group is None:
        return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
    return Response(ResponseCode.SUCCESS, body=ConfigBody(group_to_config(group)))


def get_all_offsets(state: BrokerState, _call: Call[Header]) -> Response:
    """Returns what all groups have committed."""
    return Response(ResponseCode.SUCCESS, body=ConfigBody(state.offsets.to_config()))


def get_delay_offsets(state: BrokerState, _call: Call[Header]) -> Response:
    """Returns how far each delay level was delivered."""
    return Response(ResponseCode.SUCCESS, body=ConfigBody(state.delivery.to_config()))


def _page(
    table: Mapping[str | int, ConfigValue], name: str, header: PageHeader
) -> dict[str | int, ConfigValue]:
    """Returns a table with the requested entries."""
    if header == PageHeader():
        return dict(table)
    entries = sorted(as_object(table[name], name).items(), key=lambda entry: str(entry[0]))
    first = header.first or 0
    if (
        not header.data_version
        or decode_config(header.data_version.encode("utf-8", "replace")) != table["dataVersion"]
    ):
        first = 0
    most = PAGE if header.most is None else min(PAGE, header.most)
    return {**table, name: dict(entries[first : first + most])}


_ALL_TOPICS: Final = (of_every(Resource.TOPIC, Action.LIST),)
_ALL_GROUPS: Final = (of_every(Resource.GROUP, Action.LIST),)
HANDLERS: Final = (
    Handler(RequestCode.GET_ALL_TOPIC_CONFIG, PageHeader, get_all_topics, _ALL_TOPICS),
    Handler(RequestCode.GET_TOPIC_CONFIG, TopicHeader, get_topic, (of_topic(Action.GET),)),
    Handler(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, Header, get_system_topics, _ALL_TOPICS),
    Handler(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, PageHeader, get_all_groups, _ALL_GROUPS),
    Handler(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupHeader, get_group, (of_group(Action.GET),)),
    Handler(RequestCode.GET_ALL_CONSUMER_OFFSET, Header, get_all_offsets, (*_ALL_GROUPS, *_ALL_TOPICS)),
    Handler(RequestCode.GET_ALL_DELAY_OFFSET, Header, get_delay_offsets, (of_cluster(Action.GET),)),
)

"""Short forms of requests, for tests that ask two brokers the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seglog.remoting.allocation import RequestMode, RequestModeBody
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.client_headers import ConsumeDirectlyHeader, ConsumerStatusHeader, GroupForbiddenHeader
from seglog.remoting.codes import PullFlag, RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import (
    CloneGroupOffsetHeader,
    CreateTopicHeader,
    DeleteGroupHeader,
    PullMessageHeader,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    SendBackHeader,
    SendMessageHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.heartbeat import CheckClientBody, ConsumerData, HeartbeatBody
from seglog.remoting.subscription import SQL_TYPE, SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config import ConfigValue


def send(
    topic: str, body: bytes = b"x", properties: bytes = b"", *, queue_id: int = 0, sys_flag: int = 0
) -> Request:
    """Sends one message; the topic is created by it."""
    raw = b"UNIQ_KEY\x01u\x02" + properties
    header = SendMessageHeader("pg", topic, "TBW102", 4, queue_id, sys_flag, 1_234, 0, raw)
    return Request(RequestCode.SEND_MESSAGE_V2, header, body)


def send_batch(topic: str, *bodies: bytes) -> Request:
    """Sends a batch."""
    header = SendMessageHeader("pg", topic, "TBW102", 4, 0, 0, 1_234, 0, b"", is_batch=True)
    return Request(
        RequestCode.SEND_BATCH_MESSAGE, header, MessageBatch([BatchMessage(body, b"", 0) for body in bodies])
    )


def send_back(group: str, topic: str, phy_offset: int) -> Request:
    """Sends a message back to be tried again."""
    header = SendBackHeader(phy_offset, group, 0, origin_topic=topic)
    return Request(RequestCode.CONSUMER_SEND_MSG_BACK, header)


def pull(
    group: str,
    topic: str,
    queue_offset: int = 0,
    *,
    queue_id: int = 0,
    count: int = 32,
    subscription: str = "*",
    expression_type: str = "TAG",
    commit_offset: int | None = None,
    **more: Any,
) -> Request:
    """Pulls what a subscription names; commits if an offset to commit is given."""
    flags = PullFlag.SUBSCRIPTION if commit_offset is None else PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET
    header = PullMessageHeader(
        group,
        topic,
        queue_id,
        queue_offset,
        count,
        int(flags),
        commit_offset or 0,
        0,
        0,
        subscription,
        expression_type,
        **more,
    )
    return Request(RequestCode.PULL_MESSAGE, header)


def make_topic(
    topic: str, read_queue_nums: int = 4, write_queue_nums: int = 4, attributes: str | None = None
) -> Request:
    """Creates a topic."""
    header = CreateTopicHeader(topic, "TBW102", read_queue_nums, write_queue_nums, 6, attributes=attributes)
    return Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def make_group(group: str, attributes: Mapping[str | int, ConfigValue] | None = None) -> Request:
    """Creates a group with usual settings."""
    body = SubscriptionGroup(group, attributes=attributes or {})
    return Request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)


def delete_group(group: str, *, cleans_offsets: bool = False) -> Request:
    """Deletes a group."""
    return Request(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupHeader(group, cleans_offsets))


def commit(group: str, topic: str, offset: int, owner: str | None = None) -> Request:
    """Commits in queue 0; ``owner`` is the member that must have the queue, which our clients name."""
    header = UpdateConsumerOffsetHeader(group, topic, 0, offset, owner)
    return Request(RequestCode.UPDATE_CONSUMER_OFFSET, header)


def join(group: str, topic: str, client_id: str) -> Request:
    """Joins a group as a consumer of a topic."""
    subscribed = (SubscriptionData(topic, "*", 1),)
    body = HeartbeatBody(client_id, (), (ConsumerData(group, subscribed),))
    return Request(RequestCode.HEART_BEAT, body=body)


def begin(group: str, topic: str) -> Request:
    """Asks, as a member, where to begin in queue 0."""
    return Request(RequestCode.QUERY_CONSUMER_OFFSET, QueryConsumerOffsetHeader(group, topic, 0))


def query(group: str, topic: str) -> Request:
    """Asks what the group committed in queue 0."""
    return Request(
        RequestCode.QUERY_CONSUMER_OFFSET,
        QueryConsumerOffsetHeader(group, topic, 0, set_zero_if_not_found=False),
    )


def reset(group: str, topic: str, offset: int) -> Request:
    """Resets the group in queue 0."""
    header = ResetOffsetHeader(group, topic, 0, True, 0, offset)
    return Request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


def clone(source: str, target: str, topic: str | None) -> Request:
    """Gives a group the offsets of another, whether that is online or not."""
    return Request(RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetHeader(source, target, topic, True))


def may_read(group: str, topic: str, is_readable: bool | None = None) -> Request:
    """Asks whether a group may read a topic, and sets it before unless it is None."""
    header = GroupForbiddenHeader(group, topic, is_readable)
    return Request(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header)


def check_condition(topic: str, condition: str) -> Request:
    """Asks whether messages of a topic can be filtered by an SQL92 expression."""
    wanted = SubscriptionData(topic, condition, expression_type=SQL_TYPE)
    return Request(RequestCode.CHECK_CLIENT_CONFIG, body=CheckClientBody("c", "g", wanted))


def set_pop(topic: str, group: str) -> Request:
    """Has a group consume a topic by POP."""
    body = RequestModeBody(topic, group, RequestMode.POP)
    return Request(RequestCode.SET_MESSAGE_REQUEST_MODE, body=body)


def consume_directly(group: str) -> Request:
    """Has a client consume a message that is not there."""
    header = ConsumeDirectlyHeader(group, "c", "7F000001000000010000010000000000")
    return Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)


def ask_state(group: str) -> Request:
    """Asks how far the clients of a group are."""
    return Request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, ConsumerStatusHeader("T", group))

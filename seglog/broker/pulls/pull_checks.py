"""Checks whether a pull is permitted, in RocketMQ's order, and makes its filter.

Source: ``PullMessageProcessor.java processRequest``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from seglog.broker.filters.subscription_filter import expression_filter, tag_filter
from seglog.broker.sends.group_topics import find_group
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.topics import TopicConfig
from seglog.errors import InvalidArgumentError
from seglog.remoting.codes import ForbiddenType, PullFlag, ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.heartbeat import ConsumeType
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import is_tag_type
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import PERM_READ
from seglog.storage.format.system_names import needs_no_registration
from seglog.storage.reads import MessageFilter

FORBIDDEN_TYPE: Final = "forbiddenType"


class Permitted(NamedTuple):
    """The result of a permitted pull's checks.

    Attributes:
        wanted: The filter; None for all messages.
    """

    group: SubscriptionGroup
    topic: TopicConfig
    wanted: MessageFilter | None


def check_pull(
    state: BrokerState, header: PullMessageHeader, peer: Peer, *, is_lite: bool
) -> Permitted | Response:
    """Returns the refusal of a pull, or its permission."""
    config = state.config
    if not config.broker_permission & PERM_READ:
        return _forbidden(ForbiddenType.BROKER, f"the broker[{config.address}] pulling message is forbidden")
    if is_lite and not config.lite_pull_message_enable:
        return _forbidden(
            ForbiddenType.BROKER, f"the broker[{config.address}] for lite pull consumer is forbidden"
        )
    group = find_group(state, header.consumer_group)
    if group is None:
        return refuse(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group [{header.consumer_group}] does not exist",
        )
    if not group.is_consume_enabled:
        return _forbidden(ForbiddenType.GROUP, f"subscription group no permission, {header.consumer_group}")
    topic = state.topics.get(header.topic)
    if topic is None:
        return refuse(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please!")
    if not topic.perm & PERM_READ:
        return _forbidden(ForbiddenType.TOPIC, f"the topic[{header.topic}] pulling message is forbidden")
    if not 0 <= header.queue_id < topic.read_queue_nums:
        return refuse(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}]"
            f" topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[{header.consumer_group}]",
        )
    choose = _said_with_the_pull if header.sys_flag & PullFlag.SUBSCRIPTION else _said_by_heartbeat
    wanted = choose(state, header, group)
    if isinstance(wanted, Response):
        return wanted
    if config.reject_pull_consumer_enable and _pulls_by_itself(state, header.consumer_group, peer):
        return refuse(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            "the consumer's group info not exist, or the pull consumer is rejected by server.",
        )
    return _refuse_foreign(state, header, peer) or Permitted(group, topic, wanted)


def _said_with_the_pull(
    state: BrokerState, header: PullMessageHeader, _group: SubscriptionGroup
) -> MessageFilter | Response | None:
    if is_tag_type(header.expression_type):
        try:
            wanted = tag_filter(header.subscription)
        except InvalidArgumentError:
            return _no_subscription_text()
        state.pulled_topics.note(header.consumer_group, header.topic)
        return wanted
    if not header.subscription:
        return _no_subscription_text()
    state.pulled_topics.note(header.consumer_group, header.topic)
    return _by_expression(state, header.subscription, header.expression_type)


def _said_by_heartbeat(
    state: BrokerState, header: PullMessageHeader, group: SubscriptionGroup
) -> MessageFilter | Response | None:
    online = state.clients.consumers(header.consumer_group)
    if online is None:
        return refuse(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist")
    if online.is_broadcast and not group.is_broadcast_enabled:
        return _forbidden(
            ForbiddenType.BROADCASTING,
            f"the consumer group[{header.consumer_group}] can not consume by broadcast way",
        )
    if state.groups.is_forbidden(group.name, header.topic):
        return _forbidden(
            ForbiddenType.SUBSCRIPTION,
            f"the consumer group[{header.consumer_group}] is forbidden for topic[{header.topic}]",
        )
    subscription = online.subscriptions.get(header.topic)
    if subscription is None:
        return refuse(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")
    if subscription.version < header.sub_version:
        return refuse(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    if not is_tag_type(subscription.expression_type):
        known = state.filters.get(header.consumer_group, header.topic)
        if known is None:
            return refuse(
                ResponseCode.FILTER_DATA_NOT_EXIST,
                "The broker's consumer filter data is not exist!Your expression may be wrong!",
            )
        if known.version < header.sub_version:
            return refuse(
                ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest"
            )
        return _by_expression(state, known.expression, known.expression_type)
    if subscription.is_class_filter:
        return None
    try:
        return tag_filter(subscription.expression)
    except InvalidArgumentError:
        return _no_subscription_text()


def _pulls_by_itself(state: BrokerState, group: str, peer: Peer) -> bool:
    """Returns whether a pull is neither of a passive consumer nor of a known client."""
    online = state.clients.consumers(group)
    if online is not None and online.consume_type is not ConsumeType.ACTIVELY:
        return False
    is_known = state.clients.member(group, peer) is not None
    return not is_known and not needs_no_registration(group)


def _refuse_foreign(state: BrokerState, header: PullMessageHeader, peer: Peer) -> Response | None:
    """Returns the refusal if another client has locked the queue, None if the client may pull it."""
    if not state.config.strict_queue_lock:
        return None
    queue = MessageQueue(header.topic, state.config.broker_name, header.queue_id)
    owner = state.locks.owner(header.consumer_group, queue)
    if owner in (None, state.clients.id_of(header.consumer_group, peer)):
        return None
    return refuse(
        ResponseCode.NO_PERMISSION,
        f"the queue {header.topic}/{header.queue_id} is locked by client {owner}"
        f" of group {header.consumer_group}",
    )


def _no_subscription_text() -> Response:
    return refuse(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")


def _by_expression(
    state: BrokerState, expression: str, expression_type: str | None
) -> MessageFilter | Response:
    """Returns the filter of an expression; RocketMQ returns all messages if it is not valid."""
    if not state.config.enable_property_filter:
        return no_such_language(expression_type)
    try:
        return expression_filter(expression, expression_type)
    except InvalidArgumentError:
        return _no_subscription_text()


def no_such_language(expression_type: str | None) -> Response:
    """Returns the refusal of a language that the broker does not filter by."""
    return refuse(
        ResponseCode.SYSTEM_ERROR,
        f"The broker does not support consumer to filter message by {expression_type}",
    )


def _forbidden(kind: ForbiddenType, remark: str) -> Response:
    return Response(ResponseCode.NO_PERMISSION, remark=remark, ext={FORBIDDEN_TYPE: str(int(kind))})

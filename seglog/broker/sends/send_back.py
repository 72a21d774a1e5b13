"""Takes back a message that a consumer failed at: it is retried later, or becomes a dead letter.

The consumer names a record by its physical offset. The message is stored once more, for the group's retry
topic and with one failure more: on the delay level that the client chose, or on level 3 + failures, so the
delays are 10s, 30s, 1m, 2m and so on up to 2h. After its last attempt it is stored in ``%DLQ%group`` at once.

A record of a compaction topic has an offset in that topic's own log. RocketMQ reads the commit log at that
offset, and finds nothing or another message; here the message is found by its id.

Source: ``AbstractSendMessageProcessor.java consumerSendMsgBack``.
"""

from __future__ import annotations

from typing import Final

from seglog.broker.delay.delay_levels import TIMERS, hold
from seglog.broker.sends.dead_letters import warn_of_dead_letter
from seglog.broker.sends.group_topics import RetryTopic, dlq_topic, retry_topics
from seglog.broker.sends.send import is_writable, may_wait, no_sends
from seglog.broker.state.state import AnyAppends, BrokerState
from seglog.errors import NotFoundError, SeglogError
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.remoting.headers import SendBackHeader
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import PERM_WRITE
from seglog.storage.format.record import Message, tags_code
from seglog.storage.format.record import properties as props

FIRST_LEVEL: Final = 3


def send_back(state: BrokerState, header: SendBackHeader, appends: AnyAppends) -> Response:
    """Stores a message for another attempt or as a dead letter, or returns a refusal."""
    group = state.groups.find(header.group)
    if group is None:
        return refuse(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {header.group}"
        )
    if not is_writable(state.config):
        return no_sends(state.config)
    if group.retry_queue_nums <= 0:
        return Response(ResponseCode.SUCCESS)
    # As in RocketMQ, the topic is unordered from now on, until the group's next heartbeat.
    (topic,) = retry_topics(state, (RetryTopic(group, is_order=False, is_unit=header.is_unit_mode),))
    if not topic.perm & PERM_WRITE:
        return refuse(ResponseCode.NO_PERMISSION, f"the topic[{topic.name}] sending message is forbidden")
    message = find_message(state, header)
    if message is None:
        return refuse(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.phy_offset}")
    level = _level(group, header, message)
    if level is None:
        answer = _store(state, appends, message, dlq_topic(state, group.name).name, 0, 0)
        if answer.code is ResponseCode.SUCCESS:
            _count(state, group, message)
            place = f"{message.topic}, queue {message.queue_id}, offset {message.queue_offset}"
            first = {props.ORIGIN_MESSAGE_ID: message.message_id, props.RETRY_TOPIC: message.topic}
            warn_of_dead_letter(group.name, first | message.properties, place, message.reconsume_times)
        return answer
    # RocketMQ uses the group's number of queues only. If it is larger than that of the retry topic, the group
    # would never get the messages stored in the other queues.
    queue_nums = max(1, min(group.retry_queue_nums, topic.read_queue_nums))
    answer = _store(state, appends, message, topic.name, state.random.randrange(queue_nums), level)
    if answer.code is ResponseCode.SUCCESS:
        _count(state, group, message)
    return answer


def _count(state: BrokerState, group: SubscriptionGroup, message: Message) -> None:
    """Counts the message in SNDBCK_PUT_NUMS, as of the topic that it came from first."""
    state.figures.note_sent_back(group.name, message.properties.get(props.RETRY_TOPIC, message.topic))


def find_message(state: BrokerState, header: SendBackHeader) -> Message | None:
    """Returns the message that the client names, None if it no longer exists."""
    origin = None if header.origin_topic is None else state.topics.get(header.origin_topic)
    if origin is not None and origin.attributes.get("cleanup.policy") == "COMPACTION":
        found = (
            state.store.query(origin.name, header.origin_message_id, 1) if header.origin_message_id else []
        )
        return found[0] if found else None
    try:
        return state.store.message_at(header.phy_offset)
    except NotFoundError:
        return None


def _level(group: SubscriptionGroup, header: SendBackHeader, message: Message) -> int | None:
    """Returns the delay level of the next attempt, None after the last attempt."""
    most = group.retry_max_times if header.max_reconsume_times is None else header.max_reconsume_times
    if message.reconsume_times >= most or header.delay_level < 0:
        return None
    return header.delay_level or FIRST_LEVEL + message.reconsume_times


def _store(
    state: BrokerState,
    appends: AnyAppends,
    message: Message,
    topic: str,
    queue_id: int,
    level: int,
) -> Response:
    properties = dict(message.properties)
    properties.pop(props.CRC32, None)
    properties.setdefault(props.RETRY_TOPIC, message.topic)
    if not properties.get(props.ORIGIN_MESSAGE_ID, "").strip():
        properties[props.ORIGIN_MESSAGE_ID] = message.message_id
    properties |= {props.WAIT: "false", props.DELAY: str(level)}
    levels = state.delivery.levels
    level = min(level, levels.highest) if may_wait(message.sys_flag) else 0
    if level <= 0 and may_wait(message.sys_flag) and any(name in properties for name in TIMERS):
        # Only a batch can have stored such a message; a single one is refused when it is sent.
        return refuse(ResponseCode.SYSTEM_ERROR, "WHEEL_TIMER_NOT_ENABLE")
    place, place_id, raw = topic, queue_id, props.encode_properties(properties)
    if level > 0:
        place, place_id, raw = hold(raw, topic, queue_id, level)
    tag = properties.get(props.TAGS)
    try:
        appends.append(
            place,
            place_id,
            message.body,
            raw,
            tags_code(tag),
            sys_flag=message.sys_flag,
            flag=message.flag,
            born_timestamp_ms=message.born_timestamp_ms,
            born_host=message.born_host,
            reconsume_times=message.reconsume_times + 1,
            delay_ms=levels.own_delay_ms(level),
        )
    except SeglogError as error:
        return refuse(ResponseCode.SYSTEM_ERROR, ResponseCode(error.response_code).name)
    if level > 0:
        state.delivery.note_sent(level)
    return Response(ResponseCode.SUCCESS)

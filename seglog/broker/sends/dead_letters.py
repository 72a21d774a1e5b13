"""Decides when a message for a group's retry topic becomes a dead letter instead.

It becomes one after its last attempt, or at once while any queue of the group is locked: locks show that the
group consumes in order, and such a group sends a message back only after its last attempt. RocketMQ does the
same; a concurrent consumer in a group with orderly ones loses its retries.

Source: ``SendMessageProcessor.java handleRetryAndDLQ``.
"""

from __future__ import annotations

from collections.abc import Mapping

from seglog.broker.sends.group_topics import dlq_topic, find_group
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.topics import TopicConfig
from seglog.logs import logger
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.remoting.headers import SendMessageHeader
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import properties as props

_log = logger(__name__)


def dead_letter_topic(state: BrokerState, header: SendMessageHeader) -> TopicConfig | Response | None:
    """Returns the topic of the dead letter that a message for a retry topic becomes.

    Args:
        state: The broker.
        header: A send to a retry topic.

    Returns:
        None if the message may be tried again; a refusal if its group does not exist.
    """
    name = header.topic.removeprefix(RETRY_PREFIX)
    group = find_group(state, name)
    if group is None:
        return refuse(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {name}")
    most = group.retry_max_times if header.max_reconsume_times is None else header.max_reconsume_times
    if header.reconsume_times <= most and not state.locks.is_any_live(name):
        return None
    return dlq_topic(state, name)


def note_dead_letter(header: SendMessageHeader) -> None:
    """Logs that a message for a retry topic is stored as a dead letter."""
    found = props.decode_properties(header.properties)
    group = header.topic.removeprefix(RETRY_PREFIX)
    warn_of_dead_letter(group, found, "it was sent again", header.reconsume_times)


def warn_of_dead_letter(group: str, properties: Mapping[str, str], place: str, reconsume_times: int) -> None:
    """Logs that a message becomes a dead letter: only the group's consumers are told otherwise.

    Args:
        group: The group.
        properties: Those of the message.
        place: The place of the record of its last attempt.
        reconsume_times: Its failures before that attempt.
    """
    message_id = properties.get(props.UNIQ_KEY) or properties.get(props.ORIGIN_MESSAGE_ID)
    _log.warning(
        "message %s of topic %s is a dead letter of group %s after attempt %d: %s",
        message_id,
        properties.get(props.RETRY_TOPIC),
        group,
        reconsume_times + 1,
        place,
    )


def without_delay(raw: bytes) -> bytes:
    """Returns stored properties without those that would delay the message."""
    return props.encode_properties({**props.decode_properties(raw), props.DELAY: "-1"})

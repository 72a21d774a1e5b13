"""The form of a message that is sent again to a group, or to all groups of its topic.

For a group it is put to the group's retry topic: no other group gets it again, and clients see it under
the topic that it was consumed from. For its topic it is put as a new message, for every group.

Source: ``AbstractSendMessageProcessor.java consumerSendMsgBack``,
``DefaultMQPushConsumerImpl.java resetRetryAndNamespace``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from seglog.doctor.message.copy_names import (
    DLQ_ORIGIN_MESSAGE_ID,
    ORIGIN_GROUP,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
)
from seglog.errors import InvalidArgumentError
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX
from seglog.storage.format.record import properties as props
from seglog.storage.reads import MessageRow

DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
_OF_A_TRY: Final = (
    props.DELAY,
    props.REAL_TOPIC,
    props.REAL_QUEUE_ID,
    "RECONSUME_TIME",
    "MAX_RECONSUME_TIMES",
    "TIMER_DELAY_SEC",
    "TIMER_DELAY_MS",
    "TIMER_DELIVER_MS",
    "TIMER_OUT_MS",
)
_OF_A_DEATH: Final = (
    RETRY_TOPIC,
    DLQ_ORIGIN_TOPIC,
    DLQ_ORIGIN_MESSAGE_ID,
    ORIGIN_MESSAGE_ID,
    ORIGIN_GROUP,
)


def origin_of(row: MessageRow) -> str:
    """Returns the topic from which a retry or dead letter was first consumed; for others their own topic."""
    named = row.named
    return named.get(RETRY_TOPIC) or named.get(DLQ_ORIGIN_TOPIC) or row.topic


def for_group(row: MessageRow, group: str) -> MessageRow:
    """Returns a message for one group, as if it were delivered for the first time."""
    named = _without(row.named, _OF_A_TRY)
    origin = origin_of(row)
    if not origin.startswith((DLQ_PREFIX, RETRY_PREFIX)):
        named[RETRY_TOPIC] = origin
    named.setdefault(ORIGIN_MESSAGE_ID, row.msgId)
    return _renewed(row, f"{RETRY_PREFIX}{group}", 0, named)


def for_everybody(row: MessageRow, queue_id: int) -> MessageRow:
    """Returns a message for its topic.

    Raises:
        InvalidArgumentError: It is a dead letter that does not name its topic.
    """
    origin = origin_of(row)
    if origin.startswith(DLQ_PREFIX):
        raise InvalidArgumentError(
            f"{origin}/{row.queueId} @{row.queueOffset} does not tell its topic",
            help="send it to the group that gave it up (retry), or leave it out",
        )
    return _renewed(row, origin, queue_id, _without(row.named, _OF_A_TRY + _OF_A_DEATH))


def for_its_time(row: MessageRow) -> MessageRow:
    """Returns a delayed message for the topic and queue of its delivery."""
    named = row.named
    queue_id = named.get(props.REAL_QUEUE_ID, "")
    topic = named.get(props.REAL_TOPIC) or row.topic
    renewed = _renewed(row, topic, int(queue_id) if queue_id.isdigit() else 0, _without(named, _OF_A_TRY))
    return replace(renewed, reconsumeTimes=row.reconsumeTimes)


def _without(named: Mapping[str, str], dropped: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in named.items() if name not in dropped}


def _renewed(row: MessageRow, topic: str, queue_id: int, named: Mapping[str, str]) -> MessageRow:
    return replace(
        row, topic=topic, queueId=queue_id, reconsumeTimes=0, properties=props.encode_properties(named)
    )

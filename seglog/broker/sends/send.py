"""The checks of a send, in RocketMQ's order, and the properties that the broker adds.

A message gets a UNIQ_KEY if it has none, and CLUSTER, MSG_REGION and TRACE_ON in any case; POP_CK is removed.
Messages of a batch are stored with the properties that they were sent with.

A message with a delay level waits in the delay topic; its timer properties are removed. A timer message or a
half message is refused: this broker has no timers and no transactions, so it would never be delivered.

Source: ``SendMessageProcessor.java``, ``AbstractSendMessageProcessor.java msgCheck, buildMsgContext``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from seglog.broker.delay.delay_levels import TIMERS
from seglog.broker.settings import BrokerConfig
from seglog.broker.state.state import BrokerState
from seglog.broker.tables.topics import (
    MAX_TOPIC_CHARACTERS,
    UNIT,
    UNIT_SUB,
    TopicConfig,
    topic_name_problem,
)
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Response, refuse
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.peer import Peer
from seglog.remoting.topics import PERM_WRITE
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import stored_tags_code
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import NOT_ALLOWED_TO_SEND

CLUSTER: Final = "CLUSTER"
MSG_REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"
POP_CK: Final = "POP_CK"

_KNOWN: Final = re.compile(
    rb"(?:^|\x02)(UNIQ_KEY|TAGS|WAIT|CLUSTER|MSG_REGION|TRACE_ON|POP_CK|DELAY|TRAN_MSG"
    rb"|TIMER_DELAY_SEC|TIMER_DELAY_MS|TIMER_DELIVER_MS)\x01([^\x02]+)"
)
"""The properties that a broker reads; the others need not be decoded."""
_PLAIN: Final = frozenset((b"UNIQ_KEY", b"TAGS", b"WAIT"))
_STAMPED: Final = (CLUSTER, MSG_REGION, TRACE_ON)


class StoredProperties(NamedTuple):
    """Properties in stored form, and the values that matter to a send.

    Attributes:
        raw: The stored form.
        unique_id: The message's UNIQ_KEY.
        delay_level: The delay level; 0 for a message that can be consumed at once.
        waits_for_disk: False if the client asked for an answer before the message is on the disk.
    """

    raw: bytes
    unique_id: str
    tags_code: int
    waits_for_disk: bool
    delay_level: int


def stamp_of(config: BrokerConfig) -> bytes:
    """Returns the encoded properties that every message of a broker gets."""
    return props.encode_properties({CLUSTER: config.cluster_name, **send_ext_of(config)})


def send_ext_of(config: BrokerConfig) -> dict[str, str]:
    """Returns the fields that a broker adds to its answers to sends."""
    return {MSG_REGION: config.region_id, TRACE_ON: "true" if config.is_trace_on else "false"}


def find_topic(state: BrokerState, header: SendMessageHeader, peer: Peer) -> TopicConfig | Response:
    """Returns the topic of a send, creating it if permitted, or the refusal of the send."""
    topic = state.topics.get(header.topic)
    if topic is not None and topic.is_order and not is_writable(state.config):
        return no_sends(state.config)
    if topic is None or header.topic in NOT_ALLOWED_TO_SEND:
        problem = topic_name_problem(header.topic)
        if problem is not None:
            return refuse(ResponseCode.INVALID_PARAMETER, problem)
        if header.topic in NOT_ALLOWED_TO_SEND:
            return refuse(
                ResponseCode.NO_PERMISSION, f"Sending message to topic[{header.topic}] is forbidden."
            )
        topic = state.topics.create_for_send(
            header.topic, header.default_topic, header.default_topic_queue_nums, _unit_flag(header)
        )
        if topic is None:
            return refuse(
                ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist, apply first please!"
            )
    if header.queue_id >= max(topic.write_queue_nums, topic.read_queue_nums):
        return refuse(
            ResponseCode.INVALID_PARAMETER,
            f"request queueId[{header.queue_id}] is illegal, {topic.java_text()} Producer: {peer.host}",
        )
    if header.queue_id < 0 and not topic.write_queue_nums:  # RocketMQ divides by 0: same code
        return refuse(ResponseCode.SYSTEM_ERROR, f"topic[{header.topic}] has no queue that can be written")
    return topic


def _unit_flag(header: SendMessageHeader) -> int:
    """Returns the flag that a new topic gets of a producer in unit mode."""
    if not header.is_unit_mode:
        return 0
    return UNIT_SUB if header.topic.startswith(RETRY_PREFIX) else UNIT


def is_writable(config: BrokerConfig) -> bool:
    """Returns whether the broker accepts messages; if not, it still accepts those of unordered topics."""
    return bool(config.broker_permission & PERM_WRITE)


def no_sends(config: BrokerConfig) -> Response:
    """Returns the refusal of a broker without write permission."""
    host = config.address.rpartition(":")[0]
    return refuse(ResponseCode.NO_PERMISSION, f"the broker[{host}] sending message is forbidden")


def find_batch_topic(state: BrokerState, header: SendMessageHeader, peer: Peer) -> TopicConfig | Response:
    """Returns the topic of a batch, or the refusal of the batch."""
    topic = find_topic(state, header, peer)
    if isinstance(topic, Response):
        return topic
    if len(header.topic) > MAX_TOPIC_CHARACTERS:
        return refuse(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(header.topic)}")
    if header.topic.startswith(RETRY_PREFIX):
        return refuse(
            ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {header.topic}"
        )
    return topic


def choose_queue(state: BrokerState, topic: TopicConfig, queue_id: int) -> int:
    """Returns the queue that the client chose, or a random one if it left the choice to the broker."""
    return queue_id if queue_id >= 0 else state.random.randrange(topic.write_queue_nums)


def complete_properties(
    state: BrokerState, raw: bytes, sys_flag: int = 0, reconsume_times: int = 0
) -> StoredProperties | Response:
    """Returns the properties to store with a message, or the refusal of the message.

    Raises:
        ProtocolError: DELAY is not a number.
    """
    known = dict(_KNOWN.findall(raw))
    level = 0
    if not known.keys() <= _PLAIN:
        found = props.decode_properties(raw)
        is_transaction = found.get("TRAN_MSG", "").lower() == "true"
        # In other cases RocketMQ does not read the level, and does not check that it is a number.
        if (reconsume_times > 0) if is_transaction else may_wait(sys_flag):
            level = state.delivery.levels.level_of(found.get(props.DELAY))
        # A retried message of a transaction was committed before.
        if is_transaction and level <= 0:
            host = state.config.address.rpartition(":")[0]
            return refuse(
                ResponseCode.NO_PERMISSION, f"the broker[{host}] sending transaction message is forbidden"
            )
        if level <= 0 and any(name in found for name in TIMERS):
            return refuse(
                ResponseCode.SYSTEM_ERROR,
                "accurate timer message is not enabled, timerWheelEnable is false",
            )
        for name in (*_STAMPED, POP_CK):
            found.pop(name, None)
        raw = props.encode_properties(found)
    elif raw and raw[-1] != props.ENTRY_END:
        raw += b"\x02"
    unique_id = known.get(b"UNIQ_KEY")
    if unique_id is None:
        unique_id = state.ids.next().encode()
        raw = b"%bUNIQ_KEY\x01%b\x02" % (raw, unique_id)
    return StoredProperties(
        raw + state.stamp,
        unique_id.decode("utf-8", "replace"),
        stored_tags_code(known.get(b"TAGS")),
        known.get(b"WAIT") != b"false",
        level if level > 0 and may_wait(sys_flag) else 0,
    )


def may_wait(sys_flag: int) -> bool:
    """Returns whether a delay level counts: half messages and rollbacks are never delayed."""
    return flags.takes_queue_offset(sys_flag)

"""Cases of what differs on purpose: of a request before it is asked, or of what two brokers answered to it.

The rows of ``differences.py`` name them.
"""

from __future__ import annotations

from typing import Final

from seglog.broker.broker import Broker
from seglog.broker.tables.groups import group_name_problem
from seglog.errors import NotFoundError
from seglog.remoting.allocation import RequestMode, RequestModeBody
from seglog.remoting.bodies import MessageBatch
from seglog.remoting.client_headers import ConsumeDirectlyHeader, GroupForbiddenHeader, UnregisterClientHeader
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import (
    CloneGroupOffsetHeader,
    CreateTopicHeader,
    DeleteGroupHeader,
    PullMessageHeader,
    ResetOffsetHeader,
    SendBackHeader,
    SendMessageHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.subscription import SQL_TYPE, is_tag_type
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.names import DLQ_PREFIX
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import is_system_group
from tests.interop.judging.alike import Essence

PULL_COUNT: Final = 32
"""Most messages of one pull."""
MESSAGE_BYTES: Final = 64 << 10
"""Longest body that the two brokers of the differential take."""
SENDS: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
_TOPIC_CHARACTERS: Final = 127
EXPLAINED: Final = "\nSee https://"
"""Where RocketMQ begins to explain a remark."""
NO_SQL: Final = "a ="
"""What sequences have that is said to be SQL92 and is not."""


def _entries(raw: bytes) -> list[list[bytes]]:
    return [entry.split(b"\x01", 1) for entry in raw.split(b"\x02") if entry]


def _properties(request: Request) -> list[bytes]:
    """Returns the properties of a send, those in a batch too."""
    if not isinstance(request.header, SendMessageHeader):
        return []
    batched = request.body.messages if isinstance(request.body, MessageBatch) else ()
    return [request.header.properties, *(message.properties for message in batched)]


def is_empty_send(request: Request, _broker: Broker) -> bool:
    """Returns whether a message without a body is sent."""
    is_single = request.code in SENDS and not isinstance(request.body, MessageBatch)
    return is_single and not request.body


def is_empty_batch(request: Request, _broker: Broker) -> bool:
    """Returns whether a batch has no messages."""
    return isinstance(request.body, MessageBatch) and not request.body.messages


def is_sent_back_empty(request: Request, broker: Broker) -> bool:
    """Returns whether a message without a body is sent back."""
    if not isinstance(request.header, SendBackHeader):
        return False
    try:
        return not broker.store.message_at(request.header.phy_offset).body
    except NotFoundError:
        return False


def is_sent_back_compacted(request: Request, broker: Broker) -> bool:
    """Returns whether a message of a compaction topic is sent back."""
    if not isinstance(request.header, SendBackHeader):
        return False
    topic = broker.topics.get(request.header.origin_topic or "")
    return topic is not None and topic.attributes.get("cleanup.policy") == "COMPACTION"


def has_half_property(request: Request, _broker: Broker) -> bool:
    """Returns whether a property has no name or no value."""
    return any(
        len(entry) < len((b"name", b"value")) or not all(entry)
        for raw in _properties(request)
        for entry in _entries(raw)
    )


def is_timer_in_transaction(request: Request, _broker: Broker) -> bool:
    """Returns whether what opens or undoes a transaction says when it is due."""
    header = request.header
    return (
        isinstance(header, SendMessageHeader)
        and not flags.takes_queue_offset(header.sys_flag)
        and any(entry[0].startswith(b"TIMER_") for entry in _entries(header.properties))
    )


def is_blank_subscription(request: Request, _broker: Broker) -> bool:
    """Returns whether the tags of a pull are blanks."""
    header = request.header
    if not isinstance(header, PullMessageHeader) or not is_tag_type(header.expression_type):
        return False
    pieces = (header.subscription or "").split("||")
    return any(pieces) and not any(piece.strip() for piece in pieces)


def has_record_crc(request: Request, _broker: Broker) -> bool:
    """Returns whether a message is sent with the property that has the record's check."""
    return any(
        name == b"__CRC32#" for raw in _properties(request) for name, *_value in map(tuple, _entries(raw))
    )


def has_empty_type(request: Request, _broker: Broker) -> bool:
    """Returns whether a pull says that its expression is in a language without a name."""
    return isinstance(request.header, PullMessageHeader) and request.header.expression_type == ""


def has_no_filter_type(request: Request, _broker: Broker) -> bool:
    """Returns whether a topic is made without a filter type."""
    return isinstance(request.header, CreateTopicHeader) and request.header.topic_filter_type is None


def is_no_filter_type(request: Request, _ours: Essence, _theirs: Essence) -> bool:
    """Returns whether a topic is made with a filter type that there is not."""
    return isinstance(request.header, CreateTopicHeader) and request.header.topic_filter_type == "NONE"


def is_no_expression(request: Request, _broker: Broker) -> bool:
    """Returns whether a pull has an expression that is none, or is in an unknown language."""
    header = request.header
    if not isinstance(header, PullMessageHeader) or is_tag_type(header.expression_type):
        return False
    is_sql = header.expression_type == SQL_TYPE and header.subscription != NO_SQL
    return bool(header.subscription) and not is_sql


def ends_at_bytes(request: Request, _broker: Broker) -> bool:
    """Returns whether a pull says how many bytes it takes."""
    header = request.header
    return isinstance(header, PullMessageHeader) and (header.max_msg_bytes or 0) > 0


def commits_after_reset(request: Request, broker: Broker) -> bool:
    """Returns whether a pull commits that will be sent a reset."""
    header = request.header
    return (
        isinstance(header, PullMessageHeader)
        and bool(header.sys_flag & PullFlag.COMMIT_OFFSET)
        and (header.consumer_group, header.topic, header.queue_id)
        in broker.offsets._resets  # only a pull shows it, and it is gone then
    )


def is_reset_beyond(request: Request, broker: Broker) -> bool:
    """Returns whether a group is reset to one message beyond the end."""
    header = request.header
    return (
        isinstance(header, ResetOffsetHeader)
        and header.queue_id >= 0
        and header.offset == broker.store.max_offset(header.topic, header.queue_id) + 1
    )


def is_for_unknown_group(request: Request, broker: Broker) -> bool:
    """Returns whether a message is to be consumed in a group that could be and is not there."""
    header = request.header
    if not isinstance(header, ConsumeDirectlyHeader):
        return False
    is_name = group_name_problem(header.consumer_group) is None
    return is_name and broker.groups.get(header.consumer_group) is None


def leaves_unknown_group(request: Request, broker: Broker) -> bool:
    """Returns whether a client leaves a group that could be and is not there."""
    header = request.header
    if not isinstance(header, UnregisterClientHeader) or header.consumer_group is None:
        return False
    is_name = group_name_problem(header.consumer_group) is None
    return is_name and broker.groups.get(header.consumer_group) is None


def clones_all(request: Request, _broker: Broker) -> bool:
    """Returns whether the offsets of all topics are cloned."""
    return isinstance(request.header, CloneGroupOffsetHeader) and not request.header.topic


def commits_negative(request: Request, _broker: Broker) -> bool:
    """Returns whether a negative offset is committed."""
    header = request.header
    if isinstance(header, PullMessageHeader):
        return bool(header.sys_flag & PullFlag.COMMIT_OFFSET) and header.commit_offset < 0
    return isinstance(header, UpdateConsumerOffsetHeader) and header.commit_offset < 0


def commits_for_member(request: Request, _broker: Broker) -> bool:
    """Returns whether a commit names the member that must have the queue."""
    header = request.header
    return isinstance(header, UpdateConsumerOffsetHeader | PullMessageHeader) and header.owner is not None


def is_long_dead_letter(request: Request, _broker: Broker) -> bool:
    """Returns whether a message is sent to a dead letter topic with a long name."""
    header = request.header
    if not isinstance(header, SendMessageHeader):
        return False
    return header.topic.startswith(DLQ_PREFIX) and len(header.topic) > _TOPIC_CHARACTERS


def has_no_write_queues(request: Request, broker: Broker) -> bool:
    """Returns whether a message is sent to any queue where there is none."""
    header = request.header
    if not isinstance(header, SendMessageHeader) or header.queue_id >= 0:
        return False
    topic = broker.topics.get(header.topic)
    return topic is not None and topic.write_queue_nums == 0


def makes_negative_queues(request: Request, _broker: Broker) -> bool:
    """Returns whether a topic gets fewer than 0 queues."""
    header = request.header
    return isinstance(header, CreateTopicHeader) and min(header.read_queue_nums, header.write_queue_nums) < 0


def permits_one_of_several(request: Request, broker: Broker) -> bool:
    """Returns whether a group that is kept from other topics gets to read one."""
    header = request.header
    if not isinstance(header, GroupForbiddenHeader) or not header.is_readable:
        return False
    return bool(broker.groups._forbidden.get(header.group, {}).keys() - {header.topic})


def is_lite(request: Request, _broker: Broker) -> bool:
    """Returns whether a topic or a group gets attributes of lite topics."""
    if isinstance(request.header, CreateTopicHeader):
        changes = request.header.attributes or ""
        return "message.type=LITE" in changes or "+lite." in changes
    return isinstance(request.body, SubscriptionGroup) and any(
        str(name).startswith("+lite.") for name in request.body.attributes
    )


def sets_pop(request: Request, _broker: Broker) -> bool:
    """Returns whether a group is to consume by POP."""
    return isinstance(request.body, RequestModeBody) and request.body.mode is RequestMode.POP


def deletes_system_group(request: Request, _broker: Broker) -> bool:
    """Returns whether a group of the system is deleted."""
    return isinstance(request.header, DeleteGroupHeader) and is_system_group(request.header.group_name)


def is_refused_as_illegal(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether both refused a message for its length."""
    return request.code in SENDS and ours["code"] == theirs["code"] == ResponseCode.MESSAGE_ILLEGAL


def is_long_batch(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether a batch was refused for its length."""
    return (
        request.code == RequestCode.SEND_BATCH_MESSAGE
        and ours["code"] == ResponseCode.MESSAGE_ILLEGAL
        and "message body size exceeded" in theirs.get("remark", "")
    )


def is_no_delay_level(_request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether both refused a level that is no number."""
    return (
        ours["code"] == theirs["code"] == ResponseCode.SYSTEM_ERROR
        and str(ours["remark"]).startswith("the property DELAY holds no number")
        and str(theirs["remark"]).startswith("java.lang.NumberFormatException")
    )


def is_of_message_types(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether both refused a message type, and theirs has one more."""
    return (
        request.code == RequestCode.UPDATE_AND_CREATE_TOPIC
        and ours["code"] == theirs["code"] == ResponseCode.SYSTEM_ERROR
        and str(theirs["remark"]).replace("LITE, ", "") == str(ours["remark"]) != str(theirs["remark"])
    )


def is_group_attribute(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether both refused the attributes of a group."""
    said = str(ours.get("remark"))
    return (
        request.code == RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        and ours["code"] == theirs["code"] == ResponseCode.SYSTEM_ERROR
        and str(theirs["remark"]).startswith(f"java.lang.RuntimeException: {said}, org.apache.rocketmq")
    )


def is_no_condition(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether both refused what a client wants to subscribe by."""
    return (
        request.code == RequestCode.CHECK_CLIENT_CONFIG
        and ours["code"] == theirs["code"] == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    )


def is_queue_not_there(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether both refused a queue of a pull."""
    return (
        request.code == RequestCode.PULL_MESSAGE
        and ours["code"] == theirs["code"] == ResponseCode.INVALID_PARAMETER
    )


def is_full(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether a pull that chooses messages got all that it takes, and ours goes on further behind."""
    header = request.header
    return (
        isinstance(header, PullMessageHeader)
        and header.subscription not in (None, "", "*")
        and ours["code"] == ResponseCode.SUCCESS
        and len(ours["messages"]) == max(1, min(header.max_msg_nums, PULL_COUNT))
        and int(ours["nextBeginOffset"]) > int(theirs["nextBeginOffset"])
    )


def is_explained(_request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether the two remarks are one but for where it is explained."""
    said, see, _ = str(theirs.get("remark")).partition(EXPLAINED)
    return bool(see) and said.rstrip(" ,") == str(ours.get("remark"))


def is_durability(request: Request, ours: Essence, theirs: Essence) -> bool:
    """Returns whether ours alone says what a send waited for."""
    return (
        request.code in SENDS and ours.get("seglogDurability") == "async" and "seglogDurability" not in theirs
    )


def is_not_to_be_asked(request: Request, _ours: Essence, theirs: Essence) -> bool:
    """Returns whether a request is one to clients, of which RocketMQ does not find what it is about."""
    codes = (RequestCode.CONSUME_MESSAGE_DIRECTLY, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS)
    return request.code in codes and theirs["remark"].startswith("java.lang.NullPointerException")

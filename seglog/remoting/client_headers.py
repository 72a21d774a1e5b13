"""Typed headers of the requests about clients and the groups that they are in; see ``headers.py``.

Some a broker passes on to a client: it gets the same header.

Source: ``remoting/.../protocol/header/UnregisterClientRequestHeader.java`` and others.
"""

from __future__ import annotations

from dataclasses import dataclass

from seglog.remoting.command import Header
from seglog.remoting.headers import Int32, wire_names


@wire_names()
@dataclass(frozen=True, slots=True)
class ConsumerGroupHeader(Header):
    """GET_CONSUMER_LIST_BY_GROUP and GET_CONSUMER_CONNECTION_LIST."""

    consumer_group: str


@wire_names(topic="seglogTopic", broker_name="seglogBroker", queue_id="seglogQueueId")
@dataclass(frozen=True, slots=True)
class MembersChangedHeader(Header):
    """NOTIFY_CONSUMER_IDS_CHANGED.

    Attributes:
        topic: Seglog's own, as the rest: of a queue of the client in which another member has begun.
        broker_name: The broker of that queue.
        queue_id: Its number.
    """

    consumer_group: str
    topic: str | None = None
    broker_name: str | None = None
    queue_id: Int32 | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class ProducerGroupHeader(Header):
    """GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str


@wire_names(client_id="clientID")
@dataclass(frozen=True, slots=True)
class UnregisterClientHeader(Header):
    """UNREGISTER_CLIENT: a client leaves the groups that it names; without an id it leaves none."""

    client_id: str = ""
    producer_group: str | None = None
    consumer_group: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class GroupForbiddenHeader(Header):
    """UPDATE_AND_GET_GROUP_FORBIDDEN.

    Attributes:
        is_readable: None only asks.
    """

    group: str
    topic: str
    is_readable: bool | None = None


@wire_names(is_with_stacks="jstackEnable")
@dataclass(frozen=True, slots=True)
class RunningInfoHeader(Header):
    """GET_CONSUMER_RUNNING_INFO.

    Attributes:
        is_with_stacks: Whether the client also says what its threads do.
    """

    consumer_group: str
    client_id: str
    is_with_stacks: bool = False


@wire_names(message_id="msgId")
@dataclass(frozen=True, slots=True)
class ConsumeDirectlyHeader(Header):
    """CONSUME_MESSAGE_DIRECTLY.

    Attributes:
        message_id: The offsetMsgId; the broker finds the record by it.
        broker_name: Said to the client by the broker, as both flags are.
        topic: As who asks says; the broker looks at it for the flag alone.
    """

    consumer_group: str
    client_id: str | None = None
    message_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


@wire_names(client_id="clientAddr")
@dataclass(frozen=True, slots=True)
class ConsumerStatusHeader(Header):
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS, and GET_CONSUMER_STATUS_FROM_CLIENT.

    Attributes:
        client_id: The only client to be asked; None or blank for all. A client is not told.
    """

    topic: str
    group: str
    client_id: str | None = None


@wire_names()
@dataclass(frozen=True, slots=True)
class ReplyMessageHeader(Header):
    """PUSH_REPLY_MESSAGE_TO_CLIENT: what a consumer has replied to a request of a producer.

    Attributes:
        properties: Stored form; one of them says which request it is for.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp_ms: int
    flag: Int32
    born_host: str
    store_host: str
    store_timestamp_ms: int
    properties: bytes | None = None
    reconsume_times: Int32 | None = None
    is_unit_mode: bool = False

"""The result of a sent message or batch."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from seglog.remoting.codes import ResponseCode
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.writes import Durability


class SendStatus(enum.Enum):
    """The durability that the broker reached; in every case the message is stored and can be consumed.

    Source: ``SendStatus.java``.
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


STATUS_OF: Final = {
    # The codes besides SUCCESS with which a message is stored.
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


_LATER: Final = "try again later; the log of the broker says what it is at"
HELP_OF: Final = {
    # What to do after a refusal.
    ResponseCode.SYSTEM_BUSY: _LATER,
    ResponseCode.SERVICE_NOT_AVAILABLE: _LATER,
    ResponseCode.MESSAGE_ILLEGAL: (
        "send less at once: a message or batch up to the broker's maxMessageSize (4 MiB by default), with"
        " properties up to 32767 bytes"
    ),
    ResponseCode.NO_PERMISSION: "ask who runs the broker for the permission that the message names",
    ResponseCode.TOPIC_NOT_EXIST: "check the topic's name, and whether the broker makes topics by itself",
}


@dataclass(frozen=True, slots=True)
class SendResult:
    """The place of a sent message.

    Attributes:
        message_id: The id that the producer gave (UNIQ_KEY); an index finds the message by it.
        offset_message_id: The id with its physical offset (offsetMsgId).
        queue_offset: Its index in the queue.
        durability: The durability reached before the answer; None if the broker does not report it.
    """

    status: SendStatus
    message_id: str
    offset_message_id: str
    queue: MessageQueue
    queue_offset: int
    durability: Durability | None


@dataclass(frozen=True, slots=True)
class BatchSendResult:
    """The places of a batch's messages: one after another in one queue.

    Attributes:
        message_ids: The ids that the producer gave, in order.
        offset_message_ids: The ids with the physical offset of each.
        queue_offset: The queue offset of the first message.
        durability: As in :class:`SendResult`.
    """

    status: SendStatus
    message_ids: tuple[str, ...]
    offset_message_ids: tuple[str, ...]
    queue: MessageQueue
    queue_offset: int
    durability: Durability | None

"""Usual sends, which the kernels carry out in one call: messages that only have to be stored.

The handlers answer all other sends, and hold all rules: batches, messages without UNIQ_KEY, with a delay
level, a timer or a transaction, with properties that are the broker's own, for topics that do not exist or
have rules of their own; sends that wait for the disk; and all refused sends. On both paths the same request
gets the same answer, and the same bytes in the store.
"""

from __future__ import annotations

from collections.abc import Mapping

from seglog.broker.retention.disk_watermark import DiskGate
from seglog.broker.state.state import TrySend
from seglog.broker.tables.topics import MULTI_TAG, TopicConfig, TopicTable
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.headers import SendMessageHeader, SendMessageResponseHeader
from seglog.remoting.peer import Peer
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.system_names import NOT_ALLOWED_TO_SEND
from seglog.storage.kernels.sends import SendRules
from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability


def usual_sends(
    store: MessageStore, topics: TopicTable, disk: DiskGate, stamp: bytes, ext: Mapping[str, str]
) -> TrySend:
    """Returns the function that answers usual sends.

    Args:
        store: Stores the messages.
        topics: Settings of topics.
        disk: Refuses sends on a full disk.
        stamp: Encoded properties that every message gets.
        ext: Fields that every answer has.
    """
    return store.sends(
        SendRules(
            request=Request,
            asked=SendMessageHeader,
            peer=Peer,
            response=Response,
            answered=SendMessageResponseHeader,
            send_codes=(RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2),
            success=ResponseCode.SUCCESS,
            async_text=Durability.ASYNC.value,
            topic_of=topics.get,
            queues_of=usual_queues,
            disk=disk,
            stamp=stamp,
            ext=ext,
        )
    )


def usual_queues(name: str, topic: TopicConfig) -> int:
    """Returns how many queues of a topic take usual sends; 0 if the topic has other rules.

    Args:
        name: Its name in the table of topics, which a send gives.
        topic: Its settings; a file may give it another name there.
    """
    has_rules = (
        topic.is_order
        or topic.filter_type == MULTI_TAG
        or topic.name != name
        or name in NOT_ALLOWED_TO_SEND
        or name.startswith(RETRY_PREFIX)
    )
    return 0 if has_rules else topic.queue_nums

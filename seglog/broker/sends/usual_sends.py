"""Usual sends, which the kernels make in one call: a message that only has to be stored.

Everything else is answered by the handlers, which state all rules: batches, messages without UNIQ_KEY, with a
delay level, a timer or a transaction, with properties that are the broker's own, for topics that do not exist
or have rules of their own; sends that wait for the disk; and all that is refused. The same request gets the
same answer on both ways, and the same bytes in the store.
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
    """Returns what the sends of a broker are tried with.

    Args:
        store: Where messages go.
        topics: Settings of topics.
        disk: Whether there is space.
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
    """Returns how many queues of a topic take messages that only have to be stored; 0 if it has other rules.

    Args:
        name: How the table of topics, and so a send, names it.
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

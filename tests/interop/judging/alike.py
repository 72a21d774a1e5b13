"""What two brokers answered to the same request, in a form in which equal answers are equal.

Left out is what must differ between two processes: store times, hosts and ports, and the order of
properties, which Java takes from a hash table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.storage.format.record.message import decode_message, decode_message_id
from tests.interop.judging.wire import WireAnswer, queues_of, resets_of

Essence = dict[str, Any]

_OF_CONNECTIONS: Final = frozenset({"clientAddr", "language", "version", "filterClassSource"})
_PLACES: Final = re.compile(r"/?127\.0\.0\.1:\d+")
"""Of remarks: who asked."""
_UNORDERED: Final = re.compile(r"(?<=not in set: \[)[^]]*(?=])|(?<=attributes=\{)[^}]*(?=})")
"""Of remarks: what RocketMQ prints in the order of a hash table."""


def essence(request: Request, answer: WireAnswer, base_bytes: int = 0) -> Essence:
    """Returns what must be equal in two answers to ``request``.

    Args:
        request: What was asked.
        answer: What was answered.
        base_bytes: Physical offset that others are counted from.
    """
    found: Essence = {**answer.ext, "code": answer.code}
    if answer.code or request.code == RequestCode.PULL_MESSAGE:
        found["remark"] = plain_remark(answer.remark)
    if "msgId" in found:
        found["msgId"] = [decode_message_id(each)[1] - base_bytes for each in found["msgId"].split(",")]
    if not answer.body:
        return found
    match request.code:
        case RequestCode.PULL_MESSAGE:
            found["messages"] = list(_messages(answer.body, base_bytes))
        case RequestCode.LOCK_BATCH_MQ:
            found["body"] = queues_of(answer.body)
        case RequestCode.INVOKE_BROKER_TO_RESET_OFFSET:
            found["body"] = resets_of(answer.body)
        case (
            RequestCode.GET_CONSUMER_LIST_BY_GROUP
            | RequestCode.GET_CONSUMER_CONNECTION_LIST
            | RequestCode.GET_PRODUCER_CONNECTION_LIST
            | RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN
        ):
            found["body"] = _plain(json.loads(answer.body))
        case _:
            found["body"] = answer.body
    return found


def plain_remark(remark: str | None) -> str:
    """Returns a remark without what differs between two processes."""
    sorted_text = _UNORDERED.sub(lambda found: ", ".join(sorted(found[0].split(", "))), remark or "")
    return _PLACES.sub("", sorted_text).rstrip(" ,")


def _plain(value: Any) -> Any:
    """Returns JSON without the order of sets, and of connections only whose they are."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name not in _OF_CONNECTIONS}
    return sorted(map(_plain, value), key=str) if isinstance(value, list) else value


def _origin(entry: bytes, base_bytes: int) -> bytes:
    """Returns a property; an id that holds the store host becomes the place that it names."""
    name, _, value = entry.partition(b"\x01")
    if name != b"ORIGIN_MESSAGE_ID":
        return entry
    return b"%b at %d" % (name, decode_message_id(value.decode())[1] - base_bytes)


def _messages(records: bytes, base_bytes: int) -> Iterator[Essence]:
    at = 0
    while at < len(records):
        message = decode_message(memoryview(records)[at:])
        at += message.size_bytes
        yield {
            "queue": (message.topic, message.queue_id, message.queue_offset),
            "phy_offset": message.phy_offset - base_bytes,
            "size_bytes": message.size_bytes,
            "body": message.body,
            "body_crc": message.body_crc,
            "sys_flag": message.sys_flag,
            "flag": message.flag,
            "born_timestamp_ms": message.born_timestamp_ms,
            "reconsume_times": message.reconsume_times,
            "prepared_transaction_offset": message.prepared_transaction_offset,
            "properties": sorted(
                _origin(entry, base_bytes) for entry in bytes(message.properties_raw).split(b"\x02")
            ),
        }

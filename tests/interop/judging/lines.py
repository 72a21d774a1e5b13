"""Messages as the judge's ``msg`` lines, made from seglog's side, and what differs between two sets."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Sequence

from seglog import GetResult, GetStatus, MessageStore
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from seglog.storage.format.record.message import Message
from seglog.storage.format.record.properties import CRC32, encode_properties
from seglog.storage.format.record.sys_flag import (
    BORN_HOST_V6,
    COMPRESSED,
    COMPRESSION_ZLIB,
    INNER_BATCH,
    NEED_UNWRAP,
    STORE_HOST_V6,
)
from tests.interop.judging.questions import JavaMessages, Line

Place = tuple[str, int, int]
"""Topic, queue id and queue offset."""


def place(line: Line) -> Place:
    return line["cqTopic"], line["cqQueueId"], line["cqOffset"]


def body_fields(body: bytes) -> Line:
    return {
        "bodyLen": len(body),
        "bodySha256": hashlib.sha256(body).hexdigest(),
        "bodyCRC": zlib.crc32(body) & 0x7FFF_FFFF,
    }


def message_line(message: Message) -> Line:
    """Returns all that the ``msg`` line of a message states, but for ``tagsCode`` and ``keyFound``."""
    return {
        "cqTopic": message.topic,
        "cqQueueId": message.queue_id,
        "cqOffset": message.queue_offset,
        "cqPos": message.phy_offset,
        "cqSize": message.size_bytes,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.phy_offset,
        "storeSize": message.size_bytes,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp_ms,
        "storeTimestamp": message.store_timestamp_ms,
        "bornHost": message.born_host.java_text(),
        "storeHost": message.store_host.java_text(),
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "properties": dict(message.properties),
        **body_fields(message.body),
    }


def client_line(message: Message) -> Line:
    """Returns a message as a ``decode`` probe states it: as a client would see it."""
    payload = message.payload()
    fields = message_line(message) | {
        "bodyLen": len(payload),
        "bodySha256": body_fields(payload)["bodySha256"],
    }
    return {name: value for name, value in fields.items() if not name.startswith("cq")}


def get_line(result: GetResult) -> Line:
    """Returns the answer of a read as that of a ``decode`` probe."""
    return {
        "kind": "get",
        "status": result.status.value,
        "nextOffset": result.next_offset,
        "minOffset": result.min_offset,
        "maxOffset": result.max_offset,
        "phyOffsets": [message.phy_offset for message in result],
        "messages": [client_line(message) for message in result],
    }


def served_lines(store: MessageStore) -> list[Line]:
    """Reads every queue of ``store`` from its min to its max offset.

    A message that appears in further queues (LMQ) gives a line for each; an inner batch gives one line.
    """
    lines: list[Line] = []
    for queue in store.queues():
        next_offset = queue.min_offset
        while next_offset < queue.max_offset:
            result = store.get(queue.topic, queue.queue_id, next_offset)
            assert result.status is GetStatus.FOUND, (
                f"{result.status} at {queue.topic}/{queue.queue_id} {next_offset}"
            )
            for index, message in enumerate(result.messages):
                line = message_line(message)
                if message.topic != queue.topic:
                    line |= {
                        "cqTopic": queue.topic,
                        "cqQueueId": queue.queue_id,
                        "cqOffset": next_offset + index,
                    }
                lines.append(line)
            next_offset = result.next_offset
    return lines


def properties_of(messages: JavaMessages, number: int) -> dict[str, str]:
    """Returns the properties that message ``number`` is appended with."""
    properties = dict(messages.properties)
    if messages.tags:
        properties["TAGS"] = messages.tags
    if messages.keys:
        properties["KEYS"] = f"{messages.keys}{number}"
    return properties


def sys_flag_of(messages: JavaMessages) -> int:
    """Returns the flags that messages are appended with; those of IPv6 hosts are added on the way."""
    flags = messages.sys_flag
    if messages.compressed:
        flags |= COMPRESSED | COMPRESSION_ZLIB
    return flags | INNER_BATCH | NEED_UNWRAP if messages.inner_batch else flags


def stored_body(messages: JavaMessages, number: int) -> bytes:
    """Returns the body of message ``number`` as we store it."""
    body = messages.body(number)
    return zlib.compress(body) if messages.compressed else body


def inner_batch_body(messages: JavaMessages) -> bytes:
    """Returns the body of an inner batch, which stores its messages as the client sent them."""
    return encode_batch(
        BatchMessage(messages.body(number), encode_properties(properties_of(messages, number)), messages.flag)
        for number in range(messages.first, messages.first + messages.count)
    )


def java_lines(messages: JavaMessages, answers: Sequence[Line]) -> list[Line]:
    """Returns what must be served of messages that a store said it appended.

    Args:
        messages: What it was asked for.
        answers: Its ``appended`` lines for them: one for each message, or one for a batch.
    """
    lines: list[Line] = []
    for answer in answers:
        assert answer["status"] == "PUT_OK", answer
        for index, message_id in enumerate(answer["messageId"].split(",")):
            number = answer["number"] + index
            lines.append(_java_line(messages, number, answer, index, int(message_id[-16:], 16)))
    return lines


def _java_line(messages: JavaMessages, number: int, answer: Line, index: int, phy_offset: int) -> Line:
    properties = {name: value for name, value in properties_of(messages, number).items() if value}
    if messages.inner_batch:
        body = body_fields(inner_batch_body(messages))
        properties |= {"INNER_NUM": str(messages.count), "INNER_BASE": str(answer["queueOffset"])}
    elif messages.compressed:
        body = {}  # no two libraries compress alike
    else:
        body = body_fields(messages.body(number))
    sys_flag = sys_flag_of(messages)
    sys_flag |= BORN_HOST_V6 if ":" in messages.born_host.address else 0
    sys_flag |= STORE_HOST_V6 if ":" in messages.store_host.address else 0
    return {
        "cqTopic": messages.topic,
        "cqQueueId": messages.queue_id,
        "cqOffset": answer["queueOffset"] + index,
        "cqPos": phy_offset,
        "topic": messages.topic,
        "queueId": messages.queue_id,
        "sysFlag": sys_flag,
        "flag": messages.flag,
        "bornTimestamp": messages.born_timestamp,
        "storeTimestamp": answer["storeTimestamp"],
        "reconsumeTimes": messages.reconsume_times,
        "preparedTransactionOffset": 0 if messages.batch else messages.prepared_transaction_offset,
        "properties": properties,
        **body,
    }


def differences(
    wanted: Iterable[Line], served: Iterable[Line], *, ignoring: Collection[str] = ("keyFound",)
) -> list[str]:
    """Returns one sentence for each message that is missing, added, or differs in a field of ``wanted``.

    Args:
        wanted: Lines that may state less than a ``msg`` line, but all of its place.
        served: Whole ``msg`` lines.
        ignoring: Fields to leave out. ``__CRC32#`` is left out of the properties as well: only the writer of
            a record can know it.
    """
    served_at = {place(line): line for line in served}
    found: list[str] = []
    for line in wanted:
        other = served_at.pop(place(line), None)
        if other is None:
            found.append(f"{place(line)} is missing")
            continue
        for name, value in line.items():
            if name == "kind" or name in ignoring:
                continue
            left, right = _comparable(name, value), _comparable(name, other.get(name))
            if left != right:
                found.append(f"{place(line)} {name}: {_short(left)}, served {_short(right)}")
    found += [f"{extra} is served and was not wanted" for extra in served_at]
    return found


def lost_keys(served: Iterable[Line]) -> list[str]:
    """Returns one sentence for each key by which the index does not lead to its message."""
    return [
        f"{place(line)} is not found by {key!r}"
        for line in served
        for key, hits in line.get("keyFound", {}).items()
        if hits < 0
    ]


def _comparable(name: str, value: object) -> object:
    if name == "properties" and isinstance(value, dict):
        return {key: text for key, text in value.items() if key != CRC32}
    return value


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:200]

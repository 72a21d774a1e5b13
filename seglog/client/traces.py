"""Traces of messages, as clients of RocketMQ write them into RMQ_SYS_TRACE_TOPIC: text with 0x01 and 0x02.

A trace records that a message was sent (``Pub``), that a listener is about to get it (``SubBefore``), or that
the listener returned (``SubAfter``). A message of the trace topic holds many traces, one behind the other;
its keys are the ids and keys of the traced messages, by which the traces are found.

Source: ``TraceDataEncoder.java encoderFromContextBean, decoderFromTraceDataString``, 5.4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

FIELD_END: Final = "\x01"
TRACE_END: Final = "\x02"
_NONE: Final = "null"
"""The text of null in Java's StringBuilder."""


class MessageKind(enum.IntEnum):
    """The kind of a sent message, ``MessageType.java`` by ordinal."""

    NORMAL = 0
    TRANSACTION_HALF = 1
    TRANSACTION_COMMIT = 2
    DELAY = 3


class ConsumeEnd(enum.IntEnum):
    """How a listener returned, ``ConsumeReturnType.java`` by ordinal."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURN_NULL = 3
    FAILED = 4


@dataclass(frozen=True, slots=True)
class PublishTrace:
    """A message, or a batch of them, was sent and stored.

    Attributes:
        began_ms: When the send began, on the wall clock.
        region: Of the broker.
        group: Of the producer.
        topic: Where it was sent to.
        message_id: That the producer gave; those of a batch with commas between them.
        tags: Of the message; None where it has none, as the others.
        keys: With blanks between them.
        broker_address: Where it was sent to.
        body_bytes: How long its body is.
        took_ms: How long the send took.
        kind: Which kind of message.
        offset_message_id: That the broker gave.
        is_success: Whether the broker was satisfied, and not only stored it.
    """

    began_ms: int
    region: str
    group: str
    topic: str
    message_id: str
    tags: str | None
    keys: str | None
    broker_address: str
    body_bytes: int
    took_ms: int
    kind: MessageKind
    offset_message_id: str
    is_success: bool


@dataclass(frozen=True, slots=True)
class ConsumeTrace:
    """A listener is about to get a message.

    Attributes:
        began_ms: When, on the wall clock.
        region: Of the broker, as the message says.
        group: Of the consumer.
        request_id: Of the call, which its end has too.
        topic: Of the message.
        message_id: That its producer gave, or its broker where it has none.
        retry_times: How often it has failed.
        keys: With blanks between them.
    """

    began_ms: int
    region: str | None
    group: str
    request_id: str
    topic: str
    message_id: str
    retry_times: int
    keys: str | None


@dataclass(frozen=True, slots=True)
class ConsumeEndTrace:
    """A listener returned.

    Attributes:
        before: What was said before.
        took_ms: How long the call took, for each message of its batch.
        is_success: Whether it is done.
        end: How the listener came back.
        ended_ms: When, on the wall clock.
    """

    before: ConsumeTrace
    took_ms: int
    is_success: bool
    end: ConsumeEnd
    ended_ms: int


Trace: TypeAlias = PublishTrace | ConsumeTrace | ConsumeEndTrace


class TraceText(NamedTuple):
    """A trace as text.

    Attributes:
        topic: Of the message that it is about.
        text: With the end of a trace behind it.
        keys: What it is found by: id and keys of the message.
    """

    topic: str
    text: str
    keys: tuple[str, ...]


def encode_trace(trace: Trace) -> TraceText:
    """Returns a trace as RocketMQ's clients write it."""
    fields: tuple[object, ...]
    if isinstance(trace, PublishTrace):
        fields = (
            "Pub",
            trace.began_ms,
            trace.region,
            trace.group,
            trace.topic,
            trace.message_id,
            trace.tags,
            trace.keys,
            trace.broker_address,
            trace.body_bytes,
            trace.took_ms,
            int(trace.kind),
            trace.offset_message_id,
            trace.is_success,
        )
        return _text(trace.topic, trace.message_id, trace.keys, fields)
    if isinstance(trace, ConsumeTrace):
        fields = (
            "SubBefore",
            trace.began_ms,
            trace.region,
            trace.group,
            trace.request_id,
            trace.message_id,
            trace.retry_times,
            trace.keys,
        )
        return _text(trace.topic, trace.message_id, trace.keys, fields)
    before = trace.before
    fields = (
        "SubAfter",
        before.request_id,
        before.message_id,
        trace.took_ms,
        trace.is_success,
        before.keys,
        int(trace.end),
        trace.ended_ms,
        before.group,
    )
    return _text(before.topic, before.message_id, before.keys, fields)


def _text(topic: str, message_id: str, keys: str | None, fields: Iterable[object]) -> TraceText:
    found = (message_id, *(key for key in (keys or "").split(" ") if key))
    return TraceText(topic, FIELD_END.join(map(_field, fields)) + TRACE_END, found)


def _field(value: object) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    # What separates fields cannot be in one: a property cannot hold it, and a topic or group cannot either.
    return str(value)


def split_texts(
    texts: Iterable[TraceText], most_bytes: int, most_key_bytes: int
) -> Iterator[list[TraceText]]:
    """Returns texts in parts that each fit into one message; a text that is too long is a part of its own.

    Args:
        texts: All of one topic.
        most_bytes: Of the texts of a part.
        most_key_bytes: Of its keys, with blanks between them.
    """
    part: list[TraceText] = []
    size_bytes, key_bytes = 0, 0
    for text in texts:
        own_bytes = len(text.text.encode())
        own_key_bytes = sum(len(key.encode()) + 1 for key in text.keys)
        if part and (size_bytes + own_bytes > most_bytes or key_bytes + own_key_bytes > most_key_bytes):
            yield part
            part, size_bytes, key_bytes = [], 0, 0
        part.append(text)
        size_bytes += own_bytes
        key_bytes += own_key_bytes
    if part:
        yield part

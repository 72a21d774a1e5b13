"""Converts pulled records for listeners: inflates bodies, and splits inner batches into messages.

Each message is converted by itself: a body that is damaged, inflates too far or needs a codec that is not
installed costs only that message, and is never skipped silently.

Source: ``MessageDecoder.java decode, decodeMessage``, ``PullAPIWrapper.java processPullResult``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Final, NamedTuple

from seglog.errors import BodyError, CodecMissingError, CorruptError, MissingDependencyError
from seglog.storage.format.queue import batch_range
from seglog.storage.format.record import (
    COMPRESSED,
    COMPRESSION_MASK,
    INNER_BATCH,
    MAX_INFLATED_BYTES,
    NEED_UNWRAP,
    Message,
    inflate,
    iter_batch,
)
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.decode import set_properties

_BATCH: Final = INNER_BATCH | NEED_UNWRAP
_ENTRY_END: Final = props.ENTRY_END
_OF_THE_RECORD: Final = COMPRESSED | COMPRESSION_MASK | _BATCH


class Unwrapped(NamedTuple):
    """Pulled messages, with the messages of inner batches.

    Attributes:
        messages: In order. A batch that cannot be split stays one message, as stored.
        errors: The error of each batch that could not be split.
    """

    messages: list[Message]
    errors: list[BodyError]


def is_inner_batch(message: Message) -> bool:
    """Returns whether a record holds several messages, which its consumer must split."""
    return message.sys_flag & _BATCH == _BATCH


def body_of(message: Message, most_bytes: int = MAX_INFLATED_BYTES) -> bytes:
    """Returns the original body of the producer.

    Args:
        message: A pulled message, or one of :func:`unwrap`.
        most_bytes: Longest inflated body; a body that is not compressed may be longer.

    Raises:
        CodecMissingError: lz4 or zstd is not installed.
        BodyError: It does not inflate, inflates beyond ``most_bytes``, or is an inner batch.
    """
    if is_inner_batch(message):
        raise _error(message, "the body is an inner batch, and no message")
    return _inflated(message, most_bytes)


def of_its_topic(message: Message) -> Message:
    """Returns a retried message with the topic that it was sent to."""
    topic = message.properties.get(props.RETRY_TOPIC)
    return message if topic is None else dataclasses.replace(message, topic=topic)


def added_offsets(min_offset: int, max_offset: int) -> bytes:
    """Returns, in stored form, the properties that a pull adds to messages.

    They are MIN_OFFSET and MAX_OFFSET, which no record has.

    Args:
        min_offset: Queue offset of the queue's first message when the broker answered.
        max_offset: Queue offset behind its last message.
    """
    return f"{props.MIN_OFFSET}\x01{min_offset}\x02{props.MAX_OFFSET}\x01{max_offset}\x02".encode()


def add_offsets(messages: Iterable[Message], min_offset: int, max_offset: int) -> None:
    """Adds the range of their queue to pulled messages, before they are shared with other threads.

    Args:
        messages: Just decoded; their properties were not read yet.
        min_offset: As for :func:`added_offsets`.
        max_offset: Likewise.
    """
    added = added_offsets(min_offset, max_offset)
    behind = b"\x02" + added  # clients of 4.x leave out the separator after the last property
    for message in messages:
        raw = message.properties_raw
        set_properties(message, raw + (added if not raw or raw[-1] == _ENTRY_END else behind))


def unwrap(message: Message, most_bytes: int = MAX_INFLATED_BYTES) -> list[Message]:
    """Returns the messages of a record: the record itself, or the messages of an inner batch.

    Each message of a batch has its own flag, body and properties, and no failed attempts; the queue offsets
    count up from the first. All else is copied from the record, except the flag bits of a batch, which
    RocketMQ leaves in.

    Raises:
        BodyError: The body does not match the record's header, or as :func:`body_of`.
    """
    if not is_inner_batch(message):
        return [message]
    try:
        base, count = batch_range(message.properties_raw, message.queue_offset)
        parts = list(iter_batch(_inflated(message, most_bytes)))
    except CorruptError as error:
        found = f"{error.kind} +{error.position_bytes}: expected {error.expected}, found {error.found}"
        raise _error(message, f"the inner batch is damaged: {found}") from error
    if len(parts) != count:
        raise _error(message, f"the inner batch has {len(parts)} messages, its record says {count}")
    return [
        dataclasses.replace(
            message,
            queue_offset=base + number,
            sys_flag=message.sys_flag & ~_OF_THE_RECORD,
            flag=part.flag,
            body=bytes(part.body),
            body_crc=0,
            reconsume_times=0,
            prepared_transaction_offset=0,
            properties_raw=part.properties,
        )
        for number, part in enumerate(parts)
    ]


def unwrap_all(messages: Iterable[Message], most_bytes: int = MAX_INFLATED_BYTES) -> Unwrapped:
    """Returns pulled messages with inner batches replaced by their messages."""
    found = Unwrapped([], [])
    for message in messages:
        if message.sys_flag & _BATCH != _BATCH:
            found.messages.append(message)
            continue
        try:
            found.messages.extend(unwrap(message, most_bytes))
        except BodyError as error:
            found.messages.append(message)
            found.errors.append(error)
    return found


def _inflated(message: Message, most_bytes: int) -> bytes:
    codec = message.compression
    if codec is None:
        return message.body
    try:
        return inflate(message.body, codec, most_bytes)
    except MissingDependencyError as error:
        raise CodecMissingError(f"{place_of(message)}: {error}", help=error.help) from error
    except CorruptError as error:
        reason = f"the {codec} body does not inflate: expected {error.expected}, found {error.found}"
        raise _error(message, reason) from error


def _error(message: Message, reason: str) -> BodyError:
    return BodyError(f"{place_of(message)}: {reason}")


def place_of(message: Message) -> str:
    """Returns the text that names a message in errors: its queue, its offset, and its id.

    A retried message has the name of its own topic, and the queue and offset of the record in its group's
    retry topic.
    """
    name = f"message {message.unique_key or message.message_id}"
    if message.properties.get(props.RETRY_TOPIC) == message.topic:
        at = f"{message.queue_id} @{message.queue_offset}"
        return f"the group's retry topic/{at}, {name} of topic {message.topic}"
    return f"{message.topic}/{message.queue_id} @{message.queue_offset}, {name}"

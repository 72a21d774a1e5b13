"""What a listener gets of pulled records: bodies inflated, and the messages of inner batches one by one.

Each message by itself: one whose body is damaged, inflates too far or needs a codec that is not here costs
that message only, and is never passed without a word.

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
    """Pulled messages, those of inner batches among them.

    Attributes:
        messages: In order. A batch that cannot be taken apart is one message still, as it is stored.
        errors: Why, for each of these.
    """

    messages: list[Message]
    errors: list[BodyError]


def is_inner_batch(message: Message) -> bool:
    """Returns whether a record holds several messages, which its consumer is to take apart."""
    return message.sys_flag & _BATCH == _BATCH


def body_of(message: Message, most_bytes: int = MAX_INFLATED_BYTES) -> bytes:
    """Returns the body as the producer gave it.

    Args:
        message: As pulled, or of :func:`unwrap`.
        most_bytes: How long it may be when it is inflated; a body that is not compressed may be longer.

    Raises:
        CodecMissingError: lz4 or zstd is not installed.
        BodyError: It does not inflate, inflates beyond ``most_bytes``, or is an inner batch.
    """
    if is_inner_batch(message):
        raise _error(message, "the body is an inner batch, and no message")
    return _inflated(message, most_bytes)


def of_its_topic(message: Message) -> Message:
    """Returns a message that is tried again under the name of the topic that it was sent to."""
    topic = message.properties.get(props.RETRY_TOPIC)
    return message if topic is None else dataclasses.replace(message, topic=topic)


def added_offsets(min_offset: int, max_offset: int) -> bytes:
    """Returns the properties in stored form that pulled messages have beside their own.

    They are MIN_OFFSET and MAX_OFFSET, which no record has.

    Args:
        min_offset: Of the first message of the queue, when the broker answered.
        max_offset: Behind its last one.
    """
    return f"{props.MIN_OFFSET}\x01{min_offset}\x02{props.MAX_OFFSET}\x01{max_offset}\x02".encode()


def add_offsets(messages: Iterable[Message], min_offset: int, max_offset: int) -> None:
    """Adds to pulled messages, before anyone else has them, between which offsets their queue was.

    Args:
        messages: As decoded now; their properties were not asked for yet.
        min_offset: As of :func:`added_offsets`.
        max_offset: Likewise.
    """
    added = added_offsets(min_offset, max_offset)
    behind = b"\x02" + added  # where a client of 4.x has left the end of the last property out
    for message in messages:
        raw = message.properties_raw
        set_properties(message, raw + (added if not raw or raw[-1] == _ENTRY_END else behind))


def unwrap(message: Message, most_bytes: int = MAX_INFLATED_BYTES) -> list[Message]:
    """Returns the messages of a record: itself, or those of the inner batch that it is.

    Each has a flag, a body and properties of its own and was never tried, queue offsets follow one another
    from the first, and all else is that of the record, but for the bits that say that it is a batch: RocketMQ
    leaves these in.

    Raises:
        BodyError: The body does not hold what the record says, or as :func:`body_of`.
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
    """Returns pulled messages with those of inner batches in the place of their records."""
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
    """Returns what errors call a message: its queue, its offset, and its id.

    What is tried again has the name of its own topic, and queue and offset of the record in its group's retry
    topic.
    """
    name = f"message {message.unique_key or message.message_id}"
    if message.properties.get(props.RETRY_TOPIC) == message.topic:
        at = f"{message.queue_id} @{message.queue_offset}"
        return f"the group's retry topic/{at}, {name} of topic {message.topic}"
    return f"{message.topic}/{message.queue_id} @{message.queue_offset}, {name}"

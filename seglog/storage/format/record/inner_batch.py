"""Messages in one body, one after another: what a client sends as a batch, and what an inner batch stores.

An outer batch is taken apart by the broker and leaves no mark on disk. An inner batch (batch queues) is
one record whose body is the client's batch untouched; its messages have a flag, a body and properties of
their own, and take everything else from the record.

Source: ``MessageDecoder.java encodeMessage, decodeMessage, countInnerMsgNum``. Magic and CRC are written
as 0 there and never read. Java counts by the sizes but decodes by the parts; here they must
agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from seglog.errors import CorruptError, MessageIllegalError
from seglog.storage.format.layout import Buffer, Field, Layout
from seglog.storage.format.record.properties import MAX_PROPERTIES_BYTES

BATCH_HEAD: Final = Layout(
    "Message of a batch, head",
    "MessageDecoder.java encodeMessage",
    (
        Field("size_bytes", "i32", "bytes", "the whole message, this field included"),
        Field("magic", "i32", "–", "0"),
        Field("body_crc", "i32", "–", "0"),
        Field("flag", "i32", "–", "the application's own, opaque"),
        Field("body_bytes", "i32", "bytes", "size of the body that follows"),
    ),
)
BATCH_PROPERTIES: Final = Layout(
    "Message of a batch, behind the body",
    "MessageDecoder.java encodeMessage",
    (Field("properties_bytes", "i16", "bytes", "size of the properties that follow"),),
)

_HEAD: Final = BATCH_HEAD.struct
_PROPERTIES: Final = BATCH_PROPERTIES.struct
MIN_BATCH_MESSAGE_BYTES: Final = BATCH_HEAD.size_bytes + BATCH_PROPERTIES.size_bytes


@dataclass(frozen=True, slots=True)
class BatchMessage:
    """One message of a batch.

    Attributes:
        body: A view of the batch it was read from, valid as long as that is.
        properties: As stored.
        flag: The application's own, opaque.
    """

    body: Buffer
    properties: bytes = b""
    flag: int = 0


def encode_batch(messages: Iterable[BatchMessage]) -> bytes:
    """Returns the body that holds the messages.

    Raises:
        MessageIllegalError: Properties of a message do not fit their 16-bit size.
    """
    pieces: list[Buffer] = []
    for message in messages:
        body_size, properties_size = len(message.body), len(message.properties)
        if properties_size > MAX_PROPERTIES_BYTES:
            raise MessageIllegalError(
                f"properties of a message in a batch take {properties_size} bytes, at most"
                f" {MAX_PROPERTIES_BYTES}"
            )
        size = MIN_BATCH_MESSAGE_BYTES + body_size + properties_size
        pieces += (
            _HEAD.pack(size, 0, 0, message.flag, body_size),
            message.body,
            _PROPERTIES.pack(properties_size),
            message.properties,
        )
    return b"".join(pieces)


def iter_batch(body: Buffer) -> Iterator[BatchMessage]:
    """Yields the messages of a body, in order; nothing for an empty one.

    Raises:
        CorruptError: Sizes that do not add up, at that message; those before it were yielded.
    """
    view = memoryview(body)
    at = 0
    while at < len(view):
        room = len(view) - at
        if room < MIN_BATCH_MESSAGE_BYTES:
            raise _damage(at, f"at least {MIN_BATCH_MESSAGE_BYTES} bytes", room)
        size, _magic, _crc, flag, body_size = _HEAD.unpack_from(view, at)
        if not MIN_BATCH_MESSAGE_BYTES <= size <= room:
            raise _damage(at, f"a size of {MIN_BATCH_MESSAGE_BYTES}..{room}", size)
        if not 0 <= body_size <= size - MIN_BATCH_MESSAGE_BYTES:
            raise _damage(at, f"a body of at most {size - MIN_BATCH_MESSAGE_BYTES} bytes", body_size)
        body_at = at + BATCH_HEAD.size_bytes
        tail_at = body_at + body_size
        properties_at = tail_at + BATCH_PROPERTIES.size_bytes
        end = at + size
        properties_size = _PROPERTIES.unpack_from(view, tail_at)[0]
        if properties_at + properties_size != end:
            raise _damage(at, f"properties of {end - properties_at} bytes", properties_size)
        yield BatchMessage(view[body_at:tail_at], bytes(view[properties_at:end]), flag)
        at = end


def count_batch(body: Buffer) -> int:
    """Returns how many messages a body holds.

    Raises:
        CorruptError: As :func:`iter_batch`.
    """
    return sum(1 for _message in iter_batch(body))


def _damage(at: int, expected: str, found: int) -> CorruptError:
    return CorruptError("batch", position_bytes=at, expected=expected, found=found)

"""Body of SEND_BATCH_MESSAGE: messages one after another, each with its own flag and properties.

Source: ``MessageDecoder.java encodeMessage/decodeMessage``. Magic and CRC are written as 0 there and not
looked at by the broker.
"""

from __future__ import annotations

from seglog.errors import ProtocolError
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.storage.format.record import BATCH_HEAD, BATCH_PROPERTIES

_HEAD = BATCH_HEAD.struct
_PROPERTIES = BATCH_PROPERTIES.struct
_FIXED_BYTES = BATCH_HEAD.size_bytes + BATCH_PROPERTIES.size_bytes
_MAX_PROPERTIES_BYTES = 0x7FFF


def encoded_size(batch: MessageBatch) -> int:
    """Returns how many bytes :func:`encode_batch` makes."""
    sizes = [len(message.body) + len(message.properties) for message in batch.messages]
    return _FIXED_BYTES * len(sizes) + sum(sizes)


def encode_batch(batch: MessageBatch) -> bytes:
    """Returns the body that a client sends.

    Raises:
        ProtocolError: Properties of a message do not fit their 16-bit length.
    """
    pieces: list[bytes | memoryview] = []
    for message in batch.messages:
        if len(message.properties) > _MAX_PROPERTIES_BYTES:
            raise ProtocolError(
                f"properties take {len(message.properties)} bytes, at most {_MAX_PROPERTIES_BYTES}"
            )
        size = _FIXED_BYTES + len(message.body) + len(message.properties)
        pieces.append(_HEAD.pack(size, 0, 0, message.flag, len(message.body)))
        pieces.append(message.body)
        pieces.append(_PROPERTIES.pack(len(message.properties)))
        pieces.append(message.properties)
    return b"".join(pieces)


def decode_batch(data: bytes | memoryview) -> MessageBatch:
    """Returns the messages of a batch; bodies are views of ``data``.

    Raises:
        ProtocolError: Lengths that do not add up, or no message at all.
    """
    view = memoryview(data)
    messages: list[BatchMessage] = []
    at = 0
    while at < len(view):
        if len(view) - at < _FIXED_BYTES:
            raise ProtocolError(f"batch message at byte {at} is cut short")
        size, _magic, _crc, flag, body_size = _HEAD.unpack_from(view, at)
        body_at = at + _HEAD.size
        tail_at = body_at + body_size
        end = at + size
        if body_size < 0 or size < _FIXED_BYTES + body_size or end > len(view):
            raise ProtocolError(f"batch message at byte {at} has size {size} and a body of {body_size}")
        properties_at = tail_at + _PROPERTIES.size
        if properties_at + _PROPERTIES.unpack_from(view, tail_at)[0] != end:
            raise ProtocolError(f"batch message at byte {at} has size {size}, its parts have another")
        messages.append(BatchMessage(view[body_at:tail_at], bytes(view[properties_at:end]), flag))
        at = end
    if not messages:
        raise ProtocolError("the batch is empty")
    return MessageBatch(messages)

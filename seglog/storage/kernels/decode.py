"""Messages out of records: what ``decode_message`` of the format does, natively where that was built."""

from __future__ import annotations

from typing import Protocol

from seglog.storage.format.record.message import Message, new_host
from seglog.storage.format.record.message import decode_message as python_decode_message
from seglog.storage.kernels import KERNELS, NATIVE


class DecodeMessage(Protocol):
    """What both ways of decoding are."""

    def __call__(self, record: bytes | bytearray | memoryview, /, *, verify: bool = False) -> Message:
        """Returns the message of a whole record."""


decode_message: DecodeMessage = python_decode_message
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    decode_message = _native.Decoder(Message, new_host, python_decode_message).decode

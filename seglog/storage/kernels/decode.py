"""Decodes messages from records: ``decode_message`` of the format, natively if the kernels were built.

Native messages keep the fields of their record as they are stored, and create Python objects on demand. They
pass every test for the class :class:`Message` (``isinstance``, ``__class__``, patterns, copies), have its
methods, and are equal to messages that Python code decodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from seglog.storage.format.record.message import Message, new_host
from seglog.storage.format.record.message import decode_message as python_decode_message
from seglog.storage.kernels import KERNELS, NATIVE

if TYPE_CHECKING:
    from seglog.storage.kernels import _native
    from seglog.storage.kernels.calls.read_result import ReadResult


class DecodeMessage(Protocol):
    """The interface of both decoders."""

    def __call__(self, record: bytes | bytearray | memoryview, /, *, verify: bool = False) -> Message:
        """Returns the message of a whole record."""


def python_iter_messages(result: ReadResult, /) -> Iterator[Message]:
    """Yields the messages of a read; decodes each message when it is needed."""
    return map(python_decode_message, result.records)


decoder: _native.Decoder | None = None
decode_message: DecodeMessage = python_decode_message
iter_messages: Callable[[ReadResult], Iterator[Message]] = python_iter_messages
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    decoder = _native.Decoder(Message, new_host, python_decode_message)
    decode_message = decoder.decode
    iter_messages = decoder.iterate


def decode_runs(runs: Sequence[memoryview], added: bytes) -> list[Message] | None:
    """Returns the messages of all records of a pull in one call, if native kernels can decode them.

    Args:
        runs: Whole records, one after another.
        added: More properties, in stored form; they are appended to those of each message.

    Returns:
        None with Python kernels, and if a record is damaged or is an inner batch: then the caller decodes the
        records one by one.
    """
    return None if decoder is None else decoder.decode_runs(list(runs), added)


def set_properties(message: Message, properties_raw: bytes) -> None:
    """Replaces the stored properties of a message, before the message is passed on or its own are decoded."""
    if decoder is None or not decoder.set_properties(message, properties_raw):
        # Faster than object.__setattr__. Allowed here only: once a message is passed on, it never changes.
        vars(message)["properties_raw"] = properties_raw

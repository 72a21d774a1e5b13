"""Messages out of records: what ``decode_message`` of the format does, natively where that was built.

Native messages hold what their record says as it is stored, and make Python objects of it on demand. They are
of the class :class:`Message` to every test (``isinstance``, ``__class__``, patterns, copies), have
its methods, and are equal to those that Python makes.
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
    """What both ways of decoding are."""

    def __call__(self, record: bytes | bytearray | memoryview, /, *, verify: bool = False) -> Message:
        """Returns the message of a whole record."""


def python_iter_messages(result: ReadResult, /) -> Iterator[Message]:
    """Yields the messages of a read, each decoded when its turn comes."""
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
    """Returns the messages of all records of a pull in one call, where that can be done.

    Args:
        runs: Whole records, one after another.
        added: More properties, in stored form; each message has them behind its own.

    Returns:
        None where kernels are Python's, and where a record is not right or is an inner batch: then the caller
        looks at each record by itself.
    """
    return None if decoder is None else decoder.decode_runs(list(runs), added)


def set_properties(message: Message, properties_raw: bytes) -> None:
    """Gives a message other stored properties, before it is handed on and before its own are decoded."""
    if decoder is None or not decoder.set_properties(message, properties_raw):
        # What object.__setattr__ does, which costs more: a message is a value once it is handed on.
        vars(message)["properties_raw"] = properties_raw

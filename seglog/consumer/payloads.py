"""The values that a consumer's ``decode`` makes from the bodies of messages.

Source: none in RocketMQ's client for Java; ``value_deserializer`` of kafka-python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from seglog.consumer.hands.handed import as_given
from seglog.consumer.message_bodies import place_of
from seglog.errors import BodyError, PayloadError
from seglog.storage.format.record import Message
from seglog.text import text_of

P = TypeVar("P")


class DecodedMessage(Message, Generic[P]):
    """A message of a consumer with ``decode``: :attr:`value` is the decoded body.

    It is a ``Message`` in all else.
    """

    @property
    def value(self) -> P:
        """The result of ``decode``.

        Raises:
            PayloadError: ``decode`` raised; a listener never gets such a message, but a poll returns it.
            BodyError: The body could not be inflated, so it was not decoded.
        """
        found = vars(self)
        if "_value" not in found:
            error = found.get("_value_error")
            raise error or PayloadError(f"{place_of(self)}: this copy of it was not decoded")
        value: P = found["_value"]
        return value


def decoded(message: Message, decode: Callable[[bytes], object]) -> DecodedMessage[Any]:
    """Returns a message with its value, for a listener.

    Args:
        message: The pulled message.
        decode: Takes the original body of the producer.

    Raises:
        PayloadError: ``decode`` raises.
        BodyError: The body does not inflate.
    """
    given = as_given(message)
    try:
        value = decode(given.body)
    except Exception as error:  # the application's code: any error fails its message
        what = f"decode raised {type(error).__name__}: {text_of(error)}"
        raise PayloadError(f"{place_of(message)}: {what}") from error
    return _with(given, _value=value)


def decoded_or_not(message: Message, decode: Callable[[bytes], object]) -> DecodedMessage[Any]:
    """Returns a message for an application that polls, with its value or the error that ``value`` raises."""
    try:
        return decoded(message, decode)
    except BodyError as error:
        return _with(message, _value_error=error)


def _with(message: Message, **more: object) -> DecodedMessage[Any]:
    made: DecodedMessage[Any] = object.__new__(DecodedMessage)
    vars(made).update(vars(message), **more)
    return made

"""Calls a producer's ``encode``, which makes a body from a payload.

Source: none in RocketMQ's client for Java; ``value_serializer`` of kafka-python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import iscoroutinefunction
from typing import TypeVar, cast

from seglog.arguments import as_body, refusal, shown
from seglog.errors import InvalidArgumentError
from seglog.storage.writes import NewMessage
from seglog.text import text_of

P = TypeVar("P")
V = TypeVar("V")


def encoding(encode: Callable[[P], bytes]) -> Callable[[str, P], bytes | memoryview]:
    """Returns a function that makes bodies, with the signature of :func:`~seglog.arguments.as_body`.

    Raises:
        InvalidArgumentError: It is not a plain function.
    """
    if not _is_plain(encode):
        raise refusal("encode", encode, "a plain function that returns bytes")

    def to_body(name: str, payload: P) -> bytes | memoryview:
        try:
            made = encode(payload)
        except Exception as error:  # the application's code: after any error nothing is sent
            what = f"encode raised {type(error).__name__}: {text_of(error)}"
            raise InvalidArgumentError(
                f"{name}={shown(payload)} is not sent: {what}", help="send what encode takes"
            ) from error
        return as_body("what encode returned", made)

    return to_body


def _is_plain(encode: object) -> bool:
    return callable(encode) and not iscoroutinefunction(encode)


def unchanging(value: V) -> V:
    """Returns what a task sends as it is now: a caller may fill a buffer, list or dict again before its turn.

    Payloads of other kinds are returned as they are: ``encode`` reads them when they are sent.
    """
    if isinstance(value, bytearray | memoryview):
        return cast("V", bytes(value))
    if isinstance(value, NewMessage):
        body, keys, properties = unchanging(value.body), fixed(value.keys), fixed(value.properties)
        return cast("V", replace(value, body=body, keys=keys, properties=properties))
    return value


def fixed(value: V) -> V:
    """Returns a list, set or dict as it is now; anything else is returned as it is."""
    if isinstance(value, list | set):
        return cast("V", tuple(value))
    return cast("V", dict(value)) if isinstance(value, dict) else value

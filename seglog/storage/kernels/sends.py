"""Usual sends of a broker, done natively: from the request to its response in one call.

There is no Python twin here: the handlers of :mod:`seglog.broker` are complete, and define the right result.
They are called if the native result is None; then the native call has done nothing. With Python kernels that
is every send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from seglog.storage.kernels import KERNELS, NATIVE

Q = TypeVar("Q")
P = TypeVar("P")
A = TypeVar("A")
T = TypeVar("T")


class Shutting(Protocol):
    """A switch that stops sends while it is shut."""

    is_shut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules(Generic[Q, P, A, T]):
    """The classes and rules of a broker's sends; the classes keep their attributes in slots.

    Attributes:
        request: Class of requests.
        asked: Class of the header of a send.
        peer: Class of the clients that send requests.
        response: Class of responses.
        answered: Class of the header of the response to a send.
        send_codes: Codes of the two requests that send one message.
        success: Code of a successful response.
        async_text: Text of a response for a message that is not known to be on the disk.
        topic_of: Returns the settings of a topic by its name, the same object until they change.
        queues_of: Returns the number of queues of a topic, by name and settings, whose messages only need to
            be stored; 0 for a topic with special rules.
        disk: Shut while the disk takes no messages.
        stamp: Encoded properties that every message gets.
        ext: Fields that every response has.
    """

    request: type[Q]
    asked: type
    peer: type[P]
    response: type[A]
    answered: type
    send_codes: tuple[int, int]
    success: int
    async_text: str
    topic_of: Callable[[str], T | None]
    queues_of: Callable[[str, T], int]
    disk: Shutting
    stamp: bytes
    ext: Mapping[str, str]


def new_sends(path: object, rules: SendRules[Q, P, A, T]) -> Callable[[Q, P], A | None]:
    """Returns the native send: given a request and its client, it returns the response.

    It returns None for a request that the handlers must answer; it has done nothing then. It never waits.

    Args:
        path: The fast path of the store.
        rules: The classes and rules of the sends.
    """
    if KERNELS == NATIVE:
        from seglog.storage.kernels import _native

        if isinstance(path, _native.FastPath):
            return _native.UsualSends(path, rules).try_send
    return _left_alone


def _left_alone(_request: object, _peer: object) -> None:
    """Leaves a send to the handlers."""

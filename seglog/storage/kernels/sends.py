"""Sends of a broker, made natively where they are usual: from the request to its answer in one call.

There is no Python twin here: the handlers of :mod:`seglog.broker` are complete, and say what is right. They
are tried after these, where the answer is None; then nothing was done. Over Python kernels that is
every send.
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
    """What stops sends at times."""

    is_shut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRules(Generic[Q, P, A, T]):
    """What sends of a broker are made of; the classes keep their attributes in slots.

    Attributes:
        request: Class of requests.
        asked: Class of the header of a send.
        peer: Class of who asks.
        response: Class of answers.
        answered: Class of the header of the answer to a send.
        send_codes: Of the two requests that send one message.
        success: Code of an answer that is no refusal.
        async_text: How an answer says that the message is not known to be on the disk.
        topic_of: Returns the settings of a topic by its name, always the same object until they change.
        queues_of: Returns how many queues of a topic, by name and settings, take messages that need
            nothing but to be stored; 0 for a topic that has rules of its own.
        disk: Whether it takes messages.
        stamp: Encoded properties that every message gets.
        ext: Fields that every answer has.
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
    """Returns what sends are tried with: given a request and who asks, it returns the answer.

    It returns None for a request that the handlers must answer; nothing was done then. It never waits.

    Args:
        path: The fast path of the store.
        rules: What they are made of.
    """
    if KERNELS == NATIVE:
        from seglog.storage.kernels import _native

        if isinstance(path, _native.FastPath):
            return _native.UsualSends(path, rules).try_send
    return _left_alone


def _left_alone(_request: object, _peer: object) -> None:
    """Leaves a send to the handlers."""

"""The work of a client and its messages, the same for all clients."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from perf.figures.sample import check

BODY_BYTES: Final = 1_024
SENDERS: Final = 32
"""Threads that send at the same time, each a message at a time, where no other number is said."""
IN_FLIGHT: Final = 128
"""Sends without an answer, where a call does not wait for it."""
BATCH: Final = 128
"""Messages of a batch."""
PACE_PER_S: Final = 500
"""Messages a second, where the time from a send to the listener is measured."""
LIMIT_S: Final = 120
"""Longest duration of a piece of work."""
_NUMBER_BYTES: Final = 8


class Kind(enum.StrEnum):
    """The kinds of measured work."""

    SEND = "send"
    TOGETHER = "together"
    FLIGHT = "flight"
    BATCH = "batch"
    CONSUME = "consume"
    ORDERLY = "orderly"
    PACED = "paced"

    @property
    def is_send(self) -> bool:
        """Whether messages are sent; otherwise they are consumed."""
        return self not in (Kind.CONSUME, Kind.ORDERLY)


TITLES: Final = {
    Kind.SEND: "send, one by one",
    Kind.TOGETHER: f"send, {SENDERS} threads",
    Kind.FLIGHT: f"send, {IN_FLIGHT} in flight",
    Kind.BATCH: f"send, batches of {BATCH}",
    Kind.CONSUME: "consume side by side",
    Kind.ORDERLY: "consume in order",
    Kind.PACED: f"send and consume, {PACE_PER_S} a second",
}


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work; it is done twice, and measured the second time.

    Attributes:
        kind: Which.
        target: Address of a name server; a folder where the client has its broker in the process.
        topic: What messages are sent to, or consumed from.
        name: A word that no other piece of work has, for groups.
        messages: How many.
        senders: Threads that send them, for :data:`Kind.TOGETHER`.
        body_bytes: Of each message.
        batch: Most messages that a listener is given at a time.
    """

    kind: Kind
    target: str
    topic: str
    name: str
    messages: int
    senders: int = SENDERS
    body_bytes: int = BODY_BYTES
    batch: int = 1


def body_of(number: int, body_bytes: int = BODY_BYTES) -> bytes:
    """Returns a body: text, because a client of others reads it up to the first zero."""
    return b"%08d" % number + b"x" * (body_bytes - _NUMBER_BYTES)


def check_seen(bodies: Iterable[bytes], messages: int, body_bytes: int = BODY_BYTES) -> None:
    """Checks the messages of a consumer: each was given once, and as it was sent.

    Raises:
        SanityError: A message is missing, was given twice, or has another body.
    """
    seen = list(bodies)
    check(messages, len(seen), "messages that a consumer was given")
    check(messages, len(set(seen)), "different messages among them")
    check({body_of(number, body_bytes) for number in range(messages)}, set(seen), "what they hold")

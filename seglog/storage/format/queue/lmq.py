"""LMQ: further queues that one record appears in, by name, each with its own offsets.

The producer names them in INNER_MULTI_DISPATCH, joined by commas; the append gives each an offset and
writes INNER_MULTI_QUEUE_OFFSET in the same order. Dispatch then puts the record's unit into each of
those queues: queue 0 for names that begin with ``%LMQ%``, the record's own queue id for others.

What RocketMQ does with odd values is kept where it is harmless: both properties must be there, the counts
must agree after trailing empty pieces are dropped (Java's ``split``), and names that hold ``/`` are passed
over, as they would leave the store. An offset that is no number, which RocketMQ itself writes for names
without the prefix, stops its dispatch thread at that record for good; here that one name is passed over.

Source: ``LmqDispatch.java``, ``ConsumeQueue.java multiDispatchLmqQueue``, ``MixAll.java topicAllowsLMQ``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from seglog.errors import InvalidArgumentError
from seglog.storage.format.names import (
    LMQ_PREFIX,
    MAX_SYSTEM_TOPIC_BYTES,
    RETRY_PREFIX,
    SCHEDULE_TOPIC,
    SYSTEM_PREFIX,
)
from seglog.storage.format.record import properties as props

_NAMES: Final = props.INNER_MULTI_DISPATCH.encode()
_OFFSETS: Final = props.INNER_MULTI_QUEUE_OFFSET.encode()
_DROPPED_ON_WRITE: Final = (_OFFSETS + b"\x01", props.WAIT.encode() + b"\x01")
_MAX_OFFSET_DIGITS: Final = 18


def plain_queue_kind(topic: str) -> str:
    """Returns the kind of a queue with 20-byte units: ``lmq``, ``delay`` or ``plain``."""
    if topic.startswith(LMQ_PREFIX):
        return "lmq"
    return "delay" if topic == SCHEDULE_TOPIC else "plain"


class MultiQueue(NamedTuple):
    """A further queue of a record, and the record's offset in it."""

    name: str
    queue_id: int
    queue_offset: int


def topic_allows_lmq(topic: str) -> bool:
    """Returns whether records of a topic may appear in further queues; system and retry topics' do not."""
    return not topic.startswith((RETRY_PREFIX, SYSTEM_PREFIX)) and topic != SCHEDULE_TOPIC


def lmq_names(properties: bytes) -> list[str]:
    """Returns the names a producer asks for, in order; the append must give each one an offset.

    Args:
        properties: As stored or about to be.
    """
    return _split(props.find_property(properties, _NAMES))


def is_queue_name(name: str) -> bool:
    """Returns whether dispatch makes a queue of this name: it must be able to name one folder."""
    if "/" in name or "\0" in name or name in (".", ".."):
        return False
    return 0 < len(name.encode()) <= MAX_SYSTEM_TOPIC_BYTES


def multi_queues(topic: str, queue_id: int, properties: bytes) -> list[MultiQueue]:
    """Returns the further queues that a record belongs to.

    Args:
        topic: Of the record.
        queue_id: Of the record.
        properties: Of the record, as stored.
    """
    if _NAMES not in properties or not topic_allows_lmq(topic):
        return []
    names = lmq_names(properties)
    offsets = _split(props.find_property(properties, _OFFSETS))
    if len(names) != len(offsets):
        return []
    return [
        MultiQueue(name, 0 if name.startswith(LMQ_PREFIX) else queue_id, int(offset))
        for name, offset in zip(names, offsets, strict=True)
        if is_queue_name(name) and offset.isascii() and offset.isdigit() and len(offset) <= _MAX_OFFSET_DIGITS
    ]


def with_queue_offsets(properties: bytes, queue_offsets: Sequence[int]) -> bytes:
    """Returns properties that say which offsets the record has in its further queues.

    As RocketMQ does, WAIT is dropped from the stored properties of such a record.

    Args:
        properties: With INNER_MULTI_DISPATCH, without ``__CRC32#``.
        queue_offsets: One for each of :func:`lmq_names`.

    Raises:
        InvalidArgumentError: Another number of offsets than of names.
    """
    names = lmq_names(properties)
    if len(names) != len(queue_offsets):
        raise InvalidArgumentError(f"{len(queue_offsets)} offsets for {len(names)} queues")
    kept = [piece for piece in properties.split(b"\x02") if piece and not piece.startswith(_DROPPED_ON_WRITE)]
    kept.append(_OFFSETS + b"\x01" + ",".join(map(str, queue_offsets)).encode())
    return b"".join(piece + b"\x02" for piece in kept)


def _split(value: bytes | None) -> list[str]:
    """Splits at commas as Java does: a blank value has no pieces, trailing empty ones do not count."""
    text = "" if value is None else value.decode("utf-8", "replace")
    return text.rstrip(",").split(",") if text.strip(" ,") else []

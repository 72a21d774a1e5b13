"""Records whose properties hold queue offsets: encoded under the append lock, when the offsets are known.

The properties of an inner batch hold its first offset (INNER_BASE); those of a record with
INNER_MULTI_DISPATCH hold one offset for each further queue.

Source: ``BatchConsumeQueue.java assignQueueOffset``, ``LmqDispatch.java wrapLmqDispatch``,
``DefaultMessageStore.java asyncPutMessage``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from seglog.errors import CorruptError, MessageIllegalError
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue.batch_consume_queue import MAX_BATCH_SIZE
from seglog.storage.format.queue.lmq import is_queue_name, lmq_names, topic_allows_lmq, with_queue_offsets
from seglog.storage.format.record import COMPRESSED, INNER_BATCH, takes_queue_offset
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.inner_batch import count_batch
from seglog.storage.kernels.pending_record import PendingRecord

INNER: Final = b"INNER_"
"""The prefix of all property names that need an order."""
_NUM: Final = props.INNER_NUM.encode()
_BASE: Final = props.INNER_BASE.encode()
_OFFSETS: Final = props.INNER_MULTI_QUEUE_OFFSET.encode()
_UNPLACED: Final = 0
"""The offset for a name that no queue can have; RocketMQ skips that name, but must find a number here."""


@dataclass(frozen=True, slots=True)
class Order:
    """Records to append once the offsets are known.

    Attributes:
        make: Returns the records, given the queue offset of the first one and those in ``further``.
        further: LMQ queues that the one record appears in too.
        batch_size: Messages in each record.
    """

    make: Callable[[int, Sequence[int]], Sequence[PendingRecord]]
    further: tuple[str, ...] = ()
    batch_size: int = 1


def make_order(
    topic: str,
    body: bytes | bytearray | memoryview,
    properties: bytes,
    sys_flag: int,
    with_properties: Callable[[bytes], PendingRecord],
    *,
    is_batch_topic: bool,
) -> Order | None:
    """Returns the order to append a record; None if its properties need no offsets.

    Args:
        topic: Its topic.
        body: Its body.
        properties: Its encoded properties, without the offsets.
        sys_flag: Its flags.
        with_properties: Returns the record with other properties.
        is_batch_topic: Whether the topic has batch queues.

    Raises:
        MessageIllegalError: An inner batch for a plain queue, INNER_NUM without the flag or that is no
            number of messages, or a further queue without the prefix of LMQ, to which RocketMQ gives no
            offset and then stops dispatching.
    """
    batch_size = _batch_size(topic, body, properties, sys_flag, is_batch_topic=is_batch_topic)
    asked: list[str] = []
    if topic_allows_lmq(topic) and takes_queue_offset(sys_flag):
        asked = lmq_names(properties)
    for name in asked:
        if not name.startswith(LMQ_PREFIX) or name == topic:
            raise MessageIllegalError(
                f"the further queue {name[:80]!r} does not begin with {LMQ_PREFIX}, or is the message's own"
            )
    further = tuple(dict.fromkeys(name for name in asked if is_queue_name(name)))
    if batch_size is None and not asked:
        return None

    def make(first: int, offsets: Sequence[int]) -> Sequence[PendingRecord]:
        raw = properties
        if batch_size is not None:
            raw = _with_range(raw, first, batch_size)
        if asked:
            given = dict(zip(further, offsets, strict=True))
            raw = with_queue_offsets(raw, [given.get(name, _UNPLACED) for name in asked])
        return (with_properties(raw),)

    return Order(make, further, batch_size or 1)


def check_unordered(properties: bytes) -> None:
    """Refuses properties that only an append with an order may write, for messages of an outer batch.

    Raises:
        MessageIllegalError: They hold queue offsets.
    """
    for name in (_NUM, _BASE, _OFFSETS):
        if props.find_property(properties, name) is not None:
            raise MessageIllegalError(f"a message of a batch has the property {name.decode()}")


def _batch_size(
    topic: str,
    body: bytes | bytearray | memoryview,
    properties: bytes,
    sys_flag: int,
    *,
    is_batch_topic: bool,
) -> int | None:
    """Returns how many messages an inner batch has, None for any other record."""
    stated = props.find_property(properties, _NUM)
    if not sys_flag & INNER_BATCH:
        if stated is not None:
            raise MessageIllegalError("a message that is no inner batch has the property INNER_NUM")
        return None
    if not is_batch_topic:
        raise MessageIllegalError(
            f"inner batches need a topic with queue.type=BatchCQ, and {topic} is none", help="use put_batch"
        )
    if stated is not None:
        count = int(stated) if stated.isdigit() and len(stated) <= len(str(MAX_BATCH_SIZE)) else 0
    elif sys_flag & COMPRESSED:
        raise MessageIllegalError("a compressed inner batch must state its size in INNER_NUM")
    else:
        try:
            count = count_batch(body)
        except CorruptError as error:
            raise MessageIllegalError(f"the body is no inner batch: {error}") from error
    if not 1 <= count <= MAX_BATCH_SIZE:
        raise MessageIllegalError(f"an inner batch holds 1..{MAX_BATCH_SIZE} messages, not {count}")
    return count


def _with_range(properties: bytes, base: int, count: int) -> bytes:
    dropped = (_NUM + b"\x01", _BASE + b"\x01")
    kept = [piece for piece in properties.split(b"\x02") if piece and not piece.startswith(dropped)]
    kept += [_NUM + b"\x01%d" % count, _BASE + b"\x01%d" % base]
    return b"".join(piece + b"\x02" for piece in kept)

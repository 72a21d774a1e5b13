"""The messages of inner batches: one record of a batch queue holds several, and each becomes a row.

As ``MessageDecoder.java decodeMessage`` gives them to a listener: each has a flag, a body and properties of
its own, the queue offsets follow one another from the first, and all else is that of the record. The bits
that say that the record is a batch are taken from ``sysFlag``: the message is none. A record whose body does
not hold what it says stays one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seglog.errors import CorruptError
from seglog.spark.source.values.property_columns import PropertyColumns, properties_of
from seglog.spark.source.values.strings import gather, merged
from seglog.storage.format.queue import batch_range
from seglog.storage.format.record import (
    BATCH_HEAD,
    BATCH_PROPERTIES,
    INNER_BATCH,
    NEED_UNWRAP,
    iter_batch,
    tags_code,
)
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Bytes, Ints
from seglog.storage.kernels.walk import Rows

_BATCH_BITS: Final = INNER_BATCH | NEED_UNWRAP


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A record that is an inner batch.

    Attributes:
        number: Its place among the records of a window.
        queue_offset: As in its head.
        body: Where its body is in the window.
        properties: Where its properties do.
    """

    number: int
    queue_offset: int
    body: slice
    properties: slice


class InnerMessages:
    """The messages of inner batches of a window.

    Args:
        buffer: The window.
        records: Those that are inner batches, in order.

    Attributes:
        records: ``(m,)``, of each message the place of its record; of a record that is no whole batch none.
        queue_offsets: ``(m,)``.
    """

    def __init__(self, buffer: Bytes, records: Sequence[BatchRecord]) -> None:
        self._buffer = buffer
        found = [row for record in records for row in _messages(buffer.data, record)]
        table = np.array(found, np.int64).reshape(-1, 7)
        self.records, self.queue_offsets, self._flags = table[:, 0], table[:, 1], table[:, 2]
        self._bodies = table[:, 3], table[:, 4]
        self._own = table[:, 5], table[:, 6]

    @cached_property
    def _properties(self) -> PropertyColumns:
        return PropertyColumns(self._buffer, *self._own)

    def column(self, name: str, of_records: pa.Array) -> pa.Array:
        """Returns a column of the messages.

        Args:
            name: The column.
            of_records: ``(m,)``, what the record of each message has in it.
        """
        kind = of_records.type
        if name == "queueOffset":
            return pa.array(self.queue_offsets, kind)
        if name == "flag":
            return pa.array(self._flags.astype(np.int32), kind)
        if name == "sysFlag":
            return pc.bit_wise_and(of_records, pa.scalar(~_BATCH_BITS, kind))
        if name == "body":
            return gather(self._buffer, *self._bodies)
        if name == "properties":
            return properties_of(self._properties, (self._buffer, *self._own), kind)
        if name in _PROPERTIES:
            return self._properties.values(_PROPERTIES[name])
        if name == "msgId":
            return pc.coalesce(self._properties.values(props.UNIQ_KEY), of_records)
        if name == "tagsCode":
            tags = self._properties.values(props.TAGS).to_pylist()
            return pa.array([tags_code(one) if one else 0 for one in tags], kind)
        return of_records


_PROPERTIES: Final = {"keys": props.KEYS, "tags": props.TAGS}


class Unwrapping:
    """Puts the messages of inner batches in the place of their records.

    Args:
        count: How many records there are.
        messages: Those of the inner batches among them.
    """

    def __init__(self, count: int, messages: InnerMessages) -> None:
        self._messages = messages
        sizes = np.bincount(messages.records, minlength=count)
        is_whole = sizes == 0
        sizes[is_whole] = 1
        self._of_records: Ints = np.repeat(np.arange(count), sizes)
        is_message = ~is_whole[self._of_records]
        self._plain, self._inner = np.flatnonzero(~is_message), np.flatnonzero(is_message)

    def places(self, rows: Rows) -> tuple[Ints, Ints]:
        """Returns number of the queue and queue offset of all rows.

        Args:
            rows: ``(n,) ROW``, the records.
        """
        offsets: Ints = rows["queue_offset"][self._of_records]
        offsets[self._inner] = self._messages.queue_offsets
        return rows["queue"][self._of_records], offsets

    def column(self, name: str, stored: pa.Array) -> pa.Array:
        """Returns a column of all rows, of that of the records."""
        repeated = stored.take(pa.array(self._of_records[self._inner]))
        found = self._messages.column(name, repeated)
        plain = stored.take(pa.array(self._of_records[self._plain]))
        return merged([(self._plain, plain), (self._inner, found)])


def _messages(view: memoryview, record: BatchRecord) -> list[tuple[int, ...]]:
    """Returns record, queue offset, flag, and where body and properties lie, of each message."""
    found: list[tuple[int, ...]] = []
    try:
        base, count = batch_range(bytes(view[record.properties]), record.queue_offset)
        at = record.body.start
        for number, message in enumerate(iter_batch(view[record.body])):
            body_at = at + BATCH_HEAD.size_bytes
            own_at = body_at + len(message.body) + BATCH_PROPERTIES.size_bytes
            sizes = body_at, len(message.body), own_at, len(message.properties)
            found.append((record.number, base + number, message.flag, *sizes))
            at = own_at + len(message.properties)
    except CorruptError:
        return []
    return found if len(found) == count else []

"""The messages of inner batches: one record of a batch queue holds several, and each becomes a row.

They are decoded as by ``MessageDecoder.java decodeMessage``: each has a flag, a body and properties of its
own, the queue offsets are consecutive from the first, and all other fields are those of the record. The bits
in ``sysFlag`` that mark the record as a batch are cleared, because a message is no batch. A record whose body
cannot be decoded as a batch stays one row.
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
        number: Its index among the records of a window.
        queue_offset: The queue offset in its head.
        body: Range of its body in the window.
        properties: Range of its properties in the window.
    """

    number: int
    queue_offset: int
    body: slice
    properties: slice


class InnerMessages:
    """The messages of inner batches of a window.

    Args:
        buffer: The window.
        records: The records that are inner batches, in order.

    Attributes:
        records: ``(m,)``, index of the record of each message; a record that cannot be decoded has none.
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
            of_records: ``(m,)``, the value of the record of each message.
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
    """Replaces records by the messages of their inner batches.

    Args:
        count: Number of records.
        messages: The messages of the inner batches among them.
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
        """Returns queue number and queue offset of all rows.

        Args:
            rows: ``(n,) ROW``, the records.
        """
        offsets: Ints = rows["queue_offset"][self._of_records]
        offsets[self._inner] = self._messages.queue_offsets
        return rows["queue"][self._of_records], offsets

    def column(self, name: str, stored: pa.Array) -> pa.Array:
        """Returns a column of all rows, from the column of the records."""
        repeated = stored.take(pa.array(self._of_records[self._inner]))
        found = self._messages.column(name, repeated)
        plain = stored.take(pa.array(self._of_records[self._plain]))
        return merged([(self._plain, plain), (self._inner, found)])


def _messages(view: memoryview, record: BatchRecord) -> list[tuple[int, ...]]:
    """Returns record, queue offset, flag, and ranges of body and properties, of each message."""
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

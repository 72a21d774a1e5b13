"""Record batches of messages: the requested columns of the requested rows.

Rows are the records that have a place in a queue: PREPARED and ROLLBACK records have none. Tombstones, which
replace lost messages, are no rows, and placeholders of dropped messages only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.split_rows import Window
from seglog.spark.source.values import columns
from seglog.spark.source.values.columns import Wanted
from seglog.spark.source.values.host_columns import HostColumns
from seglog.spark.source.values.inflated_bodies import COMPRESSION_BITS, inflate_bodies, with_inflated
from seglog.spark.source.values.inner_batches import BatchRecord, InnerMessages, Unwrapping
from seglog.spark.source.values.native_columns import NativeColumns
from seglog.spark.source.values.property_columns import PropertyColumns, properties_of
from seglog.spark.source.values.strings import gather, strings_of
from seglog.spark.source.values.times import timestamps
from seglog.spark.source.wanted.selection import Chooser
from seglog.storage.format.layout import I32_ITEMS
from seglog.storage.format.record import (
    FLAG_AT,
    INNER_BATCH,
    LOST_FLAG,
    PLACEHOLDER_FLAG,
    PLACEHOLDER_PROPERTIES_BYTES,
    is_tombstone,
)
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import (
    Bytes,
    Ints,
    Mask,
    body_ranges,
    overlapping,
    properties_ranges,
    read_heads,
)
from seglog.storage.kernels.walk import Rows, are_dispatched
from seglog.storage.overlay import UNIT, LostMessages

_OF_ROWS: Final = {
    "queueOffset": "queue_offset",
    "physicalOffset": "phy_offset",
    "size": "size_bytes",
    "tagsCode": "tags_code",
}
_OF_HEADS: Final = {
    "flag": "flag",
    "reconsumeTimes": "reconsume_times",
    "bodyCrc": "body_crc",
    "preparedTransactionOffset": "prepared_transaction_offset",
}
_HEADS: Final = (
    "magic",
    "sys_flag",
    "flag",
    "born_timestamp_ms",
    "reconsume_times",
    "prepared_transaction_offset",
    "body_crc",
    "body_bytes",
)


@dataclass(frozen=True, slots=True)
class Constants:
    """Values that are the same for all messages of a store.

    Attributes:
        broker_name: The column ``brokerName``.
        store: The column ``store``.
    """

    broker_name: str | None
    store: str


class Messages:
    """The messages of a window.

    Args:
        window: The records; those that are no messages are left out.
        queues: Topic and queue id of the queues that its rows belong to.
        inflates: Whether bodies are inflated.
        has_placeholders: Whether placeholders are kept.
        unwraps: Selects messages of inner batches; None if a batch is one row.
    """

    def __init__(
        self,
        window: Window,
        queues: Sequence[tuple[str, int]],
        *,
        inflates: bool = False,
        has_placeholders: bool = False,
        unwraps: Chooser | None = None,
    ) -> None:
        self._inflates = inflates
        self._unwraps = unwraps
        self._window = window
        self._buffer: Bytes = np.frombuffer(window.memory, np.uint8)
        self._queues = queues
        rows = window.rows[are_dispatched(window.rows)]
        left_out = _are_lost(window.memory, self._buffer, rows["phy_offset"] - window.phy_offset, rows)
        if not has_placeholders:
            left_out |= _are_placeholders(self._buffer, rows["phy_offset"] - window.phy_offset, rows)
        self.rows: Rows = rows[~left_out] if left_out.any() else rows
        self._positions: Ints = self.rows["phy_offset"] - window.phy_offset
        self._sizes: Ints = self.rows["size_bytes"].astype(np.int64)

    @property
    def are_as_stored(self) -> bool:
        """Whether they are the records as in the log: none is inflated or taken out of an inner batch."""
        return not self._inflates and self.are_rows

    @property
    def are_rows(self) -> bool:
        """Whether each record is one message: none is taken out of an inner batch."""
        return self._unwraps is None or not (self.rows["sys_flag"] & INNER_BATCH).any()

    def only(self, places: npt.NDArray[np.integer]) -> Messages:
        """Returns some of the messages.

        Args:
            places: ``(m,)``, indices into :attr:`rows`, in their order.
        """
        window = Window(self._window.memory, self._window.phy_offset, self.rows[places])
        return Messages(
            window, self._queues, inflates=self._inflates, has_placeholders=True, unwraps=self._unwraps
        )

    def batch(self, wanted: Sequence[Wanted], constants: Constants) -> pa.RecordBatch:
        """Returns the requested columns."""
        filled = NativeColumns(self._window.memory, self._window.phy_offset, self.rows, wanted)
        arrays = [self._array(one, constants, filled) for one in wanted]
        schema = pa.schema([(one.asked_as, one.type) for one in wanted])
        if self._unwraps is None or not (batches := np.flatnonzero(self.rows["sys_flag"] & INNER_BATCH)).size:
            return pa.RecordBatch.from_arrays(arrays, schema=schema)
        unwrapping = Unwrapping(len(self.rows), InnerMessages(self._buffer, self._batch_records(batches)))
        arrays = [unwrapping.column(one.name, array) for one, array in zip(wanted, arrays, strict=True)]
        found = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return found.filter(pa.array(self._unwraps.has_offsets(*unwrapping.places(self.rows))))

    def _batch_records(self, batches: Ints) -> list[BatchRecord]:
        _ok, bodies, body_sizes = body_ranges(self._positions, self._sizes, self._heads)
        properties, property_sizes = self._property_ranges
        return [
            BatchRecord(
                row,
                int(self.rows["queue_offset"][row]),
                slice(int(bodies[row]), int(bodies[row] + body_sizes[row])),
                slice(int(properties[row]), int(properties[row] + property_sizes[row])),
            )
            for row in batches.tolist()
        ]

    @cached_property
    def _heads(self) -> dict[str, Ints]:
        places = self.rows["phy_offset"]
        _valid, heads = read_heads(self._buffer, self._positions, places, self._sizes, _HEADS)
        return heads

    @cached_property
    def _hosts(self) -> HostColumns:
        return HostColumns(self._buffer, self._positions, self.rows["sys_flag"])

    @cached_property
    def _properties(self) -> PropertyColumns:
        return PropertyColumns(self._buffer, *self._property_ranges)

    @cached_property
    def _property_ranges(self) -> tuple[Ints, Ints]:
        _ok, starts, sizes = properties_ranges(self._buffer, self._positions, self._sizes, self._heads)
        return starts, sizes

    def _native(self, found: NativeColumns, wanted: Wanted) -> pa.Array | None:
        """Returns a column that native kernels filled, None for other columns."""
        name, kind = wanted.name, wanted.type
        if name == "properties":
            return found.mapping() if kind == columns.PROPERTY_MAP else None
        numbers = found.numbers(name)
        if numbers is not None:
            return _time(numbers, kind) if name == "bornTimestamp" else _number(numbers, kind)
        strings = found.strings(name, kind)
        if strings is not None and name == "body" and self._inflated:
            return with_inflated(strings, self._inflated)
        return strings

    def _array(self, wanted: Wanted, constants: Constants, found: NativeColumns) -> pa.Array:
        name, kind = wanted.name, wanted.type
        if name in _OF_ROWS:
            return pa.array(self.rows[_OF_ROWS[name]], kind)
        native = self._native(found, wanted)
        if native is not None:
            return native
        if name in _OF_HEADS:
            return _number(self._heads[_OF_HEADS[name]], kind)
        return _MAKERS[name](self, kind, constants)

    def _topic(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        return pa.array([topic for topic, _queue_id in self._queues], pa.string()).take(self._queue_numbers)

    def _queue_id(self, kind: pa.DataType, _constants: Constants) -> pa.Array:
        return pa.array([queue_id for _topic, queue_id in self._queues], kind).take(self._queue_numbers)

    @property
    def _queue_numbers(self) -> pa.Array:
        return pa.array(self.rows["queue"])

    def _body(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        _ok, starts, sizes = body_ranges(self._positions, self._sizes, self._heads)
        stored = gather(self._buffer, starts, sizes)
        return with_inflated(stored, self._inflated) if self._inflated else stored

    @cached_property
    def _inflated(self) -> dict[int, bytes]:
        """Bodies that were inflated, by row."""
        if not self._inflates:
            return {}
        _ok, starts, sizes = body_ranges(self._positions, self._sizes, self._heads)
        return inflate_bodies(self._buffer, starts, sizes, self.rows["sys_flag"])

    def _sys_flag(self, kind: pa.DataType, _constants: Constants) -> pa.Array:
        flags = self.rows["sys_flag"].copy()
        flags[list(self._inflated)] &= ~COMPRESSION_BITS
        return pa.array(flags, kind)

    def _record(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        ends = self._positions + self._sizes
        if not len(ends) or (ends[:-1] != self._positions[1:]).any():
            return gather(self._buffer, self._positions, self._sizes)
        # Adjacent in the window: the window itself is the column, without a copy.
        first = int(self._positions[0])
        offsets = np.append(self._positions, ends[-1]) - first
        return strings_of(offsets.astype(np.int32), self._buffer[first : int(ends[-1])])

    def _all_properties(self, kind: pa.DataType, _constants: Constants) -> pa.Array:
        return properties_of(self._properties, (self._buffer, *self._property_ranges), kind)

    def _born_time(self, kind: pa.DataType, _constants: Constants) -> pa.Array:
        return _time(self._heads["born_timestamp_ms"], kind)

    def _store_time(self, kind: pa.DataType, _constants: Constants) -> pa.Array:
        return _time(self.rows["store_timestamp_ms"], kind)

    def _message_id(self, kind: pa.DataType, constants: Constants) -> pa.Array:
        own = self._properties.values(props.UNIQ_KEY)
        return pc.coalesce(own, self._offset_message_id(kind, constants)) if own.null_count else own

    def _offset_message_id(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        return self._hosts.message_ids(self.rows["phy_offset"])

    def _born_host(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        return self._hosts.hosts("born")

    def _store_host(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        return self._hosts.hosts("store")

    def _keys(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        return self._properties.values(props.KEYS)

    def _tags(self, _kind: pa.DataType, _constants: Constants) -> pa.Array:
        return self._properties.values(props.TAGS)

    def _broker_name(self, kind: pa.DataType, constants: Constants) -> pa.Array:
        return pa.repeat(pa.scalar(constants.broker_name, kind), len(self.rows))

    def _store(self, kind: pa.DataType, constants: Constants) -> pa.Array:
        return pa.repeat(pa.scalar(constants.store, kind), len(self.rows))

    def _placeholder(self, kind: pa.DataType, _constants: Constants) -> pa.Array:
        return pa.array(_are_placeholders(self._buffer, self._positions, self.rows), kind)


_MAKERS: Final[Mapping[str, Callable[[Messages, pa.DataType, Constants], pa.Array]]] = {
    "topic": Messages._topic,
    "queueId": Messages._queue_id,
    "sysFlag": Messages._sys_flag,
    "body": Messages._body,
    "record": Messages._record,
    "properties": Messages._all_properties,
    "bornTimestamp": Messages._born_time,
    "storeTimestamp": Messages._store_time,
    "msgId": Messages._message_id,
    "offsetMsgId": Messages._offset_message_id,
    "bornHost": Messages._born_host,
    "storeHost": Messages._store_host,
    "keys": Messages._keys,
    "tags": Messages._tags,
    "brokerName": Messages._broker_name,
    "store": Messages._store,
    "placeholder": Messages._placeholder,
}


def is_wide(wanted: Sequence[Wanted]) -> bool:
    """Returns whether batches of some columns are about as long as the records that are read for them."""
    return any(one.name in ("body", "record") for one in wanted)


def iter_messages(
    windows: Iterator[Window],
    queues: Sequence[tuple[str, int]],
    batch_rows: int,
    *,
    inflates: bool,
    has_placeholders: bool = False,
    unwraps: Chooser | None = None,
) -> Iterator[Messages]:
    """Yields the messages of windows, at most ``batch_rows`` records at a time."""
    for window in windows:
        count = len(window.rows)
        for start, end in _even(count, -(-count // batch_rows)):
            part = Window(window.memory, window.phy_offset, window.rows[start:end])
            messages = Messages(
                part, queues, inflates=inflates, has_placeholders=has_placeholders, unwraps=unwraps
            )
            if len(messages.rows):
                yield messages


def tombstone_losses(window: Window, queues: Sequence[tuple[str, int]]) -> Iterator[Loss]:
    """Yields the lost messages that tombstones of a window replace, run by run."""
    buffer: Bytes = np.frombuffer(window.memory, np.uint8)
    rows = window.rows[are_dispatched(window.rows)]
    rows = rows[_are_lost(window.memory, buffer, rows["phy_offset"] - window.phy_offset, rows)]
    if not len(rows):
        return
    steps = (np.diff(rows["queue_offset"]) != 1) | (np.diff(rows["queue"]) != 0)
    for run in np.split(rows, np.flatnonzero(steps) + 1):
        offsets = range(int(run["queue_offset"][0]), int(run["queue_offset"][-1]) + 1)
        lost = LostMessages(*queues[int(run["queue"][0])], offsets, UNIT)
        end = int(run["phy_offset"][-1]) + int(run["size_bytes"][-1])
        yield Loss(int(run["phy_offset"][0]), end, "tombstones", "messages", "tombstones", (lost,))


def _even(count: int, parts: int) -> Iterator[tuple[int, int]]:
    for part in range(parts):
        yield count * part // parts, count * (part + 1) // parts


def _are_lost(memory: memoryview, buffer: Bytes, positions: Ints, rows: Rows) -> Mask:
    """Returns which records are tombstones; applications may use their flag too."""
    found: Mask = overlapping(buffer, I32_ITEMS)[positions + FLAG_AT] == LOST_FLAG
    for row in np.flatnonzero(found).tolist():
        start = int(positions[row])
        found[row] = is_tombstone(memory[start : start + int(rows["size_bytes"][row])])
    return found


def _are_placeholders(buffer: Bytes, positions: Ints, rows: Rows) -> Mask:
    """Returns which records are placeholders; applications may use their flag too."""
    found: Mask = overlapping(buffer, I32_ITEMS)[positions + FLAG_AT] == PLACEHOLDER_FLAG
    at = np.flatnonzero(found)
    if len(at):
        sizes = rows["size_bytes"][at].astype(np.int64)
        _valid, heads = read_heads(buffer, positions[at], rows["phy_offset"][at], sizes, _HEADS)
        ok, _starts, lengths = properties_ranges(buffer, positions[at], sizes, heads)
        has_nothing = ok & (heads["body_bytes"] == 0)
        found[at] = has_nothing & np.isin(lengths, list(PLACEHOLDER_PROPERTIES_BYTES))
    return found


def _number(values: Ints, kind: pa.DataType) -> pa.Array:
    return pa.array(values.astype(kind.to_pandas_dtype()))


def _time(values: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    return timestamps(values) if kind == columns.TIMESTAMP else pa.array(values, kind)

"""A queue as numpy arrays: its units, and columns of its messages, read in bulk.

    view = store.queue("orders", 0)
    units = view.units()
    late = units[(units["tags_code"] == tags_code("paid")) & (view.timestamps() >= since_ms)]

A view is a snapshot: it covers the messages that existed when it was created, and does not change while a
writer appends. Create a new view to see more messages.

Memory: in a store open for writing, :meth:`QueueView.units` of a range within one queue file and
:meth:`QueueView.bodies` share memory with the files; all other arrays are copies. In a read-only store all
arrays are copies, because the owner of the files may cut them at any moment. Arrays that share memory, and
arrays made of them without copying, may live as long as the store is open: closing the store before they are
released raises :class:`~seglog.errors.StoreInUseError`, which names their queues, and leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from seglog.arguments import as_int, refusal, shown
from seglog.errors import InvalidArgumentError, OffsetRangeError
from seglog.storage.format.queue.consume_queue import CQ_UNIT, Units
from seglog.storage.format.record.tombstone import LOST_FLAG, is_tombstone
from seglog.storage.kernels.gather import (
    Bytes,
    Ints,
    Mask,
    body_ranges,
    copy_ranges,
    properties_ranges,
    read_heads,
)
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.reads.buffer_leases import Leases
from seglog.storage.reads.byte_column import ByteColumn
from seglog.storage.reads.get import Queue
from seglog.storage.reads.open_queues import StoreLog
from seglog.storage.reads.record_ranges import Place, Span, iter_spans

UNREADABLE: Final = -1
"""Value of a column where the message of a unit cannot be read."""

COLUMNS: Final[dict[str, str]] = {
    "queue_offset": "i8",
    "phy_offset": "i8",
    "size_bytes": "i4",
    "tags_code": "i8",
    "store_timestamp_ms": "i8",
    "born_timestamp_ms": "i8",
    "sys_flag": "i4",
    "flag": "i4",
    "reconsume_times": "i4",
    "prepared_transaction_offset": "i8",
    "body_crc": "i8",
    "body_bytes": "i4",
    "is_message": "?",
}
"""Columns of fixed width and their types. The first four are fields of the unit, the others of the message.
``is_message`` is whether the message can be read; if not, its fields are :data:`UNREADABLE`."""
_OF_UNITS: Final = ("phy_offset", "size_bytes", "tags_code")
_PIECE_ROWS: Final = 1 << 16
"""Rows that are read at a time: the temporary arrays stay so small that their memory is reused."""


Column = npt.NDArray[np.generic]


class QueueView:
    """A queue at the moment when the view was created; the module docstring says which arrays share memory.

    Attributes:
        topic: Its topic.
        queue_id: Its number.
        min_offset: Queue offset of its first message.
        max_offset: Queue offset behind its last message.

    A range is ``queue_offset`` (the first message; None for the first of the queue) and ``count`` (None for
    all messages that follow; a range ends at the end of the view). Row ``i`` of a result is queue offset
    ``queue_offset + i``; a slot without a message has a row as well.
    """

    def __init__(
        self, topic: str, queue_id: int, queue: Queue, log: StoreLog, place: Place, leases: Leases
    ) -> None:
        """Called by :meth:`MessageStore.queue`."""
        self.topic = topic
        self.queue_id = queue_id
        self.min_offset = place.min_offset
        self.max_offset = place.max_offset
        self._queue = queue
        self._log = log
        self._place = place
        self._leases = leases

    @override
    def __repr__(self) -> str:
        return f"<QueueView {self.topic}/{self.queue_id} from {self.min_offset} to {self.max_offset}>"

    def __len__(self) -> int:
        """Returns the number of its slots."""
        return self.max_offset - self.min_offset

    def units(self, queue_offset: int | None = None, count: int | None = None) -> Units:
        """Returns units of the queue.

        Returns:
            ``(n,) CQ_UNIT.dtype``, read-only; a view of the map if one file holds the range.

        Raises:
            OffsetRangeError: ``queue_offset`` is outside of the view.
            InvalidArgumentError: ``count`` is negative.
            ClosedError: The store was closed.
        """
        start, count = self._range(queue_offset, count)
        memory = self._queue.memory(start, count) if isinstance(self._queue, ConsumeQueue) else None
        if memory is not None:
            lent = self._leases.loan(self.topic, self.queue_id, "units").lend(memory)
            return lent.view(CQ_UNIT.dtype)
        return self._copied_units(start, count)

    def iter_units(
        self, queue_offset: int | None = None, count: int | None = None
    ) -> Iterator[tuple[int, Units]]:
        """Yields the units of each file as one array, with the queue offset of the first; copies none."""
        start, count = self._range(queue_offset, count)
        end = start + count
        while start < end:
            here = min(end - start, self._queue.units_per_file - start % self._queue.units_per_file)
            yield start, self.units(start, here)
            start += here

    def timestamps(self, queue_offset: int | None = None, count: int | None = None) -> Ints:
        """Returns store times.

        Returns:
            ``(n,) i8``, ms since the epoch, -1 for a slot without a message; a copy.

        Raises:
            As :meth:`units`.
        """
        found = self.columns(("store_timestamp_ms",), queue_offset, count)
        return found["store_timestamp_ms"].astype(np.int64, copy=False)

    def columns(
        self, names: Sequence[str] = tuple(COLUMNS), queue_offset: int | None = None, count: int | None = None
    ) -> dict[str, Column]:
        """Returns columns of fixed width, each in memory of its own, as Arrow and data frames need them.

        Args:
            names: Keys of :data:`COLUMNS`.
            queue_offset: See the class.
            count: See the class.

        Raises:
            InvalidArgumentError: A name is not that of a column.
            As :meth:`units`, for the rest.
        """
        names = _checked_names("names", names)
        start, count = self._range(queue_offset, count)
        found: dict[str, Column] = {name: np.empty(count, COLUMNS[name]) for name in names}
        self._read(found, start, count)
        return found

    def read_columns(
        self,
        columns: Sequence[str] = tuple(COLUMNS),
        queue_offset: int | None = None,
        count: int | None = None,
    ) -> npt.NDArray[np.void]:
        """Returns :meth:`columns` as one structured array ``(n,)`` in native byte order; a copy.

        Raises:
            As :meth:`columns`.
        """
        columns = _checked_names("columns", columns)
        start, count = self._range(queue_offset, count)
        table = np.zeros(count, np.dtype([(name, COLUMNS[name]) for name in columns]))
        self._read({name: table[name] for name in columns}, start, count)
        return table

    def bodies(self, queue_offset: int | None = None, count: int | None = None) -> ByteColumn:
        """Returns bodies as stored, possibly compressed (``sys_flag`` says so).

        Returns:
            A sequence of memoryviews; views of the log's maps in a store open for writing.

        Raises:
            As :meth:`units`.
        """
        return self._strings("bodies", queue_offset, count)

    def properties(self, queue_offset: int | None = None, count: int | None = None) -> ByteColumn:
        """Returns properties as stored; otherwise as :meth:`bodies`."""
        return self._strings("properties", queue_offset, count)

    def _range(self, queue_offset: int | None, count: int | None) -> tuple[int, int]:
        start = self.min_offset if queue_offset is None else as_int("queue_offset", queue_offset)
        if not self.min_offset <= start <= self.max_offset:
            raise OffsetRangeError(
                f"queue offset {start} of {self.topic}/{self.queue_id} is outside"
                f" {self.min_offset}..{self.max_offset}",
                min_offset=self.min_offset,
                max_offset=self.max_offset,
            )
        left = self.max_offset - start
        return start, left if count is None else min(as_int("count", count, 0), left)

    def _copied_units(self, queue_offset: int, count: int) -> Units:
        """Returns units that share no memory with a file."""
        self._leases.check_open()
        units = self._queue.units(queue_offset, count)[:count].view()
        units.flags.writeable = False
        return units

    def _pieces(self, queue_offset: int, count: int) -> Iterator[tuple[int, Units]]:
        """Yields units of a range piece by piece, each piece with its place in the range."""
        for first in range(0, count, _PIECE_ROWS):
            yield first, self._copied_units(queue_offset + first, min(_PIECE_ROWS, count - first))

    def _read(self, found: Mapping[str, Column], queue_offset: int, count: int) -> None:
        """Fills columns of a range."""
        of_records = [name for name in found if name not in (*_OF_UNITS, "queue_offset")]
        for first, units in self._pieces(queue_offset, count):
            piece = {name: values[first : first + len(units)] for name, values in found.items()}
            for name, values in piece.items():
                if name == "queue_offset":
                    values[:] = np.arange(queue_offset + first, queue_offset + first + len(units))
                elif name == "is_message":
                    values[:] = False
                else:
                    values[:] = units[name] if name in _OF_UNITS else UNREADABLE
            if of_records:
                self._read_records(piece, of_records, units)

    def _read_records(self, piece: Mapping[str, Column], names: Sequence[str], units: Units) -> None:
        fields = [name for name in names if name != "is_message"]
        for span in iter_spans(units, self._log, self._place):
            valid, heads = _read_messages(span, np.frombuffer(span.memory, np.uint8), fields)
            rows = _as_slice(span.rows[valid])
            for name in names:
                piece[name][rows] = True if name == "is_message" else heads[name][valid]

    def _strings(self, kind: str, queue_offset: int | None, count: int | None) -> ByteColumn:
        start, count = self._range(queue_offset, count)
        column = ByteColumn(count)
        loan = self._leases.loan(self.topic, self.queue_id, kind) if self._place.is_shared else None
        for first, units in self._pieces(start, count):
            for span in iter_spans(units, self._log, self._place):
                buffer = np.frombuffer(span.memory, np.uint8) if loan is None else loan.lend(span.memory)
                rows, starts, sizes = _string_ranges(kind, span, buffer)
                if loan is None:
                    buffer, starts = _compacted(buffer, starts, sizes)
                column.place(first + rows, buffer, starts, sizes)
        return column


def _checked_names(argument: str, names: Iterable[object]) -> tuple[str, ...]:
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise refusal(argument, names, "names of columns")
    found: list[str] = []
    for name in names:
        if not isinstance(name, str) or name not in COLUMNS:
            raise InvalidArgumentError(
                f"there is no column {shown(name)}", help=f"columns are {', '.join(COLUMNS)}"
            )
        found.append(name)
    return tuple(found)


def _as_slice(rows: Ints) -> Ints | slice:
    """Returns ascending row numbers as a slice if they have no gap: indexing is several times faster."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _read_messages(span: Span, buffer: Bytes, fields: Sequence[str]) -> tuple[Mask, dict[str, Ints]]:
    """Returns which records of a span are messages, not tombstones, and fields of their heads."""
    fields = [*fields, *({"flag"} - set(fields))]
    valid, heads = read_heads(buffer, span.positions, span.phy_offsets, span.sizes, fields)
    for row in np.flatnonzero(valid & (heads["flag"] == LOST_FLAG)).tolist():
        start = int(span.positions[row])
        valid[row] = not is_tombstone(span.memory[start : start + int(span.sizes[row])])
    return valid, heads


def _string_ranges(kind: str, span: Span, buffer: Bytes) -> tuple[Ints, Ints, Ints]:
    """Returns rows, starts and sizes of the strings that exist."""
    fields = ("magic", "sys_flag", "body_bytes")
    valid, heads = _read_messages(span, buffer, fields)
    at, sizes = span.positions[valid], span.sizes[valid]
    kept = {name: values[valid] for name, values in heads.items()}
    if kind == "bodies":
        ok, starts, lengths = body_ranges(at, sizes, kept)
    else:
        ok, starts, lengths = properties_ranges(buffer, at, sizes, kept)
    return span.rows[valid][ok], starts[ok], lengths[ok]


def _compacted(source: Bytes, starts: Ints, sizes: Ints) -> tuple[Bytes, Ints]:
    """Returns the strings one behind the other in new memory, and their starts there."""
    places = np.cumsum(sizes) - sizes
    target = np.empty(int(sizes.sum()), np.uint8)
    copy_ranges(source, starts, sizes, target, places)
    return target, places

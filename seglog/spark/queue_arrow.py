"""A queue as Arrow: the columns of a :class:`~seglog.storage.reads.queue_view.QueueView` as a record batch.

Columns of fixed width use the arrays of the view without a copy. Bodies and properties are packed into
``large_binary``, which every reader of Arrow accepts, or stay where they are as ``binary_view``: then the
batch shares memory with the maps of the log, counts as a view of the store, and must be released before the
store is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from seglog.errors import MissingDependencyError
from seglog.storage.kernels.gather import Mask, copy_ranges
from seglog.storage.reads import COLUMNS, ByteColumn, QueueView

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingDependencyError(
        "record batches need pyarrow, which is not installed", help="pip install 'seglog[parquet]'"
    ) from error

_VIEW: Final = np.dtype([("size_bytes", "i4"), ("prefix", "V4"), ("buffer", "i4"), ("start", "i4")])
"""Arrow's format of a string of more than 12 bytes; a shorter one is stored in the last three fields."""
_INLINE_BYTES: Final = 12
_PREFIX_BYTES: Final = 4
_OF_UNITS: Final = ("queue_offset", "phy_offset", "size_bytes", "tags_code", "is_message")


def queue_batch(
    view: QueueView,
    queue_offset: int | None = None,
    count: int | None = None,
    *,
    columns: Sequence[str] = (*COLUMNS, "body", "properties"),
    share: bool = False,
) -> pa.RecordBatch:
    """Returns a range of a queue, one row for each slot; null where a message cannot be read.

    Args:
        view: The queue.
        queue_offset: First slot; None for the first of the queue.
        count: Number of slots; None for all that follow.
        columns: Keys of :data:`COLUMNS`, ``body`` and ``properties``.
        share: Whether bodies and properties stay in the maps of the log, as ``binary_view``.

    Raises:
        As for :meth:`QueueView.columns`.
    """
    fixed = [name for name in columns if name not in ("body", "properties")]
    found = view.columns([*fixed, "is_message"], queue_offset, count)
    missing = ~found["is_message"].astype(np.bool_)
    mask = missing if missing.any() else None
    arrays = {name: pa.array(found[name], mask=None if name in _OF_UNITS else mask) for name in fixed}
    to_array = share_strings if share else pack_strings
    if "body" in columns:
        arrays["body"] = to_array(view.bodies(queue_offset, count))
    if "properties" in columns:
        arrays["properties"] = to_array(view.properties(queue_offset, count))
    return pa.RecordBatch.from_pydict({name: arrays[name] for name in columns})


def pack_strings(column: ByteColumn) -> pa.Array:
    """Returns a column as ``large_binary``, in memory of its own."""
    offsets, data = column.pack()
    buffers = [_validity(column.is_there), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)


def share_strings(column: ByteColumn) -> pa.Array:
    """Returns a column as ``binary_view`` over the memory that holds its strings."""
    views = np.zeros(len(column), _VIEW)
    views["size_bytes"] = column.sizes
    is_long = column.sizes > _INLINE_BYTES
    places = np.arange(len(column)) * _VIEW.itemsize + _PREFIX_BYTES
    heads = np.where(is_long, _PREFIX_BYTES, column.sizes)
    for number, buffer in enumerate(column.buffers):
        rows = np.flatnonzero(column.buffer_numbers == number)
        copy_ranges(buffer, column.starts[rows], heads[rows], views.view(np.uint8), places[rows])
    views["buffer"][is_long] = column.buffer_numbers[is_long]
    views["start"][is_long] = column.starts[is_long]
    memory = [pa.py_buffer(buffer) for buffer in column.buffers]
    buffers = [_validity(column.is_there), pa.py_buffer(views), *memory]
    return pa.Array.from_buffers(pa.binary_view(), len(column), buffers)


def _validity(is_there: Mask) -> pa.Buffer | None:
    return None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))

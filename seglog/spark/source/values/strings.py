"""Columns of strings from byte ranges, without a step of Python for each string.

Text columns of Arrow must be UTF-8, but strings of a log may not be. Invalid bytes become U+FFFD, as
everywhere in seglog.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from seglog.storage.kernels.gather import Bytes, Ints, Mask, copied
from seglog.storage.kernels.message_columns import Ends


def gather(buffer: Bytes, starts: Ints, sizes: Ints, is_there: Mask | None = None) -> pa.Array:
    """Returns strings of a buffer as a ``binary`` array.

    Args:
        buffer: ``(m,) u8``.
        starts: ``(n,)``, starts of the strings in it.
        sizes: ``(n,)``, their lengths, less than 2 GiB together.
        is_there: ``(n,)``, false for a missing string; None if all exist.
    """
    if is_there is not None:
        sizes = np.where(is_there, sizes, 0)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return strings_of(offsets, copied(buffer, starts, sizes), is_there)


def bytes_of(column: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """Returns the strings of a ``binary`` array without nulls.

    Returns:
        Its bytes, ``(m,) u8``; start of each string in them, and its length, ``(n,)`` each.
    """
    large = column.cast(pa.large_binary())
    _validity, offsets, data = large.buffers()
    bounds = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    held: Bytes = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return held, bounds[:-1].copy(), np.diff(bounds)


def as_text(strings: pa.Array) -> pa.Array:
    """Returns a ``binary`` array as ``string``."""
    data = strings.buffers()[2]
    if data is None or not len(data) or np.frombuffer(data, np.uint8).max() < 128:  # ASCII
        return strings.view(pa.string())
    try:
        return strings.cast(pa.string())
    except pa.ArrowInvalid:
        # Rare, so a step of Python for each string is acceptable.
        found = [None if raw is None else raw.decode("utf-8", "replace") for raw in strings.to_pylist()]
        return pa.array(found, pa.string())


def strings_of(offsets: Ends, data: Bytes, is_there: Mask | None = None) -> pa.Array:
    """Returns consecutive strings as a ``binary`` array.

    Args:
        offsets: ``(n + 1,) i4``, the start of each, and the end of the last.
        data: The strings.
        is_there: ``(n,)``, false for a missing string; None if all exist.
    """
    validity = None if is_there is None or is_there.all() else _bits(is_there)
    return pa.Array.from_buffers(
        pa.binary(), len(offsets) - 1, [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def fixed_width(characters: Bytes) -> pa.Array:
    """Returns rows of ASCII characters, ``(n, width) u8``, as a ``string`` array."""
    count, width = characters.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(characters))]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def merged(parts: Sequence[tuple[Ints, pa.Array]]) -> pa.Array:
    """Returns one array from parts, each with the rows that it is for; together they have all rows."""
    if len(parts) == 1:
        return parts[0][1]
    rows = np.concatenate([rows for rows, _part in parts])
    order = np.empty(len(rows), np.int64)
    order[rows] = np.arange(len(rows))
    return pa.concat_arrays([part for _rows, part in parts]).take(pa.array(order))


def _bits(is_there: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))

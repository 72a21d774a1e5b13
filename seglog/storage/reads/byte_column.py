"""Byte strings of many records, such as their bodies: the place of each string, and the memory that holds it.

Nothing is copied before :meth:`ByteColumn.pack`, which returns one buffer in the layout of Arrow's
``large_binary``: string ``i`` is ``data[offsets[i] : offsets[i + 1]]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from seglog.storage.kernels.gather import Bytes, Ints, Mask, copy_ranges, iter_parts


class ByteColumn(Sequence[memoryview]):
    """A column of byte strings.

    Attributes:
        buffers: Memory that holds the strings, ``(m,) u8`` each, read-only.
        buffer_numbers: ``(n,) i4``, number of the buffer that holds each string.
        starts: ``(n,) i8``, start of each string in its buffer.
        sizes: ``(n,) i8``, length of each string in bytes; 0 for a missing one.
        is_there: ``(n,)``, false if the message cannot be read.
    """

    def __init__(self, count: int) -> None:
        """Creates a column of ``count`` strings, all missing."""
        self.buffers: list[Bytes] = []
        self.buffer_numbers: npt.NDArray[np.int32] = np.zeros(count, np.int32)
        self.starts: Ints = np.zeros(count, np.int64)
        self.sizes: Ints = np.zeros(count, np.int64)
        self.is_there: Mask = np.zeros(count, np.bool_)

    def place(self, rows: Ints, buffer: Bytes, starts: Ints, sizes: Ints) -> None:
        """Sets the places of the strings of ``rows`` in ``buffer``."""
        self.buffer_numbers[rows] = len(self.buffers)
        self.starts[rows] = starts
        self.sizes[rows] = sizes
        self.is_there[rows] = True
        self.buffers.append(buffer)

    @property
    def total_bytes(self) -> int:
        """Length of all strings together."""
        return int(self.sizes.sum())

    @override
    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> memoryview: ...

    @overload
    def __getitem__(self, index: slice) -> list[memoryview]: ...

    @override
    def __getitem__(self, index: int | slice) -> memoryview | list[memoryview]:
        """Returns one string without copying, empty if it is missing; a list for a slice."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not self.buffers:
            self.starts[index]  # raises IndexError for an index beyond the column
            return memoryview(b"")
        start = int(self.starts[index])
        buffer = self.buffers[int(self.buffer_numbers[index])].data
        return buffer[start : start + int(self.sizes[index])]

    @override
    def __iter__(self) -> Iterator[memoryview]:
        """Yields the strings, without copying."""
        buffers = self.buffers or [np.empty(0, np.uint8)]
        return iter_parts(buffers, self.buffer_numbers, self.starts, self.sizes)

    def pack(self) -> tuple[Ints, Bytes]:
        """Copies the strings one behind the other into one buffer.

        Returns:
            ``(n + 1,) i8`` offsets and ``(m,) u8`` data, in memory of their own.
        """
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.sizes, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        for number, buffer in enumerate(self.buffers):
            rows = np.flatnonzero(self.buffer_numbers == number) if len(self.buffers) > 1 else slice(None)
            copy_ranges(buffer, self.starts[rows], self.sizes[rows], data, offsets[:-1][rows])
        return offsets, data

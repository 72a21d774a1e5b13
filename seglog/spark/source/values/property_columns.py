"""Columns made of properties: all of them as a map, or the values of single ones.

All entries of many records are decoded at once, by the rules of :func:`decode_properties`: pieces
between 0x02 that have a name, 0x01 and a value count; of several with the same name the last counts. Native
kernels decode all columns in one pass (:mod:`seglog.spark.source.values.native_columns`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from seglog.spark.source.values.strings import as_text, gather
from seglog.storage.format.record import ENTRY_END, NAME_END
from seglog.storage.kernels.gather import Bytes, Ints, Mask, copy_ranges, overlapping
from seglog.storage.kernels.message_columns import Ends

_MANY_NAMES = 62
"""With more names, a set of names does not fit into an integer: entries are sorted to find duplicates."""


def map_of(kind: pa.DataType, offsets: Ends, names: pa.Array, values: pa.Array) -> pa.Array:
    """Returns a map of Arrow.

    Args:
        kind: Its type.
        offsets: ``(n + 1,) i4``, the entries of each row.
        names: The names of all entries.
        values: Their values.
    """
    pairs = pa.StructArray.from_arrays([names, values], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(
        kind, len(offsets) - 1, [None, pa.py_buffer(offsets)], null_count=0, children=[pairs]
    )


class Mapped(Protocol):
    """The properties of many records."""

    def mapping(self, kind: pa.DataType) -> pa.Array:
        """Returns a map for each record."""


def properties_of(mapped: Mapped, stored: tuple[Bytes, Ints, Ints], kind: pa.DataType) -> pa.Array:
    """Returns the column of all properties.

    Args:
        mapped: The properties.
        stored: The buffer that holds them, the start of each record's properties in it, and their sizes.
        kind: A map, text, or bytes as they are stored.
    """
    if kinds.is_map(kind):
        return mapped.mapping(kind)
    raw = gather(*stored)
    return as_text(raw) if kinds.is_string(kind) else raw


@dataclass(slots=True)
class Entries:
    """Entries of the properties of many records, in order.

    Attributes:
        rows: ``(m,)``, the record of each.
        name_starts: ``(m,)``, start of its name in the buffer.
        name_ends: ``(m,)``, position of its 0x01.
        ends: ``(m,)``, end of its value.
    """

    rows: Ints
    name_starts: Ints
    name_ends: Ints
    ends: Ints

    def at(self, chosen: Ints | Mask) -> Entries:
        """Returns some of the entries."""
        return Entries(self.rows[chosen], self.name_starts[chosen], self.name_ends[chosen], self.ends[chosen])


class PropertyColumns:
    """Properties of the records of a window.

    Args:
        buffer: The window.
        starts: ``(n,)``, where the properties of each record start.
        sizes: ``(n,)``, their lengths.
    """

    def __init__(self, buffer: Bytes, starts: Ints, sizes: Ints) -> None:
        self._count = len(starts)
        # A separator is added after each record's properties, because 4.x writers leave the last one out.
        self._ends = np.cumsum(sizes + 1)
        self._packed = np.full(int(self._ends[-1]) if len(sizes) else 0, ENTRY_END, np.uint8)
        copy_ranges(buffer, starts, sizes, self._packed, self._ends - sizes - 1)

    def mapping(self, kind: pa.DataType) -> pa.Array:
        """Returns all properties of each record as a map."""
        entries = self._unique
        offsets = np.zeros(self._count + 1, np.int32)
        offsets[1:] = np.cumsum(np.bincount(entries.rows, minlength=self._count))
        names = self._text(entries.name_starts, entries.name_ends)
        return map_of(kind, offsets, names, self._text(entries.name_ends + 1, entries.ends))

    def values(self, name: str) -> pa.Array:
        """Returns the value of one property of each record as text, null without it."""
        entries = self._entries
        wanted = np.frombuffer(name.encode(), np.uint8)
        found = np.flatnonzero(entries.name_ends - entries.name_starts == len(wanted))
        item = np.dtype(f"V{len(wanted)}")
        here = overlapping(self._packed, item)[entries.name_starts[found]].view(np.uint8)
        chosen = entries.at(found[(here.reshape(-1, len(wanted)) == wanted).all(axis=1)])
        starts, ends = np.zeros(self._count, np.int64), np.zeros(self._count, np.int64)
        is_there = np.zeros(self._count, np.bool_)
        # If a name occurs twice, the last assignment counts.
        starts[chosen.rows], ends[chosen.rows] = chosen.name_ends + 1, chosen.ends
        is_there[chosen.rows] = True
        return as_text(gather(self._packed, starts, ends - starts, is_there))

    @cached_property
    def _entries(self) -> Entries:
        ends = np.flatnonzero(self._packed == ENTRY_END)
        starts = np.zeros_like(ends)
        starts[1:] = ends[:-1] + 1
        name_ends_all = np.flatnonzero(self._packed == NAME_END)
        if not len(name_ends_all):
            nothing = np.zeros(0, np.int64)
            return Entries(nothing, nothing, nothing, nothing)
        nearest = np.minimum(np.searchsorted(name_ends_all, starts), len(name_ends_all) - 1)
        name_ends = name_ends_all[nearest]
        counted = (name_ends > starts) & (name_ends + 1 < ends)
        pieces = np.diff(np.searchsorted(ends, self._ends), prepend=0)
        rows = np.repeat(np.arange(self._count), pieces)
        return Entries(rows, starts, name_ends, ends).at(counted)

    @cached_property
    def _unique(self) -> Entries:
        """The entries without those that a later one of the same name replaces."""
        entries = self._entries
        names = self._text(entries.name_starts, entries.name_ends).dictionary_encode()
        codes = names.indices.to_numpy().astype(np.int64)
        if not len(codes):
            return entries
        if len(names.dictionary) <= _MANY_NAMES:
            begins = np.flatnonzero(np.diff(entries.rows, prepend=-1))
            bits = np.int64(1) << codes
            if (np.add.reduceat(bits, begins) == np.bitwise_or.reduceat(bits, begins)).all():
                return entries
        pairs = entries.rows * len(names.dictionary) + codes
        _found, last = np.unique(pairs[::-1], return_index=True)
        return entries.at(np.sort(len(pairs) - 1 - last))

    def _text(self, starts: Ints, ends: Ints) -> pa.Array:
        return as_text(gather(self._packed, starts, ends - starts))

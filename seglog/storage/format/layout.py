"""Record layouts: one table per fixed-size record, and everything else derived from it.

A :class:`Layout` is the single statement of a record's bytes. The ``struct.Struct`` that packs one
record, the numpy dtype that views a million of them and the rows of the format document come from the
same fields, so they cannot drift apart.

Every multi-byte integer in a RocketMQ store is big-endian, two's complement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from struct import Struct, calcsize
from typing import Any, Final, TypeAlias

import numpy as np

Buffer: TypeAlias = bytes | bytearray | memoryview

_CODES: Final = {
    "i8": ("b", ">i1"),
    "u8": ("B", ">u1"),
    "i16": ("h", ">i2"),
    "i32": ("i", ">i4"),
    "u32": ("I", ">u4"),
    "i64": ("q", ">i8"),
    "b4": ("4s", "V4"),
    "b16": ("16s", "V16"),
}
U8: Final = Struct(">B")
I16: Final = Struct(">h")
I32: Final = Struct(">i")
U32: Final = Struct(">I")
I64: Final = Struct(">q")
"""A number by itself; ``…_ITEMS`` is the same for arrays."""
I16_ITEMS: Final = np.dtype(">i2")
I32_ITEMS: Final = np.dtype(">i4")
I64_ITEMS: Final = np.dtype(">i8")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record: its name, type (``i8`` … ``i64``, ``b4`` raw bytes), unit and meaning."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Layout:
    """A fixed-size big-endian record.

    Attributes:
        name: Heading in the format document.
        source: Where RocketMQ defines it, as ``path.java SYMBOL``.
        fields: In file order, without gaps.
    """

    name: str
    source: str
    fields: tuple[Field, ...]

    @cached_property
    def struct(self) -> Struct:
        """Packs and unpacks one record."""
        return Struct(">" + "".join(_CODES[field.type][0] for field in self.fields))

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """Views many records; itemsize equals ``struct.size``."""
        return np.dtype([(field.name, _CODES[field.type][1]) for field in self.fields])

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where each field starts, in bytes from the start of the record."""
        sizes = [calcsize(">" + _CODES[field.type][0]) for field in self.fields]
        starts = accumulate(sizes, initial=0)
        return {field.name: start for field, start in zip(self.fields, starts, strict=False)}

    def decode(self, buffer: Buffer, at: int = 0) -> dict[str, Any]:
        """Returns the fields of one record by their names."""
        return dict(zip(self.offsets, self.struct.unpack_from(buffer, at), strict=True))

    def picking(self, *names: str) -> Struct:
        """Returns what unpacks only these fields, in file order, and skips the others."""
        codes = [(field.name in names, _CODES[field.type][0]) for field in self.fields]
        return Struct(">" + "".join(code if picked else f"{calcsize('>' + code)}x" for picked, code in codes))

    def part(self, first: str, last: str) -> Struct:
        """Returns what packs and unpacks the fields from one to another."""
        names = [field.name for field in self.fields]
        fields = self.fields[names.index(first) : names.index(last) + 1]
        return Layout(self.name, self.source, fields).struct

    @property
    def size_bytes(self) -> int:
        """Size of one record."""
        return self.struct.size

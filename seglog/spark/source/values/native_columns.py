"""Columns that native kernels filled in one pass over the records, as arrays of Arrow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pyarrow as pa

from seglog.spark.source.values.columns import BINARY, PROPERTY_MAP, Wanted
from seglog.spark.source.values.property_columns import map_of
from seglog.spark.source.values.strings import as_text, strings_of
from seglog.storage.kernels.gather import Ints
from seglog.storage.kernels.message_columns import MessageColumns, Texts, message_columns
from seglog.storage.kernels.walk import Rows

_PROPERTIES: Final = "properties"


class NativeColumns:
    """Columns of the records of a window.

    Args:
        window: The window.
        phy_offset: Physical offset of its first byte.
        rows: Its records.
        wanted: Requested columns; those that are not filled have to be made in another way.
    """

    def __init__(self, window: memoryview, phy_offset: int, rows: Rows, wanted: Collection[Wanted]) -> None:
        names = {one.name for one in wanted if one.name != _PROPERTIES or one.type == PROPERTY_MAP}
        self._found: MessageColumns = message_columns(window, phy_offset, rows, names)

    def numbers(self, name: str) -> Ints | None:
        """Returns a column of numbers, None if it was not filled."""
        return self._found.numbers.get(name)

    def strings(self, name: str, kind: pa.DataType) -> pa.Array | None:
        """Returns a column of strings, None if it was not filled."""
        found = self._found.texts.get(name)
        return None if found is None else _array(found, kind)

    def mapping(self) -> pa.Array | None:
        """Returns all properties, None if they were not filled."""
        found = self._found.properties
        if found is None:
            return None
        names, values = (_array(part, pa.string()) for part in (found.names, found.values))
        return map_of(PROPERTY_MAP, found.row_offsets, names, values)


def _array(texts: Texts, kind: pa.DataType) -> pa.Array:
    is_there = None if texts.are_there is None else texts.are_there.view(np.bool_)
    raw = strings_of(texts.offsets, texts.data, is_there)
    return raw if kind == BINARY else as_text(raw)

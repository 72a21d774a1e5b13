"""Every table of a format packs and unpacks what it should, the same through struct and numpy."""

from __future__ import annotations

import importlib
import pkgutil
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seglog.storage.format
from seglog.storage.format.layout import Layout
from tests.support.rows import every_row
from tests.support.scale import scaled

VALUES = {
    "i8": st.integers(-(2**7), 2**7 - 1),
    "u8": st.integers(0, 2**8 - 1),
    "i16": st.integers(-(2**15), 2**15 - 1),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "u32": st.integers(0, 2**32 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "b4": st.binary(min_size=4, max_size=4),
    "b16": st.binary(min_size=16, max_size=16),
}


def named_layouts():
    found = {}
    package = seglog.storage.format
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        values = vars(importlib.import_module(module.name)).values()
        for value in values:
            for layout in value.values() if isinstance(value, dict) else [value]:
                if isinstance(layout, Layout) and layout.name:
                    found[layout.name] = layout
    return found


LAYOUTS = named_layouts()


def test_all_tables_are_met():
    assert len(LAYOUTS) >= 20


def test_struct_numpy_and_offsets_agree():
    with every_row() as row:
        for case, layout in LAYOUTS.items():
            with row(case):
                assert layout.size_bytes == layout.struct.size == layout.dtype.itemsize
                assert {name: layout.dtype.fields[name][1] for name in layout.dtype.names} == layout.offsets
                assert all(field.name.islower() for field in layout.fields)
                assert layout.source


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@settings(max_examples=scaled(100, 2000))
@given(st.data())
def test_values_read_back_as_they_were_written(layout, data):
    rows = data.draw(st.lists(st.tuples(*(VALUES[field.type] for field in layout.fields)), max_size=4))
    packed = b"".join(layout.struct.pack(*row) for row in rows)
    assert list(layout.struct.iter_unpack(packed)) == rows
    seen = np.frombuffer(packed, layout.dtype, len(rows))
    assert [tuple(v.tobytes() if isinstance(v, np.void) else v for v in row) for row in seen.tolist()] == rows
    assert seen.tobytes() == packed
    for row, start in zip(rows, range(0, len(packed), layout.size_bytes), strict=True):
        for field, value in zip(layout.fields, row, strict=True):
            at = start + layout.offsets[field.name]
            size = layout.dtype[field.name].itemsize
            wanted = value if isinstance(value, bytes) else value.to_bytes(size, "big", signed=value < 0)
            assert packed[at : at + size] == wanted


def test_values_out_of_range_are_not_cut_short():
    with pytest.raises(struct.error):
        LAYOUTS["ConsumeQueue unit"].struct.pack(2**63, 0, 0)

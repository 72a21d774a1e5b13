"""One table gives struct, dtype and field places, and they agree."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.checkpoint import CHECKPOINT
from seglog.storage.format.layout import I64, Field, Layout
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.record.record import FILLER, HEADS
from tests.support.narrow import not_none
from tests.support.rows import every_row

SIZES = {"i8": 1, "u8": 1, "i16": 2, "i32": 4, "u32": 4, "i64": 8, "b4": 4, "b16": 16}
ALL = [CQ_UNIT, CHECKPOINT, FILLER, *HEADS.values()]


def fields() -> st.SearchStrategy[tuple[Field, ...]]:
    types = st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=8)
    return types.map(lambda chosen: tuple(Field(f"f{i}", kind, "", "") for i, kind in enumerate(chosen)))


def values(kind: str) -> st.SearchStrategy[int | bytes]:
    bits = 8 * SIZES[kind]
    if kind[0] == "b":
        return st.binary(min_size=SIZES[kind], max_size=SIZES[kind])
    return (
        st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if kind[0] == "i"
        else st.integers(0, 2**bits - 1)
    )


@given(fields())
def test_struct_dtype_and_offsets_have_the_same_places(chosen):
    layout = Layout("any", "test", chosen)
    assert layout.size_bytes == layout.struct.size == layout.dtype.itemsize
    assert layout.size_bytes == sum(SIZES[field.type] for field in chosen)
    assert layout.offsets == {name: place[1] for name, place in not_none(layout.dtype.fields).items()}


@given(st.data(), fields())
def test_numpy_reads_what_struct_packed(data, chosen):
    layout = Layout("any", "test", chosen)
    row = tuple(data.draw(values(field.type)) for field in chosen)
    seen = np.frombuffer(layout.struct.pack(*row), layout.dtype)[0].item()
    assert tuple(value.tobytes() if isinstance(value, np.void) else value for value in seen) == row


def test_layout_names_its_source_and_explains_its_fields():
    with every_row() as row:
        for layout in ALL:
            with row(layout):
                assert layout.name
                assert ".java" in layout.source
                assert len({field.name for field in layout.fields}) == len(layout.fields)
                assert layout.struct.format.startswith(">")


def test_sizes_are_those_of_the_format_document():
    assert (CQ_UNIT.size_bytes, FILLER.size_bytes, CHECKPOINT.size_bytes) == (20, 8, 48)
    assert {bits: head.size_bytes for bits, head in HEADS.items()} == {0: 88, 0x10: 100, 0x20: 100, 0x30: 112}


PLACES = (
    ("size_bytes", 0),
    ("magic", 4),
    ("body_crc", 8),
    ("queue_id", 12),
    ("flag", 16),
    ("queue_offset", 20),
    ("phy_offset", 28),
    ("sys_flag", 36),
    ("born_timestamp_ms", 40),
    ("born_address", 48),
    ("store_timestamp_ms", 56),
    ("store_address", 64),
    ("reconsume_times", 72),
    ("prepared_transaction_offset", 76),
    ("body_bytes", 84),
)


def test_field_of_an_ipv4_record_lies_where_the_document_says():
    with every_row() as row:
        for name, at in PLACES:
            with row(name, at):
                assert HEADS[0].offsets[name] == at


def test_pack_of_a_wrong_number_of_values_is_refused():
    with pytest.raises(struct.error):
        CQ_UNIT.struct.pack(1, 2)


def test_a_part_of_a_layout_packs_the_fields_from_one_to_another():
    whole = CQ_UNIT.struct.pack(7, 8, 9)
    assert CQ_UNIT.part("phy_offset", "size_bytes").pack(7, 8) + I64.pack(9) == whole
    assert CQ_UNIT.part("tags_code", "tags_code").unpack_from(whole, 12) == (9,)

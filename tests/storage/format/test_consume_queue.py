"""Units are read as RocketMQ wrote them, and damage ends the queue where RocketMQ ends it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.consume_queue import (
    CQ_UNIT,
    PRE_BLANK_BYTES,
    in_use,
    pre_blanks,
    valid_prefix,
    view_units,
)
from tests.support.records import I32, I64


@given(st.lists(st.tuples(I64, I32, I64)))
def test_view_reads_back_what_struct_packed(rows):
    packed = b"".join(CQ_UNIT.struct.pack(*row) for row in rows)
    assert view_units(memoryview(packed), len(rows)).tolist() == rows


def test_view_shares_memory_with_the_file_and_cannot_write_to_it():
    packed = bytearray(CQ_UNIT.struct.pack(4096, 213, -7))
    units = view_units(memoryview(packed), 1)
    packed[0:8] = (8192).to_bytes(8, "big")
    assert units["phy_offset"][0] == 8192
    with pytest.raises(ValueError, match="read-only"):
        units["phy_offset"] = 0


def test_view_refuses_a_short_file():
    with pytest.raises(ValueError, match="buffer is smaller"):
        view_units(memoryview(bytes(39)), 2)


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        pytest.param([], 0, id="empty"),
        pytest.param([(0, 213, 0), (213, 90, 0)], 2, id="full"),
        pytest.param([(0, 213, 0), (0, 0, 0), (303, 90, 0)], 1, id="zero hole hides what follows"),
        pytest.param([(-1, 213, 0)], 0, id="negative position"),
        pytest.param([(5, -1, 0)], 0, id="negative size"),
        pytest.param([(0, PRE_BLANK_BYTES, 0), (0, 213, 0)], 2, id="pre-blank counts"),
    ],
)
def test_first_unused_unit_ends_the_queue(rows, count):
    assert valid_prefix(np.array(rows, CQ_UNIT.dtype)) == count


@given(st.lists(st.tuples(I64, I32, I64)))
def test_prefix_is_the_run_of_units_in_use(rows):
    units = np.array(rows, CQ_UNIT.dtype)
    used = [phy >= 0 and size > 0 for phy, size, _code in rows]
    assert in_use(units).tolist() == used
    assert valid_prefix(units) == (used.index(False) if False in used else len(used))


@pytest.mark.parametrize("count", [0, 1, 100])
def test_pre_blanks_are_what_rocketmq_fills_in(count):
    assert pre_blanks(count).tobytes() == bytes.fromhex("00000000000000007fffffff0000000000000000") * count

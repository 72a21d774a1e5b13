"""Units are read as RocketMQ wrote them, and damage ends the queue where RocketMQ ends it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.queue.consume_queue import (
    CQ_UNIT,
    in_use,
    pre_blanks,
)
from tests.support.material.records import I32, I64


@given(st.lists(st.tuples(I64, I32, I64)))
def test_view_reads_back_what_struct_packed(rows):
    packed = b"".join(CQ_UNIT.struct.pack(*row) for row in rows)
    assert np.frombuffer(packed, CQ_UNIT.dtype).tolist() == rows


@given(st.lists(st.tuples(I64, I32, I64)))
def test_a_unit_is_in_use_if_it_leads_somewhere(rows):
    units = np.array(rows, CQ_UNIT.dtype)
    used = [phy >= 0 and size > 0 for phy, size, _code in rows]
    assert in_use(units).tolist() == used


@pytest.mark.parametrize("count", [0, 1, 100])
def test_pre_blanks_are_what_rocketmq_fills_in(count):
    assert pre_blanks(count).tobytes() == bytes.fromhex("00000000000000007fffffff0000000000000000") * count

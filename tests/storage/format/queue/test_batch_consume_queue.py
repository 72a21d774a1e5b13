"""Batch queue units follow from the log, lead to their records, and end where damage begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError
from seglog.storage.format.queue.batch_consume_queue import (
    BATCH_UNIT,
    BATCH_UNIT_BYTES,
    END_UNIT,
    batch_in_use,
    batch_range,
    make_batch_units,
    valid_batch_prefix,
    view_batch_units,
)
from seglog.storage.format.record.properties import encode_properties
from tests.support.material.golden import shared
from tests.support.material.log_records import iter_log
from tests.support.rows import every_row

I64 = st.integers(-(2**63), 2**63 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
I16 = st.integers(-(2**15), 2**15 - 1)


@pytest.fixture(scope="module")
def store():
    return shared("innerbatch")


def test_a_unit_is_46_bytes_for_struct_and_numpy_alike():
    assert BATCH_UNIT.size_bytes == BATCH_UNIT.dtype.itemsize == BATCH_UNIT_BYTES == 46


@pytest.mark.parametrize("queue_id", [0, 1])
def test_a_real_queue_file_equals_the_units_of_the_log(store, queue_id):
    rows = []
    for record in iter_log(store):
        if (record.topic, record.row.queue_id) == ("BCQTopic", queue_id):
            base, count = batch_range(record.properties, record.row.queue_offset)
            rows.append(
                (
                    record.phy_offset,
                    record.row.size_bytes,
                    record.row.tags_code,
                    record.row.store_timestamp_ms,
                    base,
                    count,
                )
            )
    made = make_batch_units(*np.array(rows, np.int64).T).tobytes()
    files = sorted((store / "batchconsumequeue" / "BCQTopic" / str(queue_id)).iterdir())
    real = b"".join(path.read_bytes() for path in files)
    assert len(rows) == 20
    assert made.ljust(len(real), b"\0") == real
    assert valid_batch_prefix(view_batch_units(real)) == len(rows)


@given(st.lists(st.tuples(I64, I32, I64, I64, I64, I16, I32, I32)))
def test_view_reads_back_what_struct_packed(rows):
    packed = b"".join(BATCH_UNIT.struct.pack(*row) for row in rows)
    units = view_batch_units(packed + b"rest")
    assert units.tolist() == rows
    assert units.tobytes() == packed
    assert not units.flags.writeable


@given(st.binary(max_size=300))
def test_arbitrary_bytes_have_a_valid_prefix(data):
    units = view_batch_units(data)
    count = valid_batch_prefix(units)
    assert batch_in_use(units[:count]).all()
    assert count == len(units) or not batch_in_use(units)[count]


def test_an_end_unit_and_zeros_are_not_in_use():
    assert not batch_in_use(view_batch_units(END_UNIT + bytes(BATCH_UNIT_BYTES))).any()


@given(st.integers(0, 2**63 - 1), st.integers(1, 2**15 - 1), st.integers(0, 2**63 - 1))
def test_both_properties_make_a_batch(base, count, queue_offset):
    batch = encode_properties({"INNER_NUM": str(count), "KEYS": "k", "INNER_BASE": str(base)})
    assert batch_range(batch, queue_offset) == (base, count)
    assert batch_range(encode_properties({"INNER_NUM": str(count)}), queue_offset) == (queue_offset, 1)
    assert batch_range(b"", queue_offset) == (queue_offset, 1)


NO_RANGES = (
    ("-1", "2"),
    ("0", "0"),
    ("0", "32768"),
    ("x", "1"),
    ("9" * 19, "1"),
    ("9" * 5000, "1"),
    ("²", "1"),
)


def test_a_range_that_no_unit_can_hold_is_refused():
    with every_row() as row:
        for base, count in NO_RANGES:
            with row(base, count), pytest.raises(CorruptError, match="inner-batch"):
                batch_range(encode_properties({"INNER_NUM": count, "INNER_BASE": base}), 0)

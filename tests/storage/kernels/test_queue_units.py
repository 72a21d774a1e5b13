"""Units of a log that is rewritten: those of its records in plain queues, brought together by queue."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.record import (
    FLAG_AT,
    INNER_BATCH,
    PLACEHOLDER_FLAG,
)
from seglog.storage.format.record.sys_flag import TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.queue_units import SPILLED, spilled_units, units_by_queue
from seglog.storage.kernels.walk import ROW
from tests.support.machine.kernels import BOTH, running

SIZE, FIRST, PLAIN = 100, 5000, (True, False, True, True)
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([0, 1, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK, INNER_BATCH]),
        st.booleans(),
    ),
    max_size=40,
)


def material(records):
    """Rows, and the bytes that their flags are in."""
    rows, data = np.zeros(len(records), ROW), np.zeros(SIZE * len(records), np.uint8)
    for number, (queue, sys_flag, is_placeholder) in enumerate(records):
        place = FIRST + SIZE * number
        rows[number] = place, 7 + number, number * 3 - 9, 1_700_000_000_000, SIZE, queue, sys_flag
        flag = PLACEHOLDER_FLAG if is_placeholder else 5
        data[SIZE * number + FLAG_AT :][:4] = list(flag.to_bytes(4, "big"))
    return rows, data


@pytest.mark.parametrize("kernels", BOTH)
@given(records=RECORDS)
def test_units_are_those_of_records_with_a_place_in_a_plain_queue(kernels, records):
    rows, data = material(records)
    expected = [
        (7 + number, FIRST + SIZE * number, number * 3 - 9, SIZE, queue, not is_placeholder)
        for number, (queue, sys_flag, is_placeholder) in enumerate(records)
        if PLAIN[queue] and sys_flag in (0, 1)
    ]
    with running(kernels):
        found = spilled_units(rows, data, FIRST, PLAIN)
        assert found.tolist() == expected
        ordered, starts = units_by_queue(found, len(PLAIN))
    assert ordered.tolist() == sorted(expected, key=lambda unit: unit[4])
    counts = [sum(unit[4] == queue for unit in expected) for queue in range(len(PLAIN))]
    assert starts == [sum(counts[:queue]) for queue in range(len(PLAIN) + 1)]


@pytest.mark.skipif(KERNELS != NATIVE, reason="Python's own bounds are numpy's")
def test_rows_of_other_records_and_queues_are_refused():
    rows, data = material([(0, 0, False), (2, 0, False)])
    with pytest.raises(ValueError, match="rows are of the records"):
        spilled_units(rows, data[: SIZE + 40], FIRST, PLAIN)
    with pytest.raises(ValueError, match="rows are of the records"):
        spilled_units(rows, data, FIRST + 1, PLAIN)
    with pytest.raises(ValueError, match="rows are of the records"):
        spilled_units(rows, data, FIRST, PLAIN[:2])
    units = np.zeros(1, SPILLED)
    units["queue"] = 4
    with pytest.raises(ValueError, match="units are of queues"):
        units_by_queue(units, 4)


def test_both_kernels_order_many_units_alike():
    units = np.zeros(5000, SPILLED)
    units["queue"] = np.random.default_rng(1).integers(0, 300, len(units))
    units["queue_offset"] = np.arange(len(units))
    found = []
    for kernels in BOTH:
        with running(kernels):
            found.append(units_by_queue(units, 301))
    (ordered, starts), (others, other_starts) = found
    assert starts == other_starts
    assert ordered.tobytes() == others.tobytes()

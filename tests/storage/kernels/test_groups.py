"""Rows are put together by their queues by both kernels alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.storage.format.record.sys_flag import (
    INNER_BATCH,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from seglog.storage.kernels.queue_rows import group
from seglog.storage.kernels.walk import ROW
from tests.support.machine.kernels import BOTH, native, running
from tests.support.narrow import not_none
from tests.support.scale import scaled

QUEUES = 4
FLAGS = (0, TRANSACTION_PREPARED, TRANSACTION_COMMIT, TRANSACTION_ROLLBACK)


def rows_of(queues_and_flags):
    rows = np.zeros(len(queues_and_flags), ROW)
    for number, (queue, flag, size, time_ms) in enumerate(queues_and_flags):
        rows[number] = (100 * number, number, -number, time_ms, size, queue, flag)
    return rows


def told(rows):
    found = group(rows, QUEUES)
    return found and [(one[0], *one[2:], one.rows.tolist()) for one in found]


def test_rows_keep_their_order_and_those_without_a_place_are_left_out(kernels: str):
    rows = rows_of([(2, 0, 10, 7), (1, 0, 11, 5), (2, TRANSACTION_PREPARED, 12, 1), (2, 0, 13, 6)])
    one, two = not_none(group(rows, QUEUES))
    assert (one.queue, one.rows.tolist(), *one[2:]) == (1, rows[[1]].tolist(), 11, 5, 5)
    assert (two.queue, two.rows.tolist(), *two[2:]) == (2, rows[[0, 3]].tolist(), 23, 6, 7)


def test_no_rows_are_no_groups_and_inner_batches_have_other_queues(kernels: str):
    assert group(rows_of([]), QUEUES) == []
    assert group(rows_of([(0, TRANSACTION_ROLLBACK, 10, 7)]), QUEUES) == []
    assert group(rows_of([(0, 0, 10, 7), (0, INNER_BATCH, 10, 7)]), QUEUES) is None


@given(
    made=st.lists(
        st.tuples(
            st.integers(0, QUEUES - 1),
            st.sampled_from(FLAGS),
            st.integers(91, 2**31 - 1),
            st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=30,
    )
)
@settings(max_examples=scaled(200, 20_000))
def test_both_kernels_group_alike(made):
    native()
    rows = rows_of(made)
    found = []
    for kernels in BOTH:
        with running(kernels):
            found.append(told(rows))
    assert found[0] == found[1]


@pytest.mark.parametrize("queue", [-1, QUEUES, 2**31 - 1, -(2**31)])
def test_a_number_of_no_queue_is_none_of_ours(queue):
    rows = rows_of([(queue, 0, 100, 1)])
    assert native().group_rows(rows.data.cast("B"), QUEUES, memoryview(bytearray(44))) is None
    with pytest.raises(ValueError, match="room"):
        native().group_rows(rows.data.cast("B"), QUEUES, memoryview(bytearray(43)))

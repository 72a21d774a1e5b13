"""Rows of a queue held against the units of its files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seglog.storage.format.queue.consume_queue import CQ_UNIT, PRE_BLANK_BYTES
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels import PYTHON
from seglog.storage.kernels.queue_rows import stand_in, units_of
from seglog.storage.kernels.walk import ROW
from seglog.storage.overlay import queue_overlay
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.overlay.queue_overlay import overlay_queue
from seglog.storage.walk.behind_damage import Hole
from tests.support.machine.kernels import BOTH, running
from tests.support.rows import every_row
from tests.support.scale import scaled

COUNT = 40
FIELDS = ("phy_offset", "size_bytes", "tags_code")


def rows_from(first, count=COUNT, start=1000, size=100):
    rows = np.zeros(count, ROW)
    rows["queue_offset"] = first + np.arange(count)
    rows["phy_offset"] = start + size * np.arange(count)
    rows["size_bytes"] = size
    rows["tags_code"] = np.arange(count) - 7
    return rows


def test_units_that_follow_from_their_rows(kernels: str):
    rows = rows_from(5)
    assert stand_in(rows, units_of(rows))
    assert stand_in(rows[:1], units_of(rows[:1]))
    assert stand_in(rows[:0], units_of(rows[:0]))
    assert stand_in(rows[::2], units_of(rows[::2])) is False
    assert not stand_in(rows, units_of(rows)[:-1])
    assert not stand_in(rows[:-1], units_of(rows))


def test_a_unit_that_says_something_else(kernels: str):
    with every_row() as row:
        for name in FIELDS:
            for at in (0, 17, COUNT - 1):
                with row(name, at):
                    rows = rows_from(5)
                    units = units_of(rows)
                    units[name][at] ^= 1
                    assert not stand_in(rows, units)


def test_rows_that_do_not_follow_each_other(kernels: str):
    with every_row() as row:
        for name in ("queue_offset", "phy_offset"):
            for value in (0, 1 << 62, -(1 << 63), (1 << 63) - 1):
                with row(name, value):
                    rows = rows_from(5)
                    rows[name][20] = value
                    assert not stand_in(rows, units_of(rows))


def test_a_record_has_a_least_size(kernels: str):
    rows = rows_from(0, size=90)
    assert not stand_in(rows, units_of(rows))
    rows = rows_from(0, size=91)
    assert stand_in(rows, units_of(rows))


VALUES = [0, 1, -1, 1000, PRE_BLANK_BYTES, 1 << 40]
changes = st.lists(
    st.tuples(st.sampled_from(FIELDS), st.integers(0, COUNT - 1), st.sampled_from(VALUES)), max_size=2
)
NO_SIZE, PRE_BLANK = [("size_bytes", 0, 0)], [("size_bytes", 3, PRE_BLANK_BYTES)]


@settings(max_examples=scaled(300, 20_000), deadline=None)
@given(
    st.integers(0, 30),
    st.integers(0, COUNT),
    st.integers(-3, 3),
    changes,
    changes,
    st.sampled_from([0, 1000, 1500, 3000]),
    st.sampled_from(["T", "%LMQ%T", "SCHEDULE_TOPIC_XXXX"]),
    st.sampled_from([(), (Hole(1200, 200, "magic"),)]),
    st.sampled_from(BOTH),
)
@example(0, 0, 0, [("size_bytes", 0, 1 << 40)], NO_SIZE, 0, "T", (), PYTHON)  # 2**40 wraps to 0
@example(0, 0, 0, PRE_BLANK, PRE_BLANK, 0, "T", (), PYTHON)
def test_the_quick_way_gives_the_queue_that_the_long_way_does(
    first, expired, more, row_changes, unit_changes, min_phy_offset, topic, holes, kernels: str
):
    """Rows behind ``expired`` units; both with something changed, and units too few or too many."""
    all_rows = rows_from(first)
    stored = units_of(all_rows)
    if more > 0:
        stored = np.concatenate([stored, stored[:more]])
        stored["size_bytes"][-1] = PRE_BLANK_BYTES
    elif more < 0:
        stored = stored[:more]
    for changed, values in ((all_rows, row_changes), (stored, unit_changes)):
        for name, at, value in values:
            if at < len(changed):
                changed[name][at] = np.array(value).astype(changed[name].dtype)
    rows = all_rows[expired:]
    facts = LogFacts(min_phy_offset, 9000, holes, rows["phy_offset"], rows["size_bytes"], 10 * 20)

    def overlaid():
        state = overlay_queue(topic, 3, rows, first, stored, facts, has_files=True)
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name in state.__slots__
            if (value := getattr(state, name)) is not None
        }

    with running(kernels), pytest.MonkeyPatch.context() as patch:
        quick = overlaid()
        patch.setattr(queue_overlay, "_as_stored", lambda *_: None)
        assert quick == overlaid()


def test_a_row_without_the_size_of_a_record(kernels: str):
    with every_row() as row:
        for size_bytes in (0, -1, MIN_RECORD_BYTES - 1, PRE_BLANK_BYTES):
            for at in (0, 17, COUNT - 1):
                with row(size_bytes, at):
                    rows = rows_from(5)
                    rows["size_bytes"][at] = size_bytes
                    assert not stand_in(rows, units_of(rows))


def test_the_quick_way_is_taken(kernels: str):
    rows = rows_from(5)
    stored = units_of(rows)
    facts = LogFacts(1500, 9000, (), rows["phy_offset"][5:], rows["size_bytes"][5:], 10 * 20)
    state = overlay_queue("T", 0, rows[5:], 5, stored, facts, has_files=True)
    assert np.shares_memory(state.units, stored)
    assert (state.first_slot, state.min_offset, state.max_offset, state.agrees) == (10, 10, 45, True)
    assert state.units["phy_offset"].dtype == CQ_UNIT.dtype["phy_offset"]

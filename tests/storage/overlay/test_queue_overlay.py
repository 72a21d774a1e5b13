"""A queue is what the log says; where the log says two things, the files decide."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT, BatchUnits
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.kernels.walk import ROW
from seglog.storage.overlay.batch_overlay import overlay_batch_queue
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.overlay.queue_overlay import behind_findings, overlay_queue
from seglog.storage.segments.scratch import Room
from seglog.storage.walk.growable_rows import PART_ROWS

# (queue offset, phy offset): the third record was given the offset of the second again.
RECORDS = [(0, 0), (1, 100), (1, 200), (2, 300)]


def overlay(stored, records=RECORDS):
    rows = np.zeros(len(records), ROW)
    rows["queue_offset"], rows["phy_offset"] = zip(*records, strict=True)
    rows["size_bytes"] = 100
    units = np.array(stored, CQ_UNIT.dtype)
    facts = LogFacts(0, 400, (), rows["phy_offset"], rows["size_bytes"], 2000)
    return overlay_queue("T", 0, rows, 0, units, facts, has_files=True)


@pytest.mark.parametrize(
    ("pointed_to", "stays"),
    [
        pytest.param(100, 100, id="the earlier record, where the file points to it"),
        pytest.param(200, 200, id="the later record, where the file points to it"),
        pytest.param(900, 200, id="the later record, where the file points elsewhere"),
    ],
)
def test_offset_given_twice_keeps(pointed_to, stays):
    state = overlay([(0, 100, 0), (pointed_to, 100, 0), (300, 100, 0)])
    assert state.units["phy_offset"].tolist() == [0, stays, 300]
    assert [finding.code for finding in state.findings] == (
        [] if pointed_to == stays else ["queue-unit-wrong"]
    )


@pytest.mark.parametrize(
    "wrong", [pytest.param((300, 99, 0), id="size"), pytest.param((300, 100, 7), id="tags code")]
)
def test_offset_given_twice_hides_no_wrong_unit_elsewhere(wrong):
    state = overlay([(0, 100, 0), (100, 100, 0), wrong])
    assert [finding.code for finding in state.findings] == ["queue-unit-wrong"]
    assert state.units[2].tolist() == (300, 100, 0)


def test_missing_unit_points_nowhere_not_even_to_the_first_record():
    assert overlay([], [(0, 0), (0, 100)]).units["phy_offset"].tolist() == [100]


def test_unit_that_leads_to_the_end_of_all_numbers_is_not_taken_for_an_expired_one():
    state = overlay([(0, 100, 0), (2**63 - 1, 100, 0)], [(0, 0)])
    assert state.max_offset == 1
    assert state.behind.tolist() == [(2**63 - 1, 100, 0)]
    assert [finding.code for finding in behind_findings(state, 400, 2000)] == ["queue-beyond-log"]


def test_a_long_queue_that_disagrees_takes_little_more_than_its_units():
    count = 3 * PART_ROWS // 2
    rows, stored = np.zeros(count, ROW), np.zeros(count, CQ_UNIT.dtype)
    rows["queue_offset"] = np.arange(count)
    for held in (rows, stored):
        held["phy_offset"], held["size_bytes"] = np.arange(count) * 100, 100
    rows["queue_offset"][PART_ROWS] = PART_ROWS - 1  # given twice, and the files point to the earlier record
    stored[5] = (7, 100, 3)
    stored[PART_ROWS] = (0, 0, 0)
    facts = LogFacts(0, count * 100, (), rows["phy_offset"], rows["size_bytes"], 6_000_000)
    tracemalloc.start()
    try:
        state = overlay_queue("T", 0, rows, 0, stored, facts, has_files=True, room=Room(0))
        _now, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 72 * count
    assert state.units["phy_offset"].tolist()[:PART_ROWS] == list(range(0, PART_ROWS * 100, 100))
    assert {finding.code for finding in state.findings} >= {"queue-unit-wrong"}


def test_a_batch_queue_without_units_is_right_after_a_kill():
    facts = LogFacts(0, 400, (), np.array([0]), np.array([400], np.int32), 2000, is_closed=False)
    none = np.zeros(0, BATCH_UNIT.dtype)
    assert overlay_batch_queue("T", 0, none, 0, none, facts, has_files=True).findings == []


BATCHES = {
    "a living unit of another queue in front": (400, 100, 0),
    "zeros in front": (0, 0, 0),
    "an expired unit": (100, 100, 0),
}


@pytest.mark.parametrize(("name", "first"), BATCHES.items())
def test_a_batch_queue_is_compared_from_the_first_unit_of_its_files(name, first):
    def unit(phy_offset: int, size_bytes: int, base: int) -> BatchUnits:
        made = np.zeros(1, BATCH_UNIT.dtype)
        made["phy_offset"], made["size_bytes"], made["base_queue_offset"] = phy_offset, size_bytes, base
        made["batch_size"] = min(size_bytes, 2)
        return made

    living = np.concatenate([unit(200, 100, 4), unit(300, 100, 6)])
    stored = np.concatenate([unit(first[0], first[1], 0), unit(150, 50, 2), living])
    facts = LogFacts(200, 500, (), np.array([200, 300]), np.array([100, 100], np.int32), 4600)
    state = overlay_batch_queue("T", 0, living, 0, stored, facts, has_files=True)
    assert bool(state.findings) == (name != "an expired unit")
    assert state.units[-2:].tolist() == living.tolist()

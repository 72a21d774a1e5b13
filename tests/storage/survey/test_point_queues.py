"""A queue that goes on behind a recovery point is quickly seen to be as it should, and only then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.kernels.walk import ROW
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.overlay.queue_overlay import overlay_queue
from seglog.storage.survey.point_queues import continued_queue
from tests.support.rows import every_row

FIRST = 7
Parts = tuple[Any, Any, Any]


def parts_of(before: int, behind: int) -> Parts:
    """Returns rows before and behind a point, and the units of both."""
    count = before + behind
    rows, stored = np.zeros(count, ROW), np.zeros(count, CQ_UNIT.dtype)
    rows["queue_offset"] = FIRST + np.arange(count)
    for held in (rows, stored):
        held["phy_offset"], held["size_bytes"], held["tags_code"] = 1000 + np.arange(count) * 100, 100, 3
    return rows[:before], rows[before:], stored


def both(parts: Parts, min_phy_offset: int = 0) -> tuple[Any, Any]:
    before, rows, stored = parts
    all_rows = np.concatenate([before, rows])
    facts = LogFacts(min_phy_offset, 1 << 20, (), all_rows["phy_offset"], all_rows["size_bytes"], 2000)
    quick = continued_queue("T", 0, before, rows, FIRST, stored, facts)
    return quick, overlay_queue("T", 0, all_rows, FIRST, stored, facts, has_files=True)


def told(state: Any) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in astuple(state)]


@given(st.integers(1, 3), st.integers(1, 300))
def test_what_is_as_it_should_be_is_what_a_closer_look_says(before, behind):
    quick, slow = both(parts_of(before, behind))
    assert quick is not None
    assert told(quick) == told(slow)
    assert quick.agrees


def changed(place: int, name: str, value: int) -> Callable[[Parts], Parts]:
    def change(parts: Parts) -> Parts:
        parts[place][name][-1 if place == 2 else 0] = value
        return parts

    return change


DOUBTS: dict[str, Callable[[Parts], Parts]] = {
    "nothing before": lambda parts: (parts[0][:0], *parts[1:]),
    "nothing behind": lambda parts: (parts[0], parts[1][:0], parts[2]),
    "a row is missing behind the point": lambda parts: (parts[0], parts[1][1:], parts[2]),
    "a unit more": lambda parts: (*parts[:2], np.concatenate([parts[2], parts[2][:1]])),
    "a unit is missing": lambda parts: (*parts[:2], parts[2][:-1]),
    "the first row has another queue offset": changed(0, "queue_offset", FIRST + 1),
    "the first row has a place before the log": changed(0, "phy_offset", 10),
    "the point is within a record": changed(1, "phy_offset", 1150),
    "a unit leads elsewhere": changed(2, "phy_offset", 5),
    "a unit has another size": changed(2, "size_bytes", 99),
    "a unit has another tags code": changed(2, "tags_code", 4),
}


def test_anything_else_takes_a_closer_look():
    with every_row() as row:
        for name, doubt in DOUBTS.items():
            with row(name):
                quick, _slow = both(doubt(parts_of(2, 5)), 1000)
                assert quick is None

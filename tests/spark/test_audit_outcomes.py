"""What a split saw arrives on the driver as it was sent."""

from __future__ import annotations

import pickle
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from seglog.doctor.check.log_walk import SplitOutcome
from seglog.doctor.check.record_observer import Seen
from seglog.storage.findings.findings import Finding
from seglog.storage.format.record.record import Damage
from seglog.storage.index_check.key_check import KeyDiff, Places
from seglog.storage.splits.stretches import BatchRun, Interval, QueueEnd, Stretch, UnitState
from seglog.storage.walk.behind_damage import Head
from seglog.storage.walk.segment_walk import Stopped

I31, I63 = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INTERVALS = st.builds(
    Interval, TEXT, I31, st.sampled_from(UnitState), I63, I63, I63, I63, I63, I63, st.integers(-(2**63), 0)
)
STRETCHES = st.builds(
    Stretch,
    I31,
    I63,
    I63,
    st.sampled_from(Stopped),
    st.none() | st.builds(Damage, TEXT, TEXT, TEXT),
    I63,
    I63,
    st.none() | st.builds(Head, I63, TEXT, I31, st.none() | I63),
    I63,
    I63,
    st.lists(INTERVALS, max_size=3).map(tuple),
    st.lists(st.builds(BatchRun, TEXT, I31, I63, I63, st.binary(max_size=92)), max_size=3).map(tuple),
    st.lists(st.builds(QueueEnd, TEXT, I31, I63), max_size=3).map(tuple),
    st.lists(TEXT, max_size=3).map(tuple),
)
PLACES = st.builds(Places, I63, I63, I63)
DIFFS = st.builds(KeyDiff, I63, st.lists(I63, max_size=3).map(tuple), PLACES, PLACES, PLACES)
SEEN = st.builds(Seen, I63, I63, st.lists(st.tuples(I63, I63, I63), max_size=3).map(tuple), DIFFS)
FINDINGS = st.builds(Finding, st.just("file-unreadable"), TEXT, I63, I63, TEXT, TEXT, I63)


@st.composite
def outcomes(draw):
    """Splits of two stores, in any order, each with at least one stretch."""
    names = draw(st.sets(st.tuples(st.integers(0, 1), I31), max_size=3))
    found = []
    for store, split in names:
        parts = draw(
            st.lists(st.tuples(STRETCHES, SEEN), min_size=1, max_size=3, unique_by=lambda part: part[0].start)
        )
        parts.sort(key=lambda part: part[0].start)
        stretches = tuple(replace(stretch, split=split) for stretch, _seen in parts)
        sums = draw(st.lists(st.integers(-1, 2**32 - 1), max_size=3).map(tuple))
        outcome = SplitOutcome(split, sums, stretches, tuple(seen for _stretch, seen in parts))
        found.append((store, outcome, draw(st.lists(FINDINGS, max_size=2))))
    stores = draw(st.sets(st.integers(0, 1)))
    return found + [(store, None, draw(st.lists(FINDINGS, max_size=2))) for store in stores]


@given(outcomes())
def test_outcomes_come_back_from_a_task(found):
    assert [pickle.loads(pickle.dumps(one)) for one in found] == found  # noqa: S301 - made here

"""A moment leads to the first message at or after it, or to the last at or before it, within the queue."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.clock import VirtualClock
from seglog.storage.store import MessageStore
from tests.support.material.stores import SEGMENT_BYTES, SMALL, OpenStore
from tests.support.rows import every_row
from tests.support.scale import scaled

BEGIN = 1_800_000_000_000


def put_at(store, clock, times_ms):
    """Puts one message at each moment, given in ms after the beginning."""
    for time_ms in times_ms:
        clock.advance(BEGIN + time_ms - clock.now_ms())
        store.put("T", b"x" * 20)


def lower(times_ms, moment_ms, first=0):
    return first + sum(time_ms < moment_ms for time_ms in times_ms)


def upper(times_ms, moment_ms, first=0):
    return max(first, first + sum(time_ms <= moment_ms for time_ms in times_ms) - 1)


@pytest.fixture(scope="module")
def runs(module_folders):
    """35 messages over four queue files with runs of equal times across their edges."""
    times_ms = [0] + [10] * 12 + [20, 30, 30, 30] + [40] * 8 + [50, 60, 70] + [80] * 7
    clock = VirtualClock(BEGIN)
    with MessageStore.open(module_folders.mktemp("runs") / "store", clock=clock, **SMALL) as store:
        put_at(store, clock, times_ms)
        yield store, times_ms


MOMENTS = (
    (-1000, "lower", 0),
    (-1000, "upper", 0),
    (0, "lower", 0),
    (0, "upper", 0),
    (1, "lower", 1),
    (1, "upper", 0),
    (10, "lower", 1),
    (10, "upper", 12),
    (11, "lower", 13),
    (11, "upper", 12),
    (30, "lower", 14),
    (30, "upper", 16),
    (35, "lower", 17),
    (35, "upper", 16),
    (80, "lower", 28),
    (80, "upper", 34),
    (81, "lower", 35),
    (81, "upper", 34),
    (10**9, "lower", 35),
    (10**9, "upper", 34),
)


def test_moment_leads_to_the_edge_of_a_run(runs):
    with every_row() as row:
        for moment_ms, boundary, queue_offset in MOMENTS:
            with row(moment_ms, boundary, queue_offset):
                store, _times_ms = runs
                assert store.offset_by_time("T", 0, BEGIN + moment_ms, boundary) == queue_offset


def test_every_moment_agrees_with_a_plain_search(runs):
    store, times_ms = runs
    for moment_ms in range(-2, 90):
        assert store.offset_by_time("T", 0, BEGIN + moment_ms) == lower(times_ms, moment_ms)
        assert store.offset_by_time("T", 0, BEGIN + moment_ms, "upper") == upper(times_ms, moment_ms)


@pytest.mark.parametrize("boundary", ["lower", "upper"])
@pytest.mark.parametrize("moment_ms", [-(2**63), 0, BEGIN, 2**63 - 1])
def test_queue_without_messages_answers_zero(open_store: OpenStore, boundary, moment_ms):
    assert open_store().offset_by_time("T", 0, moment_ms, boundary) == 0


def test_first_messages_gone_the_answer_stays_within_the_queue(open_store: OpenStore, clock: VirtualClock):
    store = open_store()
    times_ms = list(range(0, 1000, 10))
    put_at(store, clock, times_ms)
    store.close()
    (store.path / "commitlog" / "00000000000000000000").unlink()
    for again in (open_store(), open_store(read_only=True)):
        first = again.min_offset("T", 0)
        assert first > 0
        for moment_ms in (
            -5,
            0,
            15,
            times_ms[first] - 1,
            times_ms[first],
            times_ms[first] + 1,
            555,
            990,
            2000,
        ):
            kept = times_ms[first:]
            assert again.offset_by_time("T", 0, BEGIN + moment_ms) == lower(kept, moment_ms, first)
            assert again.offset_by_time("T", 0, BEGIN + moment_ms, "upper") == upper(kept, moment_ms, first)
        again.close()


def test_unreadable_messages_do_not_hide_readable_ones(open_store: OpenStore, clock: VirtualClock):
    store = open_store()
    put_at(store, clock, times_ms := list(range(0, 1000, 10)))
    starts = [store.get("T", 0, slot, 1).messages[0].phy_offset for slot in range(100)]
    store.close()
    with (store.path / "commitlog" / f"{SEGMENT_BYTES:020d}").open("r+b") as file:
        file.write(b"\xaa" * SEGMENT_BYTES)
    readable = {slot for slot, start in enumerate(starts) if not SEGMENT_BYTES <= start < 2 * SEGMENT_BYTES}
    again = open_store()
    assert 0 < len(readable) < 100
    for slot in readable:
        # Slots that cannot be read count with the time of the next one that can.
        found = again.offset_by_time("T", 0, BEGIN + times_ms[slot])
        assert found <= slot
        assert readable.isdisjoint(range(found, slot))
        assert again.offset_by_time("T", 0, BEGIN + times_ms[slot], "upper") == slot


@settings(max_examples=scaled(25, 500))
@given(st.lists(st.integers(0, 3), min_size=1, max_size=45), st.lists(st.integers(-2, 100), max_size=20))
def test_any_steps_of_time_agree_with_a_plain_search(steps_ms, moments_ms):
    clock = VirtualClock(BEGIN)
    times_ms = [sum(steps_ms[: i + 1]) for i in range(len(steps_ms))]
    with (
        tempfile.TemporaryDirectory() as folder,
        MessageStore.open(Path(folder) / "store", clock=clock, **SMALL) as store,
    ):
        put_at(store, clock, times_ms)
        for moment_ms in moments_ms:
            assert store.offset_by_time("T", 0, BEGIN + moment_ms) == lower(times_ms, moment_ms)
            assert store.offset_by_time("T", 0, BEGIN + moment_ms, "upper") == upper(times_ms, moment_ms)

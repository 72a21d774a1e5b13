"""Timers: each function is called once, at its time and in its turn, unless it was cancelled."""

from __future__ import annotations

import logging
import threading
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from seglog.clock import SystemClock, VirtualClock
from seglog.schedule import Duties, Timers
from seglog.schedule.timers import MIN_CANCELLED
from tests.support.machine.patience import wait_for_event

DELAYS = st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=30)


@given(DELAYS, st.lists(st.integers(0, 20), max_size=10))
def test_finding_8_of_the_seam_each_is_called_once_at_its_time_in_the_order_of_times(delays, steps):
    clock, called = VirtualClock(start_ms=0), []
    timers = Timers(clock)
    duties = Duties(clock, [timers])
    made = []

    def note(number):
        called.append((clock.now_ms(), number))

    for number, (delay_ms, _) in enumerate(delays):
        made.append(timers.after(delay_ms, partial(note, number)))
    for timer, (_, is_cancelled) in zip(made, delays, strict=True):
        if is_cancelled:
            timers.cancel(timer)
            timers.cancel(timer)
    left = sorted((delay_ms, n) for n, (delay_ms, is_cancelled) in enumerate(delays) if not is_cancelled)
    assert len(timers) == len(left)
    for step_ms in steps:
        duties.advance(step_ms)
        due = [entry for entry in left if entry[0] <= clock.now_ms()]
        assert called == due
        assert len(timers) == len(left) - len(due)
    duties.advance(50)
    assert called == left
    assert (len(timers), timers.left_ms()) == (0, None)


def test_one_that_is_called_may_set_the_next():
    clock, called = VirtualClock(start_ms=0), []
    timers = Timers(clock)

    def again():
        called.append(clock.now_ms())
        timers.after(30, again)

    timers.after(-5, again)
    Duties(clock, [timers]).advance(100)
    assert called == [0, 30, 60, 90]


def test_one_that_was_called_is_not_cancelled_any_more():
    clock, called = VirtualClock(), []
    timers = Timers(clock)
    timer = timers.after(0, lambda: called.append(1))
    timers.run()
    timers.cancel(timer)
    assert (called, len(timers)) == ([1], 0)


def test_cancelled_ones_take_no_memory_for_long():
    timers = Timers(VirtualClock())
    timers.after(1_000, print)
    for _ in range(10_000):
        timers.cancel(timers.after(60_000, print))
        assert len(timers._heap) <= MIN_CANCELLED + 2 * (len(timers) + 1)
    assert len(timers) == 1


def test_on_real_time_an_earlier_one_wakes_the_thread_that_sleeps_for_a_later_one():
    timers, called = Timers(SystemClock()), threading.Event()
    duties = Duties(SystemClock(), [timers])
    duties.start()
    try:
        timers.after(3_600_000, print)
        timers.after(1, called.set)
        wait_for_event(called)
    finally:
        duties.stop()


def test_one_that_raises_is_logged_and_the_others_are_called(caplog):
    clock, called = VirtualClock(start_ms=0), []
    timers = Timers(clock)
    timers.after(1, lambda: 1 // 0)
    timers.after(1, partial(called.append, "of the same moment"))
    timers.after(2, partial(called.append, "later"))
    with caplog.at_level(logging.ERROR):
        Duties(clock, [timers]).advance(2)
    assert called == ["of the same moment", "later"]
    assert "ZeroDivisionError" in caplog.text
    assert len(timers) == 0


def test_one_may_cancel_another_of_the_same_moment():
    clock, called = VirtualClock(start_ms=0), []
    timers = Timers(clock)
    made = []
    timers.after(1, lambda: timers.cancel(made[0]))
    made.append(timers.after(1, partial(called.append, 1)))
    made.append(timers.after(2, partial(called.append, 2)))
    Duties(clock, [timers]).advance(5)
    assert called == [2]
    assert len(timers) == 0


def test_one_that_moves_time_on_has_those_of_its_moment_called_first():
    clock, called = VirtualClock(start_ms=0), []
    timers = Timers(clock)
    duties = Duties(clock, [timers])

    def note(name):
        called.append((name, clock.now_ms()))

    def move():
        note("moves")
        duties.advance(10)

    timers.after(5, move)
    timers.after(8, partial(note, "between"))
    timers.after(5, partial(note, "same"))
    duties.advance(6)
    assert called == [("moves", 5), ("same", 5), ("between", 8)]


def test_on_real_time_one_of_the_end_of_time_keeps_nothing_from_being_called():
    clock, first, second = SystemClock(), threading.Event(), threading.Event()
    timers = Timers(clock)
    duties = Duties(clock, [timers])
    timers.after(2.0**63, first.clear)
    duties.start()
    try:
        timers.after(float("inf"), first.clear)
        timers.after(20, first.set)
        wait_for_event(first)
        timers.after(20, second.set)  # after the thread has slept for centuries
        wait_for_event(second)
    finally:
        duties.stop()
    assert len(timers) == 2

"""Clocks wait and wake: the system's in real time, the virtual one only when it is told to."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

from seglog.clock import SystemClock, VirtualClock
from tests.support.machine.patience import join_thread, patience_s, wait_for_event, wait_until


class Waiting:
    """A thread that waits on a condition once."""

    def __init__(self, clock: VirtualClock, condition: threading.Condition, timeout_ms: float | None) -> None:
        self.answer: bool | None = None
        self._clock = clock
        self._condition = condition
        self._timeout_ms = timeout_ms
        self.thread = threading.Thread(target=self._run, daemon=True)
        before = clock._waiting[condition]
        self.thread.start()
        wait_until(lambda: clock._waiting[condition] == before + 1)

    def _run(self) -> None:
        with self._condition:
            self.answer = self._clock.wait(self._condition, self._timeout_ms)

    def finish(self) -> bool | None:
        join_thread(self.thread, idle_s=10)
        return self.answer


def test_system_clock_agrees_with_the_machine():
    before_ms = time.time() * 1000
    assert before_ms - 1000 < SystemClock().now_ms() < time.time() * 1000 + 1000


def test_system_clock_is_monotonic():
    clock = SystemClock()
    times = [clock.monotonic_ms() for _ in range(1000)]
    assert times == sorted(times)


@pytest.mark.parametrize("timeout_ms", [0, -5, 1])
def test_system_wait_ends_when_the_time_is_over(timeout_ms):
    condition = threading.Condition()
    with condition:
        assert SystemClock().wait(condition, timeout_ms) is False


def test_virtual_time_stands_still_until_it_is_moved():
    clock = VirtualClock(start_ms=5)
    assert (clock.now_ms(), clock.monotonic_ms()) == (5, 5.0)
    clock.advance(72 * 3600 * 1000)
    assert clock.now_ms() == 259_200_005
    clock.advance(timedelta(hours=1, microseconds=1_501))
    assert clock.now_ms() == 262_800_007


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_virtual_wait_for_no_time_returns_at_once(timeout_ms):
    condition = threading.Condition()
    with condition:
        assert VirtualClock().wait(condition, timeout_ms) is False


def test_virtual_wait_ends_false_when_its_moment_has_come():
    clock, condition = VirtualClock(), threading.Condition()
    waiting = Waiting(clock, condition, 60_000)
    clock.advance(60_000)
    assert waiting.finish() is False


def test_virtual_wait_ends_true_when_notified_before():
    clock, condition = VirtualClock(), threading.Condition()
    waiting = Waiting(clock, condition, 60_000)
    with condition:
        condition.notify_all()
    assert waiting.finish() is True


def test_virtual_wait_without_limit_wakes_by_notification():
    clock, condition = VirtualClock(), threading.Condition()
    waiting = Waiting(clock, condition, None)
    with condition:
        condition.notify()
    assert waiting.finish() is True


def test_one_waiter_that_leaves_does_not_make_the_clock_forget_another_on_the_same_condition():
    clock, condition = VirtualClock(), threading.Condition()
    first = Waiting(clock, condition, 60_000)
    second = Waiting(clock, condition, 60_000)
    with condition:
        condition.notify(1)
    wait_until(lambda: first.answer is not None or second.answer is not None)
    clock.advance(60_000)
    assert {first.finish(), second.finish()} == {False, True}


def test_advance_is_never_missed_however_it_meets_the_wait():
    clock = VirtualClock()
    for _ in range(300):
        condition = threading.Condition()
        deadline_ms = clock.monotonic_ms() + 10
        ended = threading.Event()

        def run(condition=condition, deadline_ms=deadline_ms, ended=ended) -> None:
            with condition:
                while (left_ms := deadline_ms - clock.monotonic_ms()) > 0:
                    clock.wait(condition, left_ms)
            ended.set()

        threading.Thread(target=run, daemon=True).start()
        clock.advance(10)
        # A second step is allowed: the wait may have begun after the first one and count from there.
        if not ended.wait(patience_s(0.02)):
            clock.advance(10)
        wait_for_event(ended, idle_s=10)


def test_system_wait_of_centuries_ends_when_it_is_notified():
    clock, condition, is_waiting = SystemClock(), threading.Condition(), threading.Event()

    def notify():
        wait_for_event(is_waiting, idle_s=20)
        with condition:
            condition.notify_all()

    thread = threading.Thread(target=notify)
    thread.start()
    with condition:
        is_waiting.set()
        assert clock.wait(condition, 2.0**70)
    join_thread(thread, idle_s=30)


@pytest.mark.parametrize(
    ("start_ms", "shown"),
    [
        (1_700_000_000_042, "<VirtualClock at 2023-11-14 22:13:20.042 UTC>"),
        (0, "<VirtualClock at 1970-01-01 00:00:00.000 UTC>"),
        (10**30, f"<VirtualClock at {10**30} ms>"),
    ],
)
def test_a_virtual_clock_shows_its_time(start_ms, shown):
    assert repr(VirtualClock(start_ms)) == shown

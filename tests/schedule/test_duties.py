"""Duties: each has its turn at its moment, on virtual time in one thread, on real time in its own."""

from __future__ import annotations

import threading
from functools import partial

import pytest
from typing_extensions import override

from seglog.broker.settings.duration import duration_ms
from seglog.clock import SystemClock, VirtualClock
from seglog.errors import FullError, InvalidArgumentError
from seglog.schedule.duties import RETRY_MS, Duties, Duty
from seglog.testing import VirtualBroker
from tests.support.machine.patience import wait_until


class Every(Duty):
    """Notes when it had its turns."""

    def __init__(self, clock, name, interval_ms, log):
        super().__init__()
        self.name = name  # type: ignore[misc]  # several of one class
        self.failures = 0
        self._clock = clock
        self._interval_ms = interval_ms
        self._next_ms = clock.monotonic_ms() + interval_ms
        self._log = log

    @override
    def left_ms(self):
        return self._next_ms - self._clock.monotonic_ms()

    @override
    def run(self):
        self._log.append((self.name, self._clock.monotonic_ms()))
        if self.failures:
            self.failures -= 1
            raise FullError("no space")
        self._next_ms += self._interval_ms


class OnDemand(Duty):
    """Has a turn for every piece of work that it is given."""

    name = "on-demand"

    def __init__(self):
        super().__init__()
        self.work = 0
        self.done = threading.Semaphore(0)

    @override
    def left_ms(self):
        return 0 if self.work else None

    @override
    def run(self):
        self.work -= 1
        self.done.release()


def test_advance_runs_each_duty_at_its_moment_in_a_fixed_order():
    clock, log = VirtualClock(start_ms=0), []
    duties = Duties(clock, [Every(clock, "a", 300, log), Every(clock, "b", 200, log)])
    duties.advance(650)
    assert log == [("b", 200), ("a", 300), ("b", 400), ("a", 600), ("b", 600)]
    assert clock.now_ms() == 650


def test_what_is_due_at_the_end_of_the_step_belongs_to_it():
    clock, log = VirtualClock(start_ms=0), []
    Duties(clock, [Every(clock, "a", 100, log)]).advance(100)
    assert log == [("a", 100)]


def test_a_step_ends_at_the_moment_that_brings_what_is_waited_for():
    clock, log = VirtualClock(start_ms=0), []
    duties = Duties(clock, [Every(clock, "a", 300, log), Every(clock, "b", 300, log)])
    duties.advance(10_000, until=lambda: len(log) >= 3)
    assert log == [("a", 300), ("b", 300), ("a", 600), ("b", 600)]
    assert clock.now_ms() == 600


def test_one_long_step_is_as_good_as_many_short_ones():
    logs = []
    for steps in ([10_000], [1] * 10_000, [3_333, 6_667]):
        clock, log = VirtualClock(start_ms=0), []
        duties = Duties(clock, [Every(clock, "a", 70, log), Every(clock, "b", 110, log)])
        for step in steps:
            duties.advance(step)
        logs.append(log)
    assert logs[0] == logs[1] == logs[2]


def test_a_turn_that_fails_is_tried_again_after_a_rest(caplog):
    clock, log = VirtualClock(start_ms=0), []
    duty = Every(clock, "a", 100, log)
    duty.failures = 2
    Duties(clock, [duty]).advance(100 + 2 * RETRY_MS)
    assert log[:3] == [("a", 100), ("a", 100 + RETRY_MS), ("a", 100 + 2 * RETRY_MS)]
    assert "no space" in caplog.text


def test_a_thread_goes_on_after_a_turn_that_failed_in_any_way(caplog, monkeypatch):
    monkeypatch.setattr("seglog.schedule.duties.RETRY_MS", 1)

    class Failing(OnDemand):
        @override
        def run(self):
            super().run()
            if self.work:
                raise KeyError("k")

    duty = Failing()
    duty.work = 3
    duties = Duties(SystemClock(), [duty])
    duties.start()
    try:
        for _ in range(3):
            wait_until(partial(duty.done.acquire, blocking=False), look_s=0.001)
    finally:
        duties.stop()
    assert caplog.text.count("KeyError: 'k'") == 2
    assert "on-demand failed, trying again" in caplog.text


def test_real_time_cannot_be_moved():
    with pytest.raises(InvalidArgumentError, match="virtual clock"):
        Duties(SystemClock(), []).advance(1)


def test_time_does_not_go_back():
    with pytest.raises(InvalidArgumentError, match="go back"):
        Duties(VirtualClock(), []).advance(-1)


@pytest.mark.parametrize("steps", [["9999999999999h"], [10**16], ["2900000d", "2900000d"]])
def test_time_does_not_leave_the_calendar(tmp_path, steps):
    with VirtualBroker.at(tmp_path) as broker:
        for step in steps[:-1]:
            broker.advance(step)
        with pytest.raises(InvalidArgumentError, match=r"^by=.* is not valid: expected at most"):
            broker.advance(steps[-1])
        broker.producer().send("orders", b"x")
        assert len(broker.messages("orders")) == 1


def test_a_thread_has_its_turn_as_soon_as_it_is_woken():
    duty = OnDemand()
    duties = Duties(SystemClock(), [duty])
    duties.start()
    try:
        for _ in range(100):
            with duty.bell:
                duty.work += 1
            duty.wake()
            wait_until(partial(duty.done.acquire, blocking=False), look_s=0.001)
    finally:
        duties.stop()


def test_stopping_ends_every_thread():
    before = threading.active_count()
    duties = Duties(SystemClock(), [OnDemand(), OnDemand(), Every(SystemClock(), "a", 60_000, [])])
    duties.start()
    assert threading.active_count() == before + 3
    duties.stop()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("250ms", 250), ("1.5s", 1_500), ("2h", 7_200_000), ("1h 30m", 5_400_000), (" 3d ", 259_200_000)],
)
def test_durations_are_read(text, expected_ms):
    assert duration_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["", " ", "2", "h", "2 hours", "-1s", "1s,2s", "1.2345s", "\uff11s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InvalidArgumentError, match="no duration"):
        duration_ms(text)

"""The table of what one end has asked the other: each ask ends exactly once, and the table is empty then."""

from __future__ import annotations

import threading
from functools import partial
from operator import attrgetter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from seglog.clock import SystemClock, VirtualClock
from seglog.errors import AskLimitError, AskTimeoutError, ConnectionEndedError, ProtocolError
from seglog.remoting.later.asked import END_OPAQUE, NO_OPAQUE, AskTable
from seglog.remoting.later.deferred import CancelledError
from seglog.schedule import Duties, Timers
from tests.support.machine.patience import join_thread, patience_s, wait_until

MOST = 4


class AsksModel(RuleBasedStateMachine):
    """Asks, answers, timeouts, cancels and the end in any order, and what each ask must end with."""

    def __init__(self):
        super().__init__()
        self.clock = VirtualClock(start_ms=0)
        self.timers = Timers(self.clock)
        self.duties = Duties(self.clock, [self.timers])
        self.table = AskTable(self.timers, MOST)
        self.table._next_opaque = END_OPAQUE - 3  # the numbers start over soon
        self.waiting = {}  # ask -> its deadline
        self.expected = {}  # ask -> what it ended with
        self.ends = {}  # ask -> how often its follower was called
        self.is_over = False

    def ended(self, one, outcome):
        self.waiting.pop(one, None)
        self.expected[one] = outcome

    @rule(timeout_ms=st.integers(0, 30))
    def ask(self, timeout_ms):
        one = self.table.open(timeout_ms, "x")
        self.ends[one] = 0
        one.then(self.count)
        if self.is_over:
            self.ended(one, ConnectionEndedError)
        elif len(self.waiting) == MOST:
            self.ended(one, AskLimitError)
        else:
            self.waiting[one] = self.clock.now_ms() + timeout_ms
            return
        assert one.opaque == NO_OPAQUE

    def count(self, one):
        assert not self.table._lock.locked()
        self.ends[one] += 1

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), value=st.integers(), is_readable=st.booleans())
    def answer(self, data, value, is_readable):
        one = data.draw(st.sampled_from(list(self.waiting)))
        outcome = value if is_readable else ProtocolError
        self.ended(one, outcome)
        for is_first in (True, False):
            if is_readable:
                assert self.table.answer(one.opaque, value) == is_first
            else:
                assert self.table.fail(one.opaque, ProtocolError("no")) == is_first

    @rule(opaque=st.sampled_from([NO_OPAQUE, 77, END_OPAQUE]))
    def answer_what_was_not_asked(self, opaque):
        assert not self.table.answer(opaque, 1)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def answer_too_late(self, data):
        late = data.draw(st.sampled_from(list(self.expected)))
        if all(late.opaque != one.opaque for one in self.waiting):
            assert not self.table.answer(late.opaque, -1)
        assert not late.cancel()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data):
        one = data.draw(st.sampled_from(list(self.waiting)))
        assert one.cancel()
        self.ended(one, CancelledError)

    @rule(by_ms=st.integers(0, 20))
    def pass_time(self, by_ms):
        self.duties.advance(by_ms)
        for one, deadline_ms in list(self.waiting.items()):
            if deadline_ms <= self.clock.now_ms():
                self.ended(one, AskTimeoutError)

    @rule()
    def end(self):
        self.table.end("it broke")
        self.is_over = True
        for one in list(self.waiting):
            self.ended(one, ConnectionEndedError)

    @invariant()
    def each_has_ended_once_or_waits(self):
        assert len(self.table) == len(self.timers) == len(self.waiting)
        opaques = {one.opaque for one in self.waiting}
        assert len(opaques) == len(self.waiting)
        assert all(0 <= opaque < END_OPAQUE for opaque in opaques)
        assert all(not one.is_done and self.ends[one] == 0 for one in self.waiting)
        for one, outcome in self.expected.items():
            assert self.ends[one] == 1
            if isinstance(outcome, int):
                assert one.result() == outcome
            else:
                with pytest.raises(outcome):
                    one.result()

    @override
    def teardown(self):
        self.pass_time(30)
        assert (len(self.table), len(self.timers), self.timers.left_ms()) == (0, 0, None)
        self.each_has_ended_once_or_waits()


TestAsksModel = AsksModel.TestCase
TestAsksModel.settings = settings(stateful_step_count=40)


def test_errors_say_what_was_asked_and_why_there_is_no_answer():
    clock = VirtualClock()
    timers = Timers(clock)
    table = AskTable(timers, 1)
    late, refused = table.open(5_000, "request 307 to client c"), table.open(5_000, "request 309 to client c")
    with pytest.raises(AskLimitError, match="request 309 to client c was not asked: 1 requests wait"):
        refused.result()
    Duties(clock, [timers]).advance(5_000)
    with pytest.raises(AskTimeoutError, match="request 307 to client c got no answer within 5000 ms"):
        late.result()
    open_one = table.open(5_000, "request 221 to client c")
    table.end("the client hung up")
    table.end("a second end")
    with pytest.raises(ConnectionEndedError, match="221 to client c got no answer: the client hung up"):
        open_one.result()
    with pytest.raises(ConnectionEndedError, match="y was not asked: the client hung up"):
        table.open(5_000, "y").result()


def test_an_answer_asks_the_next_and_an_end_is_followed_by_asks_that_fail():
    table = AskTable(Timers(VirtualClock()), 1)
    answered = []

    def follow(one):
        answered.append(one.opaque)
        if len(answered) < 5:
            table.open(1_000, "next").then(follow)

    table.open(1_000, "first").then(follow)
    assert [table.answer(opaque, "x") for opaque in range(3)] == [True] * 3
    table.end("over")  # its followers ask once more, and fail at once
    assert answered == [0, 1, 2, 3, NO_OPAQUE]
    assert len(table) == 0


@pytest.mark.parametrize("way", ["answer", "end", "cancel"])
def test_threads_that_race_for_an_ask_end_it_once(way):
    timers = Timers(SystemClock())
    duties = Duties(SystemClock(), [timers])
    duties.start()
    try:
        for _ in range(200):
            table, ends, go = AskTable(timers), [], threading.Barrier(2)
            one = table.open(0.3, "x")
            one.then(ends.append)

            def race(one=one, table=table, go=go):
                go.wait(patience_s(20))
                {
                    "answer": lambda: table.answer(one.opaque, 1),
                    "end": lambda: table.end("e"),
                    "cancel": one.cancel,
                }[way]()

            thread = threading.Thread(target=race)
            thread.start()
            go.wait(patience_s(20))
            join_thread(thread, idle_s=30)
            wait_until(partial(attrgetter("is_done"), one), look_s=0.001)
            assert len(table) == 0
            assert len(ends) == 1
    finally:
        duties.stop()
    timers.run()
    assert len(timers) == 0

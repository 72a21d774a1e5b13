"""Homes run what any thread posts, in order, with few wake-ups, and call timers at their time."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections import Counter, defaultdict
from functools import partial
from time import sleep as nap

import pytest

from seglog.client.home.flows import rest, sleep, start
from seglog.client.home.loop_home import LoopHome
from seglog.client.home.thread_home import NAME, thread_home
from seglog.client.home.virtual_home import VirtualHome
from seglog.errors import InvalidArgumentError
from seglog.remoting.later import Deferred
from tests.support.brokers import open_broker
from tests.support.machine.patience import join_thread, patience_s, wait_for_event
from tests.support.scale import chance, scaled


class VirtualTime:
    """A broker's schedule, moved by the test."""

    def __init__(self, broker):
        self._broker = broker
        self.home = VirtualHome(broker.timers, broker.liveness_clock)

    def run(self, by_ms=0):
        self._broker.advance(by_ms)


class RealTime:
    """The thread of all clients."""

    def __init__(self):
        self.home = thread_home()

    def run(self, by_ms=0):
        over = threading.Event()
        self.home.timers.after(by_ms, lambda: self.home.post(over.set))
        wait_for_event(over, idle_s=5 + by_ms / 1000)


@pytest.fixture(params=["virtual", "thread"])
def time(request, tmp_path):
    if request.param == "thread":
        yield RealTime()
        return
    with open_broker(tmp_path) as broker:
        yield VirtualTime(broker)


def test_tasks_are_done_by_the_home_in_the_order_of_their_thread(time):
    seen = defaultdict(list)

    def post(name):
        for number in range(300):
            time.home.post(lambda number=number: seen[name].append((number, time.home.is_here())))

    threads = [threading.Thread(target=post, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread, idle_s=30)
    time.run()
    assert dict(seen) == {name: [(number, True) for number in range(300)] for name in "abc"}
    assert not time.home.is_here()
    assert time.home.why_over is None


def test_timers_are_called_by_the_home_in_order_and_not_once_they_are_cancelled(time):
    seen, timers, clock = [], time.home.timers, time.home.clock

    def set_all():
        """Sets them in a task of the home, which calls none meanwhile; once more where that took long."""
        for _ in range(1_000):
            began_ms = clock.monotonic_ms()
            late = timers.after(40, lambda: seen.append(("b", time.home.is_here())))
            early = timers.after(20, lambda: seen.append(("a", time.home.is_here())))
            timers.cancel(timers.after(30, lambda: seen.append(("cancelled", True))))
            if clock.monotonic_ms() - began_ms < 10:
                break
            timers.cancel(late)
            timers.cancel(early)
        timers.after(40, lambda: timers.after(0, lambda: seen.append(("c", time.home.is_here()))))

    time.home.post(set_all)
    time.run()
    time.run(100)
    time.run()  # what one has set comes in a later turn
    assert seen == [("a", True), ("b", True), ("c", True)]


def test_a_task_that_posts_is_followed_by_what_it_posts(time):
    seen = []

    def again(left):
        seen.append(left)
        if left:
            time.home.post(lambda: again(left - 1))

    time.home.post(lambda: again(20))
    time.run(10)
    assert seen == list(range(20, -1, -1))


def test_an_earlier_timer_is_not_kept_waiting_by_a_later_one():
    home, over = thread_home(), threading.Event()
    late = home.timers.after(60_000, lambda: None)
    home.timers.after(5, over.set)
    wait_for_event(over)
    home.timers.cancel(late)


def test_what_fails_keeps_nothing_from_the_others(caplog):
    home, over = thread_home(), threading.Event()
    with caplog.at_level(logging.ERROR):
        home.post(lambda: 1 // 0)
        home.timers.after(0, lambda: 1 // 0)
        home.timers.after(1, lambda: home.post(over.set))
        wait_for_event(over)
    assert caplog.text.count("ZeroDivisionError") == 2


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_would_end_a_program_ends_one_flow_of_the_thread_and_nothing_else(caplog, error):
    home, over = thread_home(), threading.Event()

    async def leave():
        await sleep(home, 1)
        raise error("an application's")

    def leave_at_once():
        raise error("an application's timer")

    with caplog.at_level(logging.ERROR):
        flow = start(home, leave(), "a flow")
        home.timers.after(1, leave_at_once)
        with pytest.raises(error, match="application"):
            flow.wait(patience_s(5))
        home.timers.after(2, lambda: home.post(over.set))  # behind both, and behind what is logged of them
        wait_for_event(over)
    assert caplog.text.count(f"{error.__name__}: an application's") == 2
    assert thread_home() is home


def test_a_task_that_stops_the_loop_of_the_thread_does_not_end_it():
    home, over = thread_home(), threading.Event()
    home.post(home.loop.stop)
    home.timers.after(1, lambda: home.post(over.set))
    wait_for_event(over)


def test_on_virtual_time_what_would_end_a_program_comes_to_who_moves_time(tmp_path):
    async def leave():
        raise KeyboardInterrupt

    with open_broker(tmp_path) as broker:
        flow = start(VirtualHome(broker.timers, broker.liveness_clock), leave(), "a flow")
        with pytest.raises(KeyboardInterrupt):
            broker.run_due()
        assert isinstance(flow.error, KeyboardInterrupt)
        broker.run_due()


def test_what_is_posted_while_the_home_is_busy_costs_one_wake_up(monkeypatch):
    home = thread_home()
    is_busy, go, over = threading.Event(), threading.Event(), threading.Event()
    home.post(lambda: (is_busy.set(), go.wait(patience_s(5))))
    wait_for_event(is_busy)
    wakes, wake = [], home.loop.call_soon_threadsafe
    monkeypatch.setattr(home.loop, "call_soon_threadsafe", lambda task: (wakes.append(task), wake(task)))
    for _ in range(1_000):
        home.post(lambda: None)
    home.timers.after(3_000, lambda: None)
    home.post(over.set)
    go.set()
    wait_for_event(over)
    assert len(wakes) == 1


def test_there_is_one_thread_for_a_process_and_it_does_not_wait_for_itself():
    assert thread_home() is thread_home()
    assert sum(thread.name == NAME for thread in threading.enumerate()) == 1
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == NAME)
    refused, over = [], threading.Event()

    def wait():
        with pytest.raises(InvalidArgumentError, match="would wait for itself") as caught:
            Deferred().wait(1)
        refused.append(caught.value)
        over.set()

    thread_home().post(wait)
    wait_for_event(over)
    assert len(refused) == 1


def test_a_users_loop_is_a_home_until_it_is_closed():
    async def scene():
        home, seen = LoopHome(asyncio.get_running_loop()), []
        assert home.is_here()
        home.post(lambda: seen.append("posted"))
        home.timers.after(1, lambda: seen.append("timer"))
        assert seen == []
        thread = threading.Thread(target=lambda: seen.append(f"here: {home.is_here()}"))
        thread.start()
        join_thread(thread, idle_s=30)
        await asyncio.sleep(0.05)
        assert seen == ["here: False", "posted", "timer"]
        return home

    home = asyncio.run(scene(), debug=True)
    assert home.why_over == "its event loop was closed"
    home.post(lambda: 1 // 0)
    home.timers.after(1, lambda: 1 // 0)
    assert not home.is_here()


def test_on_virtual_time_nothing_runs_but_while_time_is_moved(tmp_path):
    with open_broker(tmp_path) as broker:
        home, seen = VirtualHome(broker.timers, broker.liveness_clock), []
        home.post(lambda: seen.append(home.clock.now_ms()))
        home.timers.after(7_200_000, lambda: seen.append(home.clock.now_ms()))
        assert seen == []
        broker.run_due()
        start_ms = broker.clock.now_ms()
        broker.advance("2h")
        assert seen == [start_ms, start_ms + 7_200_000]


def test_of_two_threads_that_wait_on_virtual_time_one_is_the_home_at_a_time(tmp_path):
    with open_broker(tmp_path) as broker:
        home = VirtualHome(broker.timers, broker.liveness_clock)
        at_work, overlaps, done = [0], [], []

        def task():
            at_work[0] += 1
            overlaps.append(at_work[0])
            nap(0.001)
            at_work[0] -= 1
            done.append(home.is_here())

        def work():
            for _ in range(40):
                home.post(task)
                home.run_due()

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            join_thread(thread, idle_s=30)
        home.run_due()
    assert (set(overlaps), len(done), set(done)) == ({1}, 80, {True})


class Work:
    """Tasks and timers at random, which make others; what is done is noted beside who does it.

    Args:
        time: The time of the home.
        dice: Decides all.
    """

    def __init__(self, time, dice):
        self.time, self.home, self.dice = time, time.home, dice
        self.busy = threading.Lock()
        self.wrong, self.made, self.cancelled = [], [], set()
        self.done = Counter()
        self.in_order = defaultdict(list)

    def by_a_thread(self, name, count):
        for number in range(count):
            self.make(self.dice.randrange(3), (name, number))
            if self.dice.random() < 0.3:
                self.move()

    def move(self):
        """Moves time, or waits for what is due, as several threads may on virtual time."""
        if isinstance(self.time, VirtualTime):
            self.dice.choice(
                (self.home.run_due, self.time.run, lambda: self.time.run(self.dice.randrange(4)))
            )()

    def make(self, depth, of_thread=None):
        token = object()
        self.made.append(token)
        task = partial(self.do, token, depth, of_thread)
        if of_thread is not None and self.dice.random() < 0.5:
            return self.home.post(task)
        timer = self.home.timers.after(self.dice.choice((0, 0, 1, 3)), partial(self.do, token, depth, None))
        # The home is the only one that knows whether a timer has been called yet.
        if self.home.is_here() and self.dice.random() < 0.2:
            self.home.timers.cancel(timer)
            self.cancelled.add(token)
        return None

    def do(self, token, depth, of_thread):
        if not self.busy.acquire(blocking=False):
            self.wrong.append("another thread is the home too")
            return
        try:
            self.done[token] += 1
            if not self.home.is_here():
                self.wrong.append("whoever did it is not the home")
            if of_thread is not None:
                self.in_order[of_thread[0]].append(of_thread[1])
            nap(self.dice.choice((0, 0, 0.0005)))
            for _further in range(self.dice.randrange(depth + 1)):
                self.make(depth - 1)
        finally:
            self.busy.release()

    def left(self):
        return len(self.made) - len(self.cancelled) - len(self.done)


def test_random_work_of_many_threads_is_done_once_in_order_and_by_one_at_a_time(time):
    for number in range(scaled(12, 400)):
        work = Work(time, chance("work of many threads", number))
        threads = [threading.Thread(target=work.by_a_thread, args=(name, 25)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            join_thread(thread, idle_s=30)
        for _turn in range(50):
            if work.left():
                time.run(5)
        assert set(work.wrong) == set()
        assert work.done == dict.fromkeys((token for token in work.made if token not in work.cancelled), 1)
        assert all(order == sorted(order) for order in work.in_order.values())


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_rest_leaves_nothing_behind_in_what_may_end_it_and_ends_with_it(tmp_path, is_ended):
    with open_broker(tmp_path) as broker:
        home, ending, rests = VirtualHome(broker.timers, broker.liveness_clock), Deferred(), []

        async def keep_resting():
            while not ending.is_done:
                await rest(home, 10, ending)
                rests.append(broker.liveness_clock.monotonic_ms())

        def kept():
            gc.collect()
            return sum(isinstance(each, Deferred) for each in gc.get_objects())

        start(home, keep_resting(), "rests")
        broker.advance(100)
        before, done = kept(), len(rests)
        broker.advance(5_000)
        assert len(rests) == done + 500
        # Objects of earlier tests in this process may come to an end meanwhile; one a rest would be 500.
        assert kept() < before + 50
        broker.advance(5)
        if is_ended:
            ending.resolve(None)
        broker.advance(0)
        assert len(rests) == done + 500 + is_ended
        ending.resolve(None)
        broker.run_due()

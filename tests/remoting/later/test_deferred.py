"""A result that comes later, for threads, for loops, and for code that steps a coroutine itself."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from typing_extensions import override

from seglog.errors import InvalidArgumentError
from seglog.remoting.later.deferred import CancelledError, Deferred
from seglog.remoting.later.inbox import Inbox
from seglog.remoting.later.loop_inbox import inbox_of
from tests.support.machine.patience import (
    join_thread,
    patience_s,
    wait_for_event,
    wait_for_result,
    wait_until,
)

PATIENCE_S = patience_s(20)


def test_the_first_result_counts():
    one = Deferred()
    assert not one.is_done
    assert one.resolve(1)
    assert [one.resolve(2), one.fail(ValueError()), one.cancel(), one.resolve_by(print)] == [False] * 4
    assert (one.is_done, one.result(), one.wait(0)) == (True, 1, 1)


def test_followers_are_called_once_by_the_thread_that_resolves_or_at_once():
    one, seen = Deferred(), []
    one.then(lambda it: seen.append((it.result(), threading.current_thread().name)))
    thread = threading.Thread(target=one.resolve, args=(7,), name="resolver")
    thread.start()
    join_thread(thread, idle_s=30)
    one.then(lambda it: seen.append((it.result(), "at once")))
    one.resolve(8)
    assert seen == [(7, "resolver"), (7, "at once")]


def test_a_result_without_a_value_has_none():
    with pytest.raises(InvalidArgumentError, match="there is no result yet"):
        Deferred().result()
    with pytest.raises(TimeoutError):
        Deferred().wait(0.001)


def test_an_error_is_raised_wherever_the_result_is_asked_for():
    one = Deferred()
    one.fail(KeyError("k"))
    for ask in (one.result, one.wait, lambda: asyncio.run(_awaited(one))):
        with pytest.raises(KeyError):
            ask()


async def _awaited(one):
    return await one


def test_a_result_is_made_once_by_the_thread_that_asks():
    one, makers = Deferred(), []

    def make():
        makers.append(threading.get_ident())
        return "made"

    thread = threading.Thread(target=one.resolve_by, args=(make,))
    thread.start()
    join_thread(thread, idle_s=30)
    assert makers == []
    assert [one.result(), one.wait()] == ["made", "made"]
    assert makers == [threading.get_ident()]
    failing = Deferred()
    failing.resolve_by(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            failing.result()


def test_who_asks_while_a_result_is_made_waits_for_it_and_nobody_else_does():
    one, is_making, may_end = Deferred(), threading.Event(), threading.Event()

    def make():
        is_making.set()
        wait_for_event(may_end, idle_s=20)
        return "made"

    one.resolve_by(make)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(one.result)
        wait_for_event(is_making, idle_s=20)
        second, followed = threads.submit(one.result), []
        one.then(followed.append)
        assert (one.cancel(), one.resolve("late"), followed) == (False, False, [one])
        with pytest.raises(TimeoutError):
            second.result(0.05)
        may_end.set()
        wait_until(lambda: first.done() and second.done())
        assert [first.result(), second.result()] == ["made", "made"]


def fail(*_):
    raise ZeroDivisionError


@pytest.mark.parametrize("is_done", [False, True])
def test_a_follower_that_raises_is_logged_and_keeps_the_result_from_nobody(caplog, is_done):
    one, seen = Deferred(), []
    if is_done:
        one.resolve(1)
    with caplog.at_level(logging.ERROR):
        one.then(fail)
        one.then(seen.append)
        assert one.resolve(1) is not is_done
    assert seen == [one]
    assert "ZeroDivisionError" in caplog.text


def test_followers_may_resolve_it_once_more_and_follow_it():
    one, seen = Deferred(), []

    def follow(of):
        seen.append((of.resolve(2), of.cancel(), of.result()))
        of.then(lambda of: seen.append(of.result()))

    one.then(follow)
    assert one.resolve(1)
    assert seen == [(False, False, 1), 1]


def test_a_thread_that_waited_in_vain_leaves_nothing_behind():
    one = Deferred()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            one.wait(0.001)
    assert one._followers == []


def test_the_first_of_many_threads_that_resolve_counts():
    for _ in range(50):
        resolve_by_many()


def resolve_by_many():
    one, begin, told = Deferred(), threading.Barrier(4), []
    one.then(told.append)

    def end(number):
        begin.wait(PATIENCE_S)
        return number if one.resolve(number) else None

    with ThreadPoolExecutor(4) as threads:
        won = [number for number in threads.map(end, range(4)) if number is not None]
    assert won == [one.result()]
    assert told == [one]


def test_cancelling_takes_it_out_of_its_table_once():
    forgotten = []

    class Listed(Deferred[int]):
        @override
        def _forget(self):
            forgotten.append(self)

    one, done = Listed(), Listed()
    done.resolve(1)
    assert [one.cancel(), one.cancel(), done.cancel()] == [True, False, False]
    assert forgotten == [one]
    with pytest.raises(CancelledError):
        one.result()


def test_a_thread_waits_until_another_resolves():
    one = Deferred()
    threading.Timer(0.02, one.resolve, ("late",)).start()
    assert wait_for_result(one) == "late"


def test_a_loop_may_not_wait_for_itself():
    async def scene():
        one = Deferred()
        with pytest.raises(InvalidArgumentError, match="await it"):
            one.wait(1)
        one.resolve(1)
        assert one.wait() == 1

    asyncio.run(scene())


def test_a_task_awaits_it_and_cancels_it():
    async def scene():
        one, other = Deferred(), Deferred()
        tasks = [asyncio.create_task(_awaited(each)) for each in (one, one, other)]
        await asyncio.sleep(0)
        threading.Thread(target=one.resolve, args=(3,)).start()
        assert await asyncio.gather(*tasks[:2]) == [3, 3]
        tasks[2].cancel()
        await asyncio.gather(tasks[2], return_exceptions=True)
        assert (other.is_done, other.resolve(1)) == (True, False)

    asyncio.run(scene())


def test_what_steps_a_coroutine_without_a_loop_gets_it():
    one = Deferred()
    stepped = _awaited(one)
    assert stepped.send(None) is one
    one.resolve(5)
    with pytest.raises(StopIteration) as ended:
        stepped.send(None)
    assert ended.value.value == 5


def test_it_brings_no_event_loop():
    text = "import sys, seglog.remoting.later; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False, timeout=PATIENCE_S).returncode == 0


def test_an_inbox_wakes_its_thread_once_for_all_that_came():
    woken, done = [], []
    inbox = Inbox(woken.append)
    for number in range(50):
        inbox.post(partial(done.append, number))
    assert (len(woken), done) == (1, [])
    woken[0]()
    assert done == list(range(50))
    inbox.post(lambda: done.append("next"))
    assert len(woken) == 2


def test_a_loop_is_woken_once_for_a_thousand_results(monkeypatch):
    async def scene():
        loop = asyncio.get_running_loop()
        assert inbox_of(loop) is inbox_of(loop)
        wakes, wake = [], loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda work: (wakes.append(work), wake(work)))
        some = [Deferred() for _ in range(1000)]
        tasks = [asyncio.create_task(_awaited(each)) for each in some]
        await asyncio.sleep(0)

        def resolve():
            for number, each in enumerate(some):
                each.resolve(number)

        thread = threading.Thread(target=resolve)
        thread.start()
        join_thread(thread, idle_s=30)
        assert await asyncio.gather(*tasks) == list(range(1000))
        assert len(wakes) == 1

    asyncio.run(scene())


def test_a_task_of_an_inbox_that_raises_is_logged_and_the_others_are_done(caplog):
    woken, done = [], []
    inbox = Inbox(woken.append)
    inbox.post(partial(done.append, 1))
    inbox.post(fail)
    inbox.post(partial(done.append, 2))
    with caplog.at_level(logging.ERROR):
        woken[0]()
    assert done == [1, 2]
    assert "ZeroDivisionError" in caplog.text


def test_a_loop_that_was_closed_hears_nothing():
    one = Deferred()
    loop = asyncio.new_event_loop()
    inbox_of(loop)
    one.then(lambda _: inbox_of(loop).post(print))
    loop.close()
    assert one.resolve(1)

"""A thread of an application is the home for one task, while the home's own thread rests."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from time import sleep as nap

import pytest

from seglog import Broker, ConsumeFrom, Durability, LitePullConsumer, Producer
from seglog.client.home import wait_for
from seglog.client.home.flows import sleep, start
from seglog.client.home.loop_home import LoopHome
from seglog.client.home.thread_home import thread_home
from seglog.errors import InvalidArgumentError
from seglog.remoting.later import Deferred
from tests.support.machine.patience import join_thread, wait_for_event, wait_for_result
from tests.support.scale import scaled


def done_by_home(home):
    """Waits until all that was posted to a home before is done."""
    over = threading.Event()
    home.post(over.set)
    wait_for_event(over)


def run_now(home, task):
    """Runs a task in the calling thread; what was posted before is done first."""
    while not home.run_now(task):
        done_by_home(home)


def test_a_guest_is_the_home_and_nothing_else_is_meanwhile():
    home, posted, rung, told = thread_home(), threading.Event(), threading.Event(), []

    def task():
        home.post(posted.set)
        home.timers.after(0, rung.set)
        nap(0.02)
        told.append((threading.get_ident(), home.is_here(), posted.is_set() or rung.is_set()))

    run_now(home, task)
    assert told == [(threading.get_ident(), True, False)]
    wait_for_event(posted)
    wait_for_event(rung)
    assert not home.is_here()


def test_guests_of_many_threads_and_the_home_take_turns():
    home, counts, tasks = thread_home(), Counter(), scaled(2_000, 20_000)

    def add(name):  # a lost update shows that two were the home at once
        before = counts["all"]
        counts[name] += 1
        counts["all"] = before + 1

    def guest(number):
        for _ in range(tasks):
            if not home.run_now(lambda: add("guests")):
                home.post(lambda: add("posted"))

    threads = [threading.Thread(target=guest, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread)
    done_by_home(home)
    assert counts["all"] == 4 * tasks == counts["guests"] + counts["posted"]
    assert counts["guests"]


def test_a_guest_does_not_pass_what_its_thread_posted_before():
    home, seen = thread_home(), []
    is_busy, go = threading.Event(), threading.Event()
    home.post(lambda: (is_busy.set(), wait_for_event(go)))
    wait_for_event(is_busy)
    home.post(lambda: seen.append("posted"))
    assert not home.run_now(lambda: seen.append("now"))
    go.set()
    run_now(home, lambda: seen.append("now"))
    assert seen == ["posted", "now"]


def test_a_home_that_is_always_busy_lets_a_guest_in():
    home, is_over, over = thread_home(), threading.Event(), threading.Event()

    def again():  # the loop has always something ready
        if is_over.is_set():
            over.set()
        else:
            home.loop.call_soon(again)

    home.post(again)
    try:
        for _ in range(20):
            run_now(home, lambda: None)
    finally:
        is_over.set()
    wait_for_event(over)


def test_what_a_guest_raises_is_its_threads_and_the_home_continues():
    home = thread_home()
    with pytest.raises(KeyboardInterrupt):
        run_now(home, _interrupt)
    assert not home.is_here()
    done_by_home(home)
    run_now(home, lambda: None)


def _interrupt():
    raise KeyboardInterrupt


def test_a_flow_of_a_guest_is_continued_by_the_home():
    home, seen = thread_home(), []

    async def steps():
        seen.append(threading.get_ident())
        await sleep(home, 1)
        seen.append(threading.get_ident())
        return "done"

    done_by_home(home)
    assert wait_for_result(start(home, steps(), "a flow", may_run_now=True)) == "done"
    assert seen[0] == threading.get_ident() != seen[1]


def test_a_guest_does_not_wait_for_itself():
    home = thread_home()
    refused = []

    def task():
        assert not home.run_now(lambda: None)
        with pytest.raises(InvalidArgumentError, match="would wait for itself") as caught:
            wait_for(home, Deferred(), 1)
        refused.append(caught.value)

    run_now(home, task)
    assert len(refused) == 1


def test_an_applications_loop_has_no_guests():
    async def scene():
        home = LoopHome(asyncio.get_running_loop())
        return home.run_now(_interrupt), await asyncio.to_thread(home.run_now, _interrupt)

    assert asyncio.run(scene()) == (False, False)


def test_a_commit_in_process_wakes_no_thread(tmp_path, monkeypatch):
    jobs = 20
    with Broker.open(tmp_path / "s", small=True, durability=Durability.SYNC) as broker:
        with Producer(broker) as producer:
            producer.send_batch("jobs", [b"x"] * jobs, queue_id=0)
        with LitePullConsumer(broker, "g", "jobs", consume_from=ConsumeFrom.FIRST) as consumer:
            assert len(consumer.poll(5, 1)) == 1
            consumer.commit()
            loop = thread_home().loop
            wakes, wake = [], loop.call_soon_threadsafe
            monkeypatch.setattr(loop, "call_soon_threadsafe", lambda task: (wakes.append(task), wake(task)))
            for _ in range(jobs - 1):
                assert len(consumer.poll(5, 1)) == 1
                consumer.commit()
            assert len(wakes) < jobs / 2  # pulls may wake the home, once for many messages
            (queue,) = (queue for queue in consumer.queues if queue.queue_id == 0)
            assert consumer.committed(queue) == jobs

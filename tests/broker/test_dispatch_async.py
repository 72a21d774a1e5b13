"""Requests of a task: the same answers, and a held pull keeps no thread."""

from __future__ import annotations

import asyncio
import threading

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader
from tests.support.brokers import open_broker, send
from tests.support.machine.patience import join_thread, wait_until_in_loop

HOLD = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND


def held(topic, queue_offset, *, hold_ms=15_000):
    header = PullMessageHeader("cg", topic, 0, queue_offset, 32, int(HOLD), 0, hold_ms, 0, "*", None)
    return Request(RequestCode.PULL_MESSAGE, header)


def test_s4_46_a_task_gets_what_a_thread_gets(tmp_path):
    with open_broker(tmp_path) as broker:
        for _ in range(3):
            send(broker, "T")
        for offset in (0, 2, 7):
            request = held("T", offset, hold_ms=0)
            ours, theirs = broker.dispatch(request), asyncio.run(broker.dispatch_async(request))
            assert (ours.code, ours.header, ours.remark) == (theirs.code, theirs.header, theirs.remark)
            assert (ours.body is None) == (theirs.body is None)


def test_finding_10_of_the_broker_a_message_wakes_the_loop_of_a_thousand_tasks_once(tmp_path, monkeypatch):
    async def scene(broker):
        pulls = [asyncio.create_task(broker.dispatch_async(held("T", 1))) for _ in range(1_000)]
        await wait_until_in_loop(lambda: broker.held_count == len(pulls))
        assert set(threading.enumerate()) <= before
        loop, wakes = asyncio.get_running_loop(), []
        wake = loop.call_soon_threadsafe
        with monkeypatch.context() as patch:
            patch.setattr(loop, "call_soon_threadsafe", lambda *work: (wakes.append(work), wake(*work)))
            thread = threading.Thread(target=send, args=(broker, "T"))
            thread.start()
            join_thread(thread, idle_s=30)
            answers = await asyncio.gather(*pulls)
        assert len(wakes) == 1
        return answers

    with Broker.open(tmp_path, background=False, segment_size_bytes=1 << 20) as broker:
        send(broker, "T")
        before = set(threading.enumerate())
        assert {answer.code for answer in asyncio.run(scene(broker))} == {ResponseCode.SUCCESS}
        assert broker.held_count == 0


def test_a_hold_ends_in_time_without_any_duty(tmp_path):
    with Broker.open(tmp_path, background=False, segment_size_bytes=1 << 20) as broker:
        send(broker, "T")
        answer = asyncio.run(broker.dispatch_async(held("T", 1, hold_ms=20)))
        assert answer.code is ResponseCode.PULL_NOT_FOUND
        assert broker.held_count == 0


def test_a_hold_of_virtual_time_ends_when_that_has_passed(tmp_path):
    async def scene(broker):
        pull = asyncio.create_task(broker.dispatch_async(held("T", 1)))
        await asyncio.sleep(0)
        broker.advance("14.999s")
        await asyncio.sleep(0.01)
        assert not pull.done()
        broker.advance("1ms")
        return await pull

    with open_broker(tmp_path, VirtualClock()) as broker:
        send(broker, "T")
        assert asyncio.run(scene(broker)).code is ResponseCode.PULL_NOT_FOUND


def test_a_task_that_is_cancelled_leaves_nothing_behind(tmp_path):
    async def scene(broker):
        pull = asyncio.create_task(broker.dispatch_async(held("T", 1)))
        await asyncio.sleep(0)
        assert broker.held_count == 1
        pull.cancel()
        await asyncio.gather(pull, return_exceptions=True)

    with open_broker(tmp_path) as broker:
        send(broker, "T")
        asyncio.run(scene(broker))
        assert broker.held_count == 0


def test_closing_the_broker_ends_held_tasks(tmp_path):
    async def scene(broker):
        pull = asyncio.create_task(broker.dispatch_async(held("T", 1)))
        await asyncio.sleep(0)
        broker.close()
        return await pull

    broker = open_broker(tmp_path)
    send(broker, "T")
    assert asyncio.run(scene(broker)).code is ResponseCode.PULL_NOT_FOUND

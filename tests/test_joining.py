"""A thread whose start was interrupted holds no end up."""

from __future__ import annotations

import threading

import pytest

from seglog.clock import SystemClock
from seglog.joining import join
from seglog.storage.threads.background import Background


def test_a_thread_that_did_not_start_is_not_waited_for():
    join(threading.Thread(target=lambda: None))


def test_a_thread_that_runs_is_waited_for():
    may_end = threading.Event()
    thread = threading.Thread(target=may_end.wait)
    thread.start()
    threading.Timer(0.05, may_end.set).start()
    join(thread)
    assert not thread.is_alive()


def test_a_thread_that_would_wait_for_itself_is_told():
    with pytest.raises(RuntimeError, match="current thread"):
        join(threading.current_thread())


def test_a_task_whose_thread_begins_after_its_stop_is_not_done():
    done: list[int] = []
    background = Background(SystemClock(), "late", lambda: bool(done.append(1)) or True)
    background.stop()
    background.start(0)
    background.stop()
    assert done == []

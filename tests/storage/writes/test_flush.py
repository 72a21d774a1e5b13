"""Group commit: who waits for which sync, who leads the next one, and what becomes of them if it fails."""

from __future__ import annotations

import errno
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.errors import StoreFailedError
from seglog.storage.files.latch import Latch
from seglog.storage.writes import flush
from seglog.storage.writes.flush import GroupCommit, _Caller
from tests.support.machine.patience import join_thread, wait_for_event, wait_until
from tests.support.narrow import not_none


class Disk:
    """Syncs that wait to be let go, one by one, and are noted."""

    def __init__(self):
        self.written = 0
        self.synced = []
        self.entered = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.error = None
        self.latch = Latch(Path("/store"))
        self.commit = GroupCommit(self._sync, lambda: self.written, 0, self.latch)

    def _sync(self, start, end):
        self.entered.release()
        wait_until(partial(self.go.acquire, blocking=False), "a sync may go on", idle_s=20, look_s=0.001)
        if self.error is not None:
            raise self.error
        self.synced.append((start, end))

    def put(self):
        self.written += 10
        self.commit.ensure(self.written)

    def _callers(self):
        leader, followers = self.commit._round
        return len(followers) + (leader is not None)

    def begin(self, outcomes, name):
        """Starts a thread that puts; returns it once it waits for a sync of its own or another."""

        def work():
            try:
                self.put()
                outcomes.append(name)
            except StoreFailedError:
                outcomes.append(f"{name} failed")

        waiting = self._callers()
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        wait_until(lambda: self._callers() > waiting)
        return thread


@pytest.fixture
def disk():
    return Disk()


def join(*threads):
    for thread in threads:
        join_thread(thread)


def test_those_who_came_before_a_sync_began_share_it(disk):
    outcomes = []
    leader = disk.begin(outcomes, "leader")
    wait_until(partial(disk.entered.acquire, blocking=False), "a sync has begun", idle_s=20, look_s=0.001)
    followers = [disk.begin(outcomes, f"follower {n}") for n in range(5)]
    disk.go.release()
    join(leader)
    assert outcomes == ["leader"]
    disk.go.release()
    join(*followers)
    assert disk.synced == [(0, 10), (10, 60)]


def test_one_who_came_while_a_sync_ran_leads_the_next(disk):
    outcomes = []
    first = disk.begin(outcomes, "first")
    second = disk.begin(outcomes, "second")
    for _ in range(2):
        disk.go.release()
    join(first, second)
    assert outcomes == ["first", "second"]
    third = disk.begin(outcomes, "third")
    disk.go.release()
    join(third)
    assert disk.synced == [(0, 10), (10, 20), (20, 30)]


def test_failed_sync_fails_its_leader_and_all_who_wait_and_is_the_last(disk):
    outcomes = []
    threads = [disk.begin(outcomes, f"{n}") for n in range(6)]
    disk.error = OSError(errno.EIO, "broken")
    disk.go.release()
    join(*threads)
    assert sorted(outcomes) == [f"{n} failed" for n in range(6)]
    disk.error = None
    with pytest.raises(StoreFailedError, match="the sync of the log failed"):
        disk.put()
    assert disk.synced == []


def test_latch_that_another_closed_lets_everybody_go_unacknowledged(disk):
    outcomes = []
    leader = disk.begin(outcomes, "leader")
    followers = [disk.begin(outcomes, f"{n}") for n in range(3)]
    disk.latch.fail(OSError(errno.EIO, "broken"), "another sync")
    join(*followers)
    disk.go.release()
    join(leader)
    assert sorted(outcomes) == ["0 failed", "1 failed", "2 failed", "leader failed"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_interrupted_wait_keeps_nobody_else_waiting(disk, place):
    """Ctrl-C in the main thread, first, in the middle and last in line."""
    outcomes = []
    leader = disk.begin(outcomes, "leader")
    others = [disk.begin(outcomes, f"{n}") for n in range(place)]

    def interrupt():
        wait_until(lambda: len(disk.commit._round[1]) == place + 1)
        time.sleep(0.02)
        signal.pthread_kill(not_none(threading.main_thread().ident), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        disk.put()
    join(interrupting)
    others += [disk.begin(outcomes, f"{n}") for n in range(place, 2)]
    for _ in range(2):
        disk.go.release()
    join(leader, *others)
    assert sorted(outcomes) == ["0", "1", "leader"]


def test_interrupted_one_who_was_to_lead_lets_the_next_lead(disk, monkeypatch):
    class Interrupted(_Caller):
        """One whose wait ends with Ctrl-C just when it would have ended anyway."""

        __slots__ = ()

        @override
        def wait(self):
            super().wait()
            raise KeyboardInterrupt

    outcomes = []

    def put():
        with pytest.raises(KeyboardInterrupt):
            disk.put()
        outcomes.append("interrupted")

    leader = disk.begin(outcomes, "leader")
    with monkeypatch.context() as patched:
        patched.setattr(flush, "_Caller", Interrupted)
        interrupted = threading.Thread(target=put)
        interrupted.start()
        wait_until(lambda: disk.commit._round[1])
    last = disk.begin(outcomes, "last")
    for _ in range(2):
        disk.go.release()
    join(leader, interrupted, last)
    assert sorted(outcomes) == ["interrupted", "last", "leader"]
    assert disk.synced == [(0, 10), (10, 30)]


def test_of_those_that_a_round_releases_each_wakes_the_next(disk):
    outcomes = []
    leader = disk.begin(outcomes, "leader")
    others = [disk.begin(outcomes, f"{n}") for n in range(40)]
    followers = list(disk.commit._round[1])
    for _ in range(2):
        disk.go.release()
    join(leader, *others)
    assert sorted(outcomes) == sorted(["leader", *(f"{n}" for n in range(40))])
    assert disk.synced == [(0, 10), (10, 410)]
    assert [each.waking for each in followers] == [()] * 40


def test_one_who_is_interrupted_before_its_turn_wakes_those_behind_it(disk, monkeypatch):
    interrupt, let_go = threading.Event(), threading.Event()

    class HeldUp(_Caller):
        """One that is awake and gets no further for a while."""

        __slots__ = ()

        @override
        def wait(self):
            self._turn.acquire()
            wait_for_event(let_go)
            self.wake_others()

    class Interrupted(_Caller):
        """One that gets Ctrl-C while it waits."""

        __slots__ = ()

        @override
        def wait(self):
            wait_for_event(interrupt)
            raise KeyboardInterrupt

    outcomes = []

    def put():
        with pytest.raises(KeyboardInterrupt):
            disk.put()
        outcomes.append("interrupted")

    leader = disk.begin(outcomes, "leader")
    second = disk.begin(outcomes, "second")
    with monkeypatch.context() as patched:
        patched.setattr(flush, "_Caller", HeldUp)
        held_up = disk.begin(outcomes, "held up")
    with monkeypatch.context() as patched:
        patched.setattr(flush, "_Caller", Interrupted)
        interrupted = threading.Thread(target=put)
        interrupted.start()
        wait_until(lambda: len(disk.commit._round[1]) == 3)
    last = disk.begin(outcomes, "last")
    for _ in range(2):
        disk.go.release()
    join(leader, second)
    interrupt.set()
    join(interrupted, last)
    assert sorted(outcomes) == ["interrupted", "last", "leader", "second"]
    let_go.set()
    join(held_up)


def test_one_who_is_interrupted_as_it_wakes_wakes_the_next(disk, monkeypatch):
    class Interrupted(_Caller):
        """One that gets Ctrl-C before it has woken the next."""

        __slots__ = ()

        @override
        def wait(self):
            self._turn.acquire()
            raise KeyboardInterrupt

    outcomes = []

    def put():
        with pytest.raises(KeyboardInterrupt):
            disk.put()
        outcomes.append("interrupted")

    leader = disk.begin(outcomes, "leader")
    second = disk.begin(outcomes, "second")
    with monkeypatch.context() as patched:
        patched.setattr(flush, "_Caller", Interrupted)
        interrupted = threading.Thread(target=put)
        interrupted.start()
        wait_until(lambda: len(disk.commit._round[1]) == 2)
    last = [disk.begin(outcomes, f"{n}") for n in range(3)]
    for _ in range(2):
        disk.go.release()
    join(leader, second, interrupted, *last)
    assert sorted(outcomes) == ["0", "1", "2", "interrupted", "leader", "second"]


@pytest.mark.parametrize("where", ["_lead", "_pass_on", "_tell"])
def test_interrupted_anywhere_in_its_lead_a_put_leaves_the_lead_to_the_next(disk, where):
    """Ctrl-C at the entry of a function of the leader, which is where CPython looks for it."""
    code = getattr(flush.GroupCommit, where).__code__
    interrupted = []

    def interrupt(frame, event, _argument):
        if frame.f_code is code and event == "call" and not interrupted:
            interrupted.append(where)
            sys.settrace(None)
            raise KeyboardInterrupt

    for _ in range(3):
        disk.go.release()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            disk.put()
    finally:
        sys.settrace(None)
    following = threading.Thread(target=disk.put, daemon=True)
    following.start()
    join_thread(following)
    assert interrupted == [where]

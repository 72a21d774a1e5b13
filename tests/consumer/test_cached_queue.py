"""A queue in memory: handed over in order, done in any order; the floor passes nothing that is not done."""

from __future__ import annotations

import random
import sys
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from seglog.consumer.cached_queue import CachedCounts, CachedQueue
from seglog.storage.format.record import Host, Message
from tests.support.machine.patience import join_thread, wait_for_event
from tests.support.scale import scaled

HOST = Host(b"\x7f\0\0\1", 10911)


def message(offset, body=b""):
    return Message("T", 0, offset, offset * 100, 100, 0, 0, 0, 1, 2, HOST, HOST, 0, 0, body, b"")


def messages(*offsets):
    return [message(offset, b"x" * (offset % 7)) for offset in offsets]


def offsets(found):
    return [one.queue_offset for one in found]


class CachedQueueMachine(RuleBasedStateMachine):
    """The queue beside lists that are sorted each time."""

    def __init__(self):
        super().__init__()
        self.queue = CachedQueue()
        self.waiting: dict[int, Message] = {}
        self.taken: dict[int, Message] = {}
        self.end: int | None = None
        self.is_dispatched = False

    @property
    def undone(self):
        return self.waiting | self.taken

    def floor(self):
        return min(self.undone) if self.undone else self.end

    def committable(self):
        return None if self.queue.is_frozen else self.floor()

    @rule(found=st.lists(st.integers(0, 60), max_size=8), is_in_order=st.booleans())
    def put(self, found, is_in_order):
        pulled = messages(*(sorted(set(found)) if is_in_order else found))
        for one in pulled:
            if one.queue_offset not in self.undone:
                self.waiting[one.queue_offset] = one
                self.end = max(self.end or 0, one.queue_offset + 1)
        assert self.queue.put(pulled) is (bool(self.waiting) and not self.is_dispatched)
        self.is_dispatched |= bool(self.waiting)

    @rule(beyond=st.integers(0, 5))
    def pull_ends_behind_what_is_not_wanted(self, beyond):
        end = (self.end or 0) + beyond
        self.queue.pulled_to(end)
        self.end = end

    @rule(count=st.integers(1, 5))
    def take(self, count):
        expected = sorted(self.waiting)[:count]
        assert offsets(self.queue.take(count)) == expected
        for offset in expected:
            self.taken[offset] = self.waiting.pop(offset)
        self.is_dispatched &= bool(expected)

    @rule(data=st.data(), strangers=st.lists(st.integers(0, 70), max_size=2))
    def remove(self, data, strangers):
        chosen = data.draw(st.sets(st.sampled_from(sorted(self.undone)))) if self.undone else set()
        for offset in {*chosen, *strangers}:
            self.waiting.pop(offset, None)
            self.taken.pop(offset, None)
        assert self.queue.remove(messages(*chosen, *strangers)) == self.committable()

    @precondition(lambda self: self.undone)
    @rule(data=st.data())
    def put_back(self, data):
        chosen = data.draw(st.sets(st.sampled_from(sorted(self.undone))))
        again = [replace(self.undone[offset], reconsume_times=1, body=b"again") for offset in chosen]
        self.queue.put_back(again)
        for one in again:
            if self.taken.pop(one.queue_offset, None) is not None:
                self.waiting[one.queue_offset] = one

    @rule(chance=st.integers(0, 19))
    def freeze(self, chance):
        if chance == 0:
            self.queue.freeze()

    @invariant()
    def the_floor_passes_nothing_that_is_not_done(self):
        floor = self.queue.floor()
        assert floor == (None if self.queue.is_frozen else self.floor())
        if floor is not None:
            assert all(offset >= floor for offset in self.undone)

    @invariant()
    def counts_are_those_of_what_is_not_done(self):
        undone = self.undone
        size_bytes = sum(len(one.body) for one in undone.values())
        span = max(undone) - min(undone) if undone else 0
        assert self.queue.counts() == CachedCounts(len(undone), len(self.taken), size_bytes, span)

    @invariant()
    def what_is_not_done_is_held(self):
        undone = self.undone
        assert [self.queue.holds(message(offset)) for offset in range(70)] == [
            offset in undone for offset in range(70)
        ]


CachedQueueMachine.TestCase.settings = settings(
    max_examples=scaled(100, 5_000), stateful_step_count=40, deadline=None
)
test_s2_12_s2_18_s4_31_it_does_what_sorted_lists_do = CachedQueueMachine.TestCase


def test_s4_31_the_floor_is_the_lowest_that_is_not_done_or_the_end():
    queue = CachedQueue()
    assert queue.floor() is None
    queue.put(messages(3, 4, 5))
    assert offsets(queue.take(3)) == [3, 4, 5]
    assert queue.remove(messages(5)) == 3
    assert queue.remove(messages(3)) == 4
    assert queue.remove(messages(4)) == 6


def test_s2_12_a_worker_is_asked_for_once_until_it_has_found_nothing():
    queue = CachedQueue()
    assert queue.put([]) is False
    assert queue.put(messages(0)) is True
    assert queue.put(messages(1)) is False
    assert offsets(queue.take(8)) == [0, 1]
    assert queue.put(messages(2)) is False
    assert offsets(queue.take(8)) == [2]
    assert queue.take(8) == ()
    assert queue.put(messages(2)) is False, "it is taken and does not wait"
    assert queue.put(messages(3)) is True


def test_s2_12_a_message_that_is_pulled_again_while_it_is_taken_is_not_handed_over_again():
    queue = CachedQueue()
    queue.put(messages(0, 1))
    queue.take(1)
    queue.put(messages(0, 1))
    assert offsets(queue.take(5)) == [1]
    assert queue.counts().messages == 2


def test_s2_18_what_is_put_back_comes_first_and_as_it_was_put_back():
    queue = CachedQueue()
    queue.put(messages(0, 1, 2))
    (first,) = queue.take(1)
    queue.put_back([replace(first, reconsume_times=1)])
    again = queue.take(2)
    assert [(one.queue_offset, one.reconsume_times) for one in again] == [(0, 1), (1, 0)]
    assert queue.remove(again) == 2


def test_s4_23_where_nothing_is_wanted_the_floor_goes_with_the_pulls():
    queue = CachedQueue()
    queue.pulled_to(40)
    assert queue.floor() == 40
    queue.put(messages(41))
    queue.pulled_to(60)
    assert queue.floor() == 41
    assert queue.remove(messages(41)) == 60


def test_s4_24_a_frozen_queue_commits_nothing():
    queue = CachedQueue()
    queue.put(messages(0))
    queue.freeze()
    assert queue.remove(messages(0)) is None
    assert queue.floor() is None


def test_s4_17_counts_are_messages_bodies_and_the_span_of_what_is_not_done():
    queue = CachedQueue()
    queue.put([message(10, b"1234"), message(11, b"12"), message(2_500, b"1")])
    assert queue.counts() == CachedCounts(3, 0, 7, 2_490)
    queue.take(1)
    queue.remove([message(2_500)])
    assert queue.counts() == CachedCounts(2, 1, 6, 1)
    queue.remove(messages(10, 11))
    assert queue.counts() == CachedCounts(0, 0, 0, 0)


@pytest.mark.parametrize("order", [1, -1])
def test_a_message_that_stays_first_or_last_does_not_make_others_dear(order):
    """A stuck message, a hundred thousand others past it; the memory for what is gone is bounded too."""
    queue = CachedQueue()
    queue.put(messages(0 if order == 1 else 200_000))
    queue.take(1)
    started = time.process_time()
    for start in range(1, 100_001, 10):
        pulled = messages(*range(start, start + 10)[::order])
        queue.put(pulled)
        queue.remove(queue.take(10))
        queue.counts()
    assert time.process_time() - started < 10
    assert queue.counts().messages == 1
    assert len(queue._offsets) < 200


class Crowd:
    """Eighteen workers, one that pulls and one that watches the floor, on one queue."""

    TOTAL = 6_000

    def __init__(self):
        self.queue = CachedQueue()
        self.is_over = threading.Event()
        self.finished: set[int] = set()
        self.seen: list[int] = []
        self.wrong: list[object] = []

    def pull(self):
        for start in range(0, self.TOTAL, 20):
            while self.queue.counts().messages > 200 and not self.is_over.is_set():
                time.sleep(0)
            self.queue.put(messages(*range(start, start + 20)))

    def work(self, seed):
        chance = random.Random(seed)
        while not self.is_over.is_set():
            found = self.queue.take(chance.randint(1, 7))
            if offsets(found) != sorted(offsets(found)):
                self.wrong.append(found)
            if chance.random() < 0.3:
                self.queue.put_back(found)
                continue
            self.finished.update(offsets(found))  # before remove(): who sees the floor then sees this
            self.seen.extend(offsets(found))
            self.examine("remove", 0, self.queue.remove(found) or 0)

    def watch(self):
        last = 0
        while last < self.TOTAL and not self.is_over.is_set():
            floor = self.queue.floor() or 0
            self.examine("watch", last, floor)
            last = floor
        self.is_over.set()

    def examine(self, what, last, floor):
        if floor < last or not self.finished.issuperset(range(max(last, floor - 300), floor)):
            self.wrong.append((what, last, floor))

    def run(self):
        threads = [threading.Thread(target=target) for target in (self.pull, self.watch)]
        threads += [threading.Thread(target=self.work, args=(seed,)) for seed in range(18)]
        for thread in threads:
            thread.start()
        try:
            wait_for_event(self.is_over, idle_s=60)
        finally:
            self.is_over.set()
        for thread in threads:
            join_thread(thread, idle_s=10)


def test_s2_12_twenty_threads_leave_the_floor_behind_all_that_is_not_done():
    crowd = Crowd()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        crowd.run()
    finally:
        sys.setswitchinterval(interval)
    assert not crowd.wrong
    assert crowd.queue.floor() == crowd.TOTAL
    assert sorted(crowd.seen) == list(range(crowd.TOTAL)), "each was handed over for good once"
    assert crowd.queue.counts() == CachedCounts(0, 0, 0, 0)

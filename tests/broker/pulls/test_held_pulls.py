"""A pull at the end of a queue waits for a message that it wants, without a thread of its own."""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np
import pytest

from seglog.broker.answers.held_answer import HeldAnswer
from seglog.broker.broker import Broker
from seglog.broker.pulls.held_pulls import HeldPulls
from seglog.broker.pulls.pull import HeldPull
from seglog.broker.pulls.pull import pull as pull_of
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.clock import SystemClock, VirtualClock
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, refuse
from seglog.remoting.headers import PullMessageHeader, ResetOffsetHeader
from seglog.remoting.peer import LOCAL_PEER
from seglog.storage.format.record.message import decode_message
from tests.support.brokers import open_broker, pull, send
from tests.support.machine.patience import (
    join_thread,
    looks,
    wait_for_event,
    wait_for_result,
    wait_until,
)

HOLD = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND
TAG_A, TAG_B = b"TAGS\x01A\x02", b"TAGS\x01B\x02"


@pytest.fixture
def broker(tmp_path):
    """A broker with one message in T/0."""
    with open_broker(tmp_path, VirtualClock()) as opened:
        send(opened, "T")
        yield opened


def bodies(answer):
    return [decode_message(record).body for record in answer.body.records]


def ask(broker, *, topic="T", queue_offset=1, subscription="*", hold_ms=15_000, flags=HOLD, commit_offset=0):
    header = PullMessageHeader(
        "cg", topic, 0, queue_offset, 32, int(flags), commit_offset, hold_ms, 0, subscription
    )
    return broker.answer(Request(RequestCode.PULL_MESSAGE, header))


class Parked:
    """A pull that is held, and what became of it."""

    def __init__(self, broker, **arguments):
        self.broker = broker
        self.wakes = 0
        self.held = ask(broker, **arguments)
        assert isinstance(self.held, HeldAnswer)
        self.held.then(self.wake)

    def wake(self, held):
        assert held is self.held
        self.wakes += not self.is_cancelled

    is_cancelled = False

    def leave(self):
        self.is_cancelled = True
        self.held.cancel()

    def finish(self):
        if not self.held.is_done:
            self.held.end()
        return self.held.result()


def test_s4_25_only_a_pull_that_finds_nothing_is_held(broker):
    for queue_offset, code in ((0, ResponseCode.SUCCESS), (5, ResponseCode.PULL_OFFSET_MOVED)):
        assert ask(broker, queue_offset=queue_offset).code is code
    assert ask(broker, flags=PullFlag.SUBSCRIPTION).code is ResponseCode.PULL_NOT_FOUND
    held = ask(broker)
    assert held.hold_ms == 15_000
    held.end()
    assert held.result().code is ResponseCode.PULL_NOT_FOUND


def test_s4_25_a_message_wakes_the_pulls_of_its_queue_once(broker):
    here = [Parked(broker) for _ in range(3)]
    send(broker, "U")
    there = Parked(broker, topic="U")
    send(broker, "T", b"second")
    send(broker, "T", b"third")
    assert [one.wakes for one in (*here, there)] == [1, 1, 1, 0]
    assert bodies(here[0].finish()) == [b"second", b"third"]


def test_s4_25_a_thread_that_waits_gets_the_message_that_arrives(tmp_path):
    answers = []
    with Broker.open(tmp_path, background=False) as broker:
        send(broker, "T")
        thread = threading.Thread(
            target=lambda: answers.append(
                pull(broker, "T", queue_offset=1, flags=HOLD, suspend_timeout_ms=600_000)
            )
        )
        thread.start()
        wait_until(lambda: broker.held_count)
        send(broker, "T", b"second")
        join_thread(thread, idle_s=10)
    assert bodies(answers[0]) == [b"second"]


def test_s4_25_only_a_message_that_is_wanted_wakes_a_pull(broker):
    wants_a, wants_b = Parked(broker, subscription="A"), Parked(broker, subscription="B")
    for _ in range(1_000):  # more than one look goes through
        send(broker, "T", properties=TAG_B)
    assert (wants_a.wakes, wants_b.wakes) == (0, 1)
    send(broker, "T", properties=TAG_A)
    assert wants_a.wakes == 1


def test_s4_25_the_sweep_tells_a_pull_where_to_go_on_behind_what_it_does_not_want(broker):
    unwanted, waiting = Parked(broker, subscription="A"), Parked(broker, queue_offset=1)
    send(broker, "T", properties=TAG_B)
    assert waiting.wakes == 1
    later = Parked(broker, queue_offset=2)
    broker.advance(4_999)
    assert unwanted.wakes == 0
    broker.advance(1)
    assert (unwanted.wakes, later.wakes) == (1, 0)
    answer = unwanted.finish()
    assert (answer.code, answer.header.next_begin_offset) == (ResponseCode.PULL_RETRY_IMMEDIATELY, 2)


def test_s4_25_a_pull_ends_empty_when_its_time_has_passed(broker):
    pulls = [Parked(broker, hold_ms=hold_ms) for hold_ms in (15_000, 20_000, 0)]
    broker.advance(0)
    assert [one.wakes for one in pulls] == [0, 0, 1]
    broker.advance(14_999)
    assert [one.wakes for one in pulls] == [0, 0, 1]
    broker.advance(1)
    assert [one.wakes for one in pulls] == [1, 0, 1]
    answer = pulls[0].finish()
    assert (answer.code, answer.remark) == (ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE")
    assert broker.held_count == 1


def test_s4_25_a_thread_that_waits_gets_nothing_when_its_time_has_passed(tmp_path):
    clock = VirtualClock()
    answers = []
    with open_broker(tmp_path, clock) as broker:
        send(broker, "T")
        thread = threading.Thread(
            target=lambda: answers.append(
                pull(broker, "T", queue_offset=1, flags=HOLD, suspend_timeout_ms=15_000)
            )
        )
        thread.start()
        for _ in looks("the end of the pull", look_s=0.001):
            clock.advance(1_000)
            if answers:
                break
    assert answers[0].code is ResponseCode.PULL_NOT_FOUND


def test_s4_25_without_long_polls_a_pull_is_held_for_a_second(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(long_polling_enable=False)) as broker:
        send(broker, "T")
        one = Parked(broker)
        broker.advance(999)
        assert one.wakes == 0
        broker.advance(1)
        assert one.wakes == 1


def test_what_arrives_before_a_pull_is_parked_is_not_missed(broker):
    header = PullMessageHeader("cg", "T", 0, 1, 32, int(HOLD), 0, 15_000, 0, "*")
    held = pull_of(broker._state, header, LOCAL_PEER)
    send(broker, "T")
    woken = []
    broker._held.park(held, lambda: woken.append(True))
    assert woken == [True]
    assert broker.held_count == 0


def test_a_pull_that_was_held_is_not_held_again_and_commits_once(broker):
    one = Parked(broker, flags=HOLD | PullFlag.COMMIT_OFFSET, commit_offset=1)
    assert broker.offsets.query("cg", "T", 0) == 1
    broker.offsets.commit("cg", "T", 0, 0)
    assert one.finish().code is ResponseCode.PULL_NOT_FOUND
    assert broker.offsets.query("cg", "T", 0) == 0


def test_s4_38_a_reset_while_a_pull_is_held_is_told_with_its_answer(broker):
    one = Parked(broker)
    broker.dispatch(
        Request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, ResetOffsetHeader("cg", "T", 0, True, 0, 0))
    )
    send(broker, "T")
    answer = one.finish()
    assert (answer.code, answer.remark, answer.header.next_begin_offset) == (
        ResponseCode.PULL_OFFSET_MOVED,
        "OFFSET_RESET",
        0,
    )


def test_everything_is_checked_again_when_a_pull_was_held(broker):
    one = Parked(broker)
    broker.topics.put(TopicConfig("T", 4, 4, perm=2))
    assert one.finish().code is ResponseCode.NO_PERMISSION


def test_a_client_that_went_away_is_not_woken(broker):
    one = Parked(broker)
    one.leave()
    one.leave()
    send(broker, "T")
    broker.advance("1m")
    assert (one.wakes, broker.held_count) == (0, 0)


def test_closing_the_broker_ends_all_pulls_and_those_that_come_later(tmp_path):
    with open_broker(tmp_path) as broker:
        send(broker, "T")
        pulls = [Parked(broker) for _ in range(5)]
    late = ask(broker)
    assert [one.wakes for one in pulls] == [1] * 5
    assert pulls[0].finish().code is ResponseCode.PULL_NOT_FOUND
    assert late.code is ResponseCode.SERVICE_NOT_AVAILABLE


def test_closing_the_broker_ends_threads_that_wait(tmp_path):
    broker = Broker.open(tmp_path, background=False)
    send(broker, "T")
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(pull(broker, "T", 1, flags=HOLD, suspend_timeout_ms=600_000))
    )
    thread.start()
    wait_until(lambda: broker.held_count)
    broker.close()
    join_thread(thread, idle_s=10)
    assert answers[0].code in (ResponseCode.PULL_NOT_FOUND, ResponseCode.SERVICE_NOT_AVAILABLE)


def test_thousands_of_pulls_are_held_by_no_thread(tmp_path):
    with Broker.open(tmp_path) as broker:
        for number in range(100):
            send(broker, "T" if number else "U")
        before = set(threading.enumerate())
        pulls = [Parked(broker, topic="U", subscription=tag) for tag in ("A", "B") for _ in range(2_500)]
        assert set(threading.enumerate()) <= before
        assert broker.held_count == 5_000
        send(broker, "U", properties=TAG_A)
        assert sum(one.wakes for one in pulls) == 2_500
        assert broker.held_count == 2_500


def test_the_real_clock_ends_a_pull_in_time_without_anyone_who_looks_at_it(tmp_path):
    waited_s = []
    while not waited_s or (waited_s[-1] >= 4 and len(waited_s) < 5):  # a busy machine may stop us for as long
        with Broker.open(tmp_path) as broker:
            send(broker, "T")
            bell = threading.Event()
            began = time.monotonic()
            ask(broker, hold_ms=50).then(lambda _, bell=bell: bell.set())
            wait_for_event(bell, idle_s=10)
            waited_s.append(time.monotonic() - began)
    assert min(waited_s) >= 0.05
    assert waited_s[-1] < 4, "a sweep every five seconds would be later each time"


def test_pulls_that_come_and_go_leave_nothing_behind(broker):
    for _ in range(1_000):
        Parked(broker).leave()
    assert broker.held_count == 0
    assert not broker.store._core.waiters.waiting
    assert len(broker._held._deadlines) < 200


def test_pulls_that_have_seen_different_things_are_told_of_the_same_message(broker):
    pulls = []
    for _ in range(5):
        pulls.append(Parked(broker, queue_offset=broker.store.max_offset("T", 0), subscription="A"))
        send(broker, "T", properties=TAG_B)
    assert [one.wakes for one in pulls] == [0] * 5
    pulls[2].leave()
    send(broker, "T", b"wanted", properties=TAG_A)
    assert [one.wakes for one in pulls] == [1, 1, 0, 1, 1]
    assert {bodies(one.finish())[0] for one in pulls if not one.is_cancelled} == {b"wanted"}
    assert broker.held_count == 0


def test_no_wake_is_lost_whatever_puts_and_pulls_do_at_once(tmp_path):
    with Broker.open(tmp_path, background=False) as broker:
        send(broker, "T")
        rounds, wanted = 300, threading.Semaphore(0)

        def consume(tag):
            for _ in range(rounds):
                answer = ask(broker, queue_offset=broker.store.max_offset("T", 0), subscription=tag)
                if isinstance(answer, HeldAnswer):
                    wanted.release()
                    wait_for_result(answer)  # no sweep runs
                else:
                    wanted.release()

        threads = [threading.Thread(target=consume, args=(tag,)) for tag in ("A", "A", "B", "*")]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for tag in (TAG_A, TAG_B):
                send(broker, "T", properties=tag)
            if not wanted.acquire(blocking=False):
                time.sleep(0.01)
        assert broker.held_count == 0


class Slow:
    """A filter that wants one message, and notes which threads test with it."""

    def __init__(self, wanted: bytes) -> None:
        self.wanted = wanted
        self.threads: set[int] = set()

    def matches_codes(self, tags_codes):
        return np.ones(len(tags_codes), np.bool_)

    def matches(self, record):
        self.threads.add(threading.get_ident())
        return bytes(decode_message(record).body) == self.wanted


def parked_with(broker, table, wanted, wake):
    header = PullMessageHeader("cg", "T", 0, 1, 32, int(HOLD), 0, 60_000, 0, "*")
    nothing = refuse(ResponseCode.PULL_NOT_FOUND, "nothing")
    table.park(HeldPull(header, LOCAL_PEER, False, wanted, 60_000, nothing), wake)


def test_what_puts_a_message_does_not_test_it_against_many_filters(broker):
    table, woken = HeldPulls(broker.store, SystemClock(), has_thread=True), threading.Semaphore(0)
    filters = [Slow(b"wanted") for _ in range(50)]
    plain = []
    for each in filters:
        parked_with(broker, table, each, woken.release)
    parked_with(broker, table, None, lambda: plain.append(threading.get_ident()))
    send(broker, "T", b"unwanted")
    assert plain == [threading.get_ident()], "a pull that takes anything is not held up by those that do not"
    send(broker, "T", b"wanted")
    for _ in filters:
        wait_until(partial(woken.acquire, blocking=False), "a pull is woken", idle_s=30)
    assert all(threading.get_ident() not in each.threads for each in filters)
    assert len(table) == 0
    table.close()


def test_few_filters_are_tested_by_what_puts_a_message(broker):
    table, woken = HeldPulls(broker.store, SystemClock(), has_thread=True), []
    filters = [Slow(b"wanted") for _ in range(4)]
    for each in filters:
        parked_with(broker, table, each, lambda: woken.append(1))
    send(broker, "T", b"wanted")
    assert len(woken) == 4
    table.close()

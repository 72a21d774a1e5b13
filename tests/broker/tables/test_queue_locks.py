"""Queue locks bind a queue to one client of a group, for 60 s after the last renewal."""

from __future__ import annotations

import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.queue_locks import QueueLocks
from seglog.clock import VirtualClock
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader, SendMessageHeader
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription_group import SubscriptionGroup
from tests.support.brokers import open_broker, pull, send, send_header
from tests.support.machine.patience import join_thread, wait_until
from tests.support.material.stores import read_all
from tests.support.scale import scaled

LIVE_MS = 60_000
HOLD = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND
QUEUES = [MessageQueue("T", "broker-a", queue_id) for queue_id in range(3)]


def locks():
    clock = VirtualClock()
    return clock, QueueLocks(clock, LIVE_MS)


def test_s2_04_two_clients_never_get_the_same_queue():
    _clock, table = locks()
    assert table.lock("g", QUEUES[:2], "a") == set(QUEUES[:2])
    assert table.lock("g", QUEUES, "b") == {QUEUES[2]}
    assert table.lock("g", QUEUES, "a") == set(QUEUES[:2])


def test_s2_05_a_lock_holds_for_60000_ms_and_is_free_at_60001():
    clock, table = locks()
    table.lock("g", QUEUES, "a")
    clock.advance(LIVE_MS)
    assert table.lock("g", QUEUES, "b") == set()
    clock.advance(1)
    assert table.lock("g", QUEUES, "b") == set(QUEUES)
    assert table.lock("g", QUEUES, "a") == set()


def test_a_renewal_starts_the_60_s_again():
    clock, table = locks()
    table.lock("g", QUEUES, "a")
    clock.advance(LIVE_MS)
    table.lock("g", QUEUES, "a")
    clock.advance(LIVE_MS)
    assert table.lock("g", QUEUES, "b") == set()


def test_only_the_owner_unlocks():
    _clock, table = locks()
    table.lock("g", QUEUES, "a")
    table.unlock("g", QUEUES, "b")
    assert table.lock("g", QUEUES, "b") == set()
    table.unlock("g", QUEUES[:1], "a")
    assert table.lock("g", QUEUES, "b") == {QUEUES[0]}


def test_unlocking_what_was_never_locked_does_nothing():
    _clock, table = locks()
    table.unlock("g", QUEUES, "a")
    assert table.all() == []


def test_groups_lock_the_same_queue_independently():
    _clock, table = locks()
    assert table.lock("g", QUEUES, "a") == table.lock("h", QUEUES, "b") == set(QUEUES)


def test_a_group_is_ordered_while_any_of_its_locks_lives():
    clock, table = locks()
    assert not table.is_any_live("g")
    table.lock("g", QUEUES[:1], "a")
    assert table.is_any_live("g")
    clock.advance(LIVE_MS + 1)
    assert not table.is_any_live("g")


def test_s2_29_the_table_shows_owner_and_age():
    clock, table = locks()
    table.lock("g", QUEUES[:1], "a")
    clock.advance(LIVE_MS + 1)
    (lock,) = table.all()
    assert (lock.group, lock.queue, lock.client_id, lock.age_ms, lock.is_expired) == (
        "g",
        QUEUES[0],
        "a",
        LIVE_MS + 1,
        True,
    )


def test_s2_05_lock_expires_after_60_s_for_pulls_too(tmp_path):
    clock = VirtualClock()
    with open_broker(tmp_path, clock, BrokerConfig(strict_queue_lock=True)) as broker:
        send(broker, "T")
        broker.locks.lock("cg", QUEUES[:1], "someone else")
        clock.advance(LIVE_MS)
        assert broker.locks.owner("cg", QUEUES[0]) == "someone else"
        assert pull(broker, "T").code is ResponseCode.NO_PERMISSION
        clock.advance(1)
        assert broker.locks.owner("cg", QUEUES[0]) is None
        assert pull(broker, "T").code is ResponseCode.SUCCESS


def test_s2_07_a_strict_broker_refuses_foreign_pulls_of_a_locked_queue(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(strict_queue_lock=True)) as broker:
        for queue_id in (0, 1):
            send(broker, "T", queue_id=queue_id)
        broker.locks.lock("cg", QUEUES[:1], "someone else")
        broker.locks.lock("another group", QUEUES, "someone else")
        refusal = pull(broker, "T", flags=PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET, commit_offset=1)
        assert refusal.code is ResponseCode.NO_PERMISSION
        assert refusal.remark == "the queue T/0 is locked by client someone else of group cg"
        assert broker.offsets.query("cg", "T", 0) is None
        assert pull(broker, "T", queue_id=1).code is ResponseCode.SUCCESS
        broker.locks.unlock("cg", QUEUES, "someone else")
        broker.locks.lock("cg", QUEUES, "local")
        assert pull(broker, "T").code is ResponseCode.SUCCESS


def test_s2_07_a_held_pull_gets_nothing_once_the_queue_has_another_owner(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(strict_queue_lock=True)) as broker:
        send(broker, "T")
        header = PullMessageHeader("cg", "T", 0, 1, 32, int(HOLD), 0, 60_000, 0, "*")
        answers = []
        request = Request(RequestCode.PULL_MESSAGE, header)
        thread = threading.Thread(target=lambda: answers.append(broker.dispatch(request)))
        thread.start()
        wait_until(lambda: broker.held_count)
        broker.locks.lock("cg", QUEUES[:1], "someone else")
        send(broker, "T")
        join_thread(thread, idle_s=30)
        assert answers[0].code is ResponseCode.NO_PERMISSION


def test_s2_25_a_retry_under_a_live_lock_is_a_dead_letter_at_once(tmp_path):
    clock = VirtualClock()
    with open_broker(tmp_path, clock) as broker:
        broker.locks.lock("g", QUEUES[:1], "a")
        answer = send(broker, "%RETRY%g", b"poison", properties=b"DELAY\x013\x02KEYS\x01k\x02")
        assert (answer.code, send_header(answer).queue_id) == (ResponseCode.SUCCESS, 0)
        (dead,) = read_all(broker.store, "%DLQ%g", 0)
        assert (dead.body, dead.properties["KEYS"], dead.properties["DELAY"]) == (b"poison", "k", "-1")
        topic = broker.topics.get("%DLQ%g")
        assert topic is not None
        assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)
        clock.advance(LIVE_MS + 1)
        send(broker, "%RETRY%g", b"again")
        assert [message.body for message in read_all(broker.store, "%RETRY%g", 0)] == [b"again"]
        assert broker.store.max_offset("%DLQ%g", 0) == 1


@pytest.mark.parametrize(
    ("times", "most", "topic"),
    [
        (16, None, "%RETRY%g"),
        (17, None, "%DLQ%g"),
        (3, 3, "%RETRY%g"),
        (4, 3, "%DLQ%g"),
        (17, 99, "%RETRY%g"),
    ],
)
def test_s4_33_a_retry_beyond_the_last_attempt_is_a_dead_letter(broker: Broker, times, most, topic):
    header = SendMessageHeader(
        "pg", "%RETRY%g", "TBW102", 4, 0, 0, 1, 0, reconsume_times=times, max_reconsume_times=most
    )
    broker.dispatch(Request(RequestCode.SEND_MESSAGE_V2, header, b"x"))
    assert [queue.topic for queue in broker.store.queues()] == [topic]


def test_a_retry_of_a_group_that_is_not_there_is_refused(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(auto_create_groups=False)) as broker:
        assert send(broker, "%RETRY%g").code is ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        broker.groups.put(SubscriptionGroup("g"))
        assert send(broker, "%RETRY%g").code is ResponseCode.SUCCESS


class LocksMachine(RuleBasedStateMachine):
    """Against a model that remembers who renewed what and when."""

    def __init__(self):
        super().__init__()
        self.clock, self.table = locks()
        self.owners = {}

    @rule(client=st.sampled_from("abc"), queues=st.sets(st.sampled_from(QUEUES)))
    def lock(self, client, queues):
        now_ms = self.clock.now_ms()
        expected = set()
        for queue in queues:
            owner, renewed_ms = self.owners.get(queue, (client, now_ms))
            if owner == client or now_ms - renewed_ms > LIVE_MS:
                self.owners[queue] = (client, now_ms)
                expected.add(queue)
        assert self.table.lock("g", queues, client) == expected

    @rule(client=st.sampled_from("abc"), queues=st.sets(st.sampled_from(QUEUES)))
    def unlock(self, client, queues):
        for queue in queues:
            if self.owners.get(queue, ("", 0))[0] == client:
                del self.owners[queue]
        self.table.unlock("g", queues, client)

    @rule(by_ms=st.sampled_from([1, 20_000, LIVE_MS, LIVE_MS + 1]))
    def advance(self, by_ms):
        self.clock.advance(by_ms)

    @invariant()
    def the_table_is_the_model(self):
        assert {lock.queue: lock.client_id for lock in self.table.all()} == {
            queue: owner for queue, (owner, _renewed_ms) in self.owners.items()
        }


TestLocksMachine = LocksMachine.TestCase
TestLocksMachine.settings = settings(max_examples=scaled(50, 2_000), stateful_step_count=30, deadline=None)

"""Queue locks bind a queue to one client of a group, for 60 s after the last renewal."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from seglog.broker.queue_locks import QueueLocks
from seglog.clock import VirtualClock
from seglog.remoting.message_queue import MessageQueue

LIVE_MS = 60_000
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
TestLocksMachine.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)

"""Owners of locks at the end of a connection keep them over a restart; those of the same process do not."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.tables.lock_snapshot import read_owners
from seglog.clock import SystemClock, VirtualClock
from seglog.errors import FullError
from seglog.remoting.bodies import LockBatchBody, LockedQueuesBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.storage.format.names import OURS
from seglog.storage.format.record import Host
from seglog.storage.writes import Durability
from seglog.testing import RoomyFiles
from tests.support.brokers import pull, send
from tests.support.connections import QuietConnection
from tests.support.machine.patience import patience_s, wait_for_result

HOST = Host(b"\x7f\x00\x00\x01", 1)
QUEUES = frozenset(MessageQueue("T", "broker-a", queue_id) for queue_id in range(3))
ONE = frozenset([MessageQueue("T", "broker-a", 0)])


def remote(name):
    return Peer(name, HOST, QuietConnection(), is_remote=True)


def ask(broker, peer, queues=QUEUES, code=RequestCode.LOCK_BATCH_MQ):
    body = LockBatchBody("g", peer.client_id, queues)
    return broker.dispatch(Request(code, body=body), peer)


def locked(broker, peer, queues=QUEUES):
    return ask(broker, peer, queues).body.queues


def record_of(broker):
    return broker.path / OURS / "locks.json"


@pytest.mark.parametrize("is_killed", [True, False])
def test_finding_8_of_the_broker_only_the_owner_of_before_has_its_queues_for_60_s(tmp_path, is_killed):
    clock = VirtualClock()
    with Broker.open(tmp_path / "s", clock=clock) as broker:
        assert locked(broker, remote("a")) == QUEUES
        kept = record_of(broker).read_bytes()
    if is_killed:
        (tmp_path / "s" / OURS / "locks.json").write_bytes(kept)
    clock.advance(3_600_000)  # a broker that is down for an hour
    with Broker.open(tmp_path / "s", clock=clock) as broker:
        assert locked(broker, remote("b")) == set()
        clock.advance(30_000)
        assert locked(broker, remote("a"), ONE) == ONE
        clock.advance(30_001)
        assert locked(broker, remote("b")) == QUEUES - ONE


def test_owners_of_the_same_process_cost_nothing_after_it(tmp_path):
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        assert locked(broker, Peer("local-a", HOST, QuietConnection())) == QUEUES
        broker.persist()
        assert b'"local":true' in record_of(broker).read_bytes()
        kept = record_of(broker).read_bytes()
    assert not (tmp_path / OURS / "locks.json").exists()
    (tmp_path / OURS / "locks.json").write_bytes(kept)  # as a kill leaves it
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        assert locked(broker, Peer("local-b", HOST, QuietConnection())) == QUEUES


def test_what_was_given_back_is_free_after_a_restart(tmp_path):
    clock = VirtualClock()
    with Broker.open(tmp_path, clock=clock) as broker:
        locked(broker, remote("a"))
        ask(broker, remote("a"), ONE, RequestCode.UNLOCK_BATCH_MQ)
    with Broker.open(tmp_path, clock=clock) as broker:
        assert locked(broker, remote("b")) == ONE


def test_the_owners_of_before_can_be_forgotten(tmp_path):
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        locked(broker, remote("a"))
    with Broker.open(tmp_path, clock=VirtualClock(), forget_locks=True) as broker:
        assert locked(broker, remote("b")) == QUEUES


@pytest.mark.parametrize("text", ["{", "[]", '{"drawnMs":1,"liveMs":2,"locks":[{"local":false}]}'])
def test_a_damaged_record_frees_all_queues_and_is_logged(tmp_path, caplog, text):
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        locked(broker, remote("a"))
    (tmp_path / OURS / "locks.json").write_text(text)
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        assert locked(broker, remote("b")) == QUEUES
    assert "all queues are free" in caplog.text


def test_a_record_of_an_older_version_has_no_lasting_owner(tmp_path):
    row = '{"group":"g","topic":"T","brokerName":"broker-a","queueId":0,"clientId":"a","ageMs":1}'
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        path = record_of(broker)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'{{"drawnMs":1,"liveMs":60000,"locks":[{row}]}}')
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        assert locked(broker, remote("b")) == QUEUES


class CountingFiles(RoomyFiles):
    """Counts writes of the record, and how many were synced."""

    def __init__(self, path):
        super().__init__(path)
        self.writes = []
        self.is_full = False

    @override
    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        if path.name == "locks.json.tmp":
            if self.is_full:
                raise FullError(f"there is no space for {path}")
            self.writes.append(sync)
        super().write_file(path, data, sync=sync)


@pytest.mark.parametrize("durability", Durability)
def test_the_record_is_written_when_an_owner_changes_and_not_by_renewals(tmp_path, durability):
    files = CountingFiles(tmp_path)
    with Broker.open(tmp_path, clock=VirtualClock(), durability=durability, files=files) as broker:
        locked(broker, remote("a"))
        for _ in range(5):
            locked(broker, remote("a"))
        assert files.writes == [durability is Durability.SYNC]
        locked(broker, remote("b"))
        assert len(files.writes) == 1
        ask(broker, remote("a"), QUEUES, RequestCode.UNLOCK_BATCH_MQ)
        locked(broker, remote("b"))
        assert len(files.writes) == 2


def test_without_space_for_the_record_locks_hold_for_this_life_and_are_recorded_when_there_is(
    tmp_path, caplog
):
    files = CountingFiles(tmp_path)
    with Broker.open(tmp_path, clock=VirtualClock(), files=files) as broker:
        files.is_full = True
        assert locked(broker, remote("a")) == QUEUES
        assert locked(broker, remote("b")) == set()
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
            "a restart of the broker frees queues that are locked"
        ]
        files.is_full = False
        assert locked(broker, remote("a")) == QUEUES
        assert len(files.writes) == 1


def test_a_kill_right_after_the_answer_leaves_the_owner(tmp_path):
    script = f"""
        import os, signal
        from pathlib import Path
        from tests.broker.tables.test_lock_record import *
        broker = Broker.open({str(tmp_path)!r})
        assert locked(broker, remote("a")) == QUEUES
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        timeout=patience_s(30),
    )
    assert done.returncode == -9
    with Broker.open(tmp_path) as broker:
        assert locked(broker, remote("b")) == set()
        assert locked(broker, remote("a")) == QUEUES


def test_clients_live_by_a_clock_of_their_own(tmp_path):
    time, liveness = VirtualClock(), VirtualClock()
    with Broker.open(tmp_path, clock=time, liveness_clock=liveness) as broker:
        locked(broker, remote("a"))
        broker.advance("2h")
        assert locked(broker, remote("b")) == set()
        liveness.advance(60_001)
        assert locked(broker, remote("b")) == QUEUES


def test_a_broker_on_virtual_time_holds_pulls_by_real_time(tmp_path):
    with Broker.open(tmp_path, clock=VirtualClock(), liveness_clock=SystemClock()) as broker:
        send(broker, "T")
        held = PullFlag.SUBSCRIPTION | PullFlag.SUSPEND
        before_ms = broker.clock.now_ms()
        answer = pull(broker, "T", 1, flags=held, suspend_timeout_ms=30)
        assert answer.code is ResponseCode.PULL_NOT_FOUND
        assert broker.clock.now_ms() == before_ms


def test_locks_that_are_taken_together_are_few_writes_and_each_is_recorded_before_its_answer(tmp_path):
    files, answered = CountingFiles(tmp_path), []
    with Broker.open(tmp_path, files=files) as broker:

        def told(group, _answer):
            owners = read_owners(files, tmp_path)
            answered.append(group in {owner for owner, _queue, _client in owners})

        waiting = []
        for number in range(400):
            group = f"g{number}"
            body = LockBatchBody(group, "a", QUEUES)
            answer = broker.answer(Request(RequestCode.LOCK_BATCH_MQ, body=body), remote("a"))
            if isinstance(answer, Deferred):
                waiting.append(answer)
                if number % 40 == 0:
                    answer.then(partial(told, group))
        for answer in waiting:
            assert expect_body(wait_for_result(answer, idle_s=60), LockedQueuesBody).queues == QUEUES
    assert answered == [True] * 10
    assert len(files.writes) < 100


def test_a_lock_that_waits_for_its_record_is_answered_when_the_broker_closes(tmp_path):
    broker = Broker.open(tmp_path)
    answers = []
    for number in range(20):
        body = LockBatchBody(f"g{number}", "a", QUEUES)
        answers.append(broker.answer(Request(RequestCode.LOCK_BATCH_MQ, body=body), remote("a")))
    broker.close()
    ended = [wait_for_result(each, idle_s=30) if isinstance(each, Deferred) else each for each in answers]
    assert {each.code for each in ended} == {ResponseCode.SUCCESS}
    with Broker.open(tmp_path) as again:
        assert {lock.group for lock in again.locks.all()} == {f"g{number}" for number in range(20)}

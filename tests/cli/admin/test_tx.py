"""``seglog tx``: open half messages get an outcome, once, and one that brokers understand."""

from __future__ import annotations

import shlex

import pytest

from seglog.doctor.groups.transactions import end_transaction, open_transactions
from seglog.errors import InvalidArgumentError, NotFoundError, StoreLockedError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import properties as props
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material.golden import extract
from tests.support.material.stores import SMALL, new_clock, read_all

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
COMMIT = 8


def half(unique, *, topic="Orders", queue_id="1", **more):
    given = {"KEYS": "k", "TAGS": "TagA", "UNIQ_KEY": unique, "__transactionId__": unique, "TRAN_MSG": "true"}
    return props.encode_properties(
        given | {"PGROUP": "producers", "REAL_TOPIC": topic, "REAL_QID": queue_id} | more
    )


@pytest.fixture
def path(tmp_path):
    """A store with three half messages, of which the second was settled."""
    with MessageStore.open(tmp_path / "s", clock=new_clock(), **SMALL) as store:
        store.put("Orders", b"before")
        for number in range(3):
            store.append(HALF_TOPIC, 0, b"half %d" % number, half(f"U{number}"), 0, flag=number)
        store.append(OP_TOPIC, 0, b"1,", b"TAGS\x01d\x02", 100)
    return tmp_path / "s"


def end(path, wanted, *, commit):
    return end_transaction(RealFiles(), path, new_clock(), wanted, commit=commit)


def waiting(path):
    return [one.message.queue_offset for one in open_transactions(RealFiles(), path)]


def test_those_that_wait_are_listed(seglog: Seglog, path):
    ran = seglog("tx", "ls", path, "--json")
    assert ran.exit_code == 0
    assert [(one["queueOffset"], one["uniqKey"], one["topic"]) for one in ran.lines] == [
        (0, "U0", "Orders"),
        (2, "U2", "Orders"),
    ]
    shown = seglog("tx", "ls", path).stdout
    assert "2 half messages have no outcome" in shown
    assert "for Orders/1  from producers" in shown


def test_the_commands_that_the_list_ends_with_can_be_pasted(seglog: Seglog, path):
    *_, commit, rollback = seglog("tx", "ls", path).stdout.splitlines()
    first = open_transactions(RealFiles(), path)[0].message.message_id
    typed = (
        shlex.split(commit.removeprefix("next: seglog ")),
        shlex.split(rollback.removeprefix("or:   seglog ")),
    )
    assert typed == (["tx", "commit", str(path), first], ["tx", "rollback", str(path), first])
    for words in typed:
        assert seglog(*words).exit_code == 0


def test_what_a_record_does_not_name_is_left_out_of_the_list(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s", clock=new_clock(), **SMALL) as store:
        put = store.append(HALF_TOPIC, 0, b"half", half("", PGROUP="", REAL_QID="x"), 0)
    line, count, following = seglog("tx", "ls", tmp_path / "s").stdout.splitlines()
    name, queue, stored, asked = line.split("  ")
    assert (name, asked) == (put.message_id, "asked 0 times")
    assert queue == "names no queue, so it can only be rolled back"
    assert stored.startswith("stored ")
    assert count == "1 half message has no outcome"
    assert following == f"next: seglog tx rollback {tmp_path / 's'} {put.message_id}"


def test_a_committed_one_is_what_a_broker_would_have_made(path):
    done = end(path, "U2", commit=True)
    assert (done.committed_offset, done.was_committed, done.op_offset) == (0, False, 1)
    with MessageStore.open(path, read_only=True) as store:
        (message,) = read_all(store, "Orders", 1)
        origin = read_all(store, HALF_TOPIC, 0)[2]
        op = read_all(store, OP_TOPIC, 0)[1]
    assert (message.body, message.flag, message.tags, message.sys_flag & 12) == (b"half 2", 2, "TagA", COMMIT)
    assert message.prepared_transaction_offset == origin.phy_offset
    assert message.born_timestamp_ms == origin.born_timestamp_ms
    names = set(message.properties)
    assert {"PGROUP", "TRAN_MSG", "UNIQ_KEY", "__transactionId__"} <= names
    assert not names & {"REAL_TOPIC", "REAL_QID"}
    assert (bytes(op.body), op.tags, op.properties["WAIT"]) == (b"2,", "d", "true")
    assert waiting(path) == [0]


def test_one_that_is_rolled_back_goes_nowhere(seglog: Seglog, path):
    shown = seglog("tx", "rollback", path, "U0", "--apply").stdout
    assert "nothing goes to Orders/1" in shown
    with MessageStore.open(path, read_only=True) as store:
        assert store.max_offset("Orders", 1) == 0
    assert waiting(path) == [2]


def test_what_a_crash_left_committed_is_settled_and_not_committed_again(path):
    with MessageStore.open(path) as store:
        origin = read_all(store, HALF_TOPIC, 0)[0]
        made = store.append(
            "Orders", 1, b"half 0", b"", 0, sys_flag=COMMIT, prepared_transaction_offset=origin.phy_offset
        )
    done = end(path, origin.message_id, commit=True)
    assert (done.was_committed, done.committed_id) == (True, made.message_id)
    with MessageStore.open(path, read_only=True) as store:
        assert store.max_offset("Orders", 1) == 1
    assert waiting(path) == [2]


def test_an_end_is_given_once(path):
    end(path, "U0", commit=True)
    with pytest.raises(NotFoundError, match="no half message U0 waits"):
        end(path, "U0", commit=False)
    with pytest.raises(NotFoundError):
        end(path, "U1", commit=True)


def test_one_that_names_no_topic_can_be_rolled_back_only(path):
    with MessageStore.open(path) as store:
        store.append(HALF_TOPIC, 0, b"lost", b"UNIQ_KEY\x01U9\x02", 0)
    with pytest.raises(InvalidArgumentError, match="does not say where it belongs"):
        end(path, "U9", commit=True)
    assert end(path, "U9", commit=False).committed_offset is None


def test_an_id_of_several_is_refused(path):
    with MessageStore.open(path) as store:
        store.append(HALF_TOPIC, 0, b"again", half("U0", TRANSACTION_CHECK_TIMES="1"), 0)
    with pytest.raises(InvalidArgumentError, match="several half messages"):
        end(path, "U0", commit=True)


def test_nothing_is_done_beside_a_broker(path):
    with MessageStore.open(path):
        assert waiting(path) == [0, 2]
        with pytest.raises(StoreLockedError):
            end(path, "U0", commit=True)


def test_a_real_brokers_op_records_are_understood(tmp_path):
    root = extract("broker-store", tmp_path)
    assert [one.message.queue_offset for one in open_transactions(RealFiles(), root)] == []

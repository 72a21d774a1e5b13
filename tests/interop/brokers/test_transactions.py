"""RocketMQ reads a store in which transactions were ended by hand, and its own commits look the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from seglog.clock import SystemClock
from seglog.doctor.groups.transactions import end_transaction
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import properties as props
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, message_line
from tests.interop.judging.questions import SMALL_GEOMETRY
from tests.support.material.golden import extract
from tests.support.material.stores import served

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("is_bare", [False, True])
def test_rocketmq_serves_what_was_committed(judge: Judge, tmp_path, copied: Callable[[Path], Path], is_bare):
    root = extract("tx", tmp_path)
    for unique, commit in (("TXUNIQ0", True), ("TXUNIQ1", False), ("TXUNIQ4", True)):
        end_transaction(RealFiles(), root, SystemClock(), unique, commit=commit)
    with MessageStore.open(root, read_only=True) as store:
        ours = [message_line(message) for queue in served(store).values() for message in queue]
        committed = store.get("TxTopic", 0, 12).messages
    assert [message.unique_key for message in committed] == ["TXUNIQ0", "TXUNIQ4"]
    for_java = copied(root)
    if is_bare:
        (for_java / "abort").write_bytes(b"")
        (for_java / "checkpoint").unlink()
        shutil.rmtree(for_java / "consumequeue")
        shutil.rmtree(for_java / "index")
    dump = judge.dump(for_java, SMALL_GEOMETRY)
    assert dump.refusal is None
    assert differences(ours, dump.of_kind("msg")) == []


def test_a_commit_has_what_a_brokers_has(tmp_path):
    """Of a transaction that a real broker of 5.4.0 committed, ended once more by hand."""
    root = extract("broker-store", tmp_path)
    with MessageStore.open(root) as store:
        theirs = store.get("PyTx", 1, 0).messages[0]
        half = next(
            message
            for message in store.get("RMQ_SYS_TRANS_HALF_TOPIC", 0, 0, 32).messages
            if message.phy_offset == theirs.prepared_transaction_offset
        )
        again = dict(half.properties) | {props.UNIQ_KEY: "AGAIN", "__transactionId__": "AGAIN"}
        store.append(
            half.topic,
            0,
            half.body,
            props.encode_properties(again),
            0,
            born_timestamp_ms=half.born_timestamp_ms,
            born_host=half.born_host,
        )
    end_transaction(RealFiles(), root, SystemClock(), "AGAIN", commit=True)
    with MessageStore.open(root, read_only=True) as store:
        ours = store.get("PyTx", 1, 1).messages[0]
    for name in ("body", "tags", "keys", "sys_flag", "flag", "born_timestamp_ms", "born_host", "queue_id"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert set(ours.properties) - {props.CRC32} == set(theirs.properties) - {props.CRC32}

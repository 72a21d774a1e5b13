"""A broker whose disk failed once answers that it is not available, for any failed sync."""

from __future__ import annotations

import pytest

from seglog.broker.broker import Broker
from seglog.broker.tables.topics import TopicConfig
from seglog.errors import StoreFailedError
from seglog.remoting.admin_bodies import KeyValuesBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.storage.format.names import segment_file_name
from seglog.storage.store import MessageStore
from tests.support.brokers import send
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.material.stores import read_all


@pytest.mark.parametrize("call", ["write_file", "sync_dir"])
def test_failed_sync_of_a_config_file_is_the_last_of_the_store_too(tmp_path, call):
    fault = Fault(names=frozenset({call}))
    broker = Broker.open(tmp_path / "store", files=FailingFiles(fault), background=False)
    broker.topics.put(TopicConfig("Kept", 1, 1))
    broker.store.put("Kept", b"x")
    fault.at, fault.count = 1, 0
    with pytest.raises(StoreFailedError, match=r"the disk failed|config"):
        broker.topics.put(TopicConfig("Lost", 1, 1))
    with pytest.raises(StoreFailedError, match="config"):
        broker.store.put("Kept", b"y")
    with pytest.raises(StoreFailedError, match="config"):
        broker.topics.put(TopicConfig("Later", 1, 1))
    assert [message.body for message in read_all(broker.store, "Kept", 0)] == [b"x"]
    with pytest.raises(StoreFailedError, match="config"):
        broker.close()
    assert len(fault.fired) == 1
    with Broker.open(tmp_path / "store", background=False) as again:
        assert again.topics.get("Kept") == TopicConfig("Kept", 1, 1)
        assert again.store.recovery.mode == "abnormal"
    assert (tmp_path / "store" / "commitlog" / segment_file_name(0)).exists()


def test_failed_sync_of_the_log_fails_config_files_too(tmp_path):
    fault = Fault(names=frozenset({"sync"}))
    broker = Broker.open(tmp_path / "store", files=FailingFiles(fault), background=False)
    broker.store.put("T", b"x")
    fault.at, fault.count = 1, 0
    with pytest.raises(StoreFailedError):
        broker.store.flush()
    with pytest.raises(StoreFailedError, match="commitlog"):
        broker.topics.put(TopicConfig("Lost", 1, 1))
    with pytest.raises(StoreFailedError):
        broker.close()
    with MessageStore.open(tmp_path / "store") as again:
        assert again.recovery.mode == "abnormal"


def test_sends_that_the_store_has_not_taken_are_counted(tmp_path):
    def failed():
        answer = broker.dispatch(Request(RequestCode.GET_BROKER_RUNTIME_INFO))
        return expect_body(answer, KeyValuesBody).values["putMessageFailedTimes"]

    fault = Fault(names=frozenset({"sync"}))
    broker = Broker.open(tmp_path / "store", files=FailingFiles(fault), background=False)
    assert send(broker, "T").code is ResponseCode.SUCCESS
    assert failed() == "0"
    fault.at, fault.count = 1, 0
    with pytest.raises(StoreFailedError):
        broker.store.flush()
    for count in ("1", "2"):
        assert send(broker, "T").code is ResponseCode.SERVICE_NOT_AVAILABLE
        assert failed() == count
    with pytest.raises(StoreFailedError):
        broker.close()

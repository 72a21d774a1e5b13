"""A broker opens what is there, saves what changes, and ends cleanly."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.errors import ConfigError, FullError, StoreLockedError, error_classes
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import UpdateConsumerOffsetHeader
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.brokers import open_broker, pull, send
from tests.support.material.config_files import read_config
from tests.support.material.golden import config_names, extract, tree_digest
from tests.support.narrow import not_none

GOLDEN = Path(__file__).parents[1] / "golden" / "config"


def commit(broker, offset, *, topic="T", group="g"):
    header = UpdateConsumerOffsetHeader(group, topic, 0, offset)
    broker.groups.find(group)
    return broker.dispatch(Request(RequestCode.UPDATE_CONSUMER_OFFSET, header))


def saved_offsets(path):
    return read_config(path / "config" / "consumerOffset.json")["offsetTable"]


def test_offsets_are_saved_at_close_and_found_again(tmp_path):
    with open_broker(tmp_path) as broker:
        send(broker, "T")
        commit(broker, 1)
    assert saved_offsets(tmp_path) == {"T@g": {0: 1}}
    with open_broker(tmp_path) as broker:
        assert broker.offsets.query("g", "T", 0) == 1


def test_changed_offsets_are_saved_every_five_seconds_of_the_given_clock(tmp_path):
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        send(broker, "T")
        commit(broker, 1)
        broker.advance("4.999s")
        assert not (tmp_path / "config" / "consumerOffset.json").exists()
        broker.advance("1ms")
        assert saved_offsets(tmp_path) == {"T@g": {0: 1}}


def test_a_broker_that_is_killed_has_lost_no_more_than_the_last_commits(tmp_path):
    broker = open_broker(tmp_path / "store")
    send(broker, "T")
    send(broker, "T")
    commit(broker, 1)
    broker.persist()
    commit(broker, 2)
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    broker.close()
    with open_broker(tmp_path / "copy") as after:
        assert after.offsets.query("g", "T", 0) == 1
        assert after.store.max_offset("T", 0) == 2


def test_offsets_beyond_what_survived_are_set_back_and_told(tmp_path):
    with open_broker(tmp_path) as broker:
        for _ in range(3):
            send(broker, "T")
        commit(broker, 3)
    offsets = tmp_path / "config" / "consumerOffset.json"
    offsets.write_text(offsets.read_text().replace("0:3", "0:30"))
    with open_broker(tmp_path) as broker:
        (clamped,) = broker.clamped_offsets
        assert (clamped.topic, clamped.group, clamped.committed_offset, clamped.max_offset) == (
            "T",
            "g",
            30,
            3,
        )
        assert broker.offsets.query("g", "T", 0) == 3
    assert saved_offsets(tmp_path) == {"T@g": {0: 3}}


def test_a_store_written_without_a_broker_can_be_consumed(tmp_path):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 20) as store:
        store.put("plain", b"body", queue_id=5)
    with Broker.open(tmp_path, background=False) as broker:
        assert not_none(broker.topics.get("plain")).read_queue_nums == 6
        assert pull(broker, "plain", queue_id=5).code is ResponseCode.SUCCESS


def test_opening_and_closing_writes_no_config_file(tmp_path):
    open_broker(tmp_path).close()
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize("name", config_names())
def test_the_directory_of_a_real_broker_goes_on_here(name, tmp_path):
    path = extract(name, tmp_path)
    before = tree_digest(path)
    topics = read_config(path / "config" / "topics.json")["topicConfigTable"]
    offsets = saved_offsets(path)
    broker = Broker.open(path, background=False)
    try:
        assert topics.keys() <= {topic.name for topic in broker.topics.all()}
        for key, queues in offsets.items():
            topic, group = key.split("@")
            assert {number: broker.offsets.query(group, topic, number) for number in queues} == queues
        assert send(broker, "TopicX").code is ResponseCode.SUCCESS
    finally:
        broker.close()
    after = tree_digest(path)
    changed = {file for file in before if file.startswith("config/") and before[file] != after[file]}
    assert changed == set(), "a send to a known topic changes no config file"


def test_a_second_close_does_nothing(tmp_path):
    broker = open_broker(tmp_path)
    broker.close()
    broker.close()


def test_a_closed_broker_refuses(tmp_path):
    broker = open_broker(tmp_path)
    broker.close()
    assert send(broker, "T").code is ResponseCode.SERVICE_NOT_AVAILABLE


def test_no_thread_outlives_a_broker(tmp_path):
    before = threading.active_count()
    with Broker.open(tmp_path):
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_config_that_cannot_be_read_gives_the_store_back(tmp_path):
    open_broker(tmp_path).close()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "consumerOffset.json").write_text("{")
    with pytest.raises(ConfigError):
        open_broker(tmp_path)
    with MessageStore.open(tmp_path) as store:
        assert not store.read_only


def test_two_brokers_cannot_have_one_store(tmp_path):
    with open_broker(tmp_path), pytest.raises(StoreLockedError):
        open_broker(tmp_path)


def test_topics_survive(tmp_path):
    with open_broker(tmp_path) as broker:
        send(broker, "T", queue_id=3)
        created = broker.topics.get("T")
    with open_broker(tmp_path) as broker:
        assert broker.topics.get("T") == created


@pytest.mark.parametrize("code", [-1, 37, 9_999])
def test_what_no_handler_answers_is_not_supported(tmp_path, code):
    with open_broker(tmp_path) as broker:
        answer = broker.dispatch(Request(code))
    assert answer.code is ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert answer.remark == f" request type {code} not supported"


def test_every_error_has_a_response_code():
    for error in error_classes():
        ResponseCode(error.response_code)


def test_a_save_that_fails_is_tried_again(tmp_path, caplog):
    class Files(RealFiles):
        is_full = False

        @override
        def write_file(self, path, data, *, sync=True):
            if self.is_full and path.parent.name == "config":
                raise FullError("no space left")
            super().write_file(path, data, sync=sync)

    clock, files = VirtualClock(), Files()
    with Broker.open(tmp_path, clock=clock, files=files) as broker:
        send(broker, "T")
        commit(broker, 1)
        files.is_full = True
        broker.advance(5_000)
        assert "no space left" in caplog.text
        files.is_full = False
        broker.advance(5_000)
        assert saved_offsets(tmp_path) == {"T@g": {0: 1}}
    assert saved_offsets(tmp_path) == {"T@g": {0: 1}}

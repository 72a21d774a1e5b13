"""Topics are RocketMQ's: their names, their file, and how a send may create them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import (
    TopicConfig,
    TopicTable,
    is_system_topic,
    topic_name_problem,
)
from seglog.clock import VirtualClock
from seglog.errors import ConfigError, FullError, InvalidArgumentError, NotFoundError
from seglog.remoting.codes import ResponseCode
from seglog.storage.format.config.config_json import decode_config
from seglog.storage.small_files.config_file import ConfigFile
from tests.support.brokers import open_broker, pull, pull_header, send
from tests.support.crash.crash_files import CrashFiles
from tests.support.narrow import not_none

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
PATH = Path("/store/config/topics.json")


def open_table(files=None, config=None, tell_store=lambda: None):
    file = ConfigFile(files or CrashFiles(), PATH, Path("/store/seglog/evidence"))
    return TopicTable(file, config or BrokerConfig(), VirtualClock(), tell_store)


def stored(files):
    return decode_config(files.read_file(PATH))


def test_a_send_creates_a_topic_after_the_model_of_tbw102():
    files = CrashFiles()
    topic = open_table(files).create_for_send("T", "TBW102", 4)
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (4, 4, 6)
    assert open_table(files).get("T") == topic


def test_a_send_cannot_make_more_queues_than_its_model_has():
    assert open_table().create_for_send("T", "TBW102", 100).write_queue_nums == 8
    assert open_table().create_for_send("T", "TBW102", -3).write_queue_nums == 0


def test_a_topic_that_is_there_is_not_changed_by_a_send():
    table = open_table()
    table.put(TopicConfig("T", 2, 2))
    assert table.create_for_send("T", "TBW102", 4).write_queue_nums == 2


@pytest.mark.parametrize(
    ("config", "model"),
    [
        (BrokerConfig(), "SELF_TEST_TOPIC"),
        (BrokerConfig(), "absent"),
        (BrokerConfig(auto_create_topics=False), "TBW102"),
    ],
    ids=["not inheritable", "no such model", "switched off"],
)
def test_without_a_model_nothing_is_created_but_retry_topics(config, model):
    files = CrashFiles()
    table = open_table(files, config)
    assert table.create_for_send("T", model, 4) is None
    assert files.contents() == {}
    retry = table.create_for_send("%RETRY%g", model, 4)
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)


def test_opening_writes_nothing():
    files = CrashFiles()
    open_table(files).persist()
    assert files.contents() == {}


def test_a_topic_is_saved_before_it_can_be_used():
    class FullFiles(CrashFiles):
        @override
        def write_file(self, path, data, *, sync=True):
            raise FullError("no space left")

    table = open_table(FullFiles())
    with pytest.raises(FullError):
        table.create_for_send("T", "TBW102", 4)
    assert table.get("T") is None


@pytest.mark.parametrize("version", ["broker-5.4.0", "conf-5.3.3", "conf-5.4.0"])
def test_a_real_file_is_read_and_written_again_with_nothing_lost(version):
    files = CrashFiles.holding({PATH: (GOLDEN / version / "topics.json").read_bytes()})
    before = stored(files)
    open_table(files).put(TopicConfig("New", 1, 1))
    after = stored(files)
    names = before["topicConfigTable"].keys()
    assert {name: after["topicConfigTable"][name] for name in names} == before["topicConfigTable"]
    assert after["topicConfigTable"]["New"] == {
        "attributes": {},
        "order": False,
        "perm": 6,
        "readQueueNums": 1,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "New",
        "topicSysFlag": 0,
        "writeQueueNums": 1,
    }


def test_unknown_fields_survive():
    text = '{"topicConfigTable":{"T":{"readQueueNums":2,"writeQueueNums":2,"later":{"a":1}}},"more":[1]}'
    files = CrashFiles.holding({PATH: text.encode()})
    open_table(files).put(TopicConfig("U"))
    assert stored(files)["topicConfigTable"]["T"]["later"] == {"a": 1}
    assert stored(files)["more"] == [1]


def test_json_of_another_shape_is_damage():
    with pytest.raises(ConfigError):
        open_table(CrashFiles.holding({PATH: b'{"topicConfigTable":["T"]}'}))


def test_queues_that_a_store_has_without_a_file_become_topics():
    files = CrashFiles()
    table = open_table(files)
    table.take_over([("T", 0), ("T", 5), ("TBW102", 1)])
    assert table.get("T").read_queue_nums == table.get("T").write_queue_nums == 6
    assert table.get("TBW102").read_queue_nums == 8
    assert files.contents() == {}
    table.persist()
    assert open_table(files).get("T").read_queue_nums == 6


def test_a_topic_that_was_given_fewer_queues_than_it_had_keeps_them_after_a_restart(tmp_path):
    with open_broker(tmp_path) as broker:
        for queue_id in range(4):
            send(broker, "T", queue_id=queue_id)
        broker.topics.put(TopicConfig("T", 2, 2))
    with open_broker(tmp_path) as broker:
        assert not_none(broker.topics.get("T")).read_queue_nums == 2
        assert send(broker, "T", queue_id=3).code is ResponseCode.INVALID_PARAMETER
        broker.topics.put(TopicConfig("T", 4, 4))
        assert pull_header(pull(broker, "T", queue_id=3)).max_offset == 1


@pytest.mark.parametrize("field", ["read_queue_nums", "write_queue_nums", "perm", "sys_flag"])
def test_numbers_that_java_cannot_read_back_are_refused(field):
    files = CrashFiles()
    too_large: dict[str, Any] = {field: 1 << 31}
    with pytest.raises(InvalidArgumentError, match="32 bits"):
        open_table(files).put(TopicConfig("T", **too_large))
    assert files.contents() == {}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "blank"),
        ("  ", "blank"),
        ("a/b", "illegal characters"),
        ("a\n", "illegal characters"),
        ("a.b", "illegal characters"),
        ("tümpel", "illegal characters"),
        ("x" * 128, "longer than topic max length: 127"),
        ("%RETRY%" + "x" * 249, "longer than topic max length: 255"),
    ],
)
def test_names_that_a_broker_refuses(name, says):
    assert says in not_none(topic_name_problem(name))


@pytest.mark.parametrize("name", ["T", "%RETRY%g", "a|b-c_d%", "x" * 127, "%RETRY%" + "x" * 248])
def test_names_that_a_broker_takes(name):
    assert topic_name_problem(name) is None


def test_the_brokers_own_topics_are_system_topics():
    config = BrokerConfig(cluster_name="C", broker_name="b")
    for name in ("TBW102", "C", "b", "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"):
        assert is_system_topic(name, config)
    assert not is_system_topic("T", config)


def test_the_store_is_told_of_topics_with_attributes_once_they_are_saved():
    files = CrashFiles()
    told = []
    table = open_table(files, tell_store=lambda: told.append(set(stored(files)["topicConfigTable"])))
    table.put(TopicConfig("Plain", 2, 2))
    assert told == []
    table.put(TopicConfig("Batches", 2, 2, attributes={"queue.type": "BatchCQ"}))
    assert len(told) == 1
    assert "Batches" in told[0]


def test_a_topic_is_made_sure_of_only_once():
    table = open_table()
    first = table.ensure(TopicConfig("%RETRY%g", 1, 1))
    assert table.ensure(TopicConfig("%RETRY%g", 9, 9)) is first


def test_deleting_takes_a_topic_away_but_none_of_the_brokers_own():
    files = CrashFiles()
    table = open_table(files)
    table.put(TopicConfig("T", 1, 1))
    table.delete("T")
    assert open_table(files).get("T") is None
    with pytest.raises(NotFoundError):
        table.delete("T")
    with pytest.raises(InvalidArgumentError, match="broker's own"):
        table.delete("TBW102")

"""Groups are RocketMQ's: their names, their file, and how their first use creates them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.groups import GroupTable, group_name_problem
from seglog.clock import VirtualClock
from seglog.errors import ConfigError, InvalidArgumentError, NotFoundError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import DeleteGroupHeader, UpdateConsumerOffsetHeader
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config.config_json import decode_config
from seglog.storage.format.system_names import SYSTEM_GROUPS
from seglog.storage.small_files.config_file import ConfigFile
from tests.support.brokers import open_broker, pull, send
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.narrow import not_none

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
PATH = Path("/store/config/subscriptionGroup.json")
BACKUP = PATH.with_name(PATH.name + ".bak")
DEFAULTS = {
    "attributes": {},
    "brokerId": 0,
    "consumeBroadcastEnable": True,
    "consumeEnable": True,
    "consumeFromMinEnable": True,
    "consumeMessageOrderly": False,
    "consumeTimeoutMinute": 15,
    "groupName": "g",
    "groupRetryPolicy": {"type": "CUSTOMIZED"},
    "groupSysFlag": 0,
    "notifyConsumerIdsChangedEnable": True,
    "retryMaxTimes": 16,
    "retryQueueNums": 1,
    "whichBrokerWhenConsumeSlowly": 1,
}


def open_table(files=None, config=None):
    file = ConfigFile(files or CrashFiles(), PATH, Path("/store/seglog/evidence"))
    return GroupTable(file, config or BrokerConfig(), VirtualClock(5_000))


def stored(files):
    return decode_config(files.read_file(PATH))


def create(broker, group):
    return broker.dispatch(Request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group))


def delete(broker, name, *, cleans_offsets=False):
    return broker.dispatch(
        Request(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupHeader(name, cleans_offsets))
    )


def test_a_new_group_is_stored_as_rocketmq_does_it():
    files = CrashFiles()
    table = open_table(files)
    table.put(SubscriptionGroup("g"))
    after = stored(files)
    assert after["subscriptionGroupTable"].pop("g") == DEFAULTS
    assert set(after["subscriptionGroupTable"]) == set(SYSTEM_GROUPS)
    assert after["dataVersion"] == {"counter": 1, "stateVersion": 0, "timestamp": 5_000}
    assert after["forbiddenTable"] == {}
    assert open_table(files).get("g") == SubscriptionGroup("g")


@pytest.mark.parametrize("version", ["broker-5.4.0", "conf-5.3.3", "conf-5.4.0"])
def test_a_real_file_is_read_and_written_again_with_nothing_lost(version):
    files = CrashFiles.holding({PATH: (GOLDEN / version / "subscriptionGroup.json").read_bytes()})
    before = stored(files)
    table = open_table(files)
    assert {group.name for group in table.all()} == set(before["subscriptionGroupTable"])
    table.put(SubscriptionGroup("new-group"))
    after = stored(files)
    assert after["subscriptionGroupTable"].pop("new-group")["groupName"] == "new-group"
    assert after["subscriptionGroupTable"] == before["subscriptionGroupTable"]
    assert after["dataVersion"]["counter"] == before["dataVersion"]["counter"] + 1
    assert decode_config(files.read_file(BACKUP)) == before


def test_unknown_fields_survive_a_change_of_their_group():
    text = '{"forbiddenTable":{"g":{"T":1}},"later":[1],"subscriptionGroupTable":{"g":{"x":2}}}'
    files = CrashFiles.holding({PATH: text.encode()})
    table = open_table(files)
    table.put(replace(table.get("g"), retry_max_times=3))
    after = stored(files)
    assert after["subscriptionGroupTable"]["g"] == {**DEFAULTS, "retryMaxTimes": 3, "x": 2}
    assert (after["forbiddenTable"], after["later"]) == ({"g": {"T": 1}}, [1])


@pytest.mark.parametrize("field", ["retry_queue_nums", "retry_max_times", "consume_timeout_minutes"])
def test_numbers_that_java_cannot_read_back_are_refused(field):
    files = CrashFiles()
    too_small: dict[str, Any] = {field: -(1 << 31) - 1}
    with pytest.raises(InvalidArgumentError, match="32 bits"):
        open_table(files).put(SubscriptionGroup("g", **too_small))
    assert files.contents() == {}


@pytest.mark.parametrize(
    "table",
    [
        "[]",
        '{"subscriptionGroupTable":[]}',
        '{"subscriptionGroupTable":{},"dataVersion":7}',
        '{"subscriptionGroupTable":{},"forbiddenTable":[]}',
    ],
)
def test_json_of_another_shape_is_damage(table):
    with pytest.raises(ConfigError):
        open_table(CrashFiles.holding({PATH: table.encode()}))


def test_a_damaged_file_gives_way_to_its_backup():
    files = CrashFiles()
    open_table(files).put(SubscriptionGroup("g"))
    table = open_table(files)
    table.put(SubscriptionGroup("h"))
    files.write_file(PATH, b"{")
    assert (open_table(files).get("g"), open_table(files).get("h")) == (SubscriptionGroup("g"), None)


def test_a_group_is_there_after_a_crash_at_any_step_of_its_creation_or_not_at_all():
    for calls in range(60):
        files = CrashFiles()
        open_table(files).put(SubscriptionGroup("g"))
        table = open_table(files)
        files.calls_left = calls
        try:
            table.put(SubscriptionGroup("h"))
        except KilledError:
            again = open_table(files.after_power_loss())
            assert again.get("g") == SubscriptionGroup("g")
            assert again.get("h") in (None, SubscriptionGroup("h"))
            assert table.get("h") is None
        else:
            assert calls > 5
            return
    pytest.fail("a save takes more calls than that")


def test_nothing_is_written_for_a_group_that_stays_as_it_is():
    files = CrashFiles()
    table = open_table(files)
    table.put(SubscriptionGroup("g"))
    before = files.contents()
    table.put(SubscriptionGroup("g"))
    assert table.find("g") == SubscriptionGroup("g")
    assert files.contents() == before


@pytest.mark.parametrize("name", ["", "a@b", "a/b", "a\n", "x" * 256])
def test_a_group_that_cannot_be_named_so_is_not_created_by_its_use(name):
    assert open_table().find(name) is None


def test_groups_are_created_by_their_use_only_where_that_is_allowed():
    config = BrokerConfig(auto_create_groups=False)
    assert open_table().find("x" * 120) == SubscriptionGroup("x" * 120)
    assert open_table().find("x" * 121) is None
    assert open_table(config=config).find("g") is None
    assert open_table(config=config).find("CID_RMQ_SYS_x") == SubscriptionGroup("CID_RMQ_SYS_x")
    assert open_table(config=config).find("TOOLS_CONSUMER") == SubscriptionGroup("TOOLS_CONSUMER")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "blank"),
        ("  ", "blank"),
        ("a b", "illegal characters"),
        ("a.b", "illegal characters"),
        ("x" * 121, "longer than group max length: 120"),
    ],
)
def test_names_that_no_group_can_be_created_with(name, problem):
    assert problem in not_none(group_name_problem(name))
    assert group_name_problem("x" * 120) is None


def test_deleting_takes_a_group_away_but_none_of_the_systems():
    files = CrashFiles()
    table = open_table(files)
    table.put(SubscriptionGroup("g"))
    table.delete("g")
    assert open_table(files).get("g") is None
    with pytest.raises(NotFoundError):
        table.delete("g")
    with pytest.raises(InvalidArgumentError, match="system's own"):
        table.delete("CID_RMQ_SYS_TRANS")


def test_the_first_pull_creates_the_group_and_no_retry_topic(broker: Broker):
    send(broker, "T")
    assert pull(broker, "T").code is ResponseCode.SUCCESS
    assert broker.groups.get("cg") == SubscriptionGroup("cg")
    assert broker.topics.get("%RETRY%cg") is None


def test_s4_36_a_pull_of_a_group_that_is_not_there_or_may_not_consume_is_refused(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(auto_create_groups=False)) as broker:
        send(broker, "T")
        answer = pull(broker, "T")
        assert (answer.code, answer.remark) == (
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            "subscription group [cg] does not exist",
        )
        update = UpdateConsumerOffsetHeader("cg", "T", 0, 1)
        answer = broker.dispatch(Request(RequestCode.UPDATE_CONSUMER_OFFSET, update))
        assert answer.code is ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert create(broker, SubscriptionGroup("cg", is_consume_enabled=False)).code is ResponseCode.SUCCESS
        assert pull(broker, "T").code is ResponseCode.NO_PERMISSION
        create(broker, SubscriptionGroup("cg"))
        assert pull(broker, "T").code is ResponseCode.SUCCESS


def test_a_request_for_a_group_with_a_bad_name_is_refused(broker: Broker):
    assert create(broker, SubscriptionGroup("a b")).code is ResponseCode.INVALID_PARAMETER
    assert broker.groups.get("a b") is None


def test_deleting_a_group_keeps_its_offsets_unless_asked(broker: Broker):
    create(broker, SubscriptionGroup("g"))
    broker.offsets.commit("g", "T", 0, 3)
    assert delete(broker, "g").code is ResponseCode.SUCCESS
    assert (broker.groups.get("g"), broker.offsets.query("g", "T", 0)) == (None, 3)
    assert delete(broker, "g", cleans_offsets=True).code is ResponseCode.SUCCESS
    assert broker.offsets.query("g", "T", 0) is None
    assert delete(broker, "TOOLS_CONSUMER").code is ResponseCode.INVALID_PARAMETER


def test_groups_outlive_the_broker(tmp_path):
    with open_broker(tmp_path) as broker:
        create(broker, SubscriptionGroup("g", retry_max_times=3, attributes={"+priority.factor": "7"}))
    with open_broker(tmp_path) as broker:
        kept = SubscriptionGroup("g", retry_max_times=3, attributes={"priority.factor": "7"})
        assert broker.groups.get("g") == kept


def test_attributes_of_a_request_are_changes(broker: Broker):
    create(broker, SubscriptionGroup("g", attributes={"+priority.factor": "7"}))
    create(broker, SubscriptionGroup("g", retry_max_times=3))
    assert not_none(broker.groups.get("g")).attributes == {"priority.factor": "7"}
    create(broker, SubscriptionGroup("g", attributes={"-priority.factor": ""}))
    assert not_none(broker.groups.get("g")).attributes == {}


@pytest.mark.parametrize(
    ("name", "attributes", "says"),
    [
        ("new", {"priority.factor": "7"}, "only add attribute is supported"),
        ("new", {"+unknown": "7"}, "unsupported key: unknown"),
        ("new", {"+priority.factor": "-1"}, "not in range"),
        ("known", {"-priority.factor": ""}, "nonexistent key: priority.factor"),
        ("known", {"priority.factor": "7"}, "wrong format key"),
    ],
)
def test_attributes_that_cannot_be_are_refused_and_nothing_is_changed(broker: Broker, name, attributes, says):
    create(broker, SubscriptionGroup("known"))
    answer = create(broker, SubscriptionGroup(name, retry_max_times=1, attributes=attributes))
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert says in answer.remark
    assert broker.groups.get("known") == SubscriptionGroup("known")
    assert broker.groups.get("new") is None

"""Settings of a running broker, read and changed by RocketMQ's names, as mqadmin does."""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from functools import partial

import pytest

from seglog.broker.handlers.configs import MOST_BYTES
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.settings.java_keys import CHANGEABLE, OPENED_WITH, read_changes, shown
from seglog.broker.settings.live_config import Lent
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError
from seglog.remoting.admin_headers import ConfigVersionResponseHeader
from seglog.remoting.bodies import TopicRouteBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body, expect_header
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.config.java_properties import java_properties_text, parse_java_properties
from tests.support.asks import bodies_of, route_of
from tests.support.brokers import open_broker, pull, send

START_MS = 1_700_000_000_000


@pytest.fixture
def clock():
    return VirtualClock(START_MS)


def update(broker, text, code=RequestCode.UPDATE_BROKER_CONFIG):
    return broker.dispatch(Request(code, body=text.encode()))


def settings_of(broker, code=RequestCode.GET_BROKER_CONFIG):
    answer = broker.dispatch(Request(code))
    assert answer.code is ResponseCode.SUCCESS
    return parse_java_properties(answer.body)


def test_settings_are_shown_by_rocketmqs_names(broker, tmp_path):
    found = settings_of(broker)
    assert found["brokerName"] == "broker-a"
    assert (found["brokerIP1"], found["listenPort"]) == ("127.0.0.1", "10911")
    assert (found["deleteWhen"], found["fileReservedTime"]) == ("04", "2147483647")
    assert (found["brokerId"], found["brokerRole"], found["flushDiskType"]) == (
        "0",
        "ASYNC_MASTER",
        "ASYNC_FLUSH",
    )
    assert found["storePathRootDir"] == str(tmp_path / "store")
    assert found["autoCreateTopicEnable"] == "true"
    assert {*CHANGEABLE, *OPENED_WITH} <= set(found)


def test_each_setting_that_can_be_changed_is_shown_as_it_can_be_set():
    config = BrokerConfig()
    names = {field.name for field in fields(BrokerConfig)}
    for name, key in CHANGEABLE.items():
        assert key.attribute in names
        assert read_changes({name: shown(config)[name]}) == {key.attribute: getattr(config, key.attribute)}


def test_a_change_is_seen_at_once_and_has_a_version(broker, clock):
    def version():
        answer = broker.dispatch(Request(RequestCode.GET_BROKER_CONFIG))
        return json.loads(expect_header(answer, ConfigVersionResponseHeader).version)

    assert version() == {"counter": 0, "stateVersion": 0, "timestamp": START_MS}
    clock.advance(1_000)
    answer = update(broker, "# by mqadmin\nfileReservedTime=48\ndeleteWhen=4;16\n")
    assert answer.code is ResponseCode.SUCCESS
    assert version() == {"counter": 1, "stateVersion": 0, "timestamp": START_MS + 1_000}
    assert (broker.config.retention_hours, broker.config.retention_delete_hours) == (48, (4, 16))
    found = settings_of(broker)
    assert (found["fileReservedTime"], found["deleteWhen"]) == ("48", "04;16")


def test_changes_hold_where_they_are_looked_at(broker):
    for _ in range(5):
        send(broker, "T")
    assert send(broker, "New").code is ResponseCode.SUCCESS
    update(broker, "autoCreateTopicEnable=false\nmaxTransferCountOnMessageInMemory=2")
    assert send(broker, "Newer").code is ResponseCode.TOPIC_NOT_EXIST
    broker.groups.put(SubscriptionGroup("cg"))
    assert len(bodies_of(pull(broker, "T"))) == 2
    assert broker.groups.find("known") is not None
    update(broker, "autoCreateSubscriptionGroup=false")
    assert broker.groups.find("unknown") is None
    update(broker, "autoCreateSubscriptionGroup=true")
    assert broker.groups.find("unknown") is not None


def test_permission_of_the_broker_bounds_what_routes_say(broker):
    send(broker, "T")

    def perm():
        (queue,) = expect_body(broker.dispatch(route_of("T")), TopicRouteBody).queues
        return queue.perm

    assert perm() == 6
    update(broker, "brokerPermission=4")
    assert perm() == 4
    update(broker, "brokerPermission=2")
    assert perm() == 2
    assert pull(broker, "T").code is ResponseCode.NO_PERMISSION
    update(broker, "brokerPermission=6")
    assert perm() == 6


def test_files_go_by_new_ages(tmp_path, clock):
    with open_broker(tmp_path / "store", clock) as broker:
        while broker.store.max_phy_offset < 2 << 20:
            send(broker, "T", b"x" * 60_000)
        update(broker, "fileReservedTime=1\ndeleteWhen=" + ";".join(map(str, range(24))))
        broker.advance("3h")
        assert broker.store.min_phy_offset > 0


@pytest.mark.parametrize(
    "text",
    [
        "brokerConfigPath=/etc/passwd",
        "rocketmqHome=/tmp",
        "configBlackList=",
        "fileReservedTime=48\nconfigBlackList=x",
        "storePathRootDir=/tmp",
        "storePathCommitLog=/tmp",
        "aclFilePath=/tmp",
        "someDir=/tmp",
    ],
)
def test_paths_and_the_black_list_are_not_changed(broker, text):
    before = settings_of(broker)
    answer = update(broker, text)
    assert (answer.code, answer.remark) == (
        ResponseCode.NO_PERMISSION,
        "Can not update config in black list.",
    )
    assert settings_of(broker) == before


@pytest.mark.parametrize(
    "text",
    [
        "fileReservedTime=soon",
        "fileReservedTime=-1",
        "fileReservedTime=",
        "deleteWhen=24",
        "deleteWhen=",
        "autoCreateTopicEnable=yes",
        "maxTransferBytesOnMessageInMemory=0",
        "fileReservedTime=48\nlongPollingEnable=2",
        f"fileReservedTime={'9' * 5000}",
    ],
)
def test_a_value_that_is_none_of_its_setting_changes_nothing(broker, text):
    before = settings_of(broker)
    answer = update(broker, text)
    assert answer.code is ResponseCode.INVALID_PARAMETER
    assert len(answer.remark) < 300
    assert settings_of(broker) == before


def test_settings_that_are_lent_are_shown_and_changed_for_as_long_as_they_are_lent(broker):
    """Of several lenders the first is shown, and all are changed."""
    name, values = "waitTimeMillsInSendQueue", [1_000, 2_000]
    take_back = [
        broker.settings.lend(name, Lent(partial(values.__getitem__, at), partial(values.__setitem__, at)))
        for at in range(2)
    ]
    assert settings_of(broker)[name] == "1000"
    for wrong in ("0", "soon", "-1"):
        answer = update(broker, f"fileReservedTime=48\n{name}={wrong}")
        assert (answer.code, answer.remark.partition("=")[0]) == (ResponseCode.INVALID_PARAMETER, name)
    assert settings_of(broker)["fileReservedTime"] == "2147483647"
    assert update(broker, f"{name}=200").code is ResponseCode.SUCCESS
    assert values == [200, 200]
    take_back[0]()
    values[1] = 300
    assert settings_of(broker)[name] == "300"
    take_back[1]()
    assert name not in settings_of(broker)
    assert update(broker, f"{name}=400").code is ResponseCode.SUCCESS
    assert values == [200, 300]


def test_what_has_no_effect_is_logged_and_succeeds(broker, caplog):
    before = settings_of(broker)
    with caplog.at_level(logging.INFO, "seglog.broker.handlers.configs"):
        answer = update(broker, "flushDelayOffsetInterval=9999\nbrokerName=other\nlongPollingEnable=false")
    assert answer.code is ResponseCode.SUCCESS
    assert [record.getMessage().split(" ", 1)[1] for record in caplog.records] == [
        "sets longPollingEnable=false",
        "sets what changes nothing here: brokerName, flushDelayOffsetInterval",
    ]
    assert settings_of(broker) == before | {"longPollingEnable": "false"}


def test_what_has_no_effect_is_logged_once(broker, caplog):
    with caplog.at_level(logging.INFO, "seglog.broker.handlers.configs"):
        for body in ("brokerName=a", "brokerName=b", "brokerName=b\nnamesrvAddr=c"):
            assert update(broker, body).code is ResponseCode.SUCCESS
    assert [record.getMessage().split(" ", 1)[1] for record in caplog.records] == [
        "sets what changes nothing here: brokerName",
        "sets what changes nothing here: namesrvAddr",
    ]


def test_what_is_logged_of_settings_is_one_line_of_bounded_length_and_acts_on_no_terminal(broker, caplog):
    with caplog.at_level(logging.INFO, "seglog.broker.handlers.configs"):
        update(broker, "a\\u001b[2Jb=1\\n\n" + "\n".join(f"{number}key=1" for number in range(2_000)))
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.isprintable()
    assert len(line) < 1_200
    assert line.endswith("... (2001 in all)")


def test_a_body_that_is_no_text_is_refused_and_none_changes_nothing(broker):
    answer = broker.dispatch(Request(RequestCode.UPDATE_BROKER_CONFIG, body=b"\xff\xfe"))
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "string2Properties error")
    assert broker.dispatch(Request(RequestCode.UPDATE_BROKER_CONFIG)).code is ResponseCode.SUCCESS


def test_the_name_server_shows_settings_and_has_none_to_change(broker, tmp_path):
    get, change = RequestCode.GET_NAMESRV_CONFIG, RequestCode.UPDATE_NAMESRV_CONFIG
    before = settings_of(broker, get)
    assert before["kvConfigPath"] == str(tmp_path / "store/seglog/kvConfig.json")
    assert before["orderMessageEnable"] == "false"
    assert update(broker, "orderMessageEnable=true", change).code is ResponseCode.SUCCESS
    for text in ("kvConfigPath=/tmp/x", "configStorePath=/tmp/x", "rocketmqHome=/", "configBlackList=a"):
        assert update(broker, text, change).code is ResponseCode.NO_PERMISSION
    assert settings_of(broker, get) == before


def test_settings_of_one_broker_are_not_those_of_another(tmp_path):
    config = BrokerConfig()
    with (
        open_broker(tmp_path / "a", config=config) as first,
        open_broker(tmp_path / "b", config=config) as second,
    ):
        update(first, "fileReservedTime=1")
        assert (first.config.retention_hours, second.config.retention_hours) == (1, None)
    assert config.retention_hours is None


@pytest.mark.parametrize("value", ["", "plain", "a\\b", "two\nlines", "cr\rlf", "\\n", "ü = :", "x\\"])
def test_settings_are_read_back_as_they_were_written(value):
    assert parse_java_properties(java_properties_text({"k": value, "l": "2"}).encode()) == {
        "k": value,
        "l": "2",
    }


def test_an_error_names_the_setting():
    with pytest.raises(InvalidArgumentError, match="fileReservedTime='x' is not valid"):
        read_changes({"fileReservedTime": "x"})


@pytest.mark.parametrize("code", [RequestCode.UPDATE_BROKER_CONFIG, RequestCode.UPDATE_NAMESRV_CONFIG])
def test_a_change_that_is_too_long_is_refused(broker, code):
    before = settings_of(broker)
    text = "fileReservedTime=49\n#"
    answer = update(broker, text.ljust(MOST_BYTES + 1, "x"), code)
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert answer.remark == f"a body of settings has {MOST_BYTES + 1} bytes, at most {MOST_BYTES}"
    assert settings_of(broker) == before
    assert update(broker, text.ljust(MOST_BYTES, "x"), code).code is ResponseCode.SUCCESS

"""Filters of groups live with their heartbeats, and a day longer, in RocketMQ's own file."""

from __future__ import annotations

import json

import pytest

from seglog.broker.filters.bloom import bit_positions, murmur3_low
from seglog.broker.filters.consumer_filters import ConsumerFilters
from seglog.clock import VirtualClock
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.files.files import RealFiles
from seglog.storage.small_files.config_file import ConfigFile
from tests.support.material import golden

DAY_MS = 24 * 3_600_000


def sql(topic, expression, version=1):
    return SubscriptionData(topic, expression, version, "SQL92")


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "consumerFilter.json"


@pytest.fixture
def filters(path, clock):
    return ConsumerFilters(ConfigFile(RealFiles(), path), clock)


def reopened(path, clock):
    return ConsumerFilters(ConfigFile(RealFiles(), path), clock)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"hello", 0xCBD8A7B341BD9B02),
        (b"The quick brown fox jumps over the lazy dog", 0xE34BBC7BBC071B6C),
    ],
)
def test_murmur3_is_that_of_others(data, expected):
    assert murmur3_low(data) == expected


def test_the_bits_of_a_filter_are_those_that_rocketmq_stored():
    assert bit_positions("cgsql", "LiveTopic") == (54, 41, 28)


def test_a_filter_is_alive_while_its_group_subscribes_to_the_topic(filters, clock):
    filters.register("g", [sql("T", "a = 1"), sql("U", "b = 2"), SubscriptionData("V")])
    assert [(one.topic, one.is_dead) for one in filters.all()] == [("T", False), ("U", False)]
    clock.advance(1)
    filters.register("g", [sql("T", "a = 1")])
    assert [one.is_dead for one in filters.all()] == [False, True]
    filters.register("other", [sql("T", "c = 3")])
    filters.unregister("g")
    assert filters.get("g", "T").is_dead
    assert not filters.get("other", "T").is_dead


def test_a_newer_version_replaces_a_filter_and_an_older_one_does_not(filters):
    for version, expression in ((5, "a = 5"), (4, "a = 4"), (5, "b = 5"), (6, "a = 6")):
        filters.register("g", [sql("T", expression, version)])
        assert filters.get("g", "T").expression == {5: "a = 5", 4: "a = 5", 6: "a = 6"}[version]


def test_a_group_that_comes_back_finds_its_filter_alive_and_as_old_as_it_was(filters, clock):
    filters.register("g", [sql("T", "a = 1", 5)])
    born_ms = filters.get("g", "T").born_ms
    for version, is_dead in ((4, True), (5, False), (6, False)):
        clock.advance(1_000)
        filters.unregister("g")
        filters.register("g", [sql("T", "a = 1", version)])
        one = filters.get("g", "T")
        assert (one.is_dead, one.born_ms, one.version) == (is_dead, born_ms, max(5, version))


@pytest.mark.parametrize("wrong", [sql("T", "a =", 2), SubscriptionData("T", "x", 2, "GROOVY")])
def test_an_expression_that_is_none_is_not_kept_and_takes_the_older_one_away(filters, wrong):
    filters.register("g", [wrong])
    assert filters.get("g", "T") is None
    filters.register("h", [sql("T", "a = 1")])
    filters.register("h", [wrong])
    assert filters.get("h", "T") is None


def test_the_file_is_what_a_java_broker_writes(filters, path, clock, stored_by_java):
    filters.register("cgsql", [sql("LiveTopic", "TAGS = 'TagB'", 9)])
    assert filters.is_dirty
    filters.persist()
    assert not filters.is_dirty
    ours = json.loads(path.read_text())
    (theirs,) = json.loads(stored_by_java)["filterDataByTopic"].values()
    (one,) = ours["filterDataByTopic"].values()
    assert one["topic"] == theirs["topic"] == "LiveTopic"
    mine, other = one["groupFilterData"]["cgsql"], theirs["groupFilterData"]["cgsql"]
    assert list(mine) == list(other)
    for name in ("bloomFilterData", "consumerGroup", "expression", "expressionType", "topic"):
        assert mine[name] == other[name]
    assert (mine["bornTime"], mine["deadTime"], mine["dead"]) == (clock.now_ms(), 0, False)


@pytest.fixture(scope="module")
def stored_by_java(tmp_path_factory):
    root = golden.extract("broker-store", tmp_path_factory.mktemp("golden"))
    return (root / "config" / "consumerFilter.json").read_text()


def test_what_java_stored_is_read_and_written_back_as_it_was(path, clock, stored_by_java):
    path.write_text(stored_by_java)
    filters = reopened(path, clock)
    assert filters.get("cgsql", "LiveTopic").is_dead
    filters._is_changed = True
    filters.persist()
    assert json.loads(path.read_text()) == json.loads(stored_by_java)


def test_all_groups_are_taken_to_have_gone_before_an_open(filters, path, clock):
    filters.register("old", [sql("T", "a = 1")])
    clock.advance(60_000)
    filters.register("new", [sql("T", "a = 1")])
    filters.persist()
    again = reopened(path, clock)
    now_ms = clock.now_ms()
    assert again.get("old", "T").dead_ms == now_ms - 30_000
    assert again.get("new", "T").dead_ms == again.get("new", "T").born_ms == now_ms


def test_a_filter_that_has_been_dead_for_a_day_is_forgotten(filters, path, clock):
    filters.register("g", [sql("T", "a = 1")])
    filters.register("h", [sql("U", "a = 1")])
    filters.unregister("g")
    filters.persist()
    clock.advance(DAY_MS - 1)
    assert not filters.is_dirty
    clock.advance(1)
    assert filters.is_dirty
    filters.persist()
    assert set(json.loads(path.read_text())["filterDataByTopic"]) == {"U"}
    assert [one.group for one in filters.all()] == ["h"]


def test_fields_of_later_versions_survive(path, clock, stored_by_java):
    value = json.loads(stored_by_java)
    value["later"] = 1
    value["filterDataByTopic"]["LiveTopic"]["groupFilterData"]["cgsql"]["more"] = [2]
    path.write_text(json.dumps(value))
    filters = reopened(path, clock)
    filters.register("g", [sql("T", "a = 1")])
    filters.persist()
    after = json.loads(path.read_text())
    assert after["later"] == 1
    assert after["filterDataByTopic"]["LiveTopic"]["groupFilterData"]["cgsql"]["more"] == [2]

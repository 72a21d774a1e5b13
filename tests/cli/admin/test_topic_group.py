"""``seglog topic`` and ``seglog group``: a broker's tables, changed as it would change them."""

from __future__ import annotations

import shlex
from typing import Final

import pytest

from seglog.broker.broker import Broker
from seglog.errors import InvalidArgumentError, InvalidNameError, NotFoundError, StoreLockedError
from seglog.remoting.subscription_group import SubscriptionGroup
from tests.support.brokers import open_broker, pull, send
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.config_files import read_config
from tests.support.rows import every_row


@pytest.fixture
def store(tmp_path):
    with open_broker(tmp_path / "s") as broker:
        send(broker, "T")
        pull(broker, "T")
        broker.offsets.commit("cg", "T", 0, 1)
        broker.offsets.commit("bare", "T", 0, 1)
    return tmp_path / "s"


def listed(seglog, kind, store):
    return {line[kind]: line for line in seglog(kind, "ls", store, "--json").lines}


def test_topics_are_listed_with_settings_and_messages(seglog: Seglog, store):
    topics = listed(seglog, "topic", store)
    assert (topics["T"]["writeQueues"], topics["T"]["perm"], topics["T"]["messages"]) == (4, 6, 1)
    assert "RW-" in seglog("topic", "ls", store).stdout


def test_topics_of_a_store_without_a_broker_are_listed_too(seglog: Seglog, tmp_path):
    golden.extract("roll", tmp_path)
    topics = listed(seglog, "topic", tmp_path / "roll")
    assert topics["TopicA"]["messages"] > 0
    assert not topics["TopicA"]["hasSettings"]
    assert "no groups" in seglog("group", "ls", tmp_path / "roll").stdout


def test_a_created_topic_is_there_for_a_broker_and_can_be_altered(seglog: Seglog, store):
    created = seglog(
        "topic",
        "create",
        store,
        "N",
        "--queues",
        3,
        "--order",
        "--attributes",
        "+message.type=FIFO",
        "--json",
    )
    assert created.lines[0]["kind"] == "topic-created"
    changes = "-message.type,+reserve.time=5"
    assert (
        seglog("topic", "alter", store, "N", "--perm", "r", "--attributes", changes, "--apply").exit_code == 0
    )
    with open_broker(store) as broker:
        topic = broker.topics.get("N")
    assert topic is not None
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm, topic.is_order) == (3, 3, 4, True)
    assert topic.attributes == {"reserve.time": "5"}


def test_a_topic_without_messages_is_deleted_with_the_offsets_in_it(seglog: Seglog, store):
    seglog("topic", "create", store, "N")
    with open_broker(store) as broker:
        broker.offsets.commit("cg", "N", 0, 0)
    assert seglog("topic", "delete", store, "N", "--apply", "--json").lines[0]["offsets"] == 1
    assert "N" not in listed(seglog, "topic", store)
    with open_broker(store) as broker:
        assert broker.topics.get("N") is None
        assert broker.offsets.of_group("cg") == {("T", 0): 1}


def test_groups_are_listed_those_too_that_only_have_offsets(seglog: Seglog, store):
    groups = listed(seglog, "group", store)
    assert (groups["cg"]["retryMaxTimes"], groups["cg"]["offsets"]) == (16, 1)
    assert (groups["bare"]["hasSettings"], groups["bare"]["offsets"]) == (False, 1)
    assert "no settings" in seglog("group", "ls", store).stdout


def test_a_created_group_is_there_for_a_broker_and_can_be_altered(seglog: Seglog, store):
    assert seglog("group", "create", store, "g", "--retries", 3, "--no-consume").exit_code == 0
    altered = seglog(
        "group",
        "alter",
        store,
        "g",
        "--consume",
        "--retry-queues",
        2,
        "--attributes",
        "+priority.factor=7",
        "--apply",
    )
    assert "g is altered: 3 retries, 2 retry queues, priority.factor=7" in altered.stdout
    with open_broker(store) as broker:
        assert broker.groups.get("g") == SubscriptionGroup(
            "g", retry_max_times=3, retry_queue_nums=2, attributes={"priority.factor": "7"}
        )


def test_a_deleted_group_keeps_its_offsets_unless_told_and_history_brings_them_back(seglog: Seglog, store):
    assert seglog("group", "delete", store, "cg", "--apply", "--json").lines[0]["offsets"] == 0
    assert not listed(seglog, "group", store)["cg"]["hasSettings"]
    seglog("group", "create", store, "cg")
    before_ms = seglog("offsets", "log", store, "cg", "--json").lines[-1]["timestamp"]
    assert seglog("group", "delete", store, "cg", "--offsets", "--apply", "--json").lines[0]["offsets"] == 1
    assert "cg" not in listed(seglog, "group", store)
    (deleted,) = seglog("offsets", "blame", store, "cg", "--json").lines
    assert (deleted["change"], deleted["client"]) == ("delete", "seglog group delete")
    assert seglog("offsets", "restore", store, "cg", "--at", before_ms, "--apply").exit_code == 0
    assert listed(seglog, "group", store)["cg"]["offsets"] == 1


def test_tables_of_a_real_broker_lose_nothing(seglog: Seglog, tmp_path):
    store = golden.extract("real-conf", tmp_path)
    config = store / "config"
    before = {name: read_config(config / name) for name in ("topics.json", "subscriptionGroup.json")}
    assert seglog("topic", "create", store, "New").exit_code == 0
    assert seglog("group", "create", store, "new").exit_code == 0
    topics = read_config(config / "topics.json")["topicConfigTable"]
    groups = read_config(config / "subscriptionGroup.json")["subscriptionGroupTable"]
    assert (topics.pop("New")["writeQueueNums"], groups.pop("new")["retryMaxTimes"]) == (8, 16)
    assert topics == before["topics.json"]["topicConfigTable"]
    assert groups == before["subscriptionGroup.json"]["subscriptionGroupTable"]
    assert read_config(config / "topics.json.bak") == before["topics.json"]


REFUSED: Final = {
    "topic create T": InvalidArgumentError,
    "topic create 'a b'": InvalidNameError,
    "topic create rmq_sys_x": InvalidNameError,
    "topic create N --attributes a=b": InvalidArgumentError,
    "topic alter absent": NotFoundError,
    "topic delete absent": NotFoundError,
    "topic delete T": InvalidArgumentError,
    "topic delete TBW102": InvalidArgumentError,
    "group create cg": InvalidArgumentError,
    "group create 'a b'": InvalidNameError,
    "group alter absent": NotFoundError,
    "group delete absent": NotFoundError,
    "group delete TOOLS_CONSUMER": InvalidArgumentError,
}


def test_what_cannot_be_done_changes_nothing(seglog: Seglog, store):
    before = golden.file_digest(store)
    with every_row() as row:
        for line, error in REFUSED.items():
            with row(line):
                kind, verb, *rest = shlex.split(line)
                apply = [] if verb == "create" else ["--apply"]
                assert seglog(kind, verb, store, *rest, *apply).exit_code == error.exit_code
                assert golden.file_digest(store) == before


def test_changes_are_refused_while_a_broker_has_the_store(seglog: Seglog, store):
    with Broker.open(store, background=False):
        assert "T" in listed(seglog, "topic", store)
        for kind in ("topic", "group"):
            ran = seglog(kind, "create", store, "new")
            assert ran.exit_code == StoreLockedError.exit_code


@pytest.mark.parametrize("kind", ["topic", "group"])
@pytest.mark.parametrize("is_there", [False, True])
def test_finding_u21_what_is_created_first_makes_the_store(seglog: Seglog, tmp_path, kind, is_there):
    new = tmp_path / "new"
    if is_there:
        new.mkdir()
    assert seglog(kind, "create", new, "orders").exit_code == 0
    assert "orders" in listed(seglog, kind, new)
    with open_broker(new) as broker:
        assert (broker.topics if kind == "topic" else broker.groups).get("orders") is not None


@pytest.mark.parametrize("kind", ["topic", "group"])
def test_finding_u21_a_name_that_is_none_makes_no_store(seglog: Seglog, tmp_path, kind):
    assert seglog(kind, "create", tmp_path / "new", "a b").exit_code == InvalidNameError.exit_code
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("kind", "verb"), [("topic", "create"), ("group", "create"), ("topic", "alter")])
def test_finding_u21_an_address_is_no_store(seglog: Seglog, tmp_path, monkeypatch, kind, verb):
    monkeypatch.chdir(tmp_path)
    ran = seglog(kind, verb, "127.0.0.1:9876", "orders")
    assert ran.exit_code == NotFoundError.exit_code
    assert "mqadmin: -b 127.0.0.1:9876" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dlq", "show", "s", "g"], "a group is named with --group"),
        (["offsets", "reset", "s", "g", "t", "--to", "first"], "--start and --end"),
    ],
)
def test_finding_u21_what_is_given_otherwise_elsewhere_is_named(seglog: Seglog, arguments, words):
    ran = seglog(*arguments)
    assert ran.exit_code == 2
    assert words in ran.stderr

"""The broker is its own name server: clusters, topics, values by key, and who may be written to."""

from __future__ import annotations

import json

import pytest

from seglog.broker.settings.config import BrokerConfig
from seglog.clock import VirtualClock
from seglog.errors import ConfigError
from seglog.remoting.admin_bodies import ClusterBody, KeyValuesBody, NamesBody
from seglog.remoting.admin_headers import (
    AddedResponseHeader,
    BrokerNameHeader,
    ClusterHeader,
    DeleteTopicHeader,
    KeyHeader,
    KeyValueHeader,
    NameServerTopicHeader,
    NamespaceHeader,
    ValueResponseHeader,
    WipedResponseHeader,
)
from seglog.remoting.bodies import BrokerData, TopicRouteBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import NO_HEADER, Request, expect_body
from seglog.remoting.headers import CreateTopicHeader
from seglog.storage.threads import WouldWaitError, without_waiting
from tests.support.asks import route_of
from tests.support.brokers import ask, open_broker, send


@pytest.fixture
def broker(tmp_path):
    config = BrokerConfig(cluster_name="c", broker_name="b", address="127.0.0.1:9999")
    with open_broker(tmp_path / "store", VirtualClock(), config) as opened:
        yield opened


def names_of(broker, code, header=NO_HEADER):
    return expect_body(ask(broker, code, header), NamesBody)


def test_the_cluster_is_this_broker(broker):
    answer = ask(broker, RequestCode.GET_BROKER_CLUSTER_INFO)
    data = BrokerData("c", "b", {0: "127.0.0.1:9999"})
    assert (answer.code, answer.body) == (
        ResponseCode.SUCCESS,
        ClusterBody({"b": data}, {"c": frozenset(("b",))}),
    )


def test_all_topics_are_named_as_one_list_and_by_cluster(broker):
    send(broker, "T")
    names = names_of(broker, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    assert {"T", "TBW102", "SCHEDULE_TOPIC_XXXX"} <= names.names
    assert names.names == {topic.name for topic in broker.topics.all()}
    assert names_of(broker, RequestCode.GET_TOPICS_BY_CLUSTER, ClusterHeader("c")) == names
    other = names_of(broker, RequestCode.GET_TOPICS_BY_CLUSTER, ClusterHeader("other"))
    assert other == NamesBody(frozenset())


def test_system_topics_are_named_with_a_broker_that_has_more(broker):
    names = names_of(broker, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
    assert names == NamesBody(frozenset(("c", "b")), "127.0.0.1:9999")


def test_a_topic_is_gone_from_the_name_server_once_the_broker_has_deleted_it(broker):
    send(broker, "T")
    for cluster in (None, "c"):
        answer = ask(broker, RequestCode.DELETE_TOPIC_IN_NAMESRV, NameServerTopicHeader("T", cluster))
        assert answer.code is ResponseCode.SUCCESS
    assert broker.dispatch(route_of("T")).code is ResponseCode.SUCCESS
    ask(broker, RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicHeader("T"))
    assert ask(broker, RequestCode.DELETE_TOPIC_IN_NAMESRV, NameServerTopicHeader("T")).code is (
        ResponseCode.SUCCESS
    )
    assert broker.dispatch(route_of("T")).code is ResponseCode.TOPIC_NOT_EXIST


# -------------------------------------------------------------------------------- permission to write


def perm_of(broker, topic):
    (queue,) = expect_body(broker.dispatch(route_of(topic)), TopicRouteBody).queues
    return queue.perm


def test_routes_say_that_a_broker_takes_no_messages_until_that_is_taken_back(broker):
    send(broker, "T")
    for name, perm in (("ReadOnly", 4), ("WriteOnly", 2)):
        header = CreateTopicHeader(name, "TBW102", 1, 1, perm)
        ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    count = len(broker.topics.all())
    wiped = ask(broker, RequestCode.WIPE_WRITE_PERM_OF_BROKER, BrokerNameHeader("b"))
    assert (wiped.code, wiped.header) == (ResponseCode.SUCCESS, WipedResponseHeader(count))
    assert [perm_of(broker, name) for name in ("T", "ReadOnly", "WriteOnly", "TBW102")] == [4, 4, 0, 5]
    assert send(broker, "T").code is ResponseCode.SUCCESS  # who has an old route is not turned away
    send(broker, "Later")
    assert perm_of(broker, "Later") == 4
    added = ask(broker, RequestCode.ADD_WRITE_PERM_OF_BROKER, BrokerNameHeader("b"))
    assert (added.code, added.header) == (ResponseCode.SUCCESS, AddedResponseHeader(count + 1))
    assert [perm_of(broker, name) for name in ("T", "ReadOnly", "WriteOnly", "TBW102")] == [6, 4, 2, 7]


def test_nothing_is_taken_from_a_broker_that_is_not_known(broker):
    send(broker, "T")
    wiped = ask(broker, RequestCode.WIPE_WRITE_PERM_OF_BROKER, BrokerNameHeader("other"))
    assert (wiped.code, wiped.header) == (ResponseCode.SUCCESS, WipedResponseHeader(0))
    assert perm_of(broker, "T") == 6
    ask(broker, RequestCode.WIPE_WRITE_PERM_OF_BROKER, BrokerNameHeader("b"))
    added = ask(broker, RequestCode.ADD_WRITE_PERM_OF_BROKER, BrokerNameHeader("other"))
    assert (added.code, added.header) == (ResponseCode.SUCCESS, AddedResponseHeader(0))
    assert perm_of(broker, "T") == 4


# -------------------------------------------------------------------------------------- values by key


def put(broker, namespace, key, value):
    answer = ask(broker, RequestCode.PUT_KV_CONFIG, KeyValueHeader(namespace, key, value))
    assert answer.code is ResponseCode.SUCCESS


def test_values_are_kept_over_a_restart(broker, tmp_path):
    put(broker, "ORDER_TOPIC_CONFIG", "T", "b:2")
    put(broker, "ORDER_TOPIC_CONFIG", "U", "b:4")
    put(broker, "ORDER_TOPIC_CONFIG", "T", "b:3")
    put(broker, "n", "k", "ü")
    assert ask(broker, RequestCode.DELETE_KV_CONFIG, KeyHeader("ORDER_TOPIC_CONFIG", "U")).code is (
        ResponseCode.SUCCESS
    )
    broker.close()
    stored = json.loads((tmp_path / "store/seglog/kvConfig.json").read_text())
    assert stored == {"configTable": {"ORDER_TOPIC_CONFIG": {"T": "b:3"}, "n": {"k": "ü"}}}
    with open_broker(tmp_path / "store") as again:
        answer = ask(again, RequestCode.GET_KV_CONFIG, KeyHeader("ORDER_TOPIC_CONFIG", "T"))
        assert (answer.code, answer.header) == (ResponseCode.SUCCESS, ValueResponseHeader("b:3"))
        values = ask(again, RequestCode.GET_KVLIST_BY_NAMESPACE, NamespaceHeader("n"))
        assert (values.code, values.body) == (ResponseCode.SUCCESS, KeyValuesBody({"k": "ü"}))


def test_a_value_that_is_not_there_is_not_found(broker):
    put(broker, "n", "k", "v")
    for namespace, key in (("n", "other"), ("other", "k")):
        answer = ask(broker, RequestCode.GET_KV_CONFIG, KeyHeader(namespace, key))
        assert answer.code is ResponseCode.QUERY_NOT_FOUND
        assert answer.remark == f"No config item, Namespace: {namespace} Key: {key}"
    answer = ask(broker, RequestCode.GET_KVLIST_BY_NAMESPACE, NamespaceHeader("other"))
    assert (answer.code, answer.remark) == (
        ResponseCode.QUERY_NOT_FOUND,
        "No config item, Namespace: other",
    )


def test_a_namespace_stays_when_its_last_value_goes(broker):
    put(broker, "n", "k", "v")
    for namespace, key in (("n", "k"), ("n", "k"), ("other", "k")):
        answer = ask(broker, RequestCode.DELETE_KV_CONFIG, KeyHeader(namespace, key))
        assert answer.code is ResponseCode.SUCCESS
    assert ask(broker, RequestCode.GET_KVLIST_BY_NAMESPACE, NamespaceHeader("n")).body == KeyValuesBody({})


@pytest.mark.parametrize("text", ["{", '{"configTable": []}'])
def test_a_damaged_file_of_values_is_taken_from_its_backup_or_refused(broker, tmp_path, text):
    put(broker, "n", "k", "old")
    put(broker, "n", "k", "new")
    broker.close()
    file = tmp_path / "store/seglog/kvConfig.json"
    file.write_text(text)
    with open_broker(tmp_path / "store") as again:
        found = ask(again, RequestCode.GET_KV_CONFIG, KeyHeader("n", "k"))
        assert found.header == ValueResponseHeader("old")
    file.write_text(text)
    file.with_name("kvConfig.json.bak").write_text(text)
    with pytest.raises(ConfigError, match=r"kvConfig\.json"):
        open_broker(tmp_path / "store")


def test_a_value_is_not_changed_by_a_thread_that_may_not_wait(broker):
    put(broker, "n", "k", "v")
    for request in (
        Request(RequestCode.PUT_KV_CONFIG, KeyValueHeader("n", "k", "other")),
        Request(RequestCode.DELETE_KV_CONFIG, KeyHeader("n", "k")),
    ):
        with without_waiting(), pytest.raises(WouldWaitError):
            broker.dispatch(request)
    assert ask(broker, RequestCode.GET_KV_CONFIG, KeyHeader("n", "k")).header == ValueResponseHeader("v")

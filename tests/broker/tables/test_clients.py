"""A broker knows its clients by their heartbeats, and notifies those of a group when one comes or goes."""

from __future__ import annotations

import json
import logging

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.clock import VirtualClock
from seglog.remoting.bodies import LockBatchBody
from seglog.remoting.client_headers import (
    ConsumerGroupHeader,
    GroupForbiddenHeader,
    ProducerGroupHeader,
    UnregisterClientHeader,
)
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.headers import PullMessageHeader, UpdateConsumerOffsetHeader
from seglog.remoting.heartbeat import (
    ConsumerConnectionsBody,
    ConsumerData,
    ConsumerListBody,
    ConsumeType,
    HeartbeatBody,
    MessageModel,
    ProducerConnectionsBody,
)
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import LOCAL_PEER, Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from tests.support.brokers import open_broker, send
from tests.support.clients import GROUP, ToldClient
from tests.support.connections import QuietConnection
from tests.support.narrow import not_none

ALL_OF_T = SubscriptionData("T", "*", 1)


def members(broker, group=GROUP):
    return broker.dispatch(Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(group)))


def leave(client, **groups):
    header = UnregisterClientHeader(client.link.client_id, **groups)
    return client.link.invoke(Request(RequestCode.UNREGISTER_CLIENT, header))


def test_clients_are_listed_in_the_order_in_which_they_came(broker: Broker):
    for name in ("b", "a"):
        ToldClient(broker, name).beat(ALL_OF_T)
    assert members(broker).body == ConsumerListBody(("b", "a"))


def test_a_group_without_clients_is_no_empty_list(broker: Broker):
    answer = members(broker)
    assert (answer.code, answer.body) == (ResponseCode.SYSTEM_ERROR, None)
    assert answer.remark == "no consumer for this group, cg"


def test_the_first_heartbeat_makes_the_group_and_its_retry_topic(broker: Broker):
    ToldClient(broker, "a").beat(ALL_OF_T)
    assert broker.groups.get(GROUP) == SubscriptionGroup(GROUP)
    assert broker.topics.get("%RETRY%cg") == TopicConfig("%RETRY%cg", 1, 1)


def test_the_retry_topic_of_a_group_that_is_there_is_made_as_well(broker: Broker):
    broker.groups.put(SubscriptionGroup(GROUP, retry_queue_nums=3))
    ToldClient(broker, "a").beat(ALL_OF_T, is_unit_mode=True)
    assert broker.topics.get("%RETRY%cg") == TopicConfig("%RETRY%cg", 3, 3, sys_flag=2)


def test_the_retry_topic_has_an_order_if_a_topic_of_the_group_has_one(broker: Broker):
    ToldClient(broker, "a").beat(ALL_OF_T)
    broker.topics.put(TopicConfig("T", 1, 1, is_order=True))
    ToldClient(broker, "b").beat(ALL_OF_T)
    assert not_none(broker.topics.get("%RETRY%cg")).is_order


def test_a_group_that_may_not_be_made_is_passed_over(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(auto_create_groups=False)) as broker:
        answer = ToldClient(broker, "a").beat(ALL_OF_T)
        assert answer.code is ResponseCode.SUCCESS
        assert broker.clients.consumers(GROUP) is None


def test_everyone_in_the_group_is_told_of_one_that_comes(broker: Broker):
    first, second, other = (ToldClient(broker, name) for name in "abc")
    first.beat(ALL_OF_T)
    assert first.told_groups == [GROUP]
    other.beat(ALL_OF_T, group="other")
    second.beat(ALL_OF_T)
    assert (first.told_groups, second.told_groups, other.told_groups) == ([GROUP], [GROUP], ["other"])


def test_nobody_is_told_of_a_heartbeat_that_says_nothing_new(broker: Broker):
    client = ToldClient(broker, "a")
    for version in (1, 1, 2):
        client.beat(SubscriptionData("T", "*", version))
    assert client.told_groups == [GROUP]


@pytest.mark.parametrize("subscriptions", [(), (ALL_OF_T, SubscriptionData("U"))])
def test_everyone_is_told_of_a_topic_that_comes_or_goes(broker: Broker, subscriptions):
    client = ToldClient(broker, "a")
    client.beat(ALL_OF_T)
    client.beat(*subscriptions)
    assert client.told_groups == [GROUP, GROUP]


def test_a_group_is_not_told_if_it_does_not_want_to_be_or_shares_nothing(broker: Broker):
    broker.groups.put(SubscriptionGroup("quiet", is_notified=False))
    client = ToldClient(broker, "a")
    client.beat(ALL_OF_T, group="quiet")
    client.beat(ALL_OF_T, message_model=MessageModel.BROADCASTING)
    leave(client, consumer_group="quiet")
    assert client.told_groups == []


def test_a_client_that_leaves_is_gone_and_the_rest_is_told(broker: Broker):
    first, second = ToldClient(broker, "a"), ToldClient(broker, "b")
    for client in (first, second):
        client.beat(ALL_OF_T)
    first.told.clear()
    second.told.clear()
    assert leave(second, consumer_group=GROUP).code is ResponseCode.SUCCESS
    assert members(broker).body == ConsumerListBody(("a",))
    assert (first.told_groups, second.told_groups) == ([GROUP], [])


def test_leaving_a_group_that_one_is_not_in_changes_nothing(broker: Broker):
    client, stranger = ToldClient(broker, "a"), ToldClient(broker, "b")
    client.beat(ALL_OF_T)
    leave(stranger, consumer_group=GROUP, producer_group="pg")
    assert members(broker).body == ConsumerListBody(("a",))


def test_a_connection_that_ends_takes_its_client_out_of_all_groups(broker: Broker):
    first, second = ToldClient(broker, "a"), ToldClient(broker, "b")
    for client in (first, second):
        client.beat(ALL_OF_T, producer_groups=("pg",))
        client.beat(ALL_OF_T, group="other")
    first.told.clear()
    second.link.close()
    assert first.told_groups == [GROUP, "other"]
    assert [client.client_id for client in broker.clients.producers("pg")] == ["a"]


def test_two_connections_are_two_clients_whatever_they_are_called(broker: Broker):
    for _ in range(2):
        ToldClient(broker, "same").beat(ALL_OF_T)
    assert members(broker).body == ConsumerListBody(("same", "same"))


def test_clients_without_a_connection_are_told_apart_by_their_names(broker: Broker):
    for name in ("a", "b", "a"):
        body = HeartbeatBody(name, consumers=(ConsumerData(GROUP, (ALL_OF_T,)),))
        broker.dispatch(Request(RequestCode.HEART_BEAT, body=body), LOCAL_PEER)
    assert members(broker).body == ConsumerListBody(("a", "b"))


def test_finding_10_of_the_broker_a_client_has_over_its_connection_the_id_of_its_heartbeat(tmp_path):
    config = BrokerConfig(strict_queue_lock=True)
    connection, other = (Peer(f"10.0.0.1:{port}", LOCAL_PEER.host, QuietConnection()) for port in (1, 2))
    with open_broker(tmp_path, config=config) as broker:
        send(broker, "T")
        for name, peer in (("billing@1", connection), ("billing@2", other)):
            body = HeartbeatBody(name, consumers=(ConsumerData(GROUP, (ALL_OF_T,)),))
            broker.dispatch(Request(RequestCode.HEART_BEAT, body=body), peer)
        queues = frozenset((MessageQueue("T", "broker-a", 0),))
        lock = Request(RequestCode.LOCK_BATCH_MQ, body=LockBatchBody(GROUP, "billing@1", queues))
        broker.dispatch(lock, connection)
        flags = int(PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET)
        header = PullMessageHeader(GROUP, "T", 0, 0, 32, flags, 1, 0, 0, "*")
        pull = Request(RequestCode.PULL_MESSAGE, header)
        assert broker.dispatch(pull, other).code is ResponseCode.NO_PERMISSION
        assert broker.dispatch(pull, connection).code is ResponseCode.SUCCESS
        commit = Request(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetHeader(GROUP, "T", 0, 0))
        broker.dispatch(commit, other)
        broker.persist()
        made = [(change.after, change.client_id) for change in broker.offset_past.log()]
        assert made == [(1, "billing@1"), (0, "billing@2")]


def test_a_client_that_is_silent_for_two_minutes_is_taken_out_by_the_next_scan(tmp_path):
    with open_broker(tmp_path, VirtualClock()) as broker:
        silent, heard = ToldClient(broker, "silent"), ToldClient(broker, "heard")
        silent.beat(ALL_OF_T, producer_groups=("pg",))
        for _ in range(4):
            heard.beat(ALL_OF_T)
            broker.advance("30s")
        assert members(broker).body == ConsumerListBody(("silent", "heard")), "120 s are not too long yet"
        heard.told.clear()
        broker.advance("10s")
        assert members(broker).body == ConsumerListBody(("heard",))
        assert heard.told_groups == [GROUP]
        assert broker.clients.producers("pg") == ()
        broker.advance("5m")
        assert broker.clients.is_empty


def test_a_newer_subscription_replaces_an_older_one_and_an_older_one_does_not(broker: Broker):
    client = ToldClient(broker, "a")
    for version, expression in ((5, "A"), (4, "B"), (5, "C"), (6, "D")):
        client.beat(SubscriptionData("T", expression, version))
        known = not_none(broker.clients.consumers(GROUP)).subscriptions["T"]
        assert known.expression == {5: "A", 4: "A", 6: "D"}[version]


def test_a_topic_that_a_heartbeat_leaves_out_is_no_longer_subscribed_to(broker: Broker):
    client = ToldClient(broker, "a")
    client.beat(ALL_OF_T, SubscriptionData("U"))
    client.beat(ALL_OF_T)
    assert set(not_none(broker.clients.consumers(GROUP)).subscriptions) == {"T"}


def test_a_heartbeat_without_subscriptions_leaves_them_as_they_are(broker: Broker):
    client, second = ToldClient(broker, "a"), ToldClient(broker, "b")
    client.beat(ALL_OF_T, fingerprint=7)
    client.beat(fingerprint=7, is_without_subscriptions=True)
    second.beat(fingerprint=7, is_without_subscriptions=True)
    group = not_none(broker.clients.consumers(GROUP))
    assert set(group.subscriptions) == {"T"}
    assert len(group.clients) == 2


def test_a_heartbeat_of_the_old_form_never_leaves_subscriptions_out(broker: Broker):
    client = ToldClient(broker, "a")
    client.beat(ALL_OF_T)
    client.beat(is_without_subscriptions=True)
    assert not_none(broker.clients.consumers(GROUP)).subscriptions == {}


def test_the_answer_says_whether_subscriptions_may_be_left_out(broker: Broker):
    client = ToldClient(broker, "a")
    answers = [not_none(client.beat(ALL_OF_T, fingerprint=number).ext) for number in (0, 7, 7, 8, 8, 0)]
    assert {answer["IS_SUPPORT_HEART_BEAT_V2"] for answer in answers} == {"true"}
    # What the old form left is another fingerprint than 7; the old form itself always says true.
    assert [answer["IS_SUB_CHANGE"] for answer in answers] == [
        "true",
        "true",
        "false",
        "true",
        "false",
        "true",
    ]


def test_clients_that_pull_by_themselves_can_be_kept_out(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(reject_pull_consumer_enable=True)) as broker:
        ToldClient(broker, "a").beat(ALL_OF_T, consume_type=ConsumeType.ACTIVELY)
        assert broker.clients.is_empty
        ToldClient(broker, "b").beat(ALL_OF_T)
        assert members(broker).body == ConsumerListBody(("b",))


def test_a_group_that_is_online_is_shown_with_its_connections(broker: Broker):
    ToldClient(broker, "a").beat(ALL_OF_T, message_model=MessageModel.BROADCASTING)
    request = Request(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupHeader(GROUP))
    body = expect_body(broker.dispatch(request), ConsumerConnectionsBody)
    (connection,) = body.connections
    assert (connection.client_id, connection.language, connection.version) == ("a", "PYTHON", 493)
    assert connection.address.startswith("127.0.0.1")
    assert body.subscriptions == {"T": ALL_OF_T}
    assert (body.consume_type, body.message_model) == (ConsumeType.PASSIVELY, MessageModel.BROADCASTING)
    assert body.consume_from == "CONSUME_FROM_LAST_OFFSET"


def test_a_producer_group_is_shown_with_its_connections_until_its_last_client_leaves(broker: Broker):
    client = ToldClient(broker, "a")
    client.beat(producer_groups=("pg",))
    request = Request(RequestCode.GET_PRODUCER_CONNECTION_LIST, ProducerGroupHeader("pg"))
    body = expect_body(broker.dispatch(request), ProducerConnectionsBody)
    assert {connection.client_id for connection in body.connections} == {"a"}
    leave(client, producer_group="pg")
    answer = broker.dispatch(request)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "the producer group[pg] not exist")


def test_a_group_that_is_offline_is_not_shown(broker: Broker):
    request = Request(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupHeader(GROUP))
    answer = broker.dispatch(request)
    assert (answer.code, answer.remark) == (
        ResponseCode.CONSUMER_NOT_ONLINE,
        "the consumer group[cg] not online",
    )


def test_clients_that_subscribe_to_different_things_are_named_once_in_the_log(broker: Broker, caplog):
    first, second = ToldClient(broker, "a"), ToldClient(broker, "b")
    with caplog.at_level(logging.WARNING):
        first.beat(SubscriptionData("T", "A", 1))
        assert broker.clients.disagreements() == {}
        for version in (2, 3):
            second.beat(SubscriptionData("T", "B", version))
    (one,) = broker.clients.disagreements()[GROUP]
    assert one.topic == "T"
    assert one.clients == {("TAG", "A"): ("a",), ("TAG", "B"): ("b",)}
    (line,) = (record.getMessage() for record in caplog.records)
    assert line == (
        "the clients of group cg subscribe to different things of topic T, and lose messages:"
        " TAG A: a; TAG B: b"
    )


def test_a_client_that_is_told_its_queues_disagrees_with_none_over_the_retries_of_pop(broker: Broker, caplog):
    with caplog.at_level(logging.WARNING):
        ToldClient(broker, "a").beat(ALL_OF_T, SubscriptionData("%RETRY%cg_T"))
        ToldClient(broker, "b").beat(ALL_OF_T)
        assert broker.clients.disagreements() == {}
        ToldClient(broker, "c").beat(ALL_OF_T, SubscriptionData("%RETRY%cg"))
    assert [one.topic for one in broker.clients.disagreements()[GROUP]] == ["%RETRY%cg"]
    assert "%RETRY%cg_T" not in caplog.text


def test_clients_that_come_and_go_fill_no_log_with_what_they_subscribe_to(broker: Broker, caplog):
    first = ToldClient(broker, "a")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            for _ in range(5):
                first.beat(SubscriptionData("T", "A", 1))
                second = ToldClient(broker, "b")
                second.beat(SubscriptionData("T", "B", 2))
                second.link.close()
            broker.advance(600_000)
    assert len(caplog.records) == 2


def test_a_topic_that_only_some_clients_subscribe_to_is_a_disagreement(broker: Broker):
    ToldClient(broker, "a").beat(ALL_OF_T, SubscriptionData("U"))
    ToldClient(broker, "b").beat(ALL_OF_T)
    (one,) = broker.clients.disagreements()[GROUP]
    assert one.clients == {("TAG", "*"): ("a",), None: ("b",)}


def forbidden(broker, is_readable=None, topic="T"):
    header = GroupForbiddenHeader(GROUP, topic, is_readable)
    return broker.dispatch(Request(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, header)).body


def stored(root):
    return json.loads((root / "config" / "subscriptionGroup.json").read_text())["forbiddenTable"]


def test_a_group_is_kept_from_a_topic_and_that_outlives_the_broker(tmp_path):
    with open_broker(tmp_path) as broker:
        assert forbidden(broker).is_readable
        assert not forbidden(broker, False).is_readable
        assert not forbidden(broker, False, "U").is_readable
        assert forbidden(broker, True, "U").is_readable
    assert stored(tmp_path) == {"cg": {"T": 4}}
    with open_broker(tmp_path) as broker:
        assert not forbidden(broker).is_readable
        assert forbidden(broker, True).is_readable
        assert stored(tmp_path) == {}

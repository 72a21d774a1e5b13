"""Pulls are refused in RocketMQ's order: one refusal means that those before it do not apply."""

from __future__ import annotations

import dataclasses

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.heartbeat import ConsumeType, MessageModel
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from tests.support.brokers import open_broker, send
from tests.support.clients import GROUP, ToldClient

PLAIN = PullMessageHeader(GROUP, "T", 0, 0, 32, 0, 0, 0, 5)


def ask(client, header=PLAIN, code=RequestCode.PULL_MESSAGE, **changes):
    return client.link.invoke(Request(code, dataclasses.replace(header, **changes)))


def verdict(answer):
    return answer.code, int((answer.ext or {}).get("forbiddenType", 0))


def test_s4_36_each_refusal_comes_before_the_next(tmp_path):
    """Everything is wrong at first, and one thing after another is put right."""
    config = BrokerConfig(auto_create_groups=False, broker_permission=2, lite_pull_message_enable=False)
    with open_broker(tmp_path, config=config) as broker:
        client = ToldClient(broker, "a")
        lite = {"code": RequestCode.LITE_PULL_MESSAGE, "queue_id": 9}
        answer = ask(client, **lite)
        assert verdict(answer) == (ResponseCode.NO_PERMISSION, 1)
        assert answer.remark == "the broker[127.0.0.1:10911] pulling message is forbidden"
    config = dataclasses.replace(config, broker_permission=6)
    with open_broker(tmp_path, config=config) as broker:
        client = ToldClient(broker, "a")
        answer = ask(client, **lite)
        assert verdict(answer) == (ResponseCode.NO_PERMISSION, 1)
        assert answer.remark == "the broker[127.0.0.1:10911] for lite pull consumer is forbidden"
        assert ask(client, queue_id=9).code is ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        group = SubscriptionGroup(GROUP, is_consume_enabled=False, is_broadcast_enabled=False)
        broker.groups.put(group)
        assert verdict(ask(client, queue_id=9)) == (ResponseCode.NO_PERMISSION, 2)
        broker.groups.put(dataclasses.replace(group, is_consume_enabled=True))
        assert ask(client, queue_id=9).code is ResponseCode.TOPIC_NOT_EXIST
        broker.topics.put(TopicConfig("T", 4, 4, perm=2))
        assert verdict(ask(client, queue_id=9)) == (ResponseCode.NO_PERMISSION, 3)
        broker.topics.put(TopicConfig("T", 4, 4))
        assert ask(client, queue_id=9).code is ResponseCode.INVALID_PARAMETER
        assert ask(client, queue_id=-1).code is ResponseCode.INVALID_PARAMETER
        answer = ask(client)
        assert answer.code is ResponseCode.SUBSCRIPTION_NOT_EXIST
        assert answer.remark == "the consumer's group info not exist"
        broker.groups.forbid(GROUP, "T", is_forbidden=True)
        client.beat(message_model=MessageModel.BROADCASTING)
        assert verdict(ask(client)) == (ResponseCode.NO_PERMISSION, 4)
        client.beat()
        assert verdict(ask(client)) == (ResponseCode.NO_PERMISSION, 5)
        broker.groups.forbid(GROUP, "T", is_forbidden=False)
        answer = ask(client)
        assert answer.code is ResponseCode.SUBSCRIPTION_NOT_EXIST
        assert answer.remark == "the consumer's subscription not exist"
        client.beat(SubscriptionData("T", "*", 4))
        assert ask(client).code is ResponseCode.SUBSCRIPTION_NOT_LATEST
        client.beat(SubscriptionData("T", "*", 5))
        assert ask(client).code is ResponseCode.PULL_NOT_FOUND


def test_s4_36_a_subscription_that_comes_with_the_pull_needs_no_heartbeat_and_no_version(broker: Broker):
    send(broker, "T")
    client = ToldClient(broker, "a")
    flagged = {"sys_flag": int(PullFlag.SUBSCRIPTION), "sub_version": 10**15}
    assert ask(client, **flagged, subscription="*").code is ResponseCode.SUCCESS
    assert ask(client, **flagged, subscription="").code is ResponseCode.SUCCESS
    broker.groups.forbid(GROUP, "T", is_forbidden=True)
    assert ask(client, **flagged).code is ResponseCode.SUCCESS, "as in RocketMQ"


def test_s4_36_tags_of_a_heartbeat_choose_as_those_of_a_pull(broker: Broker):
    for tag in ("A", "B"):
        send(broker, "T", properties=f"TAGS\x01{tag}\x02".encode())
    client = ToldClient(broker, "a")
    for version, (expression, count) in enumerate((("B", 1), ("*", 2), ("A || B", 2)), 6):
        client.beat(SubscriptionData("T", expression, version))
        assert len(ask(client).body.records) == count
    client.beat(SubscriptionData("T", "C", 10, is_class_filter=True))
    assert len(ask(client).body.records) == 2, "the filter server chooses"
    client.beat(SubscriptionData("T", "||", 11))
    assert ask(client).code is ResponseCode.SUBSCRIPTION_PARSE_FAILED


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_s4_37_lite_pulls_are_answered_as_others_unless_they_are_switched_off(broker: Broker, code):
    send(broker, "T")
    client = ToldClient(broker, "a")
    flags = int(PullFlag.SUBSCRIPTION | PullFlag.LITE)
    assert ask(client, code=code, sys_flag=flags).code is ResponseCode.SUCCESS


def test_s4_37_clients_that_pull_by_themselves_are_rejected_if_the_broker_is_set_to(tmp_path):
    flags = int(PullFlag.SUBSCRIPTION)
    with open_broker(tmp_path, config=BrokerConfig(reject_pull_consumer_enable=True)) as broker:
        send(broker, "T")
        active, passive = ToldClient(broker, "active"), ToldClient(broker, "passive")
        active.beat(consume_type=ConsumeType.ACTIVELY)
        answer = ask(active, sys_flag=flags)
        assert answer.code is ResponseCode.SUBSCRIPTION_NOT_EXIST
        assert "rejected by server" in answer.remark
        for group in ("TOOLS_CONSUMER", "CID_RMQ_SYS_X", "DEFAULT_CONSUMER"):
            assert ask(active, sys_flag=flags, consumer_group=group).code is ResponseCode.SUCCESS
        passive.beat(SubscriptionData("T"))
        for client in (active, passive):
            assert ask(client, sys_flag=flags).code is ResponseCode.SUCCESS, "the group consumes passively"


def test_s4_37_nobody_is_rejected_by_default(broker: Broker):
    send(broker, "T")
    assert ask(ToldClient(broker, "a"), sys_flag=int(PullFlag.SUBSCRIPTION)).code is ResponseCode.SUCCESS

"""What clients of other languages say in a heartbeat is understood as RocketMQ understands it."""

from __future__ import annotations

import json

import pytest

from seglog.errors import ProtocolError
from seglog.remoting.body_json.client_bodies import HEARTBEAT
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.heartbeat import ConsumerData, ConsumeType, HeartbeatBody, MessageModel
from seglog.remoting.subscription import SubscriptionData


def consumer_of(**said):
    data = {"clientID": "c", "consumerDataSet": [{"groupName": "g", **said}]}
    return HEARTBEAT.decode(json.dumps(data).encode(), DEFAULT_LIMITS).consumers[0]


def test_a_client_in_cpp_says_numbers_for_names():
    """As PyPI ``rocketmq`` 0.4.4 says it, byte by byte."""
    said = (
        b'{"clientID":"721-127.0.0.1@hb","consumerDataSet":[{"consumeFromWhere":0,"consumeType":1,'
        b'"groupName":"hb-g","messageModel":1,"subscriptionDataSet":[{"subString":"*",'
        b'"subVersion":"1795720643908","topic":"%RETRY%hb-g"},{"codeSet":[0,0],"subString":"A || B",'
        b'"subVersion":"1795720643908","tagsSet":["A","B"],"topic":"T"}]}]}\n'
    )
    subscriptions = (
        SubscriptionData("%RETRY%hb-g", "*", 1_795_720_643_908),
        SubscriptionData("T", "A || B", 1_795_720_643_908),
    )
    group = ConsumerData(
        "hb-g",
        subscriptions,
        ConsumeType.PASSIVELY,
        MessageModel.CLUSTERING,
        "CONSUME_FROM_LAST_OFFSET",
    )
    assert HEARTBEAT.decode(said, DEFAULT_LIMITS) == HeartbeatBody("721-127.0.0.1@hb", (), (group,))


@pytest.mark.parametrize(
    ("number", "kind"), list(enumerate((ConsumeType.ACTIVELY, ConsumeType.PASSIVELY, ConsumeType.POP)))
)
def test_each_way_of_consuming_has_the_number_that_java_gives_it(number, kind):
    assert consumer_of(consumeType=number).consume_type is kind
    assert consumer_of(consumeType=kind.value).consume_type is kind


@pytest.mark.parametrize(
    ("number", "model"), list(enumerate((MessageModel.BROADCASTING, MessageModel.CLUSTERING)))
)
def test_each_model_has_the_number_that_java_gives_it(number, model):
    assert consumer_of(messageModel=number).message_model is model


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (0, "CONSUME_FROM_LAST_OFFSET"),
        (4, "CONSUME_FROM_FIRST_OFFSET"),
        (5, "CONSUME_FROM_TIMESTAMP"),
        ("CONSUME_FROM_TIMESTAMP", "CONSUME_FROM_TIMESTAMP"),
        ("of a later release", "of a later release"),
    ],
)
def test_where_a_group_begins_is_passed_on_by_its_name(said, name):
    assert consumer_of(consumeFromWhere=said).consume_from == name


@pytest.mark.parametrize("field", ["consumeType", "messageModel", "consumeFromWhere"])
@pytest.mark.parametrize("number", [-1, 6, 1 << 70])
def test_a_number_that_no_name_has_is_refused(field, number):
    with pytest.raises(ProtocolError, match=field):
        consumer_of(**{field: number})


def test_a_truth_value_is_no_number_of_a_name():
    with pytest.raises(ProtocolError, match="consumeType"):
        consumer_of(consumeType=True)

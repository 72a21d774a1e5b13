"""Topics that are made or altered together, as mqadmin's updateTopicList does: all or none."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from seglog.broker.handlers.handler import MOST_LISTED
from seglog.broker.tables import TopicConfig
from seglog.remoting.admin_bodies import ConfigBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.storage.format.config import ConfigValue
from seglog.storage.threads import WouldWaitError, without_waiting
from tests.support.brokers import open_broker

WIRE: Mapping[str | int, ConfigValue] = {
    "attributes": {},
    "order": False,
    "perm": 6,
    "readQueueNums": 2,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
    "writeQueueNums": 3,
}


def make(broker, *topics):
    body = ConfigBody({"topicConfigList": [{**WIRE, **topic} for topic in topics]})
    return broker.dispatch(Request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body))


def test_topics_are_made_and_altered_together_and_saved_once(broker, tmp_path):
    assert make(broker, {"topicName": "T"}).code is ResponseCode.SUCCESS
    answer = make(
        broker,
        {"topicName": "T", "perm": 4, "attributes": {"+message.type": "FIFO"}},
        {"topicName": "U", "order": True},
    )
    assert answer.code is ResponseCode.SUCCESS
    assert broker.topics.get("T") == TopicConfig("T", 2, 3, 4, attributes={"message.type": "FIFO"})
    assert broker.topics.get("U") == TopicConfig("U", 2, 3, is_order=True)
    stored = json.loads((tmp_path / "store/config/topics.json").read_text())
    assert {"T", "U"} <= set(stored["topicConfigTable"])


@pytest.mark.parametrize(
    ("topic", "code", "remark"),
    [
        ({"topicName": "no topic"}, ResponseCode.INVALID_PARAMETER, "illegal characters"),
        ({"topicName": "TBW102"}, ResponseCode.INVALID_PARAMETER, "conflict with system topic"),
        ({}, ResponseCode.INVALID_PARAMETER, "blank"),
        ({"topicName": "V", "readQueueNums": -1}, ResponseCode.INVALID_PARAMETER, "fewer than 0"),
        ({"topicName": "V", "attributes": {"+no.such": "x"}}, ResponseCode.SYSTEM_ERROR, "no.such"),
    ],
)
def test_none_is_made_if_one_cannot_be(broker, topic, code, remark):
    before = broker.topics.all()
    answer = make(broker, {"topicName": "U"}, topic)
    assert answer.code is code
    assert remark in answer.remark
    assert broker.topics.all() == before


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"topicConfigList": {}},
        {"topicConfigList": ["T"]},
        {"topicConfigList": [{"topicName": "T", "perm": "6"}]},
        {"topicConfigList": [{"topicName": 1}]},
    ],
)
def test_a_body_of_another_shape_is_refused(broker, value):
    before = broker.topics.all()
    request = Request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=ConfigBody(value))
    assert broker.dispatch(request).code is ResponseCode.SYSTEM_ERROR
    bare = Request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST)
    assert broker.dispatch(bare).code is ResponseCode.SYSTEM_ERROR
    assert broker.topics.all() == before


def test_topics_are_not_made_by_a_thread_that_may_not_wait(broker):
    body = ConfigBody({"topicConfigList": [{**WIRE, "topicName": "T"}]})
    with without_waiting(), pytest.raises(WouldWaitError):
        broker.dispatch(Request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body))
    assert broker.topics.get("T") is None


def test_more_than_one_request_may_list_are_refused_before_they_are_looked_at(broker):
    answer = make(broker, *({"topicName": "no topic"} for _ in range(MOST_LISTED + 1)))
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert answer.remark == "a body lists 20001 topics, at most 20000: send several requests"


def test_a_long_list_is_left_to_a_thread_that_may_wait_even_if_it_is_wrong(broker):
    body = ConfigBody({"topicConfigList": [{**WIRE, "topicName": "no topic"}] * 2_000})
    with pytest.raises(WouldWaitError), without_waiting():
        broker.dispatch(Request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body))


def test_topics_of_a_list_survive(tmp_path):
    with open_broker(tmp_path) as broker:
        make(broker, {"topicName": "T"}, {"topicName": "U"})
    with open_broker(tmp_path) as broker:
        assert broker.topics.get("U") == TopicConfig("U", 2, 3)

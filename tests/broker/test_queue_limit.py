"""A topic has a bounded number of queues, however it is made; what a file has beyond that requests refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from seglog.broker.broker import Broker
from seglog.broker.handlers.stats import MOST_LISTED
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables import TopicConfig
from seglog.errors import InvalidArgumentError
from seglog.remoting.admin_bodies import ConfigBody
from seglog.remoting.admin_headers import (
    BrokerConsumeStatsHeader,
    ConsumeStatsHeader,
    TimeSpanHeader,
    TopicHeader,
)
from seglog.remoting.codec import Asked, Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.headers import (
    CreateTopicHeader,
    GetRouteInfoHeader,
    ResetOffsetHeader,
    SendMessageHeader,
)
from seglog.remoting.later import Deferred
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.remoting.topics import MAX_QUEUES
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.store import MessageStore
from tests.support.asks import beat_of
from tests.support.brokers import QUEUE_FILE_BYTES, SEGMENT_BYTES, ask, on_a_roomy_disk, open_broker, send
from tests.support.machine.patience import wait_for_result

MOST = (1 << 31) - 1
LISTING = (
    Request(RequestCode.GET_TOPIC_STATS_INFO, TopicHeader("T")),
    Request(RequestCode.GET_CONSUME_STATS, ConsumeStatsHeader("g", "T")),
    Request(RequestCode.QUERY_CONSUME_TIME_SPAN, TimeSpanHeader("T", "g")),
    Request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, ResetOffsetHeader("g", "T", 0, False)),
    Request(RequestCode.GET_BROKER_CONSUME_STATS, BrokerConsumeStatsHeader(False)),
)


def make(broker, reads, writes=1, topic="T"):
    header = CreateTopicHeader(topic, "TBW102", reads, writes, 6)
    return ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def topic_of(broker, name):
    topic = broker.topics.get(name)
    assert topic is not None
    return topic


def set_in_file(path, table, of, **fields):
    """Sets numbers in a table of a store that is closed, as another program may have."""
    file = path / "config" / table
    content = json.loads(file.read_text())
    content[of[0]][of[1]] |= fields
    file.write_text(json.dumps(content))


@pytest.fixture
def huge(tmp_path):
    """A broker whose file has a topic with as many queues as the number can say."""
    path = tmp_path / "store"
    with open_broker(path) as broker:
        send(broker, "T")
        broker.groups.put(SubscriptionGroup("g"))
        broker.offsets.commit("g", "T", 0, 1)
    set_in_file(path, "topics.json", ("topicConfigTable", "T"), readQueueNums=MOST, writeQueueNums=MOST)
    with open_broker(path) as broker:
        yield broker


@pytest.mark.parametrize("queues", [(MAX_QUEUES + 1, 1), (1, MAX_QUEUES + 1), (MOST, MOST)])
def test_a_topic_of_too_many_queues_is_not_made(broker, queues):
    answer = make(broker, *queues)
    assert answer.code is ResponseCode.INVALID_PARAMETER
    assert f"at most {MAX_QUEUES}" in answer.remark
    assert broker.topics.get("T") is None
    assert make(broker, MAX_QUEUES, MAX_QUEUES).code is ResponseCode.SUCCESS


def test_of_listed_topics_none_is_made_if_one_has_too_many_queues(broker):
    entries: list[ConfigValue] = [{"topicName": "T"}, {"topicName": "U", "writeQueueNums": MAX_QUEUES + 1}]
    body = ConfigBody({"topicConfigList": entries})
    answer = ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body)
    assert answer.code is ResponseCode.INVALID_PARAMETER
    assert broker.topics.get("T") is None


def test_a_retry_topic_of_too_many_queues_is_not_made(tmp_path):
    path = tmp_path / "store"
    with open_broker(path) as broker:
        group = SubscriptionGroup("g", retry_queue_nums=MAX_QUEUES + 1)
        answer = ask(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group)
        assert answer.code is ResponseCode.INVALID_PARAMETER
        assert broker.groups.get("g") is None
        broker.groups.put(replace(group, retry_queue_nums=2))
    set_in_file(path, "subscriptionGroup.json", ("subscriptionGroupTable", "g"), retryQueueNums=MOST)
    with open_broker(path) as broker:
        assert broker.dispatch(beat_of("c1", "T", group="g")).code is ResponseCode.SUCCESS
        assert topic_of(broker, f"{RETRY_PREFIX}g").queue_nums == MAX_QUEUES
        # Other settings of a group that a file has given too many can still be changed.
        large = broker.groups.get("g")
        assert large is not None
        broker.groups.put(replace(large, is_consume_enabled=False))


def test_a_send_makes_no_topic_of_too_many_queues(tmp_path):
    path = tmp_path / "store"
    with open_broker(path) as broker:
        send(broker, "T")
    set_in_file(path, "topics.json", ("topicConfigTable", "TBW102"), readQueueNums=MOST, writeQueueNums=MOST)
    with open_broker(path) as broker:
        header = SendMessageHeader("pg", "new", "TBW102", MOST, 0, 0, 1_234, 0, b"")
        assert ask(broker, RequestCode.SEND_MESSAGE_V2, header, b"x").code is ResponseCode.SUCCESS
        assert topic_of(broker, "new").queue_nums == MAX_QUEUES


def test_settings_and_tables_take_no_topic_of_too_many_queues(broker):
    with pytest.raises(InvalidArgumentError, match="default_topic_queue_nums"):
        BrokerConfig(default_topic_queue_nums=MAX_QUEUES + 1)
    with pytest.raises(InvalidArgumentError, match="the topic T has 16385 queues"):
        broker.topics.put(TopicConfig("T", MAX_QUEUES + 1, 1))


def test_a_file_with_a_huge_topic_costs_an_error_of_its_requests(huge):
    for request in (*LISTING, Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader("T"))):
        answer = huge.dispatch(request)
        assert answer.code is ResponseCode.INVALID_PARAMETER, request.code
        assert f"the topic T has {MOST} queues" in answer.remark
    assert ask(huge, RequestCode.GET_TOPIC_CONFIG, TopicHeader("T")).code is ResponseCode.SUCCESS
    huge.topics.put(replace(topic_of(huge, "T"), perm=4))  # it has as many as before
    assert make(huge, 4, 4).code is ResponseCode.SUCCESS
    for request in LISTING:
        assert huge.dispatch(request).code is ResponseCode.SUCCESS, request.code


def test_a_file_with_a_huge_topic_is_logged_once(tmp_path, caplog):
    with MessageStore.open(
        tmp_path / "store", segment_size_bytes=SEGMENT_BYTES, queue_file_size_bytes=QUEUE_FILE_BYTES
    ) as store:
        store.put("far", b"x", queue_id=1_000_000)
    with open_broker(tmp_path / "store") as broker:
        answer = ask(broker, RequestCode.GET_TOPIC_STATS_INFO, TopicHeader("far"))
    assert answer.code is ResponseCode.INVALID_PARAMETER
    assert [each.getMessage() for each in caplog.records if "queues" in each.getMessage()] == [
        f"1 topics have more than {MAX_QUEUES} queues, and no route until they have fewer; far has 1000001"
    ]


def test_an_answer_lists_no_more_queues_than_a_frame_holds(broker):
    count = MOST_LISTED // MAX_QUEUES
    names = [f"{number}" + "n" * 126 for number in range(count + 1)]
    for name in names:
        broker.topics.put(TopicConfig(name, MAX_QUEUES, MAX_QUEUES))
    stats = ask(broker, RequestCode.GET_TOPIC_STATS_INFO, TopicHeader(names[0]))
    size_bytes = sum(map(len, Codec().answer(Asked(1, LISTING[0]), stats)))
    assert size_bytes < DEFAULT_LIMITS.frame_bytes / 2
    answer = ask(broker, RequestCode.GET_CONSUME_STATS, ConsumeStatsHeader("g", None, ";".join(names)))
    assert answer.code is ResponseCode.INVALID_PARAMETER
    assert f"more than {MOST_LISTED} queues" in answer.remark


def test_what_lists_queues_does_not_keep_the_thread_that_asks(tmp_path):
    with Broker.open(tmp_path / "store", config=on_a_roomy_disk(BrokerConfig())) as broker:
        broker.topics.put(TopicConfig("T", 64, 64))
        broker.groups.put(SubscriptionGroup("g"))
        for request in LISTING:
            found = broker.answer(request)
            assert isinstance(found, Deferred), request.code
            assert wait_for_result(found, idle_s=60).code is ResponseCode.SUCCESS

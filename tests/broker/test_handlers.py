"""Offsets, locks, routes and topics, asked as clients ask for them."""

from __future__ import annotations

import logging

import pytest

from seglog.broker.broker import Broker
from seglog.broker.handlers.table import HANDLERS
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import VirtualClock
from seglog.remoting.bodies import BrokerData, LockBatchBody, LockedQueuesBody, QueueData, ResetOffsetsBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.exchanges import EXCHANGES, Answerer
from seglog.remoting.headers import (
    CloneGroupOffsetHeader,
    CreateTopicHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    GetRouteInfoHeader,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    SearchOffsetHeader,
    UpdateConsumerOffsetHeader,
    decode_header,
    encode_header,
)
from seglog.remoting.message_queue import MessageQueue
from tests.support.brokers import ask, open_broker, pull, pull_header, send
from tests.support.narrow import not_none


def query(broker, group="g", *, topic="T", queue_id=0, **options):
    header = QueryConsumerOffsetHeader(group, topic, queue_id, **options)
    return ask(broker, RequestCode.QUERY_CONSUMER_OFFSET, header)


def test_finding_10_of_the_broker_every_request_of_the_table_of_exchanges_has_its_handler():
    asked = {code for code, exchange in EXCHANGES.items() if exchange.answerer is not Answerer.CLIENT}
    of_clients = {
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
    }
    assert set(HANDLERS) == asked == set(RequestCode) - of_clients


def test_every_handler_takes_the_header_that_is_decoded_for_its_code():
    for code, handler in HANDLERS.items():
        assert (handler.code, handler.header_type) == (code, EXCHANGES[code].request)


def test_finding_10_of_the_broker_an_error_of_any_kind_is_an_answer_and_is_logged(broker: Broker, caplog):
    header = CreateTopicHeader("T", "TBW102", 1, 1, None)  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        answer = ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert "TypeError" in str(answer.remark)
    assert "code 17 failed" in caplog.text


def test_a_committed_offset_is_answered(broker: Broker):
    send(broker, "T")
    update = UpdateConsumerOffsetHeader("g", "T", 0, 1)
    assert ask(broker, RequestCode.UPDATE_CONSUMER_OFFSET, update).remark == "Group g not exist!"
    broker.groups.find("g")
    assert ask(broker, RequestCode.UPDATE_CONSUMER_OFFSET, update).code is ResponseCode.SUCCESS
    assert query(broker).header.offset == 1


def test_a_new_group_starts_at_0_in_a_young_queue(broker: Broker):
    send(broker, "T")
    assert query(broker).header.offset == 0


def test_a_new_group_is_not_found_where_the_first_message_has_left_memory(tmp_path):
    with open_broker(tmp_path, config=BrokerConfig(hot_bytes=100)) as broker:
        send(broker, "T", bytes(200))
        assert query(broker).code is ResponseCode.QUERY_NOT_FOUND


def test_a_new_group_is_not_found_in_a_queue_that_never_had_a_message(broker: Broker):
    send(broker, "T")
    assert query(broker, queue_id=1).code is ResponseCode.QUERY_NOT_FOUND


def test_a_client_can_ask_not_to_be_given_zero(broker: Broker):
    send(broker, "T")
    assert query(broker, set_zero_if_not_found=False).code is ResponseCode.QUERY_NOT_FOUND


@pytest.mark.parametrize(
    ("header", "code"),
    [
        (UpdateConsumerOffsetHeader("g", "absent", 0, 1), ResponseCode.TOPIC_NOT_EXIST),
        (UpdateConsumerOffsetHeader("g", "T", 0, -1), ResponseCode.INVALID_PARAMETER),
        (UpdateConsumerOffsetHeader("a@b", "T", 0, 1), ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
    ],
    ids=["topic", "negative", "group"],
)
def test_commits_that_make_no_sense_are_refused(broker: Broker, header, code):
    send(broker, "T")
    broker.groups.find("g")
    assert ask(broker, RequestCode.UPDATE_CONSUMER_OFFSET, header).code is code
    assert broker.offsets.of_group("g") == {}


def test_the_ends_of_a_queue_are_answered(broker: Broker):
    for _ in range(3):
        send(broker, "T")
    assert ask(broker, RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)).header.offset == 3
    assert ask(broker, RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader("T", 0)).header.offset == 0
    assert ask(broker, RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("absent", 0)).header.offset == 0


def test_a_moment_leads_to_an_offset(tmp_path):
    clock = VirtualClock(10_000)
    with open_broker(tmp_path, clock) as broker:
        for _ in range(3):
            send(broker, "T")
            clock.advance(1_000)

        def search(timestamp_ms, boundary):
            header = SearchOffsetHeader("T", 0, timestamp_ms, boundary)
            return ask(broker, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

        assert search(10_500, None).header.offset == 1
        assert search(10_500, "LOWER").header.offset == 1
        assert search(10_500, "upper").header.offset == 0
        assert search(10_500, "middle").header.offset == 1


QUEUES = frozenset(MessageQueue("T", "broker-a", queue_id) for queue_id in range(2))


def lock(broker, client_id, code=RequestCode.LOCK_BATCH_MQ):
    return broker.dispatch(Request(code, body=LockBatchBody("g", client_id, QUEUES)))


def test_locks_are_taken_refused_and_given_back(broker: Broker):
    assert lock(broker, "a").body == LockedQueuesBody(QUEUES)
    assert lock(broker, "b").body == LockedQueuesBody(frozenset())
    assert lock(broker, "a", RequestCode.UNLOCK_BATCH_MQ).code is ResponseCode.SUCCESS
    assert lock(broker, "b").body == LockedQueuesBody(QUEUES)


def test_a_lock_request_without_its_body_is_refused(broker: Broker):
    assert broker.dispatch(Request(RequestCode.LOCK_BATCH_MQ)).code is ResponseCode.SYSTEM_ERROR


def route(broker, topic):
    return ask(broker, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic))


def test_a_route_names_queues_and_broker(broker: Broker):
    send(broker, "T")
    body = route(broker, "T").body
    assert body.queues == (QueueData("broker-a", 4, 4, 6),)
    assert body.brokers == (BrokerData("DefaultCluster", "broker-a", {0: "127.0.0.1:10911"}),)


def test_an_unknown_topic_has_no_route_and_tbw102_has_one(broker: Broker):
    assert route(broker, "T").code is ResponseCode.TOPIC_NOT_EXIST
    assert route(broker, "TBW102").body.queues == (QueueData("broker-a", 8, 8, 7),)


def create(broker, topic="T", **options):
    header = CreateTopicHeader(topic, "TBW102", 2, 3, 6, **options)
    return ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


def test_a_topic_is_created_and_altered(broker: Broker):
    assert create(broker, attributes="+message.type=FIFO,+reserve.time=5").code is ResponseCode.SUCCESS
    create(broker, is_order=True, attributes="-reserve.time")
    refused = create(broker, attributes="-reserve.time")
    assert (refused.code, refused.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "attempt to delete a nonexistent key: reserve.time",
    )
    topic = not_none(broker.topics.get("T"))
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.is_order) == (2, 3, True)
    assert topic.attributes == {"message.type": "FIFO"}


def test_a_topic_created_for_compaction_is_one_at_once(broker: Broker):
    create(broker, attributes="+cleanup.policy=COMPACTION")
    assert send(broker, "T").code is ResponseCode.MESSAGE_ILLEGAL
    assert send(broker, "T", properties=b"KEYS\x01k\x02").code is ResponseCode.SUCCESS
    assert (broker.store.path / "compaction" / "compactionLog" / "T" / "0").is_dir()


@pytest.mark.parametrize("topic", ["", "a/b", "TBW102", "rmq_sys_x"])
def test_topics_that_cannot_be_created(broker: Broker, topic):
    assert create(broker, topic).code is ResponseCode.INVALID_PARAMETER


def test_a_topic_cannot_have_fewer_than_no_queues(broker: Broker):
    header = CreateTopicHeader("T", "TBW102", -1, 1, 6)
    assert ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header).code is ResponseCode.INVALID_PARAMETER


@pytest.mark.parametrize("filter_type", ["", "single_tag", "NONE"])
def test_a_topic_has_a_filter_type_that_there_is(broker: Broker, filter_type):
    answer = create(broker, "T", topic_filter_type=filter_type)
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert answer.remark == f"topicFilterType = [{filter_type}] value invalid"
    assert broker.topics.get("T") is None
    for right in (None, "MULTI_TAG", "SINGLE_TAG"):
        assert create(broker, "T", topic_filter_type=right).code is ResponseCode.SUCCESS
        assert not_none(broker.topics.get("T")).filter_type == (right or "SINGLE_TAG")


def test_a_header_that_came_over_the_wire_is_answered_as_one_in_process(broker: Broker):
    send(broker, "T")
    handler = HANDLERS[RequestCode.GET_MAX_OFFSET]
    header = decode_header(not_none(handler).header_type, encode_header(GetMaxOffsetHeader("T", 0)))
    assert ask(broker, RequestCode.GET_MAX_OFFSET, header).header.offset == 1


def reset(broker, timestamp_ms=-1, **options):
    broker.groups.find("cg")
    header = ResetOffsetHeader("cg", "T", timestamp_ms, is_forced=False, **options)
    return ask(broker, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


def test_s4_38_a_group_without_clients_is_reset_and_told_once_with_its_next_pull(broker: Broker):
    for _ in range(3):
        send(broker, "T")
    assert reset(broker, queue_id=0, offset=1).body == ResetOffsetsBody({MessageQueue("T", "broker-a", 0): 1})
    assert query(broker, "cg").header.offset == 1
    stale = pull(broker, "T", 3, flags=PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET, commit_offset=3)
    assert (stale.code, stale.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
    assert (
        pull_header(stale).next_begin_offset,
        pull_header(stale).min_offset,
        pull_header(stale).max_offset,
    ) == (1, 0, 3)
    assert query(broker, "cg").header.offset == 1
    assert pull(broker, "T", 1).code is ResponseCode.SUCCESS


def test_a_reset_by_time_moves_every_queue(tmp_path):
    clock = VirtualClock()
    with open_broker(tmp_path, clock) as broker:
        for queue_id in (0, 0, 1):
            send(broker, "T", queue_id=queue_id)
            clock.advance(1000)
        found = reset(broker, clock.now_ms() - 2000, offset=77).body.offsets
        assert {queue.queue_id: offset for queue, offset in found.items()} == {0: 1, 1: 0, 2: 0, 3: 0}
        ends = reset(broker, -1).body.offsets
        assert {queue.queue_id: offset for queue, offset in ends.items()} == {0: 2, 1: 1, 2: 0, 3: 0}
        assert reset(broker, clock.now_ms(), queue_id=1).body.offsets == {MessageQueue("T", "broker-a", 1): 1}


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(-2, None), (0, 0), (2, 2), (3, 2), (4, None)],
    ids=["below", "min", "max", "max+1 is max", "above"],
)
def test_a_reset_stays_within_the_queue(broker: Broker, offset, expected):
    send(broker, "T")
    send(broker, "T")
    answer = reset(broker, queue_id=0, offset=offset)
    if expected is None:
        assert (answer.code, broker.offsets.query("cg", "T", 0)) == (ResponseCode.SYSTEM_ERROR, None)
    else:
        assert broker.offsets.query("cg", "T", 0) == expected


def test_a_reset_in_an_unknown_topic_is_refused(broker: Broker):
    assert reset(broker).code is ResponseCode.TOPIC_NOT_EXIST


def test_offsets_are_cloned_on_request(broker: Broker):
    send(broker, "T")
    broker.offsets.commit("g", "T", 0, 1)
    answer = ask(broker, RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetHeader("g", "h", "T"))
    assert (answer.code, query(broker, "h").header.offset) == (ResponseCode.SUCCESS, 1)
    answer = ask(broker, RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetHeader("g", "h", "absent"))
    assert answer.code is ResponseCode.SUCCESS


def test_s4_44_a_pull_is_progress_and_no_commit(broker: Broker):
    send(broker, "T")
    pull(broker, "T", 0)
    pull(broker, "T", 1)
    assert (broker.offsets.pulled("cg", "T", 0), broker.offsets.query("cg", "T", 0)) == (1, None)

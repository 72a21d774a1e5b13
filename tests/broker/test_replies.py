"""Request and reply: what a consumer replies reaches the producer that waits, and is stored."""

from __future__ import annotations

import pytest

from seglog.clock import VirtualClock
from seglog.remoting.client_headers import ReplyMessageHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.headers import SendMessageHeader, SendMessageResponseHeader
from seglog.remoting.heartbeat import HeartbeatBody
from seglog.remoting.later import Deferred
from seglog.remoting.peer import Peer
from seglog.storage.format.record import Host
from seglog.storage.format.record.properties import decode_properties, encode_properties
from tests.support.brokers import open_broker, send, send_header
from tests.support.clients import ToldClient

START_MS = 1_700_000_000_000
TOPIC = "DefaultCluster_REPLY_TOPIC"
CODES = (RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
CONSUMER = Peer("consumer", Host(b"\x7f\0\0\1", 52150))


@pytest.fixture
def broker(tmp_path):
    with open_broker(tmp_path / "store", VirtualClock(START_MS)) as opened:
        yield opened


def reply(producer_id="p1", code=RequestCode.SEND_REPLY_MESSAGE_V2, topic=TOPIC, queue_id=0, **more):
    named = {"MSG_TYPE": "reply", "CORRELATION_ID": "c-1", "TTL": "15000", **more}
    if producer_id is not None:
        named["REPLY_TO_CLIENT"] = producer_id
    raw = encode_properties(named)
    header = SendMessageHeader("pgreply", topic, "TBW102", 4, queue_id, 0, 1_234, 7, raw, 2)
    return Request(code, header, b"pong")


def producer(broker, client_id, answer, group="pg"):
    """Returns what a producer was sent; it answers with ``answer``."""
    seen: list[Request] = []

    def on_request(request):
        seen.append(request)
        return answer

    client = ToldClient(broker, client_id, on_request)
    client.link.invoke(Request(RequestCode.HEART_BEAT, body=HeartbeatBody(client_id, (group,))))
    return seen


@pytest.mark.parametrize("code", CODES)
def test_a_reply_reaches_the_producer_that_has_asked_and_is_stored(broker, code):
    other = producer(broker, "p0", Response(ResponseCode.SUCCESS))
    seen = producer(broker, "p1", Response(ResponseCode.SUCCESS))
    answer = broker.dispatch(reply(code=code), CONSUMER)
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
    assert answer.ext == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    stored = broker.store.message_by_id(send_header(answer).msg_id)
    assert answer.header == SendMessageResponseHeader(send_header(answer).msg_id, 0, 0)
    assert (stored.topic, stored.body, stored.flag, stored.reconsume_times) == (TOPIC, b"pong", 7, 2)
    assert "CLUSTER" not in stored.properties
    (pushed,) = seen
    assert (pushed.code, pushed.body, pushed.is_oneway) == (
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
        b"pong",
        False,
    )
    header = pushed.header
    assert isinstance(header, ReplyMessageHeader)
    assert (header.producer_group, header.topic, header.queue_id, header.reconsume_times) == (
        "pgreply",
        TOPIC,
        0,
        2,
    )
    assert (header.born_host, header.store_host) == ("127.0.0.1:52150", broker.config.address)
    assert (header.born_timestamp_ms, header.store_timestamp_ms) == (1_234, START_MS)
    assert decode_properties(header.properties or b"") == {
        "MSG_TYPE": "reply",
        "CORRELATION_ID": "c-1",
        "TTL": "15000",
        "REPLY_TO_CLIENT": "p1",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "PUSH_REPLY_TIME": str(START_MS),
    }
    assert not other


@pytest.mark.parametrize(
    ("producer_id", "remark"),
    [
        (None, "reply message properties[REPLY_TO_CLIENT] is null"),
        ("gone", "push reply message fail, channel of <gone> not found."),
        ("refuses", "push reply message torefusesfail."),
        ("deaf", "push reply message todeaffail."),
    ],
)
def test_a_reply_that_does_not_reach_its_producer_is_stored_and_said(broker, producer_id, remark):
    producer(broker, "refuses", refuse(ResponseCode.SYSTEM_ERROR, "no"))
    heartbeat = Request(RequestCode.HEART_BEAT, body=HeartbeatBody("deaf", ("pg",)))
    broker.dispatch(heartbeat, Peer("deaf", Host(b"\x7f\0\0\1", 1)))
    answer = broker.dispatch(reply(producer_id), CONSUMER)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert answer.ext == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert broker.store.message_by_id(send_header(answer).msg_id).body == b"pong"


def test_a_producer_that_does_not_answer_is_waited_for_ten_seconds(broker):
    producer(broker, "p1", Deferred())
    answer = broker.answer(reply())
    assert isinstance(answer, Deferred)
    broker.advance("9s")
    assert not answer.is_done
    broker.advance("2s")
    assert (answer.result().code, answer.result().remark) == (
        ResponseCode.SYSTEM_ERROR,
        "push reply message top1fail.",
    )


def test_the_client_that_was_heard_of_last_gets_the_reply(broker):
    old = producer(broker, "p1", Response(ResponseCode.SUCCESS), "pg")
    broker.advance("1s")
    new = producer(broker, "p1", Response(ResponseCode.SUCCESS), "ph")
    assert broker.dispatch(reply()).code is ResponseCode.SUCCESS
    assert (len(old), len(new)) == (0, 1)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("topic", "queue_id", "expected"),
    [
        ("SCHEDULE_TOPIC_XXXX", 0, ResponseCode.NO_PERMISSION),
        ("no topic", 0, ResponseCode.INVALID_PARAMETER),
        (TOPIC, 5, ResponseCode.INVALID_PARAMETER),
    ],
)
def test_a_reply_is_checked_as_a_send_is(broker, code, topic, queue_id, expected):
    seen = producer(broker, "p1", Response(ResponseCode.SUCCESS))
    answer = broker.dispatch(reply(code=code, topic=topic, queue_id=queue_id))
    assert (answer.code, answer.ext) == (expected, {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"})
    assert not seen


def test_a_reply_goes_on_where_it_cannot_be_stored(broker):
    seen = producer(broker, "p1", Response(ResponseCode.SUCCESS))
    broker._state.disk.look(101)
    assert send(broker, "T").code is ResponseCode.SERVICE_NOT_AVAILABLE
    answer = broker.dispatch(reply())
    assert (answer.code, answer.header) == (ResponseCode.SUCCESS, SendMessageResponseHeader("0", 0, 0))
    assert len(seen) == 1

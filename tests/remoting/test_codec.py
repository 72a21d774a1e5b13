"""Both ends of a connection: what one writes the other reads, as official clients and brokers write it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seglog.errors import FrameError, ProtocolError
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.remoting.body_json.dialects import read_json
from seglog.remoting.client_headers import ConsumerStatusHeader
from seglog.remoting.codec import Answered, Asked, Codec, Unasked, Unread, WronglyAsked
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, Sender, refuse
from seglog.remoting.exchanges import EXCHANGES
from seglog.remoting.frames.frame import RESPONSE_FLAG, Frame, Serialization
from seglog.remoting.frames.limits import DEFAULT_LIMITS, Limits
from seglog.remoting.frames.reader import FrameReader
from seglog.remoting.frames.writer import encode_frame
from seglog.remoting.headers import (
    GetMaxOffsetHeader,
    GetRouteInfoHeader,
    OffsetResponseHeader,
    PullMessageResponseHeader,
    SendMessageHeader,
)
from seglog.remoting.messages import MOST_REMARK
from tests.support.captured import captured

JAVA = Sender("JAVA", 493)
SEND = SendMessageHeader("pg", "T", "TBW102", 4, 0, 0, 1_700_000_000_000, 0)
PIECES = [1, 3, 1_000_000]


def bytes_of(pieces):
    return b"".join(bytes(piece) for piece in pieces)


def received(codec: Codec, data: bytes | None) -> list[Any]:
    return list(codec.receive(data or b""))


def fed(codec: Codec, data: bytes, size_bytes: int) -> list[Any]:
    return [
        event for at in range(0, len(data), size_bytes) for event in codec.receive(data[at : at + size_bytes])
    ]


def frame_of(data):
    (frame,) = FrameReader().feed(data)
    return frame


def plain(frame):
    """Returns a frame with its body as a value, if it is JSON, and sets in it without their order."""
    body = bytes(frame.body)
    if body[:1] not in (b"{", b"["):
        return frame.ext, body
    return frame.ext, without_order(read_json(body, DEFAULT_LIMITS))


def without_order(value):
    if isinstance(value, dict):
        return {name: without_order(item) for name, item in value.items()}
    return sorted(map(without_order, value), key=str) if isinstance(value, list) else value


def end_of(frame):
    """Returns an end that writes as the sender of a frame does, and numbers as it did."""
    codec = Codec(Sender(frame.language, frame.version), frame.serialization)
    if not frame.is_response:
        codec._next_opaque = frame.opaque
    return codec


@pytest.mark.parametrize("size_bytes", PIECES)
def test_every_captured_request_and_answer_is_read_and_written_the_same(size_bytes):
    seen = set()
    for one in captured():
        (asked,) = fed(Codec(), one.request, size_bytes)
        assert isinstance(asked, Asked), (one.code, asked)
        client = end_of(frame_of(one.request))
        opaque, pieces = client.ask(asked.request)
        assert (opaque, asked.request.code) == (asked.opaque, one.code)
        assert plain(frame_of(bytes_of(pieces))) == plain(frame_of(one.request)), one.code
        if one.answer is None:
            assert asked.request.is_oneway
            continue
        (answered,) = fed(client, one.answer, size_bytes)
        assert isinstance(answered.answer, Response), (one.code, answered)
        again = end_of(frame_of(one.answer)).answer(asked, answered.answer)
        assert plain(frame_of(bytes_of(again))) == plain(frame_of(one.answer)), one.code
        seen.add(one.code)
    assert len(seen) > 50


SETS = {
    RequestCode.UNLOCK_BATCH_MQ,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
}
"""Their bodies hold sets, which Java writes in the order of a hash table."""


def test_all_but_sets_are_the_same_bytes():
    for one in captured():
        (asked,) = received(Codec(), one.request)
        client = end_of(frame_of(one.request))
        _, pieces = client.ask(asked.request)
        if one.code in SETS:
            continue
        assert bytes_of(pieces) == one.request, one.code
        if one.answer is not None:
            (answered,) = received(client, one.answer)
            again = end_of(frame_of(one.answer)).answer(asked, answered.answer)
            assert bytes_of(again) == one.answer, one.code


def test_every_code_that_official_clients_used_of_those_with_a_table_was_captured():
    codes = {one.code for one in captured()}
    assert {code.name for code in map(RequestCode, EXCHANGES) if code not in codes} <= {
        "SEND_MESSAGE",
        "CLONE_GROUP_OFFSET",
        "QUERY_CORRECTION_OFFSET",
        "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST",
        "GET_SUBSCRIPTIONGROUP_CONFIG",
        "UPDATE_AND_GET_GROUP_FORBIDDEN",
        "GET_ALL_CONSUMER_OFFSET",
        "GET_ALL_DELAY_OFFSET",
        "QUERY_CONSUME_TIME_SPAN",
        "QUERY_TOPICS_BY_CONSUMER",
        "QUERY_SUBSCRIPTION_BY_CONSUMER",
        "DELETE_EXPIRED_COMMITLOG",
        "INVOKE_BROKER_TO_GET_CONSUMER_STATUS",
        "GET_CONSUMER_STATUS_FROM_CLIENT",
        "RESET_CONSUMER_CLIENT_OFFSET",
        "PUSH_REPLY_MESSAGE_TO_CLIENT",
        "GET_TOPICS_BY_CLUSTER",
        "UPDATE_NAMESRV_CONFIG",
        "UPDATE_AND_CREATE_TOPIC_LIST",
        "GET_BROKER_RUNTIME_INFO",
        "SEND_REPLY_MESSAGE",
        "GET_NAMESRV_CONFIG",
        "GET_BROKER_CONFIG",
        "GET_ALL_PRODUCER_INFO",
        "GET_SYSTEM_TOPIC_LIST_FROM_NS",
        "GET_KV_CONFIG",
        "GET_KVLIST_BY_NAMESPACE",
    }


@pytest.mark.parametrize("serialization", Serialization)
def test_finding_10_of_the_broker_a_request_keeps_who_sent_it_and_the_fields_that_it_does_not_know(
    serialization,
):
    client = Codec(Sender("GO", 317), serialization)
    _, pieces = client.ask(
        Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 3), ext={"Signature": "s"})
    )
    (asked,) = received(Codec(), bytes_of(pieces))
    assert asked.request.header == GetMaxOffsetHeader("T", 3)
    assert asked.request.sender == Sender("GO", 317)
    assert asked.request.ext == {"topic": "T", "queueId": "3", "committed": "true", "Signature": "s"}


def test_an_answer_finds_its_request_whatever_comes_between():
    client, broker = Codec(), Codec()
    first, one = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    second, two = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 1)))
    asked = received(broker, bytes_of(one) + bytes_of(two))
    back = [
        broker.answer(each, Response(ResponseCode.SUCCESS, OffsetResponseHeader(offset)))
        for offset, each in zip((7, 9), asked, strict=True)
    ]
    events = received(client, bytes_of(back[1]) + bytes_of(back[0]))
    assert [(event.opaque, event.answer.header.offset) for event in events] == [(second, 9), (first, 7)]


def test_an_answer_that_nobody_waits_for_is_unasked():
    client, broker = Codec(), Codec()
    opaque, pieces = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    (asked,) = received(broker, bytes_of(pieces))
    answer = bytes_of(broker.answer(asked, Response(ResponseCode.SUCCESS, OffsetResponseHeader(7))))
    client.forget(opaque)
    assert received(client, answer) == [Unasked(opaque)]


def test_finding_3_of_the_seam_a_oneway_request_is_never_answered_and_never_waited_for():
    client, broker = Codec(), Codec()
    _, good = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0), is_oneway=True))
    bad = encode_frame(Frame(RequestCode.GET_MAX_OFFSET, "JAVA", 493, 5, 2, ext={"queueId": "x"}))
    events = received(broker, bytes_of(good) + bad)
    assert [type(event) for event in events] == [Asked, WronglyAsked]
    assert [broker.answer(event, refuse(ResponseCode.SYSTEM_ERROR, "no")) for event in events] == [[], []]


WRONG = {
    "a field is missing": Frame(RequestCode.GET_MAX_OFFSET, "JAVA", 1, 9, ext={"topic": "T"}),
    "no fields at all": Frame(RequestCode.GET_MAX_OFFSET, "JAVA", 1, 9),
    "33 bits": Frame(
        RequestCode.GET_MAX_OFFSET, "JAVA", 1, 9, ext={"topic": "T", "queueId": "1099511627776"}
    ),
    "no JSON": Frame(RequestCode.HEART_BEAT, "JAVA", 1, 9, body=b"{"),
    "another value": Frame(RequestCode.HEART_BEAT, "JAVA", 1, 9, body=b"[]"),
    "no client": Frame(RequestCode.HEART_BEAT, "JAVA", 1, 9, body=b"{}"),
    "a key twice": Frame(RequestCode.HEART_BEAT, "JAVA", 1, 9, body=b'{"clientID":"a","clientID":"b"}'),
    "another type": Frame(
        RequestCode.HEART_BEAT, "JAVA", 1, 9, body=b'{"clientID":"a","consumerDataSet":{}}'
    ),
    "an unknown name": Frame(
        RequestCode.HEART_BEAT,
        "JAVA",
        1,
        9,
        body=b'{"clientID":"a","consumerDataSet":[{"groupName":"g","consumeType":"X"}]}',
    ),
    "depth": Frame(RequestCode.LOCK_BATCH_MQ, "JAVA", 1, 9, body=b"[" * 100_000),
    "a batch cut short": Frame(RequestCode.SEND_BATCH_MESSAGE, "JAVA", 1, 9, body=b"\0\0\0\x20abc"),
}


@pytest.mark.parametrize("frame", WRONG.values(), ids=WRONG)
def test_a_request_that_is_wrong_is_answered_and_the_connection_goes_on(frame):
    broker = Codec()
    good = encode_frame(Frame(RequestCode.GET_ALL_DELAY_OFFSET, "JAVA", 1, 10))
    wrong, asked = received(broker, encode_frame(frame) + bytes(frame.body) + good)
    assert isinstance(wrong, WronglyAsked)
    assert (wrong.opaque, wrong.request.code) == (9, frame.code)
    assert type(wrong.error) is ProtocolError
    answer = frame_of(bytes_of(broker.answer(wrong, refuse(ResponseCode.SYSTEM_ERROR, str(wrong.error)))))
    assert (answer.code, answer.opaque, answer.is_response) == (1, 9, True)
    assert isinstance(asked, Asked)


def test_too_many_values_of_a_body_are_refused_before_they_are_made():
    frame = Frame(RequestCode.LOCK_BATCH_MQ, "JAVA", 1, 9, body=b"[" + b"[]," * 20 + b"[]]")
    (wrong,) = received(Codec(limits=Limits(json_values=20)), encode_frame(frame) + bytes(frame.body))
    assert "at most 20" in str(wrong.error)


@pytest.mark.parametrize(
    ("body", "limits", "said"),
    [
        (b"[" + b"[]," * 20 + b"[]]", Limits(json_lists=20), "22 lists, at most 20"),
        (b'{"a":{' + b'"b":1,' * 200 + b'"c":1}}', Limits(json_keys=20), "at most 20"),
    ],
)
def test_lists_and_keys_of_a_body_are_bounded(body, limits, said):
    frame = Frame(RequestCode.LOCK_BATCH_MQ, "JAVA", 1, 9, body=body)
    (wrong,) = received(Codec(limits=limits), encode_frame(frame) + body)
    assert said in str(wrong.error)


def test_long_json_is_left_unread_and_means_the_same_when_it_is_read():
    body = {"clientId": "c", "consumerGroup": "g", "mqSet": [], "more": "x" * 100}
    text = json.dumps(body).encode()
    frames = [Frame(RequestCode.LOCK_BATCH_MQ, "JAVA", 1, 9, body=each) for each in (text, text[:-1])]
    frames.append(Frame(RequestCode.SEND_MESSAGE_V2, "JAVA", 1, 9, body=text))
    for frame in frames:
        data = encode_frame(frame) + bytes(frame.body)
        (at_once,) = received(Codec(long_bytes=len(text) + 1), data)
        codec = Codec(long_bytes=len(text) - 1)
        (found,) = received(codec, data)
        if frame.code == RequestCode.SEND_MESSAGE_V2:
            assert not isinstance(found, Unread), "what is no JSON takes no time"
            continue
        assert isinstance(found, Unread)
        read = codec.read(found)
        assert isinstance(read, Asked | WronglyAsked)
        assert (type(read), read.opaque, read.request) == (type(at_once), 9, at_once.request)
        refused = frame_of(bytes_of(codec.answer(found.asked, refuse(ResponseCode.SYSTEM_BUSY, "later"))))
        assert (refused.code, refused.opaque) == (ResponseCode.SYSTEM_BUSY, 9)


def test_a_long_answer_is_left_unread_and_is_that_to_what_was_asked():
    codec = Codec(long_bytes=50)
    asked = Request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ConsumerStatusHeader("T", "g"))
    opaque, _ = codec.ask(asked)
    body = json.dumps({"consumerTable": {}, "messageQueueTable": {}, "more": "x" * 100}).encode()
    frame = Frame(0, "JAVA", 1, opaque, RESPONSE_FLAG, body=body)
    (found,) = received(codec, encode_frame(frame) + body)
    assert isinstance(found, Unread)
    read = codec.read(found)
    assert isinstance(read, Answered)
    assert read.opaque == opaque
    assert isinstance(read.answer, Response)
    frame = Frame(0, "JAVA", 1, opaque, RESPONSE_FLAG, body=body[:-1])
    assert received(codec, encode_frame(frame) + bytes(frame.body)) == [Unasked(opaque)]


def test_nothing_is_received_behind_what_is_no_frame():
    broker = Codec()
    good = encode_frame(Frame(RequestCode.GET_ALL_DELAY_OFFSET, "JAVA", 1, 10))
    events = broker.receive(good + b"GET / HTTP/1.1\r\n\r\n")
    assert isinstance(next(events), Asked)
    with pytest.raises(FrameError):
        next(events)
    with pytest.raises(FrameError):
        list(broker.receive(good))


def test_an_answer_that_is_wrong_ends_that_request_alone():
    client = Codec()
    first, _ = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    second, _ = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    events = list(
        received(
            client,
            encode_frame(Frame(0, "JAVA", 1, first, 1))
            + encode_frame(Frame(0, "JAVA", 1, second, 1, ext={"offset": "4"})),
        )
    )
    assert [type(event) for event in events] == [Answered, Answered]
    assert isinstance(events[0].answer, ProtocolError)
    assert events[1].answer.header == OffsetResponseHeader(4)


def test_a_response_code_without_a_name_stays_that_number():
    client = Codec()
    opaque, _ = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    (event,) = received(client, encode_frame(Frame(2_345, "JAVA", 1, opaque, 1, "why")))
    assert (event.answer.code, event.answer.code.name, event.answer.remark) == (2_345, "CODE_2345", "why")
    assert event.answer.code is not ResponseCode.SUCCESS


def test_a_refused_pull_has_its_header_where_it_came():
    ext = {"suggestWhichBrokerId": "0", "nextBeginOffset": "8", "minOffset": "0", "maxOffset": "8"}
    for fields, expected in ((ext, PullMessageResponseHeader(0, 8, 0, 8)), ({}, None)):
        client = Codec()
        opaque, _ = client.ask(Request(RequestCode.PULL_MESSAGE, ext={}))
        (event,) = received(client, encode_frame(Frame(19, "JAVA", 1, opaque, 1, ext=fields)))
        assert event.answer.code is ResponseCode.PULL_NOT_FOUND
        assert (event.answer.header if expected else None) == expected


@pytest.mark.parametrize(
    ("version", "accepts", "is_standard"), [(400, False, False), (401, False, True), (1, True, True)]
)
def test_a_route_is_standard_json_for_those_who_read_it(version, accepts, is_standard):
    answer = next(one for one in captured() if one.code == 105 and b"brokerAddrs" in (one.answer or b""))
    client = Codec()
    client._next_opaque = frame_of(answer.answer).opaque
    client.ask(Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader("T")))
    (event,) = received(client, answer.answer)
    request = Request(
        RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader("T", accepts), sender=Sender("JAVA", version)
    )
    body = bytes(frame_of(bytes_of(Codec().answer(Asked(1, request), event.answer))).body)
    assert (b'"brokerAddrs":{"0":' in body) is is_standard
    assert (b'"brokerAddrs":{0:' in body) is not is_standard
    if is_standard:
        json.loads(body)


def test_a_request_with_the_header_of_another_code_is_not_written():
    with pytest.raises(ProtocolError):
        Codec().ask(Request(RequestCode.GET_MIN_OFFSET, GetMaxOffsetHeader("T", 0)))
    with pytest.raises(ProtocolError):
        Codec().ask(Request(RequestCode.HEART_BEAT, body=MessageBatch([BatchMessage(b"x")])))


def test_a_batch_is_read_as_its_messages():
    batch = MessageBatch([BatchMessage(b"one", b"TAGS\x01a\x02", 7), BatchMessage(b"")])
    _, pieces = Codec().ask(Request(RequestCode.SEND_BATCH_MESSAGE, SEND, batch))
    (asked,) = received(Codec(), bytes_of(pieces))
    assert [bytes(each.body) for each in asked.request.body.messages] == [b"one", b""]
    assert asked.request.header == SEND


def test_numbers_of_requests_stay_within_32_bits_and_pass_over_those_that_wait():
    client = Codec()
    client._next_opaque = 2**31 - 1
    held, _ = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    after, _ = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    client._next_opaque = 2**31 - 1
    next_one, _ = client.ask(Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader("T", 0)))
    assert (held, after, next_one) == (2**31 - 1, 0, 1)


def test_a_remark_is_cut_that_repeats_what_somebody_has_sent():
    codec = Codec()
    asked = Asked(1, Request(RequestCode.GET_MAX_OFFSET))
    for length in (MOST_REMARK, MOST_REMARK + 1):
        found = frame_of(bytes_of(codec.answer(asked, refuse(ResponseCode.SYSTEM_ERROR, "x" * length))))
        is_cut = length > MOST_REMARK
        assert found.remark == "x" * MOST_REMARK + ("... (4097 characters)" if is_cut else "")

"""Requests that a broker passes on to clients: their answer comes back as it is, or why there is none."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.errors import ConnectionEndedError
from seglog.remoting.bodies import ConsumerStatusBody
from seglog.remoting.body_json.dialects import Dialect
from seglog.remoting.body_json.queue_bodies import CONSUMER_STATUS
from seglog.remoting.client_headers import ConsumeDirectlyHeader, ConsumerStatusHeader, RunningInfoHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, Sender, refuse
from seglog.remoting.frames.frame import Serialization
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.storage.format.record import Host, decode_message, decode_message_id
from seglog.storage.format.record.message import message_id
from tests.support.brokers import open_broker, pull, records_body, send, send_header
from tests.support.clients import GROUP, ToldClient
from tests.support.connections import ServedEnd, WireEnd
from tests.support.machine.patience import (
    join_thread,
    looks,
    wait_for_event,
    wait_for_result,
    wait_until_in_loop,
)

HOST = Host(b"\x7f\x00\x00\x01", 1)
OLD = [(0, "V3_0_0_SNAPSHOT"), (28, "V3_0_7_SNAPSHOT"), (61, "V3_1_7"), (-1, "-1")]
RUNNING_INFO = b'{"mqTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"locked":true}},"jstack":"\xc3\xa9"}'


def running_info(client_id="c1", group=GROUP, **more):
    return Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader(group, client_id), **more)


def directly(msg_id, client_id="c1", topic=None):
    header = ConsumeDirectlyHeader(GROUP, client_id, msg_id, topic=topic)
    return Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)


def status(client_id=None, topic="T"):
    header = ConsumerStatusHeader(topic, GROUP, client_id)
    return Request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)


def joined(broker, client_id, on_request):
    client = ToldClient(broker, client_id, on_request)
    client.beat()
    return client


def waiting(broker, request):
    """Returns what an answer comes by that is not there yet."""
    answer = broker.answer(request)
    assert isinstance(answer, Deferred)
    assert not answer.is_done
    return answer


def noting(seen, answer):
    """Returns what answers all requests alike, and keeps them."""

    def on_request(request):
        seen.append(request)
        return answer

    return on_request


def old(broker, client_id, version):
    """Returns a client of an old version, which nothing reaches that is newer."""
    peer = Peer(client_id, HOST, version=version)
    body = HeartbeatBody(client_id, (), (ConsumerData(GROUP, ()),))
    broker.dispatch(Request(RequestCode.HEART_BEAT, body=body), peer)
    return peer


def test_finding_4_of_the_seam_the_answer_of_the_client_comes_back_as_it_is(broker):
    answer = Response(ResponseCode.SUCCESS, body=RUNNING_INFO, ext={"x": "1"})
    seen = []
    joined(broker, "c0", lambda _: refuse(ResponseCode.SYSTEM_ERROR, "the wrong client"))
    joined(broker, "c1", noting(seen, answer))
    assert broker.dispatch(running_info(body=b"any", is_oneway=True)) is answer
    assert seen == [running_info(body=b"any")]
    assert (len(broker.timers), len(broker._state.relays)) == (0, 0)


def test_a_refusal_of_the_client_is_its_answer(broker):
    joined(broker, "c1", lambda _: refuse(ResponseCode.SYSTEM_ERROR, "The Consumer Group not exist"))
    assert broker.dispatch(running_info()) == refuse(
        ResponseCode.SYSTEM_ERROR, "The Consumer Group not exist"
    )


def test_a_client_that_is_not_there_is_not_asked(broker):
    offline = "The Consumer <cg> <c1> not online"
    assert broker.dispatch(running_info()) == refuse(ResponseCode.SYSTEM_ERROR, offline)
    client = joined(broker, "c2", lambda _: Response(ResponseCode.SUCCESS))
    assert broker.dispatch(running_info()) == refuse(ResponseCode.SYSTEM_ERROR, offline)
    assert broker.dispatch(running_info("c2")).code is ResponseCode.SUCCESS
    client.link.close()
    assert broker.dispatch(running_info("c2")).remark == "The Consumer <cg> <c2> not online"
    msg_id = send_header(send(broker, "T")).msg_id
    assert broker.dispatch(directly(msg_id, None)).remark == "The Consumer <cg> <null> not online"


@pytest.mark.parametrize(("version", "name"), OLD)
def test_a_client_that_is_too_old_is_not_asked(broker, version, name):
    old(broker, "c1", version)
    expected = f"The Consumer <c1> Version <{name}> too low to finish, please upgrade it to V3_1_8_SNAPSHOT"
    assert broker.dispatch(running_info()) == refuse(ResponseCode.SYSTEM_ERROR, expected)
    answer = broker.dispatch(status())
    if version < 28:
        expected = f"the client does not support this feature. version={name}"
        assert answer == refuse(ResponseCode.SYSTEM_ERROR, expected)
    else:
        assert answer.body == ConsumerStatusBody()


def test_a_client_without_a_connection_cannot_be_asked(broker):
    old(broker, "c1", 62)
    answer = broker.dispatch(running_info())
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert answer.remark.startswith("invoke consumer <cg> <c1> Exception: client c1 has no connection")


def test_who_asks_on_virtual_time_waits_for_ten_seconds_of_it(broker):
    later = Deferred()
    joined(broker, "c1", lambda _: later)
    before_ms = broker.clock.now_ms()
    answer = broker.dispatch(running_info())
    assert broker.clock.now_ms() - before_ms == 10_000
    assert answer.code is ResponseCode.CONSUME_MSG_TIMEOUT
    assert answer.remark == (
        "consumer <cg> <c1> Timeout: request 307 to client c1 got no answer within 10000 ms"
    )
    assert later.is_done
    assert (len(broker.timers), len(broker._state.relays)) == (0, 0)


def test_time_passes_only_until_the_answer_comes(broker):
    later, answer = Deferred(), Response(ResponseCode.SUCCESS)
    joined(broker, "c1", lambda _: later)
    broker.timers.after(1_234, lambda: later.resolve(answer))
    before_ms = broker.clock.now_ms()
    assert broker.dispatch(running_info()) is answer
    assert broker.clock.now_ms() - before_ms == 1_234


def test_a_client_that_goes_while_it_is_asked_is_not_waited_for(broker):
    later = Deferred()
    client = joined(broker, "c1", lambda _: later)
    relayed = waiting(broker, running_info())
    client.link.close()
    answer = relayed.result()
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert answer.remark == (
        "invoke consumer <cg> <c1> Exception:"
        " request 307 to client c1 got no answer: the client has closed its link"
    )


def test_who_asked_and_is_gone_cancels_and_the_client_need_not_answer(broker):
    later = Deferred()
    joined(broker, "c1", lambda _: later)
    assert waiting(broker, running_info()).cancel()
    assert later.is_done
    assert (len(broker.timers), len(broker._state.relays)) == (0, 0)


def test_a_broker_that_closes_refuses_what_waits(tmp_path):
    with open_broker(tmp_path) as broker:
        joined(broker, "c1", lambda _: Deferred())
        relayed = [waiting(broker, request) for request in (running_info(), status())]
    assert [one.result().code for one in relayed] == [ResponseCode.SERVICE_NOT_AVAILABLE] * 2
    assert len(broker.timers) == 0
    late = broker._state.relays.relay([Deferred()], 1, lambda: pytest.fail("it was closed"))
    assert late.result().code is ResponseCode.SERVICE_NOT_AVAILABLE


def test_a_client_is_given_the_record_of_the_message_that_it_is_to_consume(broker):
    asked = []
    joined(broker, "c1", noting(asked, Response(ResponseCode.SUCCESS)))
    send(broker, "T", b"first")
    msg_id = send_header(send(broker, "T", b"second")).msg_id
    assert broker.dispatch(directly(msg_id)).code is ResponseCode.SUCCESS
    (request,) = asked
    assert decode_message(request.body, verify=True).body == b"second"
    assert request.body == bytes(records_body(pull(broker, "T", 1)).records[0])
    assert request.header == ConsumeDirectlyHeader(GROUP, "c1", msg_id, "broker-a", None, None, 0)
    broker.dispatch(directly(msg_id, topic="T"))
    assert asked[1].header == ConsumeDirectlyHeader(GROUP, "c1", msg_id, "broker-a", "T", 0, 0)
    another_host = message_id(Host(b"\x0a\x00\x00\x01", 9), decode_message_id(msg_id)[1])
    assert broker.dispatch(directly(another_host)).code is ResponseCode.SUCCESS
    assert asked[2].body == request.body


@pytest.mark.parametrize(
    ("msg_id", "remark"),
    [
        (None, "there is no msgId"),
        ("7F000001", "'7F000001' is no message id: 32 or 56 hexadecimal digits are"),
        (message_id(HOST, 1 << 40), f"no message starts at {1 << 40}"),
        (message_id(HOST, 1), "no message starts at 1"),
    ],
)
def test_a_message_that_is_not_there_is_refused_before_a_client_is_looked_for(broker, msg_id, remark):
    send(broker, "T")
    answer = broker.dispatch(directly(msg_id))
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert answer.remark.startswith(remark)


def queues_of(count):
    return {MessageQueue("T", "broker-a", queue_id): 7 * queue_id for queue_id in range(count)}


def test_the_clients_of_a_group_are_asked_at_once_how_far_they_are(broker):
    seen = []

    def says(client_id, answer):
        joined(broker, client_id, noting(seen, answer))

    says("a", Response(ResponseCode.SUCCESS, body=ConsumerStatusBody(queues_of(1))))
    says("b", Response(ResponseCode.SUCCESS, body=ConsumerStatusBody(queues_of(2))))
    says("refuses", refuse(ResponseCode.SYSTEM_ERROR, "no"))
    says("says nothing", Response(ResponseCode.SUCCESS))
    says("says something else", Response(ResponseCode.SUCCESS, body=b"{}"))
    for client_id in ("silent", "silent too"):
        says(client_id, Deferred())
    before_ms = broker.clock.now_ms()
    answer = broker.dispatch(status(" "))
    assert broker.clock.now_ms() - before_ms == 5_000
    assert answer == Response(
        ResponseCode.SUCCESS, body=ConsumerStatusBody(clients={"a": queues_of(1), "b": queues_of(2)})
    )
    asked = Request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, ConsumerStatusHeader("T", GROUP))
    assert seen == [asked] * 7
    seen.clear()
    assert broker.dispatch(status("b")).body == ConsumerStatusBody(clients={"b": queues_of(2)})
    assert broker.dispatch(status("no one")).body == ConsumerStatusBody()
    assert seen == [asked]


def test_a_group_that_is_offline_says_nothing(broker):
    expected = "No Any Consumer online in the consumer group: [cg]"
    assert broker.dispatch(status()) == refuse(ResponseCode.SYSTEM_ERROR, expected)


def test_an_old_client_is_refused_only_where_it_is_asked(broker):
    joined(broker, "new", lambda _: Response(ResponseCode.SUCCESS, body=ConsumerStatusBody(queues_of(1))))
    old(broker, "old", 27)
    assert broker.dispatch(status("new")).body == ConsumerStatusBody(clients={"new": queues_of(1)})
    for who in ("old", None):
        assert (
            broker.dispatch(status(who)).remark == "the client does not support this feature. version=V3_0_6"
        )


class OverSockets:
    """A broker on real time, and a client of it at the other end of a connection."""

    def __init__(self, broker, answer, serialization=Serialization.JSON, client_id="c1"):
        here, there = socket.socketpair()
        self.channel = ServedEnd(here, broker, client_id)
        self.client = WireEnd(there, broker.timers, answer, serialization)
        body = HeartbeatBody(client_id, (), (ConsumerData(GROUP, ()),))
        wait_for_result(self.client.ask(Request(RequestCode.HEART_BEAT, body=body), 60_000))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        self.client.close()


@pytest.fixture(params=[True, False], ids=["duties", "no duties"])
def real(tmp_path, request):
    with Broker.open(tmp_path, background=request.param, segment_size_bytes=1 << 20) as broker:
        yield broker


@pytest.mark.parametrize("serialization", Serialization)
def test_over_a_connection_fields_and_bodies_pass_through_unchanged(real, serialization):
    ext = {"consumerGroup": GROUP, "clientId": "c1", "jstackEnable": "TRUE", "another": "field"}
    came = running_info(ext=ext, sender=Sender("JAVA", 493))
    header = RunningInfoHeader(GROUP, "c1", is_with_stacks=True)
    came = Request(came.code, header, None, ext, sender=came.sender)
    seen = []

    def answer(request):
        seen.append(request)
        return Response(ResponseCode.SUCCESS, body=RUNNING_INFO)

    with OverSockets(real, answer, serialization):
        got = real.dispatch(came)
        assert (got.code, bytes(got.body)) == (ResponseCode.SUCCESS, RUNNING_INFO)
        assert (seen[0].header, dict(seen[0].ext)) == (header, ext)
        msg_id = send_header(send(real, "T", b"hello")).msg_id
        ext = {"consumerGroup": GROUP, "clientId": "c1", "msgId": msg_id, "topic": "T", "brokerName": "x"}
        ext["another"] = "field"
        said = ConsumeDirectlyHeader(GROUP, "c1", msg_id, "x", "T")
        came = Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, said, None, ext, sender=came.sender)
        assert real.dispatch(came).code is ResponseCode.SUCCESS
        added = {"brokerName": "broker-a", "topicSysFlag": "0", "groupSysFlag": "0"}
        assert dict(seen[1].ext) == {**ext, **added}
        assert decode_message(seen[1].body, verify=True).body == b"hello"


@pytest.mark.parametrize("dialect", Dialect)
def test_how_far_a_client_is_is_read_in_both_dialects(real, dialect):
    said = CONSUMER_STATUS.encode(ConsumerStatusBody(queues_of(3)), dialect)
    assert (b'{{"brokerName"' in said) == (dialect is Dialect.FASTJSON)
    with OverSockets(real, lambda _: Response(ResponseCode.SUCCESS, body=said)):
        assert real.dispatch(status()).body == ConsumerStatusBody(clients={"c1": queues_of(3)})


def test_what_a_client_says_in_no_dialect_is_left_out(real, caplog):
    with OverSockets(real, lambda _: Response(ResponseCode.SUCCESS, body=b"{")):
        assert real.dispatch(status()).body == ConsumerStatusBody()
    assert "client c1 did not say how far it is" in caplog.text


def test_a_thread_and_a_task_wait_in_real_time_with_and_without_duties(real, monkeypatch):
    monkeypatch.setattr("seglog.broker.handlers.relays.CALL_MS", 50)
    with OverSockets(real, lambda _: None):
        for answer in (real.dispatch(running_info()), asyncio.run(real.dispatch_async(running_info()))):
            assert answer.code is ResponseCode.CONSUME_MSG_TIMEOUT
    assert (len(real.timers), len(real._state.relays)) == (0, 0)


def test_a_task_gets_the_answer_that_comes_and_the_end_of_the_connection(real):
    async def scene(pair):
        first = await real.dispatch_async(running_info())
        waiting = asyncio.create_task(real.dispatch_async(running_info()))
        await wait_until_in_loop(lambda: len(pair.channel.asks))
        pair.client.hang_up()
        return first, await waiting

    answers = [Response(ResponseCode.SUCCESS)]
    with OverSockets(real, lambda _: answers.pop() if answers else None) as pair:
        first, second = asyncio.run(scene(pair))
    assert first.code is ResponseCode.SUCCESS
    assert second.code is ResponseCode.SYSTEM_ERROR
    assert "the other end hung up" in second.remark


def test_a_broker_that_closes_lets_the_threads_go_that_wait(tmp_path):
    broker = Broker.open(tmp_path, segment_size_bytes=1 << 20)
    asked, found = threading.Event(), []
    with OverSockets(broker, lambda _: asked.set()):
        thread = threading.Thread(target=lambda: found.append(broker.dispatch(running_info())))
        thread.start()
        wait_for_event(asked, idle_s=10)
        broker.close()
        join_thread(thread, idle_s=20)
    assert [answer.code for answer in found] == [ResponseCode.SERVICE_NOT_AVAILABLE]


def test_another_thread_waits_for_the_one_that_moves_time(tmp_path):
    with open_broker(tmp_path, VirtualClock()) as broker:
        asked, found = threading.Event(), []

        def on_request(_):
            asked.set()
            return Deferred()

        joined(broker, "c1", on_request)
        thread = threading.Thread(target=lambda: found.append(broker.dispatch(running_info())))
        thread.start()
        wait_for_event(asked, idle_s=10)
        for _ in looks("the end of the thread that waits"):
            broker.advance("10s")
            if found:
                break
        assert found[0].code is ResponseCode.CONSUME_MSG_TIMEOUT


def test_an_ask_that_fails_at_once_is_an_answer_too(broker):
    relays = broker._state.relays
    failed = Deferred()
    failed.fail(ConnectionEndedError("over"))
    assert relays.relay([failed], 1_000, lambda: Response(ResponseCode.SUCCESS)).is_done
    assert relays.relay([], 1_000, lambda: Response(ResponseCode.SUCCESS)).is_done
    assert len(relays) == 0

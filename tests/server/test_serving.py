"""A server answers what clients ask over connections, now or later, and asks them."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import replace

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.errors import ConnectionEndedError
from seglog.remoting.admin_bodies import KeyValuesBody
from seglog.remoting.client_headers import ConsumerGroupHeader, RunningInfoHeader
from seglog.remoting.codec import Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, Sender, expect_body, expect_header
from seglog.remoting.frames.frame import Serialization
from seglog.remoting.headers import GetMinOffsetHeader, SendMessageResponseHeader
from seglog.remoting.heartbeat import ConsumerConnectionsBody, ConsumerListBody
from seglog.server.async_server import AsyncServer
from seglog.server.listening import Listener
from seglog.server.shared import SLOW_S
from tests.server.conftest import ask
from tests.server.frames import answers, bytes_of
from tests.support.asks import GROUP, beat_of, bodies_of, pull_from, route_of, send_to
from tests.support.listening import LOOPBACK
from tests.support.machine.patience import wait_for_result, wait_until

RUNNING_INFO = b'{"mqTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"locked":true}}}'


def members_of(group: str) -> Request:
    return Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(group))


def test_pipelined_requests_are_carried_out_in_order_and_all_answered(serve, dial):
    server, codec = serve(), Codec()
    end = dial(server)
    end.sendall(bytes_of(codec, *(send_to("T", b"%d" % number) for number in range(3_000))))
    found = answers(codec, end, 3_000)
    offsets = [
        expect_header(found[number], SendMessageResponseHeader).queue_offset for number in range(3_000)
    ]
    assert offsets == list(range(3_000))


def test_frames_that_come_byte_by_byte_are_answered(serve, dial):
    server, codec = serve(), Codec(serialization=Serialization.ROCKETMQ)
    end = dial(server)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for request, code in (
        (send_to("T"), ResponseCode.SUCCESS),
        (route_of("T"), ResponseCode.SUCCESS),
        (route_of("U"), ResponseCode.TOPIC_NOT_EXIST),
    ):
        for byte in bytes_of(codec, request):
            end.sendall(bytes([byte]))
        assert [each.code for each in answers(codec, end, 1).values()] == [code]
    assert server.server.connection_count == 1


def test_a_oneway_request_is_carried_out_and_never_answered(serve, join):
    server = serve()
    client = join(server)
    client.notify(replace(send_to("T", b"oneway"), is_oneway=True))
    client.notify(Request(RequestCode.SEND_MESSAGE_V2, is_oneway=True))  # it cannot even be read
    client.notify(Request(12_345, is_oneway=True))  # nor is it known
    client.notify(replace(pull_from("T", 1, 60_000), is_oneway=True))
    ask(client, beat_of("c1", "T"))
    wait_until(lambda: server.broker.store.max_offset("T", 0) == 1)
    assert bodies_of(ask(client, pull_from("T", 0))) == [b"oneway"]
    assert client.unasked == []
    wait_until(lambda: server.broker.held_count == 0)


def test_what_cannot_be_read_or_is_not_known_is_refused_and_the_connection_stays(serve, dial):
    server, codec = serve(), Codec()
    end = dial(server)
    end.sendall(bytes_of(codec, Request(RequestCode.SEND_MESSAGE_V2), Request(12_345), route_of("T")))
    found = answers(codec, end, 3)
    assert [found[number].code for number in range(3)] == [
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        ResponseCode.TOPIC_NOT_EXIST,
    ]


def test_a_held_pull_is_answered_when_a_message_comes_from_another_connection(serve, join):
    server = serve()
    consumer, producer = join(server), join(server)
    ask(producer, send_to("T", b"first"))
    ask(consumer, beat_of("c1", "T"))
    held = consumer.ask(pull_from("T", 1, 60_000), 60_000)
    wait_until(lambda: server.broker.held_count == 1)
    assert expect_header(ask(producer, send_to("T", b"second")), SendMessageResponseHeader).queue_offset == 1
    assert bodies_of(wait_for_result(held, idle_s=30)) == [b"second"]


def test_a_pull_beyond_the_limit_of_held_ones_is_answered_at_once(serve, join):
    server = serve(parked_pulls=3)
    client = join(server)
    ask(client, send_to("T"))
    ask(client, beat_of("c1", "T"))
    held = [client.ask(pull_from("T", 1, 60_000), 60_000) for _ in range(4)]
    assert wait_for_result(held[3], idle_s=30).code is ResponseCode.PULL_NOT_FOUND
    assert server.broker.held_count == 3
    assert not any(each.is_done for each in held[:3])


def test_the_end_of_a_connection_takes_its_client_out_and_ends_its_pulls(serve, join):
    server = serve()
    first, second = join(server), join(server)
    ask(first, send_to("T"))
    ask(first, beat_of("c1", "T"))
    ask(second, beat_of("c2", "T"))
    second.ask(pull_from("T", 1, 60_000), 60_000)
    wait_until(lambda: server.broker.held_count == 1)
    wait_until(lambda: [each.code for each in first.told] == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED])
    second.hang_up()
    wait_until(lambda: len(first.told) == 2)
    assert ask(first, members_of(GROUP)).body == ConsumerListBody(("c1",))
    assert server.broker.held_count == 0
    wait_until(lambda: server.server.connection_count == 1)


def test_a_client_is_asked_over_its_connection_and_fails_with_it(serve, join):
    server = serve()
    asked, client = [], join(server)

    def answer(request: Request) -> Response | None:
        asked.append(request)
        return Response(ResponseCode.SUCCESS, body=RUNNING_INFO) if len(asked) == 1 else None

    consumer = join(server, answer)
    ask(consumer, beat_of("c1", "T"))
    how = Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader(GROUP, "c1"))
    assert ask(client, how).body == RUNNING_INFO
    waiting = client.ask(how, 60_000)
    (peer,) = (one.peer for one in server.broker.clients.consumers(GROUP).clients.values())
    mine = peer.channel.ask(how, 60_000)
    wait_until(lambda: len(asked) == 3)
    consumer.hang_up()
    assert wait_for_result(waiting, idle_s=30).code is not ResponseCode.SUCCESS
    with pytest.raises(ConnectionEndedError, match="the connection has ended"):
        wait_for_result(mine, idle_s=30)


def test_a_client_is_what_its_requests_say_it_is_and_where_it_is(serve, join):
    server = serve()
    client = join(server, sender=Sender("GO", 401))
    ask(client, beat_of("c1", "T"))
    where = client._end.getsockname()
    connections = ask(client, Request(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupHeader(GROUP)))
    assert isinstance(connections.body, ConsumerConnectionsBody)
    (one,) = connections.body.connections
    assert (one.client_id, one.address, one.language, one.version) == (
        "c1",
        f"{where[0]}:{where[1]}",
        "GO",
        401,
    )


def test_a_loop_that_exists_serves_beside_other_tasks_and_the_broker_stays_open(tmp_path):
    async def scene(broker: Broker, listener: Listener) -> None:
        codec = Codec()
        async with AsyncServer(broker, listener) as server:
            host, port = server.address.split(":")
            assert host == LOOPBACK
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(bytes_of(codec, send_to("T", b"over a connection")))
            while not any(codec.receive(await reader.read(1 << 16))):
                pass
            assert server.connection_count == server.accepted_count == 1
        assert await reader.read() == b""
        writer.close()

    listener = Listener(LOOPBACK, 0)
    with Broker.open(tmp_path / "s", config=BrokerConfig(address=listener.address)) as broker:
        asyncio.run(scene(broker, listener))
        assert broker.dispatch(send_to("T", b"in process")).code is ResponseCode.SUCCESS
        assert [bytes(each.body) for each in broker.store.get("T", 0, 0).messages] == [
            b"over a connection",
            b"in process",
        ]


def test_a_request_that_keeps_the_loop_is_counted(serve, join, monkeypatch):
    server = serve()
    client = join(server)
    find, said = server.broker.store.min_offset, Request(RequestCode.GET_BROKER_RUNTIME_INFO)

    def slow_count():
        return expect_body(ask(client, said), KeyValuesBody).values["seglog.slowRequests"]

    def slowly(*where):
        time.sleep(SLOW_S)
        return find(*where)

    ask(client, send_to("T"))
    before = int(slow_count())
    monkeypatch.setattr(server.broker.store, "min_offset", slowly)
    ask(client, Request(RequestCode.GET_MIN_OFFSET, GetMinOffsetHeader("T", 0)))
    assert int(slow_count()) >= before + 1

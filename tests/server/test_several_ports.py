"""One server has several ports: RocketMQ's usual three lead to one broker, and have limits together."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from functools import partial

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.errors import CannotListenError, InvalidArgumentError
from seglog.remoting.bodies import TopicRouteBody
from seglog.remoting.codec import Codec
from seglog.remoting.codes import MASTER_ID, ResponseCode
from seglog.remoting.command import expect_body, expect_header
from seglog.remoting.headers import SendMessageResponseHeader
from seglog.server.limits import ServerLimits
from seglog.server.listening import DEFAULT_BROKER_PORT, DEFAULT_PORT, VIP_DISTANCE, Listener
from seglog.server.server import Server
from tests.server.frames import answers, bytes_of, ends
from tests.support.asks import beat_of, bodies_of, pull_from, route_of, send_to
from tests.support.brokers import on_a_roomy_disk
from tests.support.listening import LOOPBACK, BrokerServer
from tests.support.machine.patience import join_thread, patience_s, wait_until


@pytest.fixture
def serve_three(tmp_path):
    """Serves a broker at three ports, with the limits that are named."""
    servers = []

    def serve(**limits):
        servers.append(BrokerServer(tmp_path / "served", limits=ServerLimits(**limits), broker_port=0))
        return servers[-1]

    yield serve
    for each in servers:
        each.close()


@pytest.fixture
def dial_at():
    """Connects sockets to listeners; they are closed in the end."""
    ends_of = []

    def dial(listener):
        ends_of.append(socket.create_connection((LOOPBACK, listener.port), patience_s(30)))
        return ends_of[-1]

    yield dial
    for each in ends_of:
        each.close()


def is_free(port):
    """Returns whether something can listen at a port."""
    try:
        Listener(port=port).close()
    except CannotListenError:
        return False
    return True


def test_the_usual_ports_are_those_of_rocketmq():
    assert (DEFAULT_PORT, DEFAULT_BROKER_PORT, DEFAULT_BROKER_PORT - VIP_DISTANCE) == (9876, 10911, 10909)


def test_all_three_may_be_free_ones_and_the_vip_channel_is_two_below_the_broker():
    name_server, broker, vip = Listener.usual_three(port=0, broker_port=0)
    with name_server, broker, vip:
        assert vip.port == broker.port - 2
        assert len({name_server.port, broker.port, vip.port}) == 3
        assert broker.address == f"127.0.0.1:{broker.port}"


class Crowded(Listener):
    """Ports of a machine on which the next few that are wanted are taken just before."""

    many = 0

    def __init__(self, host=LOOPBACK, port=0, *, insecure=False):
        if port and len(others) < self.many:
            with suppress(OSError):  # a process beside the test took it
                others.append(socket.create_server((host, port)))
        super().__init__(host, port, insecure=insecure)


others: list[socket.socket] = []


@pytest.fixture
def crowd(monkeypatch):
    """Has so many ports that are wanted by number taken by others."""
    yield lambda many: monkeypatch.setattr(Crowded, "many", many)
    while others:
        others.pop().close()


def test_where_any_broker_port_will_do_one_whose_vip_channel_is_taken_is_given_back(crowd):
    crowd(3)
    three = Crowded.usual_three(port=0, broker_port=0)
    tried = [each.getsockname()[1] + VIP_DISTANCE for each in others]
    assert len(tried) == 3
    assert all(is_free(port) for port in tried)
    assert three[2].port == three[1].port - VIP_DISTANCE
    for each in three:
        each.close()


def test_where_no_vip_channel_is_free_that_is_an_error_and_nothing_is_kept(crowd):
    crowd(1_000)
    with pytest.raises(CannotListenError, match="Address already in use"):
        Crowded.usual_three(port=0, broker_port=0)
    assert all(is_free(each.getsockname()[1] + VIP_DISTANCE) for each in others)


@pytest.mark.parametrize("taken", [1, 2], ids=["broker", "vip"])
def test_a_port_in_use_is_named_and_the_others_are_given_back(taken):
    three = Listener.usual_three(port=0, broker_port=0)
    for number, each in enumerate(three):
        if number != taken:
            each.close()
    with (
        three[taken] as other,
        pytest.raises(CannotListenError, match=f"127.0.0.1:{other.port}: Address already in use"),
    ):
        Listener.usual_three(port=three[0].port, broker_port=three[1].port)
    assert all(is_free(each.port) for each in three)


@pytest.mark.parametrize("port", [1, 2, -1, 65_536, True, "10911"])
def test_a_broker_port_without_a_port_two_below_it_is_refused(port):
    with pytest.raises(InvalidArgumentError, match="broker_port"):
        Listener.usual_three(port=0, broker_port=port)


def test_every_port_leads_to_the_same_broker_and_routes_name_that_of_the_broker(serve_three, dial_at):
    server = serve_three()
    offsets = []
    for listener in server.listeners:
        codec, end = Codec(), dial_at(listener)
        end.sendall(bytes_of(codec, send_to("T")))
        (sent,) = answers(codec, end, 1).values()
        offsets.append(expect_header(sent, SendMessageResponseHeader).queue_offset)
        end.sendall(bytes_of(codec, route_of("T")))  # it would overtake a send
        (found,) = answers(codec, end, 1).values()
        (named,) = expect_body(found, TopicRouteBody).brokers
        assert named.broker_addresses == {MASTER_ID: server.listeners[1].address}
    assert offsets == [0, 1, 2]
    assert server.server.addresses == tuple(each.address for each in server.listeners)
    assert server.server.address == server.listeners[0].address
    assert [each.accepted_count for each in server.listeners] == [1, 1, 1]
    assert server.server.accepted_count == server.server.connection_count == 3


def test_a_pull_held_at_one_port_gets_what_comes_in_at_another(serve_three, dial_at):
    server = serve_three()
    name_server, broker, vip = server.listeners
    codec, consumer = Codec(), dial_at(broker)
    consumer.sendall(bytes_of(codec, send_to("T", b"first"), beat_of("c1", "T")))
    answers(codec, consumer, 2)
    pulls, pulling = Codec(), dial_at(vip)
    pulling.sendall(bytes_of(pulls, pull_from("T", 1, 60_000)))
    wait_until(lambda: server.broker.held_count == 1)
    sends, sending = Codec(), dial_at(name_server)
    sending.sendall(bytes_of(sends, send_to("T", b"second")))
    answers(sends, sending, 1)
    (got,) = answers(pulls, pulling, 1).values()
    assert bodies_of(got) == [b"second"]


def test_connections_are_limited_over_all_ports_together(serve_three, dial_at, caplog):
    server = serve_three(connections=3)
    firsts = [dial_at(each) for each in server.listeners]
    for end in firsts:
        codec = Codec()
        end.sendall(bytes_of(codec, route_of("T")))
        assert answers(codec, end, 1)[0].code is ResponseCode.TOPIC_NOT_EXIST
    for each in server.listeners:
        assert ends(dial_at(each))
    assert "there are 3 already" in caplog.text
    assert [each.accepted_count for each in server.listeners] == [1, 1, 1]


def test_bytes_of_unfinished_frames_are_limited_over_all_ports_together(serve_three, dial_at, caplog):
    server = serve_three(begun_bytes=3 << 20)
    begun = (16_000_000).to_bytes(4) + (4).to_bytes(4) + bytes(1_100_000)
    clients = [dial_at(each) for each in server.listeners]
    for number, client in enumerate(clients[:2]):
        client.sendall(begun)
        wait_until(partial(has_begun, server, (number + 1) * len(begun)))
    assert "whose end has not" not in caplog.text
    with suppress(ConnectionError):
        clients[2].sendall(begun)
    wait_until(lambda: "bytes of frames have come whose end has not" in caplog.text)


def has_begun(server, least_bytes):
    """Returns whether a server has so much of frames whose end has not come."""
    return server.server._server._shared.begun_bytes >= least_bytes


def test_a_stop_closes_every_port_and_ends_the_connections_of_each(serve_three, dial_at):
    server = serve_three()
    clients = [dial_at(each) for each in server.listeners]
    for end in clients:
        codec = Codec()
        end.sendall(bytes_of(codec, route_of("T")))
        answers(codec, end, 1)
    stop = threading.Thread(target=server.server.close)
    stop.start()
    assert all(ends(end) for end in clients)
    join_thread(stop, idle_s=30)
    assert not stop.is_alive()
    assert all(is_free(each.port) for each in server.listeners)


def test_a_server_that_cannot_have_one_listener_leaves_the_others_to_another_server(tmp_path):
    with Broker.open(tmp_path / "s", config=on_a_roomy_disk(BrokerConfig(address="127.0.0.1:1"))) as broker:
        closed, free = Listener(port=0), Listener(port=0)
        closed.close()
        with pytest.raises(InvalidArgumentError, match="was closed"):
            Server(broker, free, closed)
        with pytest.raises(InvalidArgumentError, match="a server has the listener"):
            Server(broker, free, free)
        with Server(broker, free) as server:
            assert server.address == free.address


def test_what_is_no_listener_is_refused(tmp_path):
    with (
        Broker.open(tmp_path / "s", config=on_a_roomy_disk(BrokerConfig())) as broker,
        Listener(port=0) as one,
        pytest.raises(InvalidArgumentError, match="listener"),
    ):
        Server(broker, one, "127.0.0.1:9876")  # type: ignore[arg-type]

"""Connections are made, lost and rebuilt; each ask ends, with its answer or an error that says why."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from seglog.client.home.thread_home import thread_home
from seglog.client.links import backoff, connection
from seglog.client.links.events import Connected, Lost
from seglog.errors import (
    AskLimitError,
    AskTimeoutError,
    CannotConnectError,
    ConnectionEndedError,
    InvalidArgumentError,
    ProtocolError,
)
from seglog.remoting.codec import Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_header, refuse
from seglog.remoting.headers import SendMessageResponseHeader
from seglog.remoting.later.asked import MOST_ASKED, MOST_ASKED_BY_CLIENT
from tests.support.asks import beat_of, bodies_of, pull_from, send_to
from tests.support.listening import BrokerServer, Server
from tests.support.machine.patience import (
    join_thread,
    patience_s,
    wait_for_event,
    wait_for_result,
    wait_until,
)
from tests.support.peers import (
    ASK,
    ENDED,
    answering,
    asked_with,
    closed_port,
    echo,
    read_for_ever,
)


def test_a_thousand_asks_in_a_burst_are_few_writes_and_one_wake_up(link_to, monkeypatch):
    received = []

    def serve(one, number):
        codec = Codec()
        while data := one.recv(1 << 20):
            received.append(len(data))
            for event in asked_with(codec, data):
                one.sendall(b"".join(codec.answer(event, echo(event.request))))

    with Server(serve) as server:
        link = link_to(server.address)
        assert link.invoke(ASK).code is ResponseCode.SUCCESS
        (there,) = link._lines[server.address]._open
        writes, write = [], there._transport.write
        there._outbox.open(lambda data: (writes.append(len(data)), write(data)))
        asked, stopped, go = [], threading.Event(), threading.Event()
        thread_home().post(lambda: (stopped.set(), go.wait(patience_s(5))))
        wait_for_event(stopped)  # the home is busy while the burst comes
        asked += [link.ask(Request(9_999, body=b"%d" % number)) for number in range(1_000)]
        go.set()
        assert [bytes(wait_for_result(one, idle_s=10).body) for one in asked] == [
            b"%d" % n for n in range(1_000)
        ]
        assert len(writes) == 1


def test_a_request_of_a_thread_that_is_alone_is_written_while_the_home_is_busy(link_to):
    received = threading.Event()

    def serve(one, number):
        codec = Codec()
        while data := one.recv(1 << 20):
            for event in asked_with(codec, data):
                if event.request.body == b"alone":
                    received.set()
                one.sendall(b"".join(codec.answer(event, echo(event.request))))

    with Server(serve) as server:
        link = link_to(server.address)
        assert link.invoke(ASK).code is ResponseCode.SUCCESS
        stopped, go = threading.Event(), threading.Event()
        thread_home().post(lambda: (stopped.set(), go.wait(patience_s(5))))
        wait_for_event(stopped)
        asked = link.ask(Request(9_999, body=b"alone"))
        wait_for_event(received, idle_s=3)
        go.set()
        assert bytes(wait_for_result(asked, idle_s=10).body) == b"alone"


def test_an_address_that_refuses_is_an_error_that_can_be_tried_again_and_then_left_alone(link_to, events):
    address = f"127.0.0.1:{closed_port()}"
    link = link_to(address)
    with pytest.raises(CannotConnectError, match=r"cannot be connected to: .*refused") as caught:
        link.invoke(ASK)
    assert (caught.value.address, caught.value.is_retryable) == (address, True)
    at_once = link.ask(ASK)
    assert at_once.is_done
    with pytest.raises(CannotConnectError, match=r"cannot be connected to: .*refused\nhelp"):
        at_once.result()
    assert events == []


def test_back_off_doubles_to_a_limit_and_ends_when_something_is_there(link_to, events, tmp_path):
    port = closed_port()
    address = f"127.0.0.1:{port}"
    link = link_to(address)
    waits = backoff.Backoff()
    left = []
    for _ in range(9):
        waits.failed(0.0, "x")
        left.append(waits.left_ms(0.0))
    assert left == [100, 200, 400, 800, *[1_000] * 5]
    with pytest.raises(CannotConnectError):
        link.invoke(ASK)
    with Server(answering(echo), port=port):
        wait_until(lambda: link.ask(ASK).error is None and wait_for_result(link.ask(ASK), idle_s=5))
        assert link.invoke(ASK).code is ResponseCode.SUCCESS
    assert events[0] == Connected(address)


def test_what_is_in_flight_at_a_loss_fails_and_the_next_ask_connects_again(link_to, events):
    with Server(
        lambda one, number: read_for_ever(one) if number == 0 else answering(echo)(one, number)
    ) as server:
        link = link_to(server.address)
        waiting = [link.ask(ASK, 30_000) for _ in range(5)]
        wait_until(lambda: server.sockets)
        server.hang_up()
        for one in waiting:
            with pytest.raises(ConnectionEndedError, match=r"hung up|broke") as caught:
                wait_for_result(one, idle_s=5)
            assert caught.value.is_retryable
        assert [type(event) for event in events] == [Connected, Lost]
        wait_until(lambda: link.ask(ASK).error is None)  # it never answered, so it rests a moment
        assert link.invoke(ASK).code is ResponseCode.SUCCESS
        assert [type(event) for event in events] == [Connected, Lost, Connected]


def test_a_connection_that_has_served_is_made_again_at_once(link_to):
    with Server(answering(echo)) as server:
        link = link_to(server.address)
        for _ in range(5):
            assert link.invoke(ASK).code is ResponseCode.SUCCESS
            server.hang_up()
            wait_until(lambda: not link._lines[server.address]._open)
        assert len(server.sockets) == 5


def test_a_request_that_cannot_be_written_fails_alone(link_to):
    with Server(answering(echo)) as server:
        link = link_to(server.address)
        with pytest.raises(ProtocolError):
            link.invoke(Request(9_999, body=bytes(17 << 20)))
        with pytest.raises(ProtocolError):
            link.tell(Request(9_999, body=bytes(17 << 20)))
        assert link.invoke(ASK).code is ResponseCode.SUCCESS


def test_so_many_asks_may_wait_and_no_more(link_to, monkeypatch):
    monkeypatch.setattr(connection, "MOST_ASKED_BY_CLIENT", 64)
    with Server(read_for_ever) as server:
        link = link_to(server.address)
        asked = [link.ask(ASK, 60_000) for _ in range(65)]
        with pytest.raises(AskLimitError):
            asked[-1].result()
        assert not any(one.is_done for one in asked[:-1])
        asked[0].cancel()
        assert not link.ask(ASK, 60_000).is_done


def test_pulls_of_thousands_of_queues_wait_at_a_broker_and_take_no_others_place(link_to):
    assert MOST_ASKED_BY_CLIENT == 65_535, "as many as Java's clients"
    with Server(answering(lambda request: echo(request) if request.code == ASK.code else None)) as server:
        link = link_to(server.address)
        pulls = [link.ask(Request(RequestCode.PULL_MESSAGE), 60_000) for _ in range(2 * MOST_ASKED)]
        assert link.invoke(ASK).code is ResponseCode.SUCCESS
        assert not any(one.is_done for one in pulls)


def test_go_away_is_followed_once_over_a_new_connection(link_to, events):
    def first_serves_then_goes(one, number):
        seen = []

        def answer(request):
            seen.append(request)
            gone = number == 0 and len(seen) > 1
            return refuse(ResponseCode.GO_AWAY, "bye") if gone else echo(request)

        answering(answer)(one, number)

    with Server(first_serves_then_goes) as server:
        link = link_to(server.address)
        link.invoke(ASK)
        asked = [link.ask(Request(9_999, body=b"%d" % number)) for number in range(20)]
        assert [bytes(wait_for_result(one, idle_s=5).body) for one in asked] == [b"%d" % n for n in range(20)]
        assert len(server.sockets) == 2
        assert [type(event) for event in events] == [Connected, Lost, Connected]
        wait_until(lambda: len(link._lines[server.address]._open) == 1)


def test_a_broker_that_only_sends_away_is_believed_and_left_alone(link_to):
    with Server(answering(lambda _: refuse(ResponseCode.GO_AWAY, "bye"))) as server:
        link = link_to(server.address)
        with pytest.raises(CannotConnectError, match="sends its clients away"):
            link.invoke(ASK)
        assert len(server.sockets) == 1


def test_go_away_twice_is_an_answer(link_to):
    def serve(one, number):
        seen = []

        def answer(request):
            seen.append(request)
            return echo(request) if len(seen) == 1 and number == 0 else refuse(ResponseCode.GO_AWAY, "bye")

        answering(answer)(one, number)

    with Server(serve) as server:
        link = link_to(server.address)
        link.invoke(ASK)
        assert link.invoke(ASK).code is ResponseCode.GO_AWAY
        assert len(server.sockets) == 2


def test_name_servers_are_tried_in_turn_and_the_one_that_answers_is_kept(link_to):
    dead = [f"127.0.0.1:{closed_port()}" for _ in range(2)]
    with Server(answering(echo)) as server, Server(answering(echo)) as second:
        link = link_to(";".join([*dead, server.address, second.address]))
        for _ in range(3):
            assert link.invoke(ASK).code is ResponseCode.SUCCESS
        assert (len(server.sockets), len(second.sockets)) == (1, 0)
        server.close()
        wait_until(lambda: not link._lines[server.address]._open)
        assert link.invoke(ASK).code is ResponseCode.SUCCESS
        assert len(second.sockets) == 1
    with suppress(*ENDED):
        link.invoke(ASK)
    with pytest.raises(CannotConnectError, match=r"no name server answers: .*;.*;.*;"):
        link.invoke(ASK)


def test_a_name_server_and_broker_at_one_address_share_a_connection(link_to):
    with Server(answering(echo)) as server:
        link = link_to(server.address)
        link.invoke(ASK)
        link.invoke(ASK, to=server.address)
        link.tell(ASK, server.address)
        link.invoke(ASK, to=server.address)
        assert len(server.sockets) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_addresses_may_be_ipv4_ipv6_or_names(link_to, host):
    try:
        server = Server(answering(echo), "127.0.0.1" if host == "localhost" else host)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server:
        address = f"localhost:{server.port}" if host == "localhost" else server.address
        assert link_to(address).invoke(ASK).code is ResponseCode.SUCCESS


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        " ; ",
        "host",
        "host:",
        ":1",
        "host:0",
        "host:65536",
        "h:\u0661",
        "h:-1",
        "\udcff:9876",
        "h\u202e:1",
    ],
)
def test_what_is_no_address_is_refused(link_to, wrong):
    with pytest.raises(InvalidArgumentError):
        link_to(wrong)
    link = link_to("127.0.0.1:1")
    with pytest.raises(InvalidArgumentError):
        link.ask(ASK, to=wrong or "x").result()
    with pytest.raises(InvalidArgumentError):
        link.tell(ASK, to=wrong or "x")


@pytest.mark.parametrize("name", ["no-such-host.invalid", "x" * 70, "a..b"])
def test_a_name_that_cannot_be_found_is_an_address_that_cannot_be_connected_to(link_to, name):
    with pytest.raises((CannotConnectError, AskTimeoutError)):
        link_to(f"{name}:9876").invoke(ASK, 20_000)


def test_a_broker_that_comes_back_is_found_again(tmp_path, link_to, events):
    with BrokerServer(tmp_path) as server:
        port, address = server.port, server.address
        link = link_to(address)
        assert link.invoke(send_to("T"), to=address).code is ResponseCode.SUCCESS
        link.invoke(beat_of(link.client_id, "T"), to=address)
        held = link.ask(pull_from("T", 1, 20_000), 30_000, address)
    with suppress(*ENDED):
        assert wait_for_result(held, idle_s=5).code is ResponseCode.PULL_NOT_FOUND
    with BrokerServer(tmp_path, port):

        def is_sent():
            asked = link.ask(send_to("T", b"again"), to=address)
            with suppress(*ENDED):
                return wait_for_result(asked, idle_s=5).code is ResponseCode.SUCCESS

        wait_until(is_sent)
        link.invoke(beat_of(link.client_id, "T"), to=address)
        assert bodies_of(link.invoke(pull_from("T", 1), to=address)) == [b"again"]
    assert [type(event) for event in events[:3]] == [Connected, Lost, Connected]


def test_threads_pipeline_to_several_brokers_and_each_keeps_its_order(tmp_path, link_to):
    with BrokerServer(tmp_path / "a") as first, BrokerServer(tmp_path / "b") as second:
        link, wrong = link_to(first.address), []

        def run(number):
            address = (first, second)[number % 2].address
            asked = [link.ask(send_to(f"T{number}", b"%d" % turn), 30_000, address) for turn in range(200)]
            for turn, one in enumerate(asked):
                offset = expect_header(wait_for_result(one), SendMessageResponseHeader).queue_offset
                if offset != turn:
                    wrong.append((number, turn, offset))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            join_thread(thread, idle_s=30)
        assert wrong == []
        assert (first.server.accepted_count, second.server.accepted_count) == (1, 1)

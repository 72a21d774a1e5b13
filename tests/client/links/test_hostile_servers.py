"""Servers that cut, lie, or neither read nor answer: errors in time, never a hang."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from itertools import pairwise

import pytest

from seglog.client.links import connection, outbox
from seglog.client.links.events import Connected, Lost
from seglog.errors import (
    AskLimitError,
    AskTimeoutError,
    ConnectionEndedError,
    ProtocolError,
)
from seglog.remoting.codec import Asked, Codec
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response, refuse
from tests.support.asks import route_of
from tests.support.listening import Server
from tests.support.machine.patience import LateError, wait_for_event, wait_for_result, wait_until
from tests.support.peers import (
    ASK,
    ENDED,
    asked_with,
    echo,
    read_for_ever,
)


def test_connections_cut_at_any_byte_lose_no_answer_and_hang_nothing(link_to):
    rng = random.Random(20)

    def serve(one, number):
        codec, left = Codec(), rng.randint(0, 4_000)
        while left > 0 and (data := one.recv(1 << 16)):
            for event in asked_with(codec, data):
                answer = b"".join(codec.answer(event, echo(event.request)))
                one.sendall(answer[:left])
                left -= len(answer)
                if left <= 0:
                    break
        if rng.random() < 0.5:  # RST instead of FIN
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with Server(serve) as server:
        link, answered, failed = link_to(server.address), 0, 0
        for turn in range(60):
            wait_until(lambda: link.ask(ASK).error is None)  # an address that was cut at once rests a moment
            bodies = [b"%d-%d" % (turn, number) + b"x" * rng.randint(0, 300) for number in range(10)]
            asked = [link.ask(Request(9_999, body=body), 10_000) for body in bodies]
            for one, body in zip(asked, bodies, strict=True):
                try:
                    assert bytes(wait_for_result(one).body) == body
                    answered += 1
                except ENDED:
                    failed += 1
        assert answered > 100
        assert failed > 20
    assert len(link._lines[server.address]._open) <= 1


def test_a_server_that_never_answers_is_given_up_in_time(link_to, monkeypatch, events):
    monkeypatch.setattr(connection, "SILENT_MS", 100)
    with Server(read_for_ever) as server:
        link = link_to(server.address)
        held = link.ask(ASK, 60_000)
        with pytest.raises(AskTimeoutError, match=r"request 9999 to .* got no answer within 150 ms"):
            wait_for_result(link.ask(ASK, 150), idle_s=5)
        with pytest.raises(ConnectionEndedError, match="silent"):
            wait_for_result(held, idle_s=5)
        assert [type(event) for event in events] == [Connected, Lost]


def test_a_late_answer_and_a_second_one_are_dropped(link_to):
    late = []

    def serve(one, number):
        codec = Codec()
        while data := one.recv(1 << 16):
            for event in asked_with(codec, data):
                if not late:
                    late.append(event)
                    continue
                if len(late) == 1:
                    one.sendall(b"".join(codec.answer(late[0], refuse(ResponseCode.SYSTEM_ERROR, "late"))))
                    late.append(event)
                twice = b"".join(codec.answer(event, echo(event.request)))
                one.sendall(twice + twice)

    with Server(serve) as server:
        link = link_to(server.address)
        with pytest.raises(AskTimeoutError):
            wait_for_result(link.ask(ASK, 50), idle_s=5)
        for number in range(20):
            assert bytes(link.invoke(Request(9_999, body=b"%d" % number)).body) == b"%d" % number
        assert len(server.sockets) == 1


@pytest.mark.parametrize(
    "garbage",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(8), b"\xff" * 8, b"\0\0\0\x08\0\0\0\x04nope", bytes(64)],
)
def test_what_is_no_frame_ends_the_connection(link_to, events, garbage):
    def serve(one, number):
        one.recv(1)
        one.sendall(garbage)
        read_for_ever(one)

    with Server(serve) as server:
        with pytest.raises(ConnectionEndedError, match="sent what is no frame"):
            link_to(server.address).invoke(ASK, 20_000)
        assert [type(event) for event in events] == [Connected, Lost]


def test_an_answer_that_cannot_be_read_fails_its_request_alone(link_to):
    def serve(one, number):
        codec = Codec()
        while data := one.recv(1 << 16):
            for event in asked_with(codec, data):
                body = b"no JSON" if event.request.code == 105 else None
                # Written as the answer to a code that has bytes.
                asked = Asked(event.opaque, ASK)
                one.sendall(b"".join(codec.answer(asked, Response(ResponseCode.SUCCESS, body=body))))

    with Server(serve) as server:
        link = link_to(server.address)
        with pytest.raises(ProtocolError):
            link.invoke(route_of("T"))
        assert link.invoke(ASK).code is ResponseCode.SUCCESS
        assert len(server.sockets) == 1


def test_a_server_that_never_reads_fills_no_memory_and_loses_its_connection(link_to, monkeypatch):
    monkeypatch.setattr(connection, "STALL_MS", 300)
    release = threading.Event()

    def serve(one, number):
        wait_for_event(release, idle_s=20)

    with Server(serve) as server:
        link = link_to(server.address)
        asked = [link.ask(Request(9_999, body=bytes(4 << 20)), 30_000) for _ in range(30)]
        limited = [one for one in asked if isinstance(one.error, AskLimitError)]
        assert limited
        with pytest.raises(AskLimitError, match="32 MiB wait to be written"):
            limited[-1].result()
        for one in asked[:3]:
            with pytest.raises(ConnectionEndedError, match="has read nothing"):
                wait_for_result(one, idle_s=10)
        release.set()
    assert outbox.MOST_BYTES == 32 << 20


def test_a_slow_reader_keeps_its_connection(link_to, monkeypatch):
    for stall_ms in (300, 1_500, 7_500):
        monkeypatch.setattr(connection, "STALL_MS", stall_ms)
        took_ms, longest_nap_ms = send_to_a_slow_reader(link_to, 0.005 * stall_ms / 300)
        if longest_nap_ms < stall_ms / 2:  # else the machine had no time for the reader
            assert took_ms > stall_ms
            return
    raise LateError("a reader got no turn for seconds")


def send_to_a_slow_reader(link_to, nap_s):
    """Returns how many ms a reader took for 24 MiB, and how many it was at rest at most."""
    read_s = []

    def serve(one, number):
        codec = Codec()
        while data := one.recv(1 << 17):
            read_s.append(time.monotonic())
            time.sleep(nap_s)
            for event in asked_with(codec, data):
                one.sendall(b"".join(codec.answer(event, Response(ResponseCode.SUCCESS))))

    with Server(serve) as server:
        link = link_to(server.address)
        asked = [link.ask(Request(9_999, body=bytes(1 << 20)), 60_000) for _ in range(24)]
        ends = [ended_as(one) for one in asked]
    naps_s = [after - before for before, after in pairwise(read_s)]
    longest_ms = 1_000 * max(naps_s)
    if longest_ms < connection.STALL_MS / 2:
        assert (set(ends), len(server.sockets)) == ({ResponseCode.SUCCESS}, 1)
    return 1_000 * sum(naps_s), longest_ms


def ended_as(one):
    """Returns the code of an answer, or the error."""
    try:
        return wait_for_result(one, idle_s=30).code
    except ENDED as error:
        return type(error)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0"])
def test_a_length_that_cannot_be_ends_the_connection_though_nothing_follows_it(link_to, length):
    def serve(one, number):
        assert one.recv(1 << 16)
        one.sendall(length)
        assert not one.recv(1 << 16), "the client has hung up"

    with Server(serve) as server:
        asked = link_to(server.address).ask(Request(9_999), 60_000)
        with pytest.raises(ConnectionEndedError, match="has sent what is no frame: a frame says it has"):
            wait_for_result(asked)

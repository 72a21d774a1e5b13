"""Clients that are slow, silent, greedy or broken are left in time, and no other client notices."""

from __future__ import annotations

import random
import struct
import time
from contextlib import suppress

import pytest

from seglog.remoting.codec import Codec
from seglog.remoting.codes import ResponseCode
from tests.server.conftest import ask
from tests.server.frames import answers, bytes_of, ends
from tests.support.asks import beat_of, bodies_of, pull_from, route_of, send_to
from tests.support.machine.patience import wait_until
from tests.support.scale import commit_seed, repeatable, scaled

BODY = bytes(range(256)) * 400


def test_half_a_frame_has_a_time_and_a_slow_byte_does_not_make_it_longer(serve, dial, join, caplog):
    server = serve(frame_ms=300, sweep_ms=20)
    canary, slow = join(server), dial(server)
    frame = bytes_of(Codec(), send_to("T", bytes(3_000)))
    slow.sendall(frame)
    slow.setblocking(False)
    for byte in frame[:-1]:
        try:
            slow.sendall(bytes([byte]))
            time.sleep(0.02)
            if slow.recv(1 << 16) == b"":
                break
        except BlockingIOError:
            continue
        except ConnectionError:
            break
    else:
        raise AssertionError("it was let to send for a minute")
    assert "bytes of a frame came" in caplog.text
    assert ask(canary, route_of("T")).code is ResponseCode.SUCCESS


def test_a_silent_connection_is_closed(serve, dial, caplog):
    server = serve(idle_ms=200, sweep_ms=20)
    assert ends(dial(server))
    assert "it was silent for 200 ms" in caplog.text


def test_a_client_that_never_reads_is_closed_and_what_waits_for_it_is_bounded(serve, dial, join, caplog):
    server = serve(stall_ms=300, sweep_ms=20, answer_bytes=1 << 20)
    canary, greedy, codec = join(server), dial(server), Codec()
    for _ in range(8):
        ask(canary, send_to("T", BODY))
    greedy.sendall(bytes_of(codec, beat_of("c1", "T")))
    answers(codec, greedy, 1)
    waiting = []
    connection = end_of(server, greedy)
    try:
        for _ in range(2_000):
            greedy.sendall(bytes_of(codec, pull_from("T", 0)))
            waiting.append(connection._out.waiting_bytes)
    except (TimeoutError, ConnectionError):
        pass
    wait_until(lambda: "it has read nothing for 300 ms" in caplog.text, idle_s=30)
    assert max(waiting) < 3 << 20  # the limit, and what one more answer can be
    assert ask(canary, route_of("T")).code is ResponseCode.SUCCESS


def end_of(server, client):
    """Returns the server's end of a connection, once there is one."""
    port = client.getsockname()[1]
    found = []

    def look():
        found[:] = [each for each in tuple(server.server._server._connections) if each._host.port == port]
        return found

    wait_until(look)
    return found[0]


def test_a_slow_reader_gets_all_of_many_answers(serve, dial, join):
    server, codec = serve(answer_bytes=100_000), Codec()
    ask(join(server), send_to("T", BODY))
    reader = dial(server)
    reader.sendall(bytes_of(codec, beat_of("c1", "T"), *(pull_from("T", 0) for _ in range(200))))
    connection = end_of(server, reader)
    wait_until(lambda: connection.is_busy and not connection._transport.is_reading())
    found = answers(codec, reader, 201, 5_000)
    wait_until(connection._transport.is_reading)
    assert all(bodies_of(found[number]) == [BODY] for number in range(1, 201))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (struct.pack(">iI", 16_777_217, 4), "a frame says it has 16777217 bytes"),
        (struct.pack(">iI", -1, 4), "a frame says it has 4294967295 bytes"),
        (struct.pack(">iI", 100, 97), "says its header has 97"),
        (struct.pack(">iI", 100, 2 << 24 | 4), "a header says it has form 2"),
        (struct.pack(">iI", 6, 2) + b"xx", "it has sent what is no frame"),
        (b"GET / HTTP/1.1\r\n\r\n", "a frame says it has"),
    ],
)
def test_what_is_no_frame_ends_its_connection_after_the_answers_before_it(serve, dial, caplog, data, said):
    server, codec = serve(), Codec()
    end = dial(server)
    end.sendall(bytes_of(codec, route_of("T")) + data)
    assert answers(codec, end, 1)[0].code is ResponseCode.TOPIC_NOT_EXIST
    assert ends(end)
    wait_until(lambda: said in caplog.text)


def test_unfinished_frames_of_all_clients_have_a_limit(serve, dial, join, caplog):
    server = serve(begun_bytes=3 << 20)
    canary = join(server)
    begun = struct.pack(">iI", 16_000_000, 4) + bytes(1 << 20)
    clients = [dial(server) for _ in range(4)]
    for client in clients:
        with suppress(ConnectionError):
            client.sendall(begun)
    wait_until(lambda: "bytes of frames have come whose end has not" in caplog.text)
    assert ask(canary, route_of("T")).code is ResponseCode.TOPIC_NOT_EXIST


def test_connections_beyond_the_limit_are_closed_and_those_before_stay(serve, dial, join, caplog):
    server = serve(connections=3)
    clients = [join(server) for _ in range(3)]
    assert all(ask(each, route_of("T")).code is ResponseCode.TOPIC_NOT_EXIST for each in clients)
    assert ends(dial(server))
    assert "there are 3 already" in caplog.text
    clients.pop().hang_up()
    wait_until(lambda: server.server.connection_count == 2)
    assert ask(join(server), route_of("T")).code is ResponseCode.TOPIC_NOT_EXIST
    assert ask(clients[0], route_of("T")).code is ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize("seed", ["21", commit_seed()], ids=["fixed", "of the commit"])
def test_damaged_frames_harm_no_other_connection(serve, dial, join, seed):
    with repeatable(seed):
        harm_none(serve(), dial, join, random.Random(seed))


def harm_none(server, dial, join, chance):
    """Sends damaged frames over connections that break, and looks again and again how another one is."""
    canary = join(server)
    ask(canary, send_to("canary", b"canary"))
    ask(canary, beat_of("canary", "canary"))
    requests = send_to("U", b"x" * 50), pull_from("U", 0), route_of("U"), beat_of("c", "U", "h")
    good = [bytes_of(Codec(), each) for each in requests]
    end = dial(server)
    for number in range(scaled(750, 500_000)):
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        try:
            end.sendall(data)
            if chance.random() < 0.2:
                raise ConnectionError
        except ConnectionError:
            end.close()
            end = dial(server)
        if number % 50 == 0:
            assert bodies_of(ask(canary, pull_from("canary", 0))) == [b"canary"]
    assert bodies_of(ask(canary, pull_from("canary", 0))) == [b"canary"]
    end.close()
    wait_until(lambda: server.server.connection_count == 1, idle_s=30)
    assert server.server._server._shared.begun_bytes == 0

"""A peer that speaks another protocol is named in the log, once a minute, and is told so where it can be."""

from __future__ import annotations

import http.client
import socket
import ssl

import pytest

from seglog.remoting.codes import ResponseCode
from seglog.server.strangers import HEAD_BYTES, stranger_of
from tests.server.conftest import ask
from tests.server.frames import ends
from tests.support.asks import route_of
from tests.support.machine.patience import patience_s, wait_until


def said(caplog, words: str) -> list[str]:
    return [one.getMessage() for one in caplog.records if words in one.getMessage()]


def test_a_client_that_speaks_tls_is_named_and_left(serve, join, caplog):
    server = serve()
    host, _, port = server.address.rpartition(":")
    context = ssl.create_default_context()
    for _ in range(3):
        with (
            socket.create_connection((host, int(port))) as plain,
            pytest.raises((ssl.SSLError, ConnectionError)),
        ):
            context.wrap_socket(plain, server_hostname="broker")
    wait_until(lambda: server.server.connection_count == 0)
    assert len(said(caplog, "a client speaks TLS; this server has none")) == 1
    assert "Traceback" not in caplog.text
    assert ask(join(server), route_of("TBW102")).code is ResponseCode.SUCCESS


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_a_client_that_speaks_http_gets_an_answer_in_that(serve, caplog, method):
    server = serve()
    web = http.client.HTTPConnection(server.address, timeout=patience_s(60))
    web.request(method, "/metrics", body=b"x" * 100_000 if method == "POST" else None)
    answer = web.getresponse()
    text = answer.read()
    web.close()
    assert (answer.status, answer.getheader("Connection")) == (400, "close")
    assert text == (
        b"" if method == "HEAD" else b"This port speaks Apache RocketMQ's remoting protocol, not HTTP.\n"
    )
    assert said(caplog, "a client speaks HTTP")
    wait_until(lambda: server.server.connection_count == 0)


def test_a_client_that_speaks_grpc_is_named_and_told_so_in_http_2(serve, dial, caplog):
    server = serve()
    client = dial(server)
    # What a gRPC client sends first: the preface, and its settings.
    client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\6\4\0\0\0\0\0" + b"\0\2\0\0\0\0")
    told = b""
    while piece := client.recv(1 << 16):
        told += piece
    settings, go_away = told[:9], told[9:]
    assert settings == b"\0\0\0\4\0\0\0\0\0"
    assert int.from_bytes(go_away[:3], "big") == len(go_away) - 9
    assert (go_away[3], go_away[4], go_away[5:9]) == (7, 0, bytes(4))
    assert go_away[9:17] == bytes(4) + (1).to_bytes(4, "big")  # no stream was served; PROTOCOL_ERROR
    assert go_away[17:] == b"This port speaks Apache RocketMQ's remoting protocol, not gRPC."
    (line,) = said(caplog, "a client speaks gRPC (HTTP/2)")
    assert "run RocketMQ's proxy before it" in line
    assert not said(caplog, "speaks HTTP;")
    wait_until(lambda: server.server.connection_count == 0)


def test_one_that_stays_is_left_after_a_second(serve, dial):
    server = serve()
    client = dial(server)
    for byte in b"GET / HTTP/1.1\r\n":
        client.sendall(bytes([byte]))
    assert ends(client)
    wait_until(lambda: server.server.connection_count == 0)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "tls"),
        (b"GET / HT", "http"),
        (b"PRI * HT", "grpc"),
        (b"OPTIONS ", "http"),
        (b"PROXY TC", "proxy"),
        (b"\r\n\r\n\x00\r\nQ", "proxy"),
        (b"\xff\xff\xff\xff", None),
        (b"SSH-2.0-", None),
        (b"\x7f\x16\x03\x01", None),
    ],
)
def test_the_first_bytes_say_what_is_spoken(head, kind):
    assert len(head) <= HEAD_BYTES
    for size in range(4, len(head) + 1):
        found = stranger_of(head[:size])
        assert (found.kind if found else None) == kind

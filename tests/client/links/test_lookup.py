"""Addresses of name servers are asked for by HTTP, as RocketMQ's clients ask that were given none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.client.links.lookup import Lookup, fetch_by_http, is_lookup
from seglog.consumer.push import PushConsumer
from seglog.errors import CannotConnectError, InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.remoting.later import Deferred
from tests.support.consumers import until_idle
from tests.support.listening import BrokerServer
from tests.support.machine.patience import join_thread, wait_for_result
from tests.support.rows import each_row


class ListOfServers(ThreadingHTTPServer):
    """Answers with a text, and notes what was asked."""

    text = b""
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/rocketmq/nsaddr"


class _Handler(BaseHTTPRequestHandler):
    server: ListOfServers

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.text)))
        self.end_headers()
        self.wfile.write(self.server.text)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: what was asked is in ``asked``."""


@pytest.fixture
def names() -> Iterator[ListOfServers]:
    with ListOfServers() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        join_thread(thread, idle_s=30)


@contextmanager
def served(path: Path) -> Iterator[tuple[Broker, str]]:
    with BrokerServer(path) as server:
        yield server.broker, server.address


def test_s4_10_a_client_that_is_given_no_name_server_asks_for_its_address_and_goes_there(
    tmp_path: Path, names: ListOfServers
):
    with served(tmp_path / "s") as (_broker, address):
        names.text = address.encode() + b"\n"
        with make_client(names.url) as client:
            seen: list[bytes] = []
            with Producer(client, "shop") as producer:
                producer.send("T", b"x")
            assert client.link.name_servers == (address,)
            with PushConsumer(client, "g", "T", lambda message: seen.append(message.body)) as consumer:
                until_idle(consumer)
    assert seen == [b"x"]
    assert set(names.asked) == {"/rocketmq/nsaddr"}


def test_s4_10_a_unit_has_a_list_of_its_own(tmp_path: Path, names: ListOfServers):
    with served(tmp_path / "s") as (_broker, address):
        names.text = address.encode()
        with make_client(names.url, unit_name="east") as client, Producer(client, "shop") as producer:
            producer.send("T", b"x")
    assert set(names.asked) == {"/rocketmq/nsaddr-east?nofix=1"}


def test_s4_10_a_client_follows_name_servers_that_move(tmp_path: Path, names: ListOfServers):
    with served(tmp_path / "one") as (_one, first), served(tmp_path / "other") as (other, second):
        names.text = first.encode()
        with make_client(names.url) as client, Producer(client, "shop") as producer:
            producer.send("T", b"x")
            names.text = f"{second};{second}\r\nwhat stands here counts for nothing".encode()
            lookup = client.link.lookup
            assert lookup is not None
            wait_for_result(lookup.look(), idle_s=30)
            assert client.link.name_servers == (second,)
            producer.send("U", b"y")
        assert other.topics.get("U") is not None


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        (b"", 200, "names no name server: no name server is given"),
        (b"<html>who are you?</html>", 200, "names no name server"),
        (b"127.0.0.1:9876", 404, "status 404"),
    ],
)
def test_an_answer_without_a_name_server_is_an_error_that_says_where_it_came_from(
    names: ListOfServers, text: bytes, status: int, why: str
):
    names.text, names.status = text, status
    with make_client(names.url) as client, Producer(client, "shop") as producer:
        with pytest.raises(CannotConnectError, match=why) as refused:
            producer.send("T", b"x", timeout_ms=500)
        assert names.url in str(refused.value)


def test_where_nobody_lists_name_servers_a_send_ends_with_the_address_that_was_asked():
    with ListOfServers() as gone:
        url = gone.url
    with make_client(url) as client, Producer(client, "shop") as producer:
        with pytest.raises(CannotConnectError, match="refused") as refused:
            producer.send("T", b"x", timeout_ms=500)
        assert url in str(refused.value)


def test_what_was_said_last_stays_where_there_is_no_answer(names: ListOfServers):
    names.text = b"10.0.0.1:9876;10.0.0.2:9876"
    lookup = Lookup(names.url)
    wait_for_result(lookup.look(), idle_s=30)
    names.status = 500
    with pytest.raises(CannotConnectError, match="status 500"):
        wait_for_result(lookup.look(), idle_s=30)
    assert lookup.addresses == ("10.0.0.1:9876", "10.0.0.2:9876")


def test_two_that_ask_at_a_time_are_one_question():
    asked: list[Deferred[str]] = []

    def fetch(_url: str) -> Deferred[str]:
        asked.append(Deferred())
        return asked[-1]

    lookup = Lookup("http://names.example/rocketmq/nsaddr", fetch=fetch)
    first, second = lookup.look(), lookup.look()
    assert (len(asked), first.is_done) == (1, False)
    asked[0].resolve("a:1")
    assert (first.is_done, second.is_done, lookup.addresses) == (True, True, ("a:1",))
    lookup.look()
    assert len(asked) == 2


@each_row(
    "text, is_one",
    [
        ("http://jmenv.tbsite.net:8080/rocketmq/nsaddr", True),
        ("https://names.example/list", True),
        (" http://[::1]:8080/list ", True),
        ("http://127.0.0.1:9876", False),
        ("http://127.0.0.1:9876/", False),
        ("127.0.0.1:9876", False),
        ("file:///etc/hosts", False),
        ("http://a b/list", False),
        ("http://a:x/list", False),
        ("http://a:0/list", False),
        ("http:///list", False),
        ("http://a/\u0661", False),
        ("http://a/\x1b[2J", False),
    ],
)
def test_the_address_of_a_list_has_a_scheme_a_host_and_a_path(text: str, is_one: bool):
    assert is_lookup(text) is is_one
    if is_one:
        assert Lookup(text).url == text.strip()
    else:
        with pytest.raises(InvalidArgumentError, match="no address of a list"):
            Lookup(text)


def test_a_list_that_never_ends_is_read_so_far_as_a_list_may_be(names: ListOfServers):
    names.text = b"a:1;" * 20_000
    assert len(wait_for_result(fetch_by_http(names.url), idle_s=30)) == 1 << 16

"""However much one client asks for at once, the longest wait of another is short."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Final

import pytest

from seglog.remoting.bodies import LockBatchBody
from seglog.remoting.codec import Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Body, Request
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import SQL_TYPE, SubscriptionData
from tests.server.frames import answers, bytes_of
from tests.support.asks import beat_of, route_of, send_to
from tests.support.machine.patience import patience_s, took_within
from tests.support.machine.serving import Serving


class Canary:
    """A client that asks for a route again and again; any thread reads how long it waited at most."""

    def __init__(self, where: tuple[str, int]) -> None:
        self._codec = Codec()
        self._end = socket.create_connection(where, patience_s(60))
        self._is_over = threading.Event()
        self.longest_s = 0.0
        self.count = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            began_s = time.monotonic()
            self._end.sendall(bytes_of(self._codec, route_of("T")))
            assert answers(self._codec, self._end, 1)
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)
            self.count += 1
            time.sleep(0.02)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._end.close()


class Served:
    """A client of a server in a process of its own, with a topic T."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.where = (host, int(port))
        self.codec = Codec()
        self.end = socket.create_connection(self.where, patience_s(120))
        self.ask(send_to("T"), beat_of("first", "T"))

    def ask(self, *requests: Request) -> None:
        self.end.sendall(bytes_of(self.codec, *requests))
        found = answers(self.codec, self.end, len(requests))
        assert {answer.code for answer in found.values()} == {ResponseCode.SUCCESS}

    @contextmanager
    def canary(self) -> Iterator[Canary]:
        canary = Canary(self.where)
        try:
            yield canary
        finally:
            canary.close()
        assert canary.count

    def close(self) -> None:
        self.end.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with closing(Serving(["--ephemeral"])) as serving:
        yield serving.address


@pytest.fixture
def served(address: str) -> Iterator[Served]:
    with closing(Served(address)) as one:
        yield one


@pytest.mark.parametrize("is_sql", [False, True])
def test_a_client_in_ten_thousand_groups_holds_up_no_other(served, is_sql):
    subscription = SubscriptionData("T", version=1)
    if is_sql:
        subscription = replace(subscription, expression="a > 1", expression_type=SQL_TYPE)
    consumers = tuple(ConsumerData(f"group-{number}", (subscription,)) for number in range(10_000))
    beat = Request(RequestCode.HEART_BEAT, body=HeartbeatBody("c", (), consumers))
    with served.canary() as canary:
        served.ask(beat)
        served.ask(beat)
        served.end.close()
        time.sleep(1)
    took_within(canary.longest_s, "the longest answer to another client", idle_s=1)


def in_groups(count, subscriptions=1):
    wanted = tuple(SubscriptionData(f"T{number}", version=1) for number in range(subscriptions))
    return HeartbeatBody("c", (), tuple(ConsumerData(f"group-{number}", wanted) for number in range(count)))


def text_of(before, each, count, behind):
    return b"".join((before, b",".join((each,) * count), behind))


LONG: Final[dict[str, tuple[RequestCode, Callable[[], Body]]]] = {
    "texts": (
        RequestCode.HEART_BEAT,
        lambda: text_of(b'{"clientID":"c","x":[', b'"some text"', 950_000, b"]}"),
    ),
    "numbers": (
        RequestCode.HEART_BEAT,
        lambda: text_of(b'{"clientID":"c","x":[', b"123456", 990_000, b"]}"),
    ),
    "lists": (RequestCode.HEART_BEAT, lambda: text_of(b'{"clientID":"c","x":[', b"[]", 199_000, b"]}")),
    "one text": (RequestCode.LOCK_BATCH_MQ, lambda: b'{"clientId":"' + b"ab\\n" * 3_000_000 + b'"}'),
    "producers": (
        RequestCode.HEART_BEAT,
        lambda: text_of(b'{"clientID":"c","x":[', b'{"groupName":"g"}', 499_000, b"]}"),
    ),
    "keys that are objects": (
        RequestCode.LOCK_BATCH_MQ,
        lambda: b'{"x":{' + b",".join(b'{"queueId":%d}:1' % number for number in range(300_000)) + b"}}",
    ),
    "keys that are numbers": (
        RequestCode.LOCK_BATCH_MQ,
        lambda: text_of(
            b'{"x":[', b"{%s}" % b",".join(b"%d:1" % number for number in range(60)), 15_000, b"]}"
        ),
    ),
    "subscriptions": (RequestCode.HEART_BEAT, lambda: in_groups(1, 60_000)),
    "groups": (RequestCode.HEART_BEAT, lambda: in_groups(10_000)),
    "queues": (
        RequestCode.LOCK_BATCH_MQ,
        lambda: LockBatchBody(
            "g", "c", frozenset(MessageQueue("T", "b", number) for number in range(60_000))
        ),
    ),
    "topics": (
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        lambda: text_of(b'{"topicConfigList":[', b'{"topicName":"U"}', 20_000, b"]}"),
    ),
}
"""What takes long to read, by what it is made of; it is made in the test, for it is long."""


@pytest.mark.parametrize("name", LONG)
def test_a_long_body_holds_up_no_other(served, name):
    code, body = LONG[name]
    data = bytes_of(served.codec, Request(code, body=body()), route_of("T"))
    with served.canary() as canary:
        served.end.sendall(data)
        found = answers(served.codec, served.end, 2)
    assert list(found.values())[1].code is ResponseCode.SUCCESS, "what comes behind it waits for its turn"
    took_within(canary.longest_s, "the longest answer to another client", idle_s=0.3)

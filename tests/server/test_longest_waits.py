"""However much one client asks for at once, the longest wait of another is short."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from seglog.remoting.codec import Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.subscription import SQL_TYPE, SubscriptionData
from tests.server.frames import answers, bytes_of
from tests.support.asks import beat_of, route_of, send_to
from tests.support.machine.patience import patience_s
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
            self._is_over.wait(0.005)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._end.close()


class Served:
    """A server in a process of its own, with a topic T."""

    def __init__(self, store: Path) -> None:
        self.serving = Serving([str(store)])
        host, port = self.serving.address.split(":")
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
        self.serving.close()


@pytest.fixture
def served(memory_path: Path) -> Iterator[Served]:
    one = Served(memory_path / "s")
    yield one
    one.close()


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
    assert canary.longest_s < patience_s(1)

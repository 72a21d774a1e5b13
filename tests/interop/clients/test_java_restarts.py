"""Name servers and brokers start again: no more of our sends fail than of Java's, and none for good.

A broker registers every ten seconds. A name server that has just started answers 17 until then, as it does
for a topic that does not exist.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Final

import pytest

from seglog import Producer
from seglog.errors import SeglogError
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import CreateTopicHeader
from seglog.server.listening import Listener
from tests.interop.clients.conftest import DRAWN
from tests.interop.judging.java_worker import JavaWorker
from tests.interop.judging.places import rocketmq_at
from tests.interop.judging.questions import Geometry
from tests.support.brokers import QUEUE_FILE_BYTES, SEGMENT_BYTES
from tests.support.machine.patience import join_thread, wait_until
from tests.support.scale import chance, scaled

pytestmark = pytest.mark.interop

GEOMETRY: Final = Geometry(SEGMENT_BYTES, QUEUE_FILE_BYTES, 500, 2_000)
RESTARTS: Final = scaled(8, 25)
MOST_AWAY_MS: Final = 4_000
SENDS: Final = 20
"""How many each producer sends between two restarts, at least."""
LIMIT_MS: Final = 3_000
AGAIN_S: Final = 0.2
PAUSE_S: Final = 0.002


class Sender:
    """A producer of ours in a thread, which does as the sender of ``Worker.java``.

    Attributes:
        sent: How many sends were acknowledged.
        failures: What the others failed with.
    """

    def __init__(self, name_server: str, topic: str) -> None:
        self.sent = 0
        self.failures: list[SeglogError] = []
        self._topic = topic
        self._is_over = False
        self._producer = Producer(name_server, "ours")
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.hush()
        self._producer.close()

    def hush(self):
        self._is_over = True
        join_thread(self._thread, idle_s=60)

    def _run(self) -> None:
        while not self._is_over:
            try:
                self._producer.send(self._topic, b"%d" % self.sent, timeout_ms=LIMIT_MS)
            except SeglogError as error:
                self.failures.append(error)
                time.sleep(AGAIN_S)
            else:
                self.sent += 1
                time.sleep(PAUSE_S)


def broker_at(path, ports):
    return rocketmq_at(path, ports, DRAWN, GEOMETRY, registerNameServerPeriod=10_000)


def test_a_restart_fails_no_more_of_our_sends_than_of_javas_and_none_for_good(judge, tmp_path):
    draw = chance("restarts")
    three = Listener.usual_three(port=0, broker_port=0)
    ports = [each.port for each in three]
    for each in three:
        each.close()
    name_server = f"127.0.0.1:{ports[0]}"
    with JavaWorker(name_server, tmp_path / "clients") as java:
        java.sent["p"] = []
        left = RESTARTS
        ours: Sender | None = None

        def both_send(ours: Sender) -> None:
            before = len(java.sent["p"]), ours.sent
            wait_until(lambda: len(java.sent["p"]) >= before[0] + SENDS, idle_s=90)
            wait_until(lambda: ours.sent >= before[1] + SENDS, idle_s=90)

        try:
            while left:
                with broker_at(tmp_path / "store", ports) as broker:
                    if ours is None:
                        header = CreateTopicHeader("T", "TBW102", 4, 4, 6)
                        assert broker.ask(Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).code == 0
                        ours = Sender(name_server, "T").__enter__()
                        java.send("p", "T", 0)
                    both_send(ours)
                    while left and draw.random() < 0.7:
                        broker.restart_name_server(draw.randrange(MOST_AWAY_MS))
                        both_send(ours)
                        left -= 1
                left -= left > 0
            with broker_at(tmp_path / "store", ports):
                assert ours is not None
                both_send(ours)
                count = java.hush("p")
                ours.hush()
        finally:
            if ours is not None:
                ours.__exit__()
    assert count == len(java.sent["p"])
    told = Counter(f"{type(error).__name__}: {error}"[:200] for error in ours.failures)
    assert [error for error in ours.failures if not error.is_retryable] == [], told
    assert len(ours.failures) <= java.failures.total(), (told, java.failures)

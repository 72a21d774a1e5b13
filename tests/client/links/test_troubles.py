"""What fails again and again is said at once, then seldom; an address that is away once for all who ask."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog.client.links.troubles import CALM_MS, FIRST_MS, LONGEST_MS, Absence, Seldom, Troubles, level_of
from seglog.clock import VirtualClock
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import (
    AskTimeoutError,
    CannotConnectError,
    ClientClosedError,
    ConnectionEndedError,
    RemoteProtocolError,
    SeglogError,
)
from seglog.producer.producer import Producer
from seglog.remoting.codes import ResponseCode
from tests.support.consumers import until_idle
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until
from tests.support.peers import kept_port

REFUSED = RemoteProtocolError(ResponseCode.NO_PERMISSION, "no")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "seglog")
    return caplog


def said(log: pytest.LogCaptureFixture, room: str, least: int = logging.INFO) -> list[str]:
    """Returns what a room of the client has said at a level or above."""
    mine = [each for each in log.records if each.name.startswith(room) and each.levelno >= least]
    return [each.getMessage() for each in mine]


def most_lines(began_s: float) -> int:
    """Returns how often one trouble may have been said since then: the machine may be busy for long."""
    return 1 + int((time.monotonic() - began_s) // (FIRST_MS / 1_000))


def test_a_trouble_that_stays_is_said_after_times_that_double_to_a_limit():
    trouble = Seldom()
    said_at_s = [now_s for now_s in range(4_000) if trouble.is_due(1_000 * now_s)]
    assert said_at_s == [0, 30, 90, 210, 450, 930, 1_890, 2_850, 3_810]
    assert LONGEST_MS == 960 * 1_000


def test_a_trouble_that_comes_back_is_new_but_never_said_twice_within_the_first_time():
    trouble = Seldom()
    assert [trouble.is_due(at_ms) for at_ms in (0, FIRST_MS, FIRST_MS + 1)] == [True, True, False]
    trouble.over()
    assert not trouble.is_due(2 * FIRST_MS - 1)
    assert trouble.is_due(2 * FIRST_MS)
    calm_since_ms = 2 * FIRST_MS
    assert trouble.is_due(calm_since_ms + CALM_MS)
    assert [trouble.is_due(calm_since_ms + CALM_MS + more) for more in (FIRST_MS - 1, FIRST_MS)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (ClientClosedError("x"), logging.DEBUG),
        (CannotConnectError("x"), logging.DEBUG),
        (ConnectionEndedError("x"), logging.DEBUG),
        (AskTimeoutError("x"), logging.WARNING),
        (REFUSED, logging.WARNING),
    ],
)
def test_what_the_way_to_an_address_says_is_not_said_by_all_that_ask_there(error: SeglogError, level: int):
    troubles = Troubles(VirtualClock())
    assert level_of(error) == troubles.level("pulls", error) == level


def test_each_kind_of_trouble_has_its_own_times():
    clock = VirtualClock()
    troubles = Troubles(clock)
    levels = [troubles.level(kind, REFUSED) for kind in ("a", "b", "a")]
    assert levels == [logging.WARNING, logging.WARNING, logging.DEBUG]


def test_finding_7_an_address_that_is_away_is_said_seldom_with_how_long_and_how_often(
    log: pytest.LogCaptureFixture,
):
    there = Absence("a:1")
    for now_s in range(100):
        there.failed(1_000 * now_s, "a:1 cannot be connected to: Connection refused")
    assert said(log, "seglog.client", logging.WARNING) == [
        "a:1 cannot be connected to: Connection refused; each request tries it again",
        "a:1 cannot be connected to: Connection refused; it is away for 30 s, was tried 31 times",
        "a:1 cannot be connected to: Connection refused; it is away for 90 s, was tried 91 times",
    ]
    there.served(100_500)
    there.served(100_600)
    assert said(log, "seglog.client")[3:] == ["connected again to a:1, after 100.5 s"]
    assert len(log.records) == 101


def test_finding_8_a_return_is_said_where_the_absence_was(log: pytest.LogCaptureFixture):
    there = Absence("a:1")
    for at_ms in (0, 1_000, 2_000):  # it flaps
        there.failed(at_ms, "a:1 hung up")
        there.served(at_ms + 100)
    assert said(log, "seglog.client") == [
        "a:1 hung up; each request tries it again",
        "connected again to a:1, after 0.1 s",
    ]


@pytest.mark.parametrize("kind", [PushConsumer, OrderlyConsumer])
def test_finding_7_a_broker_that_goes_and_comes_back_is_two_lines_of_a_consumer(
    tmp_path: Path, log: pytest.LogCaptureFixture, kind: Callable[..., Any]
):
    with kept_port() as port:
        server = BrokerServer(tmp_path / "s", port)
        try:
            with Producer(server.address) as producer:
                producer.send("orders", b"x")
            with kind(server.address, "g", "orders", lambda _: None) as consumer:
                consumer.start()
                wait_until(lambda: len(consumer.queues) == 5, idle_s=30)
                log.clear()
                began_s = time.monotonic()
                server.close()
                wait_until(lambda: sum("is pulled again" in each for each in log.messages) >= 10, idle_s=60)
                away = said(log, "seglog.client")
                assert 1 <= len(away) <= most_lines(began_s)
                assert away[0].startswith(server.address)
                assert away[0].endswith("; each request tries it again")
                assert [one for one in said(log, "seglog.consumer") if server.address in one] == []
                server = BrokerServer(tmp_path / "s", port)
                back = f"connected again to {server.address}, after "
                wait_until(
                    lambda: any(each.startswith(back) for each in said(log, "seglog.client")), idle_s=60
                )
                until_idle(consumer, idle_s=60)  # all of its queues are pulled again
                unknown = [one for one in log.records if "the broker answered 24" in one.getMessage()]
                assert [one.levelno for one in unknown[:1]] in ([], [logging.DEBUG])
        finally:
            server.close()


def test_finding_7_fifty_sends_to_a_broker_that_is_away_are_one_line(
    tmp_path: Path, log: pytest.LogCaptureFixture
):
    with kept_port() as port:
        server = BrokerServer(tmp_path / "s", port)
        with Producer(server.address) as producer:
            producer.send("orders", b"x")
            server.close()
            began_s = time.monotonic()
            for _ in range(50):
                with pytest.raises(SeglogError):
                    producer.send("orders", b"y", timeout_ms=50)
        assert 1 <= len(said(log, "seglog.client")) <= most_lines(began_s)
        # The first send may have been on its way when the connection ended: that it may be twice is said.
        assert len(said(log, "seglog.producer")) <= most_lines(began_s)
        assert sum("is sent again" in each for each in log.messages) > 1

"""A send waits for a broker that is away or busy as long as its time allows, and goes to its queue then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.client.home import VirtualHome, run_at_once
from seglog.client.links import Troubles
from seglog.clock import VirtualClock
from seglog.consumer.orderly import OrderlyConsumer
from seglog.errors import (
    AskTimeoutError,
    CannotConnectError,
    ClientClosedError,
    RemoteProtocolError,
    SeglogError,
)
from seglog.producer.pauses import ThreadPauses
from seglog.producer.producer import AsyncProducer, Producer
from seglog.producer.retries import AWAY, RETRIES, Tries
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.headers import SendMessageHeader
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from tests.support.brokers import open_broker
from tests.support.faces import driven
from tests.support.listening import BrokerServer
from tests.support.machine.patience import join_thread, patience_s, wait_until
from tests.support.peers import kept_port
from tests.support.recording import RecordingLink, recording
from tests.support.rows import every_row

BOTH = pytest.mark.parametrize("kind", [Producer, AsyncProducer])
LONG_MS = round(patience_s(120) * 1000)
SEND = RequestCode.SEND_MESSAGE_V2
AWHILE = 3 * RETRIES
"""More refusals than a send takes of another kind."""


class BusyLink(RecordingLink):
    """A link to a broker that is away for its first sends.

    Attributes:
        code: What it refuses them with.
        left: How many.
    """

    code = ResponseCode.SYSTEM_BUSY
    left = AWHILE

    @override
    def _spoilt(self, request: Request) -> Deferred[Response] | None:
        spoilt = super()._spoilt(request)
        if request.code == SEND and self.left:
            self.left -= 1
            spoilt = Deferred()
            spoilt.resolve(refuse(self.code, "not now"))
        return spoilt


def queue_ids(link: RecordingLink) -> list[int]:
    """Returns the queues of the sends that were tried."""
    headers = [request.header for _moment, request in link.asked if request.code == SEND]
    return [header.queue_id for header in headers if isinstance(header, SendMessageHeader)]


def at_once(check: Callable[..., None], rows: Sequence[tuple[object, ...]]) -> None:
    """Checks all rows at a time, a thread each: they wait most of their time."""
    with ThreadPoolExecutor(len(rows)) as pool, every_row() as row:
        checks = [pool.submit(check, number, *names) for number, names in enumerate(rows)]
        for names, checked in zip(rows, checks, strict=True):
            with row(*names):
                checked.result()


def test_finding_4_a_send_waits_until_a_broker_has_time_for_it(tmp_path: Path):
    def check(number: int, kind: Callable[..., Any], code: ResponseCode, chosen: dict[str, Any]) -> None:
        topic, link = f"T{number}", BusyLink(broker)
        link.code = code
        with driven(kind, link) as producer:
            sent = producer.send(topic, b"x", timeout_ms=LONG_MS, **chosen)
        asked = queue_ids(link)
        assert len(asked) == AWHILE + 1
        assert asked[-1] == sent.queue.queue_id
        assert not chosen or len(set(asked)) == 1
        assert [message.body for message in broker.store.get(topic, asked[-1], 0).messages] == [b"x"]
        link.close()

    choices: tuple[dict[str, Any], ...] = ({}, {"queue_id": 2}, {"sharding_key": "k"})
    with Broker.open(tmp_path / "s") as broker:
        at_once(check, list(product((Producer, AsyncProducer), sorted(AWAY), choices)))


def test_finding_4_a_broker_that_is_back_in_time_loses_no_send(tmp_path: Path):
    def check(number: int, kind: Callable[..., Any], chosen: dict[str, Any]) -> None:
        lose_no_send(tmp_path / str(number), kind, chosen)

    at_once(check, list(product((Producer, AsyncProducer), ({}, {"sharding_key": "k"}))))


def lose_no_send(folder: Path, kind: Callable[..., Any], chosen: dict[str, Any]) -> None:
    with kept_port() as port:
        server = BrokerServer(folder, port)
        with driven(kind, server.address) as producer:
            producer.send("T", b"before")
            server.close()
            with pytest.raises(SeglogError):
                producer.send("T", b"too late", timeout_ms=50, **chosen)
            back: list[BrokerServer] = []
            timer = threading.Timer(0.7, lambda: back.append(BrokerServer(folder, port)))
            timer.start()
            try:
                sent = producer.send("T", b"after", timeout_ms=LONG_MS, **chosen)
            finally:
                join_thread(timer)
            with back[0] as again:
                stored = again.broker.store.get("T", sent.queue.queue_id, sent.queue_offset).messages
                assert [message.body for message in stored] == [b"after"]


@BOTH
def test_a_send_ends_in_its_time_where_a_broker_stays_busy(tmp_path: Path, kind: Callable[..., Any]):
    with Broker.open(tmp_path / "s") as broker, recording(broker) as link:
        link.refused, link.refusal = {SEND}, ResponseCode.SYSTEM_BUSY
        # On a machine that is busy itself the time may be over before anything is asked.
        with driven(kind, link) as producer, pytest.raises((RemoteProtocolError, AskTimeoutError)):
            producer.send("T", b"x", timeout_ms=100)


def test_a_thread_that_waits_is_woken_by_the_close_of_its_producer(tmp_path: Path):
    with Broker.open(tmp_path / "s") as broker, recording(broker) as link:
        link.refused, link.refusal = {SEND}, ResponseCode.SYSTEM_BUSY
        producer = Producer(link)
        ends: list[Exception] = []

        def send() -> None:
            try:
                producer.send("T", b"x", timeout_ms=LONG_MS)
            except ClientClosedError as error:
                ends.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        wait_until(lambda: queue_ids(link), idle_s=30)
        producer.close()
        join_thread(thread, idle_s=30)
        assert "was closed" in str(ends)


def test_a_listener_on_virtual_time_waits_by_that(tmp_path: Path):
    clock = VirtualClock()
    with open_broker(tmp_path / "s", clock) as broker, recording(broker) as link:
        link.refused, link.refusal = {SEND}, ResponseCode.SYSTEM_BUSY
        onward = AsyncProducer(link)
        Producer(broker).send("in", b"x")

        async def pass_on(message: Any) -> None:
            await onward.send("out", message.body, timeout_ms=60_000)

        with OrderlyConsumer(broker, "g", "in", pass_on) as consumer:
            consumer.start()
            broker.advance("10s")
            assert len(queue_ids(link)) > AWHILE
            assert broker.offsets.query("g", "in", 0) in (None, 0)
            link.refused = set()
            broker.advance("1s")
            consumer.commit()
            assert [queue.max_offset for queue in broker.store.queues() if queue.topic == "out"] == [1]
            assert consumer.counts.delivered == 1


def test_on_virtual_time_that_nothing_moves_a_send_waits_for_nothing(tmp_path: Path):
    with open_broker(tmp_path / "s", VirtualClock()) as broker, recording(broker) as link:
        link.refused, link.refusal = {SEND}, ResponseCode.SYSTEM_BUSY
        with Producer(link) as producer, pytest.raises(RemoteProtocolError):
            producer.send("T", b"x", timeout_ms=LONG_MS)
        assert len(queue_ids(link)) == 1 + RETRIES


@BOTH
def test_a_refusal_after_a_lost_answer_does_not_say_that_nothing_is_stored(
    tmp_path: Path, kind: Callable[..., Any]
):
    class LostThenRefused(BusyLink):
        code, left = ResponseCode.MESSAGE_ILLEGAL, 0

        @override
        def _spoilt(self, request: Request) -> Deferred[Response] | None:
            spoilt = super()._spoilt(request)
            if request.code == SEND and not self.left:
                self.cut, self.left = set(), 1
            return spoilt

    with open_broker(tmp_path / "s", VirtualClock()) as broker:
        link = LostThenRefused(broker)
        link.cut = {SEND}
        with driven(kind, link) as producer, pytest.raises(AskTimeoutError) as unknown:
            producer.send("T", b"x")
        assert isinstance(unknown.value.__cause__, RemoteProtocolError)
        assert "; the send gave up after 2 attempts in " in str(unknown.value)
        assert len(queue_ids(link)) == 2
        link.close()


def test_no_permission_is_asked_for_at_another_broker_only(tmp_path: Path):
    clock = VirtualClock()
    one, other = (MessageQueue("T", name, 0) for name in ("a", "b"))
    refused = RemoteProtocolError(ResponseCode.NO_PERMISSION, "no")
    with open_broker(tmp_path / "s", clock) as broker:
        pauses = ThreadPauses(VirtualHome(broker.timers, clock))
        tries = Tries("T", b"", clock.monotonic_ms, clock.monotonic_ms() - 500, None, pauses, Troubles(clock))
        run_at_once(tries.wait_after(refused, "a", (one, other)))
        assert tries.elsewhere((one, other)) == (other,)
        clock.advance(1_500)
        with pytest.raises(RemoteProtocolError) as given_up:
            run_at_once(tries.wait_after(refused, "b", (one, other)))
    assert str(given_up.value) == f"{refused}; the send gave up after 2 attempts in 2.0 s"
    assert (given_up.value.code, given_up.value.help) == (refused.code, refused.help)
    assert str(refused).endswith(": no"), "other sends may have it too"


def test_finding_14_a_send_that_waited_in_vain_says_how_long(tmp_path: Path):
    clock = VirtualClock()

    class Passing(ThreadPauses):
        @override
        def can_wait(self) -> bool:
            return True

        @override
        async def wait(self, pause_ms: float) -> None:
            clock.advance(round(pause_ms))

    away = CannotConnectError("a:1 cannot be connected to: Connection refused", address="a:1")
    with open_broker(tmp_path / "s", VirtualClock()) as broker:
        pauses = Passing(VirtualHome(broker.timers, clock))
        now_ms = clock.monotonic_ms()
        tries = Tries("T", b"", clock.monotonic_ms, now_ms, now_ms + 30_000, pauses, Troubles(clock))

        def try_for_ever() -> None:
            while True:
                run_at_once(tries.wait_after(away, "a", ()))

        with pytest.raises(CannotConnectError) as waited:
            try_for_ever()
    assert waited.value.address == "a:1"
    assert str(waited.value) == f"{away}; the send waited 30.0 s for it, and is not tried again"

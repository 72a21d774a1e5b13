"""A send ends in its time, with all that it asks, and a batch holds only what Java's client lets into one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog.client.connect import make_client
from seglog.client.home.thread_home import thread_home
from seglog.client.links.remote_link import RemoteLink
from seglog.clock import VirtualClock
from seglog.errors import AskTimeoutError, InvalidArgumentError, InvalidNameError
from seglog.producer import producer as producers
from seglog.producer.producer import AsyncProducer, Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, Response
from seglog.storage.writes import NewMessage
from seglog.testing import VirtualBroker
from tests.support.brokers import open_broker
from tests.support.faces import driven
from tests.support.listening import Server
from tests.support.machine.patience import patience_s
from tests.support.recording import RecordingLink

BOTH = pytest.mark.parametrize("kind", [Producer, AsyncProducer])
LINK_MS = 600_000
"""How long a link waits where nothing is said: much longer than a test."""


def silent(one: Any, _number: int) -> None:
    while one.recv(4096):
        pass


@BOTH
@pytest.mark.parametrize("servers", [1, 2])
def test_a_name_server_that_is_silent_does_not_keep_a_send_for_longer_than_its_time(kind: Any, servers: int):
    with Server(silent) as server:
        addresses = ";".join([server.address] * servers)
        with make_client(RemoteLink(addresses, thread_home(), timeout_ms=LINK_MS), thread_home()) as client:
            began_s = time.monotonic()
            with driven(kind, client) as producer, pytest.raises(AskTimeoutError):
                producer.send("T", b"x", timeout_ms=50)
            assert time.monotonic() - began_s < patience_s(30)


class SlowLink(RecordingLink):
    """A link whose requests take 400 ms, and notes how long each might have taken."""

    def __init__(self, broker: Any, clock: VirtualClock) -> None:
        super().__init__(broker)
        self.limits: list[tuple[int, float | None]] = []
        self._time = clock

    @override
    def invoke(self, request: Request, timeout_ms: float | None = None, to: str | None = None) -> Response:
        self.limits.append((request.code, timeout_ms))
        self._time.advance(400)
        return super().invoke(request, timeout_ms, to)


ROUTE, SEND = RequestCode.GET_ROUTEINFO_BY_TOPIC, RequestCode.SEND_MESSAGE_V2


@pytest.mark.parametrize(
    ("timeout_ms", "limits"),
    [
        (700, [(ROUTE, 700), (ROUTE, 300)]),
        (1_000, [(ROUTE, 1_000), (ROUTE, 600), (SEND, 200)]),
        (1_500, [(ROUTE, 1_500), (ROUTE, 1_100), (SEND, 700), (ROUTE, 300)]),
        (
            None,
            [(ROUTE, None), (ROUTE, None), *[(SEND, None), (ROUTE, None), (ROUTE, None)] * 2, (SEND, None)],
        ),
    ],
)
def test_what_a_send_asks_shares_its_time(tmp_path: Path, timeout_ms: int | None, limits: list[Any]):
    clock = VirtualClock()
    with open_broker(tmp_path, clock) as broker:
        link = SlowLink(broker, clock)
        link.cut.add(SEND)
        with Producer(link) as producer:
            with pytest.raises(AskTimeoutError):
                producer.send("T", b"x", timeout_ms=timeout_ms)
            assert [one for one in link.limits if one[0] in (ROUTE, SEND)] == limits


def test_a_send_that_has_no_turn_in_its_time_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(producers, "MOST_SENT", 1)

    async def scene(address: str) -> None:
        async with AsyncProducer(address) as producer:
            first = asyncio.create_task(producer.send("T", b"x", timeout_ms=LINK_MS))
            await asyncio.sleep(0)
            with pytest.raises(AskTimeoutError, match="1 sends of this producer wait already"):
                await producer.send("T", b"y", timeout_ms=20)
            with pytest.raises(AskTimeoutError, match="1 sends of this producer wait already"):
                await producer.send_batch("T", [b"y"], timeout_ms=20)
            assert not first.done()
            first.cancel()

    with Server(silent) as server:
        asyncio.run(scene(server.address))


def test_a_level_beyond_the_last_is_the_last(tmp_path: Path):
    with VirtualBroker.at(tmp_path / "s") as broker:
        broker.producer().send("T", b"x", delay_level=2**31 - 1)
        broker.advance("119m")
        assert broker.messages("T") == []
        broker.advance("2m")
        assert len(broker.messages("T")) == 1


DELAYED = "Delayed messages are not supported for batching"


@pytest.mark.parametrize(
    ("topic", "properties", "words"),
    [
        ("T", {"DELAY": "3"}, rf"^messages\[1\]: {DELAYED}"),
        ("T", {"DELAY": "soon"}, DELAYED),
        ("T", {"TIMER_DELAY_SEC": "3"}, DELAYED),
        ("T", {"TIMER_DELAY_MS": "3"}, DELAYED),
        ("T", {"TIMER_DELIVER_MS": "3"}, DELAYED),
        ("T", {"WAIT": "false"}, "waitStoreMsgOK of the messages in one batch should the same"),
        ("%RETRY%g", {}, "^Retry Group is not supported for batching"),
    ],
)
@BOTH
def test_a_batch_is_refused_as_java_refuses_it(
    tmp_path: Path, kind: Any, topic: str, properties: dict[str, str], words: str
):
    with VirtualBroker.at(tmp_path / "s") as broker, driven(kind, broker.link()) as producer:
        with pytest.raises(InvalidArgumentError, match=words):
            producer.send_batch(topic, [NewMessage(b"0"), NewMessage(b"1", properties=properties)])
        assert broker.store.queues() == []
        if topic == "T":
            producer.send("T", b"0", queue_id=0)
            assert producer.send_batch("T", [b"1"] * 2, queue_id=0).queue_offset == 1


@pytest.mark.parametrize("properties", [{"DELAY": "0"}, {"DELAY": ""}, {"DELAY": "-1"}, {"WAIT": "TRUE"}])
def test_what_says_no_more_than_nothing_may_be_in_a_batch(tmp_path: Path, properties: dict[str, str]):
    with VirtualBroker.at(tmp_path / "s") as broker:
        broker.producer().send_batch("T", [b"0", NewMessage(b"1", properties=properties)])
        assert len(broker.messages("T")) == 2


@BOTH
@pytest.mark.parametrize("topic", ["a b", "", "a/b", "x" * 128, "x" * 100_000])
def test_a_topic_that_there_can_be_none_of_is_refused_before_anything_is_asked(
    tmp_path: Path, kind: Any, topic: str
):
    with open_broker(tmp_path, VirtualClock()) as broker:
        link = RecordingLink(broker)
        with driven(kind, link) as producer:
            for call in (
                lambda: producer.send(topic, b"x"),
                lambda: producer.send_batch(topic, [b"x"]),
                lambda: producer.queues(topic),
            ):
                with pytest.raises(InvalidNameError, match="topic name") as error:
                    call()
                assert len(str(error.value)) < 120
        assert not [one for _moment, one in link.asked if one.code in (ROUTE, SEND)]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("TAGS", "tags="),
        ("KEYS", "keys="),
        ("DELAY", "delay_level="),
        ("WAIT", "wait_for_disk="),
        ("TTL", "ttl_ms="),
        ("REAL_TOPIC", "message.user_properties"),
        ("RETRY_TOPIC", "message.user_properties"),
        ("ORIGIN_MESSAGE_ID", "message.user_properties"),
    ],
)
@BOTH
def test_finding_u21_names_of_the_system_are_refused_as_javas_message_refuses_them(
    tmp_path: Path, kind: Any, name: str, instead: str
):
    with VirtualBroker.at(tmp_path / "s") as broker, driven(kind, broker.link()) as producer:
        with pytest.raises(
            InvalidArgumentError, match=rf"^properties: RocketMQ uses {name} itself"
        ) as refused:
            producer.send("T", b"1", properties={"colour": "red", name: "1"})
        assert instead in str(refused.value.help)
        if name not in {"DELAY", "WAIT"}:  # the rules of a batch are about those
            with pytest.raises(InvalidArgumentError, match=rf"^messages\[1\]: properties: .* {name} "):
                producer.send_batch("T", [b"0", NewMessage(b"1", properties={name: "1"})])
        assert broker.store.queues() == []


def test_finding_u21_a_message_that_failed_is_sent_on_with_the_properties_of_its_application(tmp_path: Path):
    with VirtualBroker.at(tmp_path / "s") as broker:
        producer = broker.producer()
        properties = {"colour": "red", "UNIQ_KEY": "mine"}
        producer.send("T", b"1", tags="x", sharding_key="a", properties=properties)
        (message,) = broker.messages("T")
        broker.send_back("g", message)
        broker.advance("10s")
        (retried,) = broker.messages("%RETRY%g")
        with pytest.raises(InvalidArgumentError, match="RETRY_TOPIC"):
            producer.send("U", retried.body, properties=retried.properties)
        assert retried.user_properties == {"colour": "red"}
        producer.send("U", retried.body, tags=retried.tags, properties=retried.user_properties)
        (passed,) = broker.messages("U")
        assert (passed.properties["colour"], passed.tags) == ("red", "x")
        producer.send("%RETRY%g", b"2", properties={"RETRY_TOPIC": "T"})
        assert broker.messages("%RETRY%g")[-1].properties["RETRY_TOPIC"] == "T"

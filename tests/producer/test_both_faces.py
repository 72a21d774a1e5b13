"""Both faces of a producer have the same calls and settings, and send again by the same rule."""

from __future__ import annotations

import asyncio
import inspect
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.errors import AskTimeoutError, ClientClosedError, InvalidArgumentError, RemoteProtocolError
from seglog.producer.producer import AsyncProducer, Producer
from seglog.producer.retries import RETRIED, RETRIES
from seglog.producer.send_result import SendStatus
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.storage.writes import NewMessage
from tests.support.brokers import open_broker
from tests.support.faces import driven
from tests.support.listening import BrokerServer
from tests.support.recording import RecordingLink, recording
from tests.support.rows import each_row

BOTH = pytest.mark.parametrize("kind", [Producer, AsyncProducer])
SENDS = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


def calls_of(kind: type) -> dict[str, inspect.Signature]:
    """Returns the public calls of a class, and how it is made."""
    found = {
        name: inspect.signature(call)
        for name, call in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    }
    return found | {"made": inspect.signature(kind)}


def test_a_setting_of_one_face_is_one_of_the_other():
    assert calls_of(Producer) == calls_of(AsyncProducer)
    assert {"send", "send_batch", "queues", "close"} < calls_of(Producer).keys()
    for name in calls_of(Producer).keys() - {"made"}:
        assert not inspect.iscoroutinefunction(getattr(Producer, name)), name
        assert inspect.iscoroutinefunction(getattr(AsyncProducer, name)), name


@pytest.fixture(params=["in process", "over a socket"])
def place(request: Any, tmp_path: Path):
    """A broker, and what leads to it."""
    if request.param == "in process":
        with Broker.open(tmp_path / "s") as broker:
            yield broker, broker
    else:
        with BrokerServer(tmp_path / "s") as server:
            yield server.broker, server.address


@BOTH
def test_results_lead_to_the_messages(place: tuple[Broker, Any], kind: Callable[..., Any]):
    broker, target = place
    with driven(kind, target, "shop") as producer:
        sent = producer.send("T", b"one", tags="A", keys=["k"], properties={"a": "b"}, flag=7, queue_id=2)
        batch = producer.send_batch("T", [b"two", NewMessage(b"three", tags="B")], queue_id=2)
        assert [queue.queue_id for queue in producer.queues("T")] == [0, 1, 2, 3]
    stored = broker.store.get("T", 2, 0).messages
    assert [message.body for message in stored] == [b"one", b"two", b"three"]
    assert [message.unique_key for message in stored] == [sent.message_id, *batch.message_ids]
    assert (stored[0].tags, stored[0].keys, stored[0].flag) == ("A", ["k"], 7)
    assert (sent.status, sent.queue_offset, batch.queue_offset) == (SendStatus.SEND_OK, 0, 1)


@BOTH
def test_finding_11_a_body_is_what_its_buffer_holds(place: tuple[Broker, Any], kind: Callable[..., Any]):
    broker, target = place
    parts = memoryview(b"a-b-c-")[::2]
    numbers = memoryview(array("H", [1, 2]))
    with driven(kind, target) as producer:
        for body in (parts, numbers, bytearray(b"x"), memoryview(b"")[::2]):
            producer.send("T", body, queue_id=0)
        producer.send_batch("T", [parts, NewMessage(numbers)], queue_id=0)
    bodies = [bytes(message.body) for message in broker.store.get("T", 0, 0).messages]
    assert bodies == [b"abc", numbers.tobytes(), b"x", b"", b"abc", numbers.tobytes()]


@BOTH
def test_finding_11_what_is_too_large_is_refused_with_what_helps(
    place: tuple[Broker, Any], kind: Callable[..., Any]
):
    with driven(kind, place[1]) as producer:
        for send in (
            lambda: producer.send("T", bytes(5 << 20)),
            lambda: producer.send_batch("T", [bytes(3 << 20)] * 2),
        ):
            with pytest.raises(RemoteProtocolError) as refused:
                send()
            assert refused.value.code == ResponseCode.MESSAGE_ILLEGAL
            assert "4 MiB by default" in refused.value.help


@BOTH
def test_finding_15_a_delay_in_words_is_answered_with_its_level(
    place: tuple[Broker, Any], kind: Callable[..., Any]
):
    with driven(kind, place[1]) as producer:
        for words, level in (("10s", 3), ("2h", 18)):
            with pytest.raises(InvalidArgumentError, match="expected an integer") as wrong:
                producer.send("T", b"x", delay_level=words)
            assert f"{words} is level {level}" in wrong.value.help


@pytest.fixture
def broker(tmp_path: Path):
    with open_broker(tmp_path / "s", VirtualClock()) as opened:
        yield opened


@pytest.fixture
def link(broker: Broker):
    with recording(broker) as made:
        yield made


def sends(link: RecordingLink) -> int:
    return sum(request.code in SENDS for _moment, request in link.asked)


@BOTH
@each_row("code", sorted(RETRIED - {ResponseCode.NO_PERMISSION}))
@each_row("chosen", [{}, {"queue_id": 1}, {"sharding_key": "k"}])
def test_s1_01_a_refusal_that_may_pass_is_tried_twice_more(
    broker: Broker, kind: Callable[..., Any], code: ResponseCode, chosen: dict[str, Any]
):
    with recording(broker) as link, driven(kind, link) as producer:
        link.refused, link.refusal = set(SENDS), code
        with pytest.raises(RemoteProtocolError) as refused:
            producer.send("T", b"x", **chosen)
        assert (refused.value.code, sends(link)) == (code, 1 + RETRIES)
        with pytest.raises(RemoteProtocolError):
            producer.send_batch("T", [b"x"], **chosen)
        assert sends(link) == 2 * (1 + RETRIES)
        link.refused = set()
        assert producer.send("T", b"x", **chosen).status is SendStatus.SEND_OK


@BOTH
@pytest.mark.parametrize("code", [ResponseCode.MESSAGE_ILLEGAL, ResponseCode.NO_PERMISSION])
def test_s1_01_a_refusal_that_will_not_pass_is_believed(
    link: RecordingLink, kind: Callable[..., Any], code: ResponseCode
):
    link.refused, link.refusal = set(SENDS), code
    with driven(kind, link) as producer, pytest.raises(RemoteProtocolError):
        producer.send("T", b"x")
    assert sends(link) == 1


@BOTH
@pytest.mark.parametrize(
    ("topic", "properties"),
    [
        ("SCHEDULE_TOPIC_XXXX", {}),
        ("T", {"TIMER_DELIVER_MS": "5"}),
        ("T", {"TIMER_DELAY_SEC": "5"}),
    ],
)
def test_what_a_broker_refuses_each_time_is_sent_once(
    link: RecordingLink, kind: Callable[..., Any], topic: str, properties: dict[str, str]
):
    with driven(kind, link) as producer, pytest.raises(RemoteProtocolError):
        producer.send(topic, b"x", properties=properties)
    assert sends(link) == 1


@BOTH
def test_s1_01_what_gets_no_answer_is_sent_again(link: RecordingLink, kind: Callable[..., Any]):
    link.cut = set(SENDS)
    with driven(kind, link) as producer, pytest.raises(AskTimeoutError):
        producer.send("T", b"x")
    assert sends(link) == 1 + RETRIES


@BOTH
def test_s1_07_a_closed_producer_refuses_and_says_so(link: RecordingLink, kind: Callable[..., Any]):
    with driven(kind, link, "shop") as producer:
        producer.send("T", b"x")
        assert "shop" in repr(producer.made)
        assert "closed" not in repr(producer.made)
        producer.close()
        producer.close()
        assert "closed" in repr(producer.made)
        for call, what in ((producer.send, b"x"), (producer.send_batch, [b"x"])):
            with pytest.raises(ClientClosedError, match="closed"):
                call("T", what)


def test_a_producer_that_is_closed_in_an_event_loop_names_the_one_for_loops(tmp_path: Path):
    with BrokerServer(tmp_path / "s") as server:
        producer = Producer(server.address)

        async def close() -> None:
            with pytest.raises(InvalidArgumentError, match="a Producer was called in an event loop") as error:
                producer.close()
            assert "AsyncProducer" in error.value.help

        asyncio.run(close())
        producer.close()


@pytest.mark.parametrize("kind", [Producer, AsyncProducer])
@pytest.mark.parametrize(
    ("args", "settings", "text"),
    [
        ((), {}, "missing a required argument: 'target'"),
        (("127.0.0.1:1", "g", "T"), {}, "too many positional arguments"),
        (("127.0.0.1:1",), {"topic": "T"}, "got an unexpected keyword argument 'topic'"),
    ],
)
def test_a_wrong_call_is_said_of_the_class_that_was_called(kind: Any, args: Any, settings: Any, text: str):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\): {text}$"):
        kind(*args, **settings)


@pytest.mark.parametrize("kind", [Producer, AsyncProducer])
def test_the_signature_of_a_class_names_its_settings(kind: Any):
    assert list(inspect.signature(kind).parameters)[:3] == ["target", "group", "clock"]

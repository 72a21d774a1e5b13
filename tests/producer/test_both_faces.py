"""Both faces of a producer have the same calls and settings, and send again by the same rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.errors import AskTimeoutError, LocalProtocolError, RemoteProtocolError
from seglog.producer.producer import AsyncProducer, Producer
from seglog.producer.send_result import SendStatus
from seglog.producer.sender import RETRIED, RETRIES
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.storage.writes import NewMessage
from tests.support.brokers import open_broker
from tests.support.faces import driven
from tests.support.listening import BrokerServer
from tests.support.recording import RecordingLink, recording

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


@pytest.fixture
def link(tmp_path: Path):
    with open_broker(tmp_path / "s", VirtualClock()) as broker, recording(broker) as made:
        yield made


def sends(link: RecordingLink) -> int:
    return sum(request.code in SENDS for _moment, request in link.asked)


@BOTH
@pytest.mark.parametrize("code", sorted(RETRIED))
def test_s1_01_a_refusal_that_may_pass_is_tried_twice_more(
    link: RecordingLink, kind: Callable[..., Any], code: ResponseCode
):
    link.refused, link.refusal = set(SENDS), code
    with driven(kind, link) as producer:
        with pytest.raises(RemoteProtocolError) as refused:
            producer.send("T", b"x")
        assert (refused.value.code, sends(link)) == (code, 1 + RETRIES)
        with pytest.raises(RemoteProtocolError):
            producer.send_batch("T", [b"x"])
        assert sends(link) == 2 * (1 + RETRIES)
        link.refused = set()
        assert producer.send("T", b"x").status is SendStatus.SEND_OK


@BOTH
def test_s1_01_a_refusal_that_will_not_pass_is_believed(link: RecordingLink, kind: Callable[..., Any]):
    link.refused, link.refusal = set(SENDS), ResponseCode.MESSAGE_ILLEGAL
    with driven(kind, link) as producer, pytest.raises(RemoteProtocolError):
        producer.send("T", b"x")
    assert sends(link) == 1


@BOTH
def test_s1_01_what_gets_no_answer_is_sent_again(link: RecordingLink, kind: Callable[..., Any]):
    link.cut = set(SENDS)
    with driven(kind, link) as producer, pytest.raises(AskTimeoutError):
        producer.send("T", b"x")
    assert sends(link) == 1 + RETRIES


@BOTH
@pytest.mark.parametrize("chosen", [{"queue_id": 1}, {"sharding_key": "k"}])
def test_what_has_its_queue_is_sent_once(
    link: RecordingLink, kind: Callable[..., Any], chosen: dict[str, Any]
):
    link.refused = set(SENDS)
    with driven(kind, link) as producer, pytest.raises(RemoteProtocolError):
        producer.send("T", b"x", **chosen)
    assert sends(link) == 1


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
            with pytest.raises(LocalProtocolError, match="closed"):
                call("T", what)

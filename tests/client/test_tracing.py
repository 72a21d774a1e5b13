"""Traces of sends and of listeners: into the trace topic, in the background, and in no one's way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.client.connect import make_client
from seglog.client.tracing import BATCH, MOST_WAITING
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume
from seglog.consumer.lite import LitePullConsumer
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import AsyncProducer, Producer
from seglog.remoting.codes import RequestCode
from seglog.storage.format.record.message import Message
from seglog.storage.format.system_names import TRACE_TOPIC
from tests.support.brokers import open_broker
from tests.support.listening import BrokerServer
from tests.support.recording import RecordingLink, recording

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with open_broker(tmp_path, VirtualClock()) as opened:
        yield opened


@pytest.fixture
def link(broker: Broker) -> Iterator[RecordingLink]:
    with recording(broker, "127.0.0.1@7#client") as made:
        yield made


def stored(broker: Broker) -> list[Message]:
    """Returns the messages of the trace topic, in the order of the log."""
    found: list[Message] = []
    for queue_id in range(8):
        at = 0
        while got := broker.store.get(TRACE_TOPIC, queue_id, at, 32).messages:
            found.extend(got)
            at += len(got)
    return sorted(found, key=lambda message: message.phy_offset)


def traces(broker: Broker) -> list[list[str]]:
    """Returns the fields of all traces."""
    texts = [message.body.decode() for message in stored(broker)]
    return [one.split("\x01") for text in texts for one in text.split("\x02") if one]


def test_a_send_is_traced_five_seconds_later_with_its_ids_keys_and_place(broker: Broker):
    with Producer(broker, "shop", trace=True) as producer:
        sent = producer.send("orders", b"42 apples", tags="fruit", keys=["one", "two"])
        late = producer.send("orders", b"later", delay_level=2)
        broker.advance("4999ms")
        assert stored(broker) == []
        broker.advance(1)
        (message,) = stored(broker)
    assert message.keys == [sent.message_id, "one", "two", late.message_id]
    first, second = traces(broker)
    assert first[0] == "Pub"
    assert first[2:8] == ["DefaultRegion", "shop", "orders", sent.message_id, "fruit", "one two"]
    assert first[9] == "9"
    assert first[11:] == ["0", sent.offset_message_id, "true"]
    assert (second[5:8], second[11]) == ([late.message_id, "null", "null"], "3")


def test_a_batch_is_one_trace_with_all_its_ids(broker: Broker):
    with Producer(broker, "shop", trace=True) as producer:
        sent = producer.send_batch("orders", [b"one", b"other"])
    ((*fields,),) = traces(broker)
    assert fields[5] == ",".join(sent.message_ids)
    assert fields[9] == str(len(b"one" + b"other"))


def test_twenty_traces_do_not_wait_for_their_time(broker: Broker):
    with Producer(broker, "shop", trace=True) as producer:
        for _ in range(BATCH):
            producer.send("orders", b"x")
        broker.advance(0)
        assert len(traces(broker)) == BATCH


@BOTH
def test_what_a_listener_got_and_how_it_came_back_is_traced(broker: Broker, kind: Any):
    """Codes are SUCCESS 0, TIME_OUT 1, EXCEPTION 2, FAILED 4; the times are those of the call."""

    async def listener(message: Message) -> Consume | None:
        await sleep_ms(30)
        if message.body == b"raises" and not message.reconsume_times:
            raise RuntimeError("the application fails")
        if message.body == b"late":
            await sleep_ms(70_000)
        return Consume.RECONSUME_LATER if message.body == b"again" and not message.reconsume_times else None

    with Producer(broker) as producer:
        ids = {
            body: producer.send("T", body, keys="k1 k2", queue_id=0).message_id
            for body in (b"fine", b"raises", b"again", b"late")
        }
    consumer = kind(broker, "g", "T", listener, trace=True, consume_timeout_ms=60_000)
    consumer.start()
    broker.advance("5m")
    consumer.close()
    found = traces(broker)
    befores = {one[4]: one for one in found if one[0] == "SubBefore"}
    ends: dict[str, list[tuple[str, str, str]]] = {}
    for one in found:
        if one[0] == "SubAfter":
            assert one[1] in befores, "what was said before is said first"
            assert befores[one[1]][5] == one[2]
            assert one[8] == befores[one[1]][3] == "g"
            ends.setdefault(one[2], []).append((one[3], one[4], one[6]))
    assert ends[ids[b"fine"]] == [("30", "true", "0")]
    assert ends[ids[b"raises"]] == [("30", "false", "2"), ("30", "true", "0")]
    assert ends[ids[b"again"]] == [("30", "false", "4"), ("30", "true", "0")]
    assert ends[ids[b"late"]][0] == ("70030", "true", "1")
    retries = [one[6] for one in befores.values() if one[5] == ids[b"raises"]]
    assert retries == ["0", "1"]
    assert {one[7] for one in befores.values()} == {"k1 k2"}
    assert {message.topic for message in stored(broker)} == {TRACE_TOPIC}


def test_a_batch_of_a_listener_is_one_call_of_all_its_messages(broker: Broker):
    with Producer(broker) as producer:
        producer.send_batch("T", [b"x"] * 4, queue_id=0)
    with PushConsumer(broker, "g", "T", lambda _batch: None, batch_size=4, trace=True) as consumer:
        consumer.run_until_idle()
    found = traces(broker)
    assert [one[0] for one in found] == ["SubBefore"] * 4 + ["SubAfter"] * 4
    assert len({one[4] if one[0] == "SubBefore" else one[1] for one in found}) == 1


@pytest.mark.parametrize("kind", [Producer, PushConsumer])
def test_nothing_is_traced_unless_that_is_asked_for_or_where_its_broker_wants_none(tmp_path: Path, kind: Any):
    config = BrokerConfig(is_trace_on=False)
    for name, is_traced in (("plain", False), ("off", True)):
        with open_broker(tmp_path / name, VirtualClock(), config=config if is_traced else None) as broker:
            with Producer(broker, trace=is_traced) as producer:
                producer.send("T", b"x")
            with PushConsumer(broker, "g", "T", lambda _message: None, trace=is_traced) as consumer:
                consumer.run_until_idle()
            broker.advance("10s")
            assert stored(broker) == []


def test_a_send_never_fails_or_waits_because_its_trace_cannot_be_sent(
    broker: Broker, link: RecordingLink, caplog: pytest.LogCaptureFixture
):
    with Producer(broker) as other:
        other.send(TRACE_TOPIC + "_x", b"x")
    with Producer(link, "shop", trace=True) as producer:
        producer.send("T", b"x")
        link.cut = {RequestCode.GET_ROUTEINFO_BY_TOPIC}
        broker.advance("5s")
        assert "1 traces of _INNER_TRACE_PRODUCER-shop-PRODUCE-1 are lost" in caplog.text
        traces_of = producer._traces
        assert traces_of is not None
        assert traces_of.tracer.dropped == 1
        link.cut = set()
        for _ in range(MOST_WAITING + 5):
            producer.send("T", b"x")  # and nothing is sent meanwhile: no time passes
        assert traces_of.tracer.dropped == 1 + 5
        broker.advance("5s")
        assert len(traces(broker)) == MOST_WAITING


def test_what_waits_is_sent_when_its_producer_is_closed_though_others_share_the_client(broker: Broker):
    with make_client(broker) as client:
        producer = Producer(client, "shop", trace=True)
        producer.send("T", b"x")
        producer.close()
        broker.advance(0)
        assert len(traces(broker)) == 1
        consumer = PushConsumer(client, "g", "T", lambda _message: None, trace=True)
        consumer.run_until_idle()
        consumer.close()
        broker.advance(0)
        assert [one[0] for one in traces(broker)] == ["Pub", "SubBefore", "SubAfter"]
        assert client._last_steps == []


def test_over_a_connection_traces_are_sent_as_well_by_either_face(tmp_path: Path):
    async def send(address: str) -> None:
        async with AsyncProducer(address, "async", trace=True) as producer:
            await producer.send("T", b"x")

    with BrokerServer(tmp_path / "s") as server:
        with Producer(server.address, "plain", trace=True) as producer:
            sent = producer.send("T", b"x")
        asyncio.run(send(server.address))
        with PushConsumer(server.address, "g", "T", lambda _message: None, trace=True) as consumer:
            assert consumer.run_until_idle(30) == 2
        found = traces(server.broker)
    assert [one[3] for one in found if one[0] == "Pub"] == ["plain", "async"]
    assert {one[8] for one in found if one[0] == "Pub"} == {server.address}
    assert sum(one[0] == "SubAfter" for one in found) == 2
    assert found[0][5] == sent.message_id


@pytest.mark.parametrize("wrong", [1, None, "yes"])
def test_whether_to_trace_is_yes_or_no(broker: Broker, wrong: Any):
    with pytest.raises(InvalidArgumentError, match="trace="):
        Producer(broker, trace=wrong)
    with pytest.raises(InvalidArgumentError, match="trace="):
        PushConsumer(broker, "g", "T", print, trace=wrong)


@pytest.mark.parametrize("is_looped", [False, True])
def test_what_is_polled_is_traced_as_java_does_it_with_its_success_at_once(
    broker: Broker, *, is_looped: bool
):
    with Producer(broker, "shop") as producer:
        ids = [producer.send("orders", b"x", keys="k", queue_id=0).message_id for _ in range(2)]
    with LitePullConsumer(broker, "billing", "orders", trace=True) as consumer:
        polled = [next(consumer), next(consumer)] if is_looped else consumer.poll()
        assert [message.unique_key for message in polled] == ids
        broker.advance("5s")
        found = traces(broker)
        before = [one for one in found if one[0] == "SubBefore"]
        after = [one for one in found if one[0] == "SubAfter"]
        assert [(one[3], one[5], one[6]) for one in before] == [("billing", one, "0") for one in ids]
        assert [(one[2], one[3], one[4], one[6]) for one in after] == [(one, "0", "true", "0") for one in ids]
        assert [one[1] for one in after] == [one[4] for one in before]
        consumer.commit()


def test_a_consumer_that_is_polled_sends_its_last_traces_at_its_end_and_none_unasked(broker: Broker):
    with Producer(broker, "shop") as producer:
        producer.send("orders", b"x", queue_id=0)
    with LitePullConsumer(broker, "quiet", "orders") as quiet:
        assert len(quiet.poll()) == 1
    with LitePullConsumer(broker, "billing", "orders", trace=True) as consumer:
        assert len(consumer.poll()) == 1
    broker.run_due()
    assert [(one[0]) for one in traces(broker)] == ["SubBefore", "SubAfter"]

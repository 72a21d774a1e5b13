"""What a consumer finds out when it starts: whether it may, whether it is served, and what it waits for."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.client.connect import make_client
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ClientClosedError, ConsumerError, RemoteProtocolError
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.subscription import Subscription
from seglog.storage.format.record.message import Message
from tests.support.brokers import open_broker
from tests.support.consumers import until_idle, wait_until_named
from tests.support.faces import driven
from tests.support.listening import LOOPBACK, BrokerServer
from tests.support.machine.said import said
from tests.support.recording import recording

ALL = pytest.mark.parametrize(
    "kind", [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
)
BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
BY_PRICE = {"T": Subscription.by_sql("price > 5")}
NO_SQL = "The broker does not support consumer to filter message by SQL92"


def listener(_message: Message) -> None:
    """Is done with anything."""


@pytest.fixture(params=["in process", "over a socket"])
def place(request: Any, tmp_path: Path) -> Iterator[tuple[Broker, Any]]:
    """A broker without SQL92, and what leads to it."""
    if request.param == "in process":
        with Broker.open(tmp_path / "s", config=BrokerConfig(enable_property_filter=False)) as broker:
            yield broker, broker
    else:
        with BrokerServer(tmp_path / "s") as server:
            yield server.broker, server.address


# A second one of a group


@BOTH
def test_s4_09_a_start_fails_where_another_consumer_of_the_group_has_started(
    broker: Broker, caplog: pytest.LogCaptureFixture, kind: Any
):
    Producer(broker).send("T", b"x")
    with make_client(broker) as client:
        first, second = (kind(client, "g", "T", listener) for _ in range(2))
        first.start()  # which takes no step before time is moved
        for call in (second.start, second.run_until_idle):
            with pytest.raises(ConsumerError, match="has a consumer of group g already") as refused:
                call()
            assert "another group" in refused.value.help
        with pytest.raises(ConsumerError, match="has a consumer of group g already"):
            kind(client, "g", "T", listener)
        broker.advance("1m")
        first.close()
        second.start()
        broker.advance("1m")
        assert second.queues
        second.close()
    assert said(caplog) == []


def test_a_start_fails_where_the_client_was_closed(broker: Broker, caplog: pytest.LogCaptureFixture):
    client = make_client(broker)
    consumer = PushConsumer(client, "g", "T", listener)
    client.close()
    with pytest.raises(ClientClosedError):
        consumer.start()
    broker.advance("1m")
    assert said(caplog) == []


# A subscription that is not served


@ALL
@pytest.mark.parametrize("call", ["start", "run_until_idle"])
def test_a_start_fails_where_the_broker_does_not_filter_by_sql(
    place: tuple[Broker, Any], caplog: pytest.LogCaptureFixture, kind: Callable[..., Any], call: str
):
    broker, target = place
    with Producer(broker) as producer:
        producer.send("T", b"x")
    with driven(kind, target, "g", BY_PRICE, listener) as consumer:
        for _ in range(2):
            with pytest.raises(RemoteProtocolError, match=NO_SQL) as refused:
                getattr(consumer, call)()
            assert "refuses SQL92 'price > 5' of T" in refused.value.remark
    assert broker.clients.consumers("g") is None
    assert said(caplog) == []


def test_a_start_fails_where_the_condition_is_none_and_can_be_tried_again(tmp_path: Path):
    with open_broker(tmp_path / "s", config=BrokerConfig(enable_property_filter=True)) as broker:
        Producer(broker).send("T", b"x")
        with make_client(broker) as client:
            wanted = {"T": Subscription.by_sql("price >")}
            with pytest.raises(RemoteProtocolError, match="'price >' of T"):
                PushConsumer(client, "g", wanted, listener).start()
            with PushConsumer(client, "g", BY_PRICE, listener) as other:
                other.run_until_idle()
                assert other.queues


def test_a_start_does_not_wait_for_a_broker_that_does_not_answer(
    broker: Broker, caplog: pytest.LogCaptureFixture
):
    Producer(broker).send("T", b"x")
    with recording(broker) as link:
        link.cut = {RequestCode.CHECK_CLIENT_CONFIG}
        with PushConsumer(link, "g", BY_PRICE, listener) as consumer:
            consumer.start()
            assert "the subscription to topic T is not checked" in caplog.text


def test_a_start_asks_no_broker_about_tags(broker: Broker):
    Producer(broker).send("T", b"x")
    with recording(broker) as link, PushConsumer(link, "g", {"T": "a || b"}, listener) as consumer:
        consumer.start()
        assert link.asked == []
        broker.advance(0)
        assert link.moments(RequestCode.CHECK_CLIENT_CONFIG) == []


# What a consumer waits for before it is idle


@ALL
def test_without_a_name_server_a_consumer_is_not_idle_and_says_why(kind: Callable[..., Any]):
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))  # so that nothing else listens there
        address = f"{LOOPBACK}:{taken.getsockname()[1]}"
        with driven(kind, address, "g", "T", listener) as consumer:
            for _ in range(2):
                wait_until_named(consumer, "it waits for topic T: ")


@ALL
def test_a_consumer_waits_for_its_share_until_it_is_told_of_queues(tmp_path: Path, kind: Callable[..., Any]):
    with Broker.open(tmp_path / "s") as broker, recording(broker) as link:
        with Producer(broker) as producer:
            producer.send("T", b"x")
        link.cut = {RequestCode.GET_ROUTEINFO_BY_TOPIC}
        with driven(kind, link, "g", "T", listener) as consumer:
            wait_until_named(consumer, "it waits for topic T: ")
            link.cut = set()
            assert until_idle(consumer) == 1


def test_a_topic_that_does_not_exist_is_not_waited_for(tmp_path: Path):
    with Broker.open(tmp_path / "s") as broker, PushConsumer(broker, "g", "none", listener) as consumer:
        assert until_idle(consumer) == 0


@BOTH
def test_a_member_whose_first_heartbeats_were_lost_has_its_share_as_soon_as_its_broker_hears(
    broker: Broker, kind: Any
):
    Producer(broker).send("T", b"x")
    with kind(broker, "g", "T", listener) as first, recording(broker, "late") as link:
        first.start()
        broker.advance("3s")  # the group is known by then
        with kind(link, "g", "T", listener) as late:
            link.cut.add(RequestCode.HEART_BEAT)
            late.start()
            broker.advance("5s")
            assert not late.queues
            link.cut.clear()
            broker.advance("3s")
            assert len(late.queues) == 2


@BOTH
def test_a_broker_that_has_less_than_the_group_has_consumed_is_said(
    broker: Broker, caplog: pytest.LogCaptureFixture, kind: Any
):
    producer = Producer(broker)
    for _ in range(3):
        producer.send("T", b"x", queue_id=0)
    broker.offsets.commit("g", "T", 0, 50)  # as after the loss of its store
    with kind(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("1m")
    (said,) = (line for line in caplog.messages if "goes on" in line)
    assert said.startswith("group g goes on in ")
    assert "at offset 3, not 50: its broker has offsets 0 to 3" in said

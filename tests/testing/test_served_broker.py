"""A broker behind a port for tests of programs in any language, on real time or on virtual time."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import pytest

from seglog import ConsumeFrom, Message, OrderlyConsumer, Producer, PushConsumer, Subscription
from seglog.broker.settings import BrokerConfig
from seglog.broker.tables import TopicConfig
from seglog.errors import (
    ConsumerError,
    InvalidArgumentError,
    InvalidNameError,
    RemoteProtocolError,
    SeglogError,
)
from seglog.pytest_plugin import seglog_server
from seglog.remoting.heartbeat import MessageModel
from seglog.server.listening import Listener
from seglog.testing import ServedBroker
from tests.support.machine.patience import patience_s, wait_until

__all__ = ["seglog_server"]


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_clients_send_and_consume_over_connections(seglog_server, clock):
    server = seglog_server(clock=clock)
    got: list[bytes] = []
    with (
        Producer(server.address) as producer,
        PushConsumer(
            server.address,
            "g",
            "T",
            lambda message: got.append(bytes(message.body)),
            consume_from=ConsumeFrom.FIRST,
        ) as consumer,
    ):
        producer.send("T", b"at once")
        consumer.start()
        wait_until(lambda: got == [b"at once"], idle_s=30)
    assert [message.body for message in server.messages("T")] == [b"at once"]


def test_a_delayed_message_wakes_a_held_pull_when_the_test_moves_time(seglog_server):
    server = seglog_server(clock="virtual")
    got: list[bytes] = []
    with (
        Producer(server.address) as producer,
        PushConsumer(
            server.address,
            "g",
            "T",
            lambda message: got.append(bytes(message.body)),
            consume_from=ConsumeFrom.FIRST,
        ) as consumer,
    ):
        producer.send("T", b"late", queue_id=0, delay_level=18)
        consumer.start()
        wait_until(lambda: server.broker.held_count >= 1, idle_s=30)
        server.advance(timedelta(hours=1, minutes=59, seconds=59))
        assert server.messages("T") == []
        server.advance("1s")
        assert [message.body for message in server.messages("T")] == [b"late"]
        wait_until(lambda: got == [b"late"], idle_s=30)
        # Two hours of virtual time have passed, and the client is still there: it lives on real time.
        assert server.broker.clients.consumers("g") is not None


def test_virtual_time_begins_now_and_stands(seglog_server):
    now_ms = time.time_ns() // 1_000_000
    clock = seglog_server(clock="virtual").broker.clock
    first = clock.now_ms()
    assert now_ms <= first <= time.time_ns() // 1_000_000
    assert clock.now_ms() == first


def test_real_time_is_not_moved_and_the_error_says_how_to_have_the_other(seglog_server):
    with pytest.raises(InvalidArgumentError) as refused:
        seglog_server().advance("1h")
    assert 'seglog_server(clock="virtual")' in refused.value.help


def test_finding_12_it_makes_clients_and_fails_at_a_message_as_the_broker_in_process_does(seglog_server):
    server = seglog_server(clock="virtual")
    server.producer().send("T", b"x")
    seen: list[Message] = []
    consumer = server.consumer("g", "T", seen.append)
    assert type(consumer) is OrderlyConsumer
    assert consumer.run_until_idle(patience_s(30)) == 1
    assert type(server.consumer("h", "T", seen.append, in_order=False)) is PushConsumer
    polled = server.polled_consumer("p", "T")
    assert [bytes(message.body) for message in polled.poll(patience_s(30))] == [b"x"]
    server.send_back("g", seen[0], delay_level=1)
    assert server.messages("%RETRY%g") == []
    server.advance("1s")
    assert [bytes(message.body) for message in server.messages("%RETRY%g")] == [b"x"]
    server.close()
    with pytest.raises(ConsumerError, match="closed"):
        consumer.run_until_idle()


def test_each_has_a_port_and_a_store_of_its_own(seglog_server):
    one, other = seglog_server(), seglog_server()
    assert one.address != other.address
    assert one.broker.path != other.broker.path
    assert one.broker.config.address == one.address


def test_another_clock_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(InvalidArgumentError, match="clock"):
        ServedBroker.at(tmp_path / "s", clock="sundial")  # type: ignore[arg-type]  # that is the point
    assert not (tmp_path / "s").exists()


def test_a_store_that_cannot_be_opened_gives_the_port_back(tmp_path):
    (tmp_path / "s").write_bytes(b"no folder")
    with Listener(port=0) as listener:
        port = int(listener.address.partition(":")[2])
    with pytest.raises(SeglogError):
        ServedBroker.at(tmp_path / "s", port=port)
    Listener(port=port).close()


BROADCASTING = {"message_model": MessageModel.BROADCASTING, "in_order": False}


def test_finding_u21_each_consumer_that_broadcasts_is_a_client_of_its_own(seglog_server, caplog):
    server, seen = seglog_server(), ([], [])
    server.producer().send("labels", b"apples: 7")
    members = [server.consumer("tills", "labels", labels.append, **BROADCASTING) for labels in seen]
    assert [member.run_until_idle(timeout_s=60) for member in members] == [1, 1]
    assert [[label.body for label in labels] for labels in seen] == [[b"apples: 7"]] * 2
    assert len({member.client_id for member in members}) == 2
    assert "instance_name" not in caplog.text


def test_finding_u21_two_plain_members_that_broadcast_from_one_file_are_warned_of(
    seglog_server, tmp_path, caplog
):
    server = seglog_server()
    server.producer().send("labels", b"apples: 7")
    settings = {"message_model": MessageModel.BROADCASTING, "offset_folder": tmp_path / "offsets"}

    def consume():
        return PushConsumer(server.address, "tills", "labels", print, **settings)

    with consume() as first:
        first.run_until_idle(timeout_s=60)
    with consume() as again:
        again.run_until_idle(timeout_s=60)
        assert "instance_name" not in caplog.text  # the first one was closed
        with consume() as second:
            second.start()
    assert caplog.text.count("have their offsets in one file") == 1
    assert str(tmp_path / "offsets") in caplog.text


def test_finding_u21_subscriptions_by_sql92_are_served_unless_set_otherwise(seglog_server):
    server, seen = seglog_server(), []
    for price in (3, 7):
        server.producer().send("stock", b"%d" % price, properties={"price": str(price)})
    wanted = {"stock": Subscription.by_sql("price > 5")}
    assert server.consumer("g", wanted, seen.append).run_until_idle(timeout_s=60) == 1
    assert [message.body for message in seen] == [b"7"]
    with pytest.raises(RemoteProtocolError, match="SQL92") as refused:
        seglog_server(config=BrokerConfig()).consumer("g", wanted, seen.append).start()
    assert "enablePropertyFilter=true" in str(refused.value.help)


def test_finding_u21_a_topic_without_queues_to_write_to_is_refused_with_what_to_do(seglog_server):
    server = seglog_server()
    server.broker.topics.put(TopicConfig("z", 4, 0))
    with pytest.raises(RemoteProtocolError, match="topic z has no queue") as refused:
        server.producer().send("z", b"1")
    assert "mqadmin updateTopic" in str(refused.value.help)


def test_finding_u21_a_plain_client_in_an_event_loop_is_refused_by_its_name_with_the_other_one(seglog_server):
    server = seglog_server()

    async def send():
        server.producer().send("orders", b"1")

    async def consume():
        server.consumer("g", "orders", print).start()

    with pytest.raises(InvalidArgumentError, match="those of a Producer") as refused:
        asyncio.run(send())
    assert "AsyncProducer" in str(refused.value.help)
    with pytest.raises(InvalidArgumentError, match=r"^an OrderlyConsumer is not run in an event loop"):
        asyncio.run(consume())


@pytest.mark.parametrize(
    ("topics", "expected"),
    [("orders", {"orders": 4}), (["a", "b"], {"a": 4, "b": 4}), ({"a": 16, "b": 1}, {"a": 16, "b": 1})],
)
def test_topics_are_there_before_a_client_asks_for_them(seglog_server, topics, expected):
    server = seglog_server(topics=topics)
    producer = server.producer()
    assert {name: len(producer.queues(name)) for name in expected} == expected
    seen = []
    consumer = server.consumer("g", next(iter(expected)), seen.append)
    consumer.start()
    producer.send(next(iter(expected)), b"x")
    wait_until(lambda: len(seen) == 1, "a consumer that began first gets it", idle_s=20)


def test_a_topic_that_the_store_has_stays_as_it_is(tmp_path):
    for topics in ({"orders": 3}, ["orders"]):
        with ServedBroker.at(tmp_path / "s", topics=topics) as server:
            assert len(server.producer().queues("orders")) == 3


@pytest.mark.parametrize(
    ("topics", "kind"),
    [
        ({"a": 0}, InvalidArgumentError),
        ({"a": "4"}, InvalidArgumentError),
        (["a b"], InvalidNameError),
        ([""], InvalidNameError),
        ({"a": 1 << 20}, InvalidArgumentError),
    ],
)
def test_topics_that_there_cannot_be_are_refused_and_nothing_is_made(tmp_path, topics, kind):
    with pytest.raises(kind):
        ServedBroker.at(tmp_path / "s", topics=topics)
    assert list(tmp_path.iterdir()) == []

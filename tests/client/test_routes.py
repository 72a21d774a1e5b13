"""Routes are asked once, kept for a while, and made up for topics that a send will create."""

from __future__ import annotations

import pytest

from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.topics import TopicConfig
from seglog.client.home.at_once import run_at_once
from seglog.client.links.local_link import LocalLink
from seglog.client.routes import AGAIN_MS, REFRESH_MS, Routes
from seglog.clock import VirtualClock
from seglog.errors import ProtocolError, RemoteProtocolError
from seglog.producer.producer import Producer
from seglog.remoting.bodies import BrokerData, QueueData, TopicRouteBody
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Response
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.topics import MAX_QUEUES
from tests.support.brokers import open_broker, send
from tests.support.listening import LOOPBACK, Server
from tests.support.peers import answering
from tests.support.recording import RecordingLink


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def broker(tmp_path, clock):
    with open_broker(tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def routes(broker, clock):
    return Routes(LocalLink(broker), clock)


def queues(topic, count):
    return tuple(MessageQueue(topic, "broker-a", queue_id) for queue_id in range(count))


def to_publish(routes, topic):
    return run_at_once(routes.ask_to_publish(topic))


def test_a_known_topic_has_its_queues(broker, routes):
    broker.topics.put(TopicConfig("T", 3, 2))
    assert routes.to_read("T") == queues("T", 3)
    assert to_publish(routes, "T") == queues("T", 2)


def test_queues_to_send_to_are_fresh_for_as_long_as_a_route_is(broker, routes, clock):
    broker.topics.put(TopicConfig("T", 3, 2))
    assert routes.fresh_to_publish("T") == ()
    assert to_publish(routes, "T") == queues("T", 2)
    clock.advance(REFRESH_MS - 1)
    assert routes.fresh_to_publish("T") == queues("T", 2)
    clock.advance(1)
    assert routes.fresh_to_publish("T") == ()


def test_a_new_topic_can_be_sent_to_but_not_read(routes):
    assert to_publish(routes, "T") == queues("T", 4)
    assert routes.to_read("T") == ()


def test_a_topic_that_has_come_is_seen_at_once(broker, routes):
    to_publish(routes, "T")
    send(broker, "T")
    assert routes.to_read("T") == queues("T", 4)


def test_without_auto_create_there_is_nowhere_to_send(tmp_path, clock):
    with open_broker(tmp_path, clock) as broker:
        broker.topics.put(TopicConfig("TBW102", 8, 8, 4))
        with pytest.raises(RemoteProtocolError, match="no queue to write"):
            to_publish(Routes(LocalLink(broker), clock), "T")


def test_permissions_are_respected(broker, routes):
    broker.topics.put(TopicConfig("w", 2, 2, 2))
    broker.topics.put(TopicConfig("r", 2, 2, 4))
    assert routes.to_read("w") == ()
    with pytest.raises(RemoteProtocolError):
        to_publish(routes, "r")


def test_a_change_is_seen_after_thirty_seconds_or_when_in_doubt(broker, routes, clock):
    broker.topics.put(TopicConfig("T", 1, 1))
    assert routes.to_read("T") == queues("T", 1)
    broker.topics.put(TopicConfig("T", 2, 2))
    clock.advance(REFRESH_MS - 1)
    assert routes.to_read("T") == queues("T", 1)
    clock.advance(1)
    assert routes.to_read("T") == queues("T", 2)
    broker.topics.put(TopicConfig("T", 3, 3))
    routes.doubt("T", ResponseCode.NO_PERMISSION)
    assert routes.to_read("T") == queues("T", 3)


NO_ROUTE = [ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SYSTEM_ERROR]
"""What a name server answers that has just started, or that is about to end."""


@pytest.mark.parametrize("refusal", NO_ROUTE)
def test_a_route_is_used_until_another_one_comes(broker, clock, refusal):
    link = RecordingLink(broker)
    routes = Routes(link, clock)
    broker.topics.put(TopicConfig("T", 2, 2))
    assert to_publish(routes, "T") == queues("T", 2)
    link.refused, link.refusal = {RequestCode.GET_ROUTEINFO_BY_TOPIC}, refusal
    for _ in range(3):
        clock.advance(REFRESH_MS)
        assert to_publish(routes, "T") == queues("T", 2)
        assert routes.known_to_read("T") == queues("T", 2)
    link.refused = set()
    broker.topics.put(TopicConfig("T", 3, 3))
    clock.advance(AGAIN_MS)
    assert to_publish(routes, "T") == queues("T", 3)


@pytest.mark.parametrize("refusal", NO_ROUTE)
def test_a_name_server_without_a_route_is_asked_again_after_a_second_and_not_with_each_send(
    broker, clock, refusal
):
    link = RecordingLink(broker)
    routes = Routes(link, clock)
    broker.topics.put(TopicConfig("T", 2, 2))
    to_publish(routes, "T")
    link.refused, link.refusal = {RequestCode.GET_ROUTEINFO_BY_TOPIC}, refusal
    clock.advance(REFRESH_MS)
    link.asked.clear()
    for _ in range(2):
        for _ in range(10):
            assert routes.fresh_to_publish("T") or to_publish(routes, "T")
        clock.advance(AGAIN_MS)
    assert len(link.asked) == 2


def test_a_route_that_a_broker_says_is_wrong_is_not_used_again(broker, routes):
    broker.topics.put(TopicConfig("TBW102", 8, 8, 4))
    broker.topics.put(TopicConfig("T", 2, 2))
    assert to_publish(routes, "T") == queues("T", 2)
    broker.topics.delete("T")
    routes.doubt("T", ResponseCode.SYSTEM_BUSY)
    assert to_publish(routes, "T") == queues("T", 2)
    routes.doubt("T", ResponseCode.TOPIC_NOT_EXIST)
    with pytest.raises(RemoteProtocolError, match="no queue to write"):
        to_publish(routes, "T")


def test_a_closed_broker_has_no_routes(tmp_path, clock):
    broker = open_broker(tmp_path / "closed", clock, BrokerConfig())
    broker.close()
    with pytest.raises(RemoteProtocolError, match="closed"):
        Routes(LocalLink(broker), clock).to_read("T")


@pytest.mark.parametrize(("reads", "writes"), [(4, 1_000_000_000), (MAX_QUEUES + 1, 4)])
def test_a_route_with_more_queues_than_a_topic_has_is_refused_at_once(reads, writes):
    queues = (QueueData("broker-a", reads, writes, 6, 0),)
    route = TopicRouteBody(queues, (BrokerData("cluster", "broker-a", {0: f"{LOOPBACK}:1"}),))
    with (
        Server(answering(lambda _request: Response(ResponseCode.SUCCESS, body=route))) as server,
        Producer(server.address) as producer,
        pytest.raises(
            ProtocolError, match=f"{reads} queues to read and {writes} to write at broker broker-a"
        ),
    ):
        producer.send("T", b"x")

"""A listener is of one server, a broker may have several; what cannot begin leaves no thread."""

from __future__ import annotations

import threading

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.producer.send_result import SendStatus
from seglog.remoting.admin_bodies import KeyValuesBody
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_body
from seglog.server.listening import Listener
from seglog.server.server import Server
from tests.support.brokers import on_a_roomy_disk

ELSEWHERE = "127.0.0.1:1"
"""What routes name; no test here asks for a route."""


@pytest.fixture
def broker(tmp_path):
    with Broker.open(tmp_path / "store", config=on_a_roomy_disk(BrokerConfig(address=ELSEWHERE))) as opened:
        yield opened


def server_threads():
    return {thread for thread in threading.enumerate() if thread.name == "seglog-server"}


def gauges_of(broker):
    values = expect_body(broker.dispatch(Request(RequestCode.GET_BROKER_RUNTIME_INFO)), KeyValuesBody).values
    return {name for name in ("seglog.connections", "seglog.slowRequests") if name in values}


def test_a_listener_that_was_closed_begins_nothing_and_leaves_no_thread(broker):
    listener, before = Listener(port=0), server_threads()
    listener.close()
    with pytest.raises(InvalidArgumentError, match=r"the listener of 127\.0\.0\.1:\d+ was closed"):
        Server(broker, listener)
    assert server_threads() == before
    assert gauges_of(broker) == set()


def test_a_second_server_does_not_get_the_listener_of_the_first(broker):
    listener = Listener(port=0)
    with Server(broker, listener) as first:
        before = server_threads()
        with pytest.raises(InvalidArgumentError, match="a server has the listener"):
            Server(broker, listener)
        assert server_threads() == before
        assert gauges_of(broker) == {"seglog.connections", "seglog.slowRequests"}
        with Server(broker, Listener(port=0)) as second:
            assert second.address != first.address
        assert gauges_of(broker) == {"seglog.connections", "seglog.slowRequests"}
    assert gauges_of(broker) == set()


def test_a_broker_without_an_address_of_its_own_is_served_at_the_usual_port_alone(tmp_path):
    before = server_threads()
    with Broker.open(tmp_path / "s", config=on_a_roomy_disk(BrokerConfig())) as broker:
        listener = Listener(port=0)
        with pytest.raises(InvalidArgumentError, match=r"routes name 127\.0\.0\.1:10911") as refused:
            Server(broker, listener)
        assert listener.address in str(refused.value)
        assert "BrokerConfig(address=listener.address)" in refused.value.help
        assert server_threads() == before
    with (
        listener,
        Broker.open(tmp_path / "s", config=on_a_roomy_disk(BrokerConfig(address=listener.address))) as broker,
        Server(broker, listener) as server,
        Producer(server.address) as producer,
    ):
        assert producer.send("T", b"x", queue_id=0).status is SendStatus.SEND_OK
        assert broker.store.max_offset("T", 0) == 1


def test_a_server_that_was_closed_has_no_connections_to_hang_up(broker):
    server = Server(broker, Listener(port=0))
    server.close()
    server.hang_up()
    assert server.connection_count == 0

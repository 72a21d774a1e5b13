"""Where clients are tried: at a broker in this process, at ours over connections, and at the real one.

What a test does at one of them it does at all; only how it waits differs: on virtual time it moves the clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.clock import VirtualClock
from seglog.consumer.consumer import Consumer
from seglog.consumer.listener import ConsumeFrom, Listener
from seglog.remoting.client_headers import ConsumerGroupHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_header
from seglog.remoting.dispatcher import Dispatcher
from seglog.remoting.headers import CreateTopicHeader, OffsetResponseHeader, QueryConsumerOffsetHeader
from tests.interop.judging.java_broker import JavaBroker
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import Geometry
from tests.support.brokers import open_broker
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until

BROKER_NAME: Final = "broker-a"
DELAY_LEVELS: Final = "1s 2s 1s 1s 2s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s"
"""Retries begin with the third level; RocketMQ's own are too long for tests on real time."""
CONFIG: Final = BrokerConfig(
    broker_name=BROKER_NAME, delay_levels=DELAY_LEVELS, enable_property_filter=True, hot_bytes=0
)
SETTINGS: Final = {
    "brokerName": BROKER_NAME,
    "enablePropertyFilter": True,
    # It has several threads for sends, which pass each other, and refuses what waits 200 ms for one of them.
    "sendMessageThreadPoolNums": 1,
    "waitTimeMillsInSendQueue": 60_000,
}
STORE_SETTINGS: Final[dict[str, Any]] = {"timerWheelEnable": False, "messageDelayLevel": DELAY_LEVELS}
GEOMETRY: Final = Geometry(16 << 20, 20_000, 500, 20_000)
STEP_MS: Final = 100


class Place:
    """A broker, and the way to it.

    Args:
        target: What clients are made of.
        address: Of the broker; None in process.

    Attributes:
        target: As given.
        address: As given.
        java: The real broker, where it is that.
    """

    _names = itertools.count(1)

    def __init__(self, target: Dispatcher | str, address: str | None, java: JavaBroker | None = None) -> None:
        self.target = target
        self.java = java
        self.address = address
        self._clients = ExitStack()
        self._admin: Client | None = None

    def client(self, **names: Any) -> Client:
        """Returns a new client; it is closed in the end."""
        return self._clients.enter_context(make_client(self.target, **names))

    def consumer(
        self, kind: type[Consumer], group: str, topic: Any, listener: Listener, **options: Any
    ) -> Consumer:
        """Starts a consumer that begins at the first message; it is closed in the end.

        Args:
            kind: Of what kind.
            group: Its group.
            topic: What it subscribes to.
            listener: Its listener.
            options: Its settings; a ``via`` among them is what it is made of.
        """
        options = {"consume_from": ConsumeFrom.FIRST, **options}
        made = kind(options.pop("via", self.target), group, topic, listener, **options)
        self._clients.callback(made.close)
        made.start()
        return made

    def ask(self, request: Request) -> Response:
        """Returns the broker's answer."""
        if self._admin is None:
            self._admin = self.client()
        return self._admin.link.invoke(request, 30_000, self.address)

    def make_topic(self, name: str, queues: int = 4, perm: int = 6) -> str:
        """Makes a topic, or changes it; returns its name, once clients can find it."""
        header = CreateTopicHeader(name, "TBW102", queues, queues, perm)
        assert self.ask(Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).code is ResponseCode.SUCCESS
        assert self._admin is not None
        routes = self._admin.routes
        wait_until(
            lambda: (
                [routes.doubt(name, ResponseCode.TOPIC_NOT_EXIST), len(routes.to_read(name))][1]
                == (queues if perm & 4 else 0)
            )
        )
        return name

    def new_name(self, what: str) -> str:
        """Returns a name that nothing here has."""
        return f"{what}-{next(self._names)}"

    def offset(self, group: str, topic: str, queue_id: int = 0) -> int | None:
        """Returns what a group has committed, None where it has not."""
        header = QueryConsumerOffsetHeader(group, topic, queue_id)
        answer = self.ask(Request(RequestCode.QUERY_CONSUMER_OFFSET, header))
        if answer.code is ResponseCode.QUERY_NOT_FOUND:
            return None
        return expect_header(answer, OffsetResponseHeader).offset

    def done(self, consumer: Consumer, topic: str, queue_id: int = 0) -> int | None:
        """Has a consumer commit, which by itself begins after ten seconds; returns what is committed then."""
        consumer.commit()
        return self.offset(consumer.group, topic, queue_id)

    def members(self, group: str) -> list[str]:
        """Returns the ids of the clients of a group that is online."""
        answer = self.ask(Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(group)))
        return sorted(getattr(answer.body, "client_ids", ()))

    def settle(self, is_so: Callable[[], object], most_s: float = 20) -> None:
        """Returns once something is so, or fails."""
        wait_until(is_so, idle_s=most_s)

    def close(self) -> None:
        """Closes what was made here."""
        self._clients.close()


class VirtualPlace(Place):
    """A broker in this process, on virtual time.

    Args:
        broker: The broker.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, None)
        self.broker = broker

    @override
    def settle(self, is_so: Callable[[], object], most_s: float = 20) -> None:
        for _ in range(int(most_s * 1_000 / STEP_MS)):
            if is_so():
                return
            self.broker.advance(STEP_MS)
        assert is_so(), "it did not come to that"


@contextmanager
def place_in_process(path: Path) -> Iterator[Place]:
    """Lends a broker in this process."""
    with open_broker(path, VirtualClock(), CONFIG) as broker:
        place = VirtualPlace(broker)
        try:
            yield place
        finally:
            place.close()


@contextmanager
def place_over_connections(path: Path) -> Iterator[Place]:
    """Lends a broker of ours behind a port."""
    with BrokerServer(path, config=CONFIG) as server:
        place = Place(server.address, server.address)
        try:
            yield place
        finally:
            place.close()


@contextmanager
def place_of_rocketmq(path: Path, version: str) -> Iterator[Place]:
    """Lends a real broker with its name server, in a process of their own.

    Args:
        path: Where its store is made.
        version: Its release.
    """
    with Judge(version) as judge:
        judge.build()
        with judge.broker(path, GEOMETRY, settings=SETTINGS, name_server=True, **STORE_SETTINGS) as broker:
            place = Place(f"127.0.0.1:{broker.name_server_port}", f"127.0.0.1:{broker.port}", broker)
            try:
                yield place
            finally:
                place.close()


@contextmanager
def rocketmq_at(
    path: Path, ports: Sequence[int], release: str, geometry: Geometry, **settings: object
) -> Iterator[JavaBroker]:
    """Serves a directory with the real broker and its name server, at ports that stay the same.

    Args:
        path: The store.
        ports: Of the name server and of the broker.
        release: Of RocketMQ.
        geometry: Of the store.
        settings: Further properties of BrokerConfig.
    """
    usual: dict[str, object] = {
        "brokerName": BROKER_NAME,
        "listenPort": ports[1],
        "sendMessageThreadPoolNums": 1,
        "waitTimeMillsInSendQueue": 60_000,
    }
    with (
        Judge(release) as judge,
        judge.broker(
            path,
            geometry,
            settings=usual | settings,
            name_server=True,
            name_server_port=ports[0],
            timerWheelEnable=False,
        ) as broker,
    ):
        yield broker

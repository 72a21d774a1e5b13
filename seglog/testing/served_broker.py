"""ServedBroker: a broker behind a port of its own, on real time or on virtual time."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Literal, Self

from typing_extensions import override

from seglog.arguments import as_choice, as_int
from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.broker.tables import TopicConfig
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.client.routes import NEW_TOPIC_QUEUE_NUMS
from seglog.clock import SystemClock, VirtualClock
from seglog.closing import Closing
from seglog.errors import InvalidArgumentError
from seglog.remoting.topics import MAX_QUEUES
from seglog.server.listening import Listener as Port
from seglog.server.server import Server
from seglog.storage.format.names import check_client_topic
from seglog.testing.for_tests import C, ForTests
from seglog.testing.virtual_broker import USUAL_CONFIG, RoomyFiles, VirtualBroker, new_sizes


def _topics_of(topics: str | Collection[str] | Mapping[str, int]) -> list[TopicConfig]:
    """Returns the settings of topics that are given by name."""
    if isinstance(topics, str):
        topics = (topics,)
    counts = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, NEW_TOPIC_QUEUE_NUMS)
    found: list[TopicConfig] = []
    for name, queue_nums in counts.items():
        number = as_int(f"topics[{name!r}]", queue_nums, 1, MAX_QUEUES)
        found.append(TopicConfig(check_client_topic(name), number, number))
    return found


class ServedBroker(Closing, ForTests):
    """A broker behind a port of its own, for clients in other processes and languages, made by :meth:`at`.

    On virtual time its timestamps, delays, retries and retention follow a clock that only :meth:`advance`
    moves. Connections, held pulls, queue locks and the expiry of clients stay on real time, as client
    programs do.

    Attributes:
        broker: The broker; usable in process too.
        address: Its address for clients, as broker and as name server.
    """

    def __init__(self, broker: Broker, port: Port) -> None:
        self.broker = broker
        self.address = port.address
        self._server = Server(broker, port)
        self._clients = ExitStack()
        self._broadcasting = count(1)

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Literal["real", "virtual"] = "real",
        config: BrokerConfig | None = None,
        port: int = 0,
        topics: str | Collection[str] | Mapping[str, int] = (),
    ) -> Self:
        """Opens the store at ``path``, creating it if needed, and serves it on loopback.

        The real usage of the disk is ignored.

        Args:
            path: The store directory.
            clock: The clock of the broker; virtual time begins now.
            config: Names and settings; the address is replaced by that of the port. By default SQL92 filters
                are on.
            port: The port; 0 for a free one.
            topics: Topics that exist before a client can ask for them, each with 4 queues, or with as many as
                a mapping says; a topic that the store has stays as it is. RocketMQ's own clients look for a
                topic that was not there at their start only after 30 s.

        Raises:
            CannotListenError: The port is in use.
            InvalidNameError: A topic's name is not valid.
            InvalidArgumentError: A topic has fewer than 1 queue, or more than a topic may have.
            StoreError: As ``MessageStore.open`` raises it.
        """
        as_choice("clock", ("real", "virtual"), clock)
        wanted = _topics_of(topics)
        end = Port(port=port)
        named = replace(config or USUAL_CONFIG, address=end.address)
        with ExitStack() as made:
            made.callback(end.close)
            if clock == "virtual":
                real = SystemClock()
                now = VirtualClock(real.now_ms())
                broker: Broker = VirtualBroker.at(path, clock=now, liveness_clock=real, config=named)
            else:
                files = RoomyFiles(path)
                broker = Broker.open(path, config=named, **new_sizes(files), files=files)
            made.callback(broker.close)
            broker.topics.ensure_all(wanted)
            served = cls(broker, end)
            made.pop_all()
        return served

    def advance(self, by: int | str | timedelta) -> None:
        """Lets virtual time pass, as :meth:`~seglog.broker.broker.Broker.advance` does.

        Raises:
            InvalidArgumentError: ``by`` is no duration, or the broker is on real time.
        """
        if not isinstance(self.broker, VirtualBroker):
            raise InvalidArgumentError(
                "the broker is on real time, which nothing moves",
                help='start it on virtual time: seglog_server(clock="virtual")',
            )
        self.broker.advance(by)

    @override
    def _served(self) -> Broker:
        return self.broker

    @override
    def _address(self) -> str:
        return self.address

    @override
    def _target(self, *, is_broadcasting: bool) -> Client | str:
        if not is_broadcasting:
            return self.address
        client = make_client(self.address, instance_name=f"test-{next(self._broadcasting)}")
        return self._clients.enter_context(client)

    @override
    def _usual_of_producers(self) -> tuple[None, None]:
        return None, None

    @override
    def _own(self, client: C) -> C:
        self._clients.callback(client.close)
        return client

    @override
    def close(self) -> None:
        """Closes the clients that it made, the connections, then the broker; a second call does nothing."""
        self._clients.close()
        self._server.close()
        self.broker.close()

"""A broker for tests: virtual time, clients of its own, and the same files for the same calls.

    with VirtualBroker.at(tmp_path) as broker:
        broker.producer().send("orders", b"42 apples", delay_level=18)
        broker.advance("2h")
        assert [message.body for message in broker.messages("orders")] == [b"42 apples"]

With pytest the fixture ``seglog_broker`` is one of these; ``seglog_server`` makes :class:`ServedBroker`.
What a broker does by time it does in :meth:`advance`, at its moment and in the thread of the test. Beside the
test run the threads that every store has which is open for writing; no answer and no byte depends on when
they have their turns, and they end with the broker.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Final, Literal, Self, TypeVar, Unpack

from typing_extensions import override

from seglog.arguments import as_choice, as_flag
from seglog.broker.access import Before
from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.client.client import Client
from seglog.client.connect import make_client
from seglog.client.home import start, wait_for
from seglog.client.links import LocalLink
from seglog.clock import Clock, SystemClock, VirtualClock
from seglog.closing import Closing
from seglog.consumer.consumer import Consumer
from seglog.consumer.listener import ConsumeFrom, Listener
from seglog.consumer.lite import LitePullConsumer
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.consumer.send_back import SendBack
from seglog.consumer.settings import ConsumerOptions, LiteOptions, Wanted
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.unique_id import UniqueIds
from seglog.server.listening import Listener as Port
from seglog.server.server import Server
from seglog.storage.files import DiskUsage, StoreRoot
from seglog.storage.format.record import Host, Message
from seglog.storage.store import MessageStore
from seglog.text import moment

SEGMENT_SIZE_BYTES: Final = 64 << 20
QUEUE_FILE_SIZE_BYTES: Final = 200_000
"""Smaller files than a broker's: a test opens and drops many."""
_PAGE: Final = 1_024

_CONFIG: Final = BrokerConfig(enable_property_filter=True)
"""A broker's, with subscriptions by SQL92, which a broker of RocketMQ has to be set to."""

C = TypeVar("C", bound=Producer | Consumer)


class RoomyFiles(StoreRoot):
    """The machine's files on a disk that is never full.

    How full the real one is differs from machine to machine and from run to run; a broker deletes and refuses
    by it.
    """

    @override
    def usage(self, path: Path) -> DiskUsage:
        """Says that nothing is in use."""
        return DiskUsage(0, 1 << 40)


class VirtualBroker(Broker):
    """A broker on virtual time, made by :meth:`at`; close it, or use it in a ``with`` statement."""

    _clients = 0
    _made: ExitStack | None = None

    @override
    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {moment(self._clock.now_ms())}>"

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: VirtualClock | None = None,
        config: BrokerConfig | None = None,
        before: Before | None = None,
        liveness_clock: Clock | None = None,
    ) -> Self:
        """Opens the store at ``path``, which is created if it is not there, and a broker over it.

        How full the disk really is does not count.

        Args:
            path: The store directory.
            clock: Its time; from 2023-11-14 on by default.
            config: Names and settings; by default those of a broker that filters by SQL92 too.
            before: As for ``Broker.open``.
            liveness_clock: Likewise.

        Raises:
            StoreError: As ``MessageStore.open`` raises it.
        """
        clock, config = clock or VirtualClock(), config or _CONFIG
        store = MessageStore.open(
            path,
            segment_size_bytes=SEGMENT_SIZE_BYTES,
            queue_file_size_bytes=QUEUE_FILE_SIZE_BYTES,
            max_message_size_bytes=config.max_message_size_bytes,
            store_host=Host.parse(config.address),
            clock=clock,
            files=RoomyFiles(path),
        )
        return cls(store, clock=clock, liveness_clock=liveness_clock, config=config, before=before)

    def link(self) -> LocalLink:
        """Returns a link for one more client."""
        self._clients += 1
        return LocalLink(self, f"127.0.0.1@0#{self._clients}")

    def producer(self, group: str = "test-producer") -> Producer:
        """Returns a new producer; its messages take the queues of a topic in turn, from the first one on.

        It ends with the broker at last.
        """
        link = self.link()
        ids = UniqueIds(self._clock, process_id=self._clients, life=0)
        return self._own(Producer(link, group, ids=ids, first_turn=0))

    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: Listener | None = None,
        *,
        in_order: bool = True,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer:
        """Returns a new member of a group, which consumes from the first message on.

        Once it is started it does so in :meth:`advance`; ``run_until_idle`` starts it too. It ends with the
        broker at last.

        Args:
            group: As for :class:`~seglog.consumer.consumer.Consumer`.
            subscription: Likewise.
            listener: Likewise.
            in_order: Whether it is an ``OrderlyConsumer``, where a message that fails stays first in its
                queue; else a ``PushConsumer``, where it comes again later, and ends as a dead letter.
            options: As for ``group``.
        """
        options = _with_defaults(self, options)
        return self._own(_consumer(self.link(), group, subscription, listener, options, in_order=in_order))

    def _own(self, client: C) -> C:
        """Has a client end with the broker."""
        if self._made is None:
            self._made = ExitStack()
        self._made.callback(_end, client)
        return client

    def polled_consumer(
        self, group: str, subscription: Wanted | None = None, **options: Unpack[LiteOptions]
    ) -> LitePullConsumer:
        """Returns a new member of a group that is polled, from the first message on.

        No time passes in a poll, and a ``for`` loop ends once nothing is left.

        Args:
            group: As for :class:`~seglog.consumer.lite.lite_pull.LitePullConsumer`.
            subscription: Likewise.
            options: Likewise.
        """
        return LitePullConsumer(self.link(), group, subscription, **_polled(self, options))

    def messages(self, topic: str) -> list[Message]:
        """Returns what can be consumed of a topic now, queue after queue, consumed before or not."""
        return _messages(self.store, topic)

    def send_back(self, group: str, message: Message, delay_level: int = 0) -> None:
        """Fails at a message as a consumer of a group does that has it tried again.

        Args:
            group: The group.
            message: As it was consumed.
            delay_level: When it comes again; by default later after every failure, and in the end never.

        Raises:
            ProtocolError: The broker refuses.
        """
        _send_back(self.link(), self.config.broker_name, group, message, delay_level)

    @override
    def close(self) -> None:
        """Ends the clients that it has made, which commit what is done, then the broker.

        A second call does nothing.
        """
        made, self._made = self._made, None
        try:
            if made is not None and not self.is_closed:
                made.close()
        finally:
            super().close()


class ServedBroker(Closing):
    """A broker behind a port of its own, for clients in other processes and languages, made by :meth:`at`.

    On virtual time it stamps, delays, tries again and deletes by a clock that only :meth:`advance` moves.
    Connections, held pulls, queue locks and how long clients live go by real time: so do their programs.

    Attributes:
        broker: The broker; usable in process too.
        address: Where clients find it, as broker and as name server.
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
    ) -> Self:
        """Opens the store at ``path``, which is created if it is not there, and serves it on loopback.

        How full the disk really is does not count.

        Args:
            path: The store directory.
            clock: By which time the broker goes; virtual time begins now.
            config: Names and settings; the address is that of the port. By default it filters by SQL92 too.
            port: Where it listens; 0 for one that is free.

        Raises:
            CannotListenError: The port is in use.
            StoreError: As ``MessageStore.open`` raises it.
        """
        as_choice("clock", ("real", "virtual"), clock)
        end = Port(port=port)
        named = replace(config or _CONFIG, address=end.address)
        with ExitStack() as made:
            made.callback(end.close)
            if clock == "virtual":
                real = SystemClock()
                now = VirtualClock(real.now_ms())
                broker: Broker = VirtualBroker.at(path, clock=now, liveness_clock=real, config=named)
            else:
                broker = Broker.open(
                    path,
                    config=named,
                    segment_size_bytes=SEGMENT_SIZE_BYTES,
                    queue_file_size_bytes=QUEUE_FILE_SIZE_BYTES,
                    files=RoomyFiles(path),
                )
            made.callback(broker.close)
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

    def producer(self, group: str = "test-producer") -> Producer:
        """Returns a new producer over a connection; it ends with the broker at last."""
        return self._clients.enter_context(Producer(self.address, group))

    def consumer(
        self,
        group: str,
        subscription: Wanted | None = None,
        listener: Listener | None = None,
        *,
        in_order: bool = True,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer:
        """Returns a new member of a group over a connection, as :meth:`VirtualBroker.consumer` does.

        It lives on real time; ``run_until_idle()`` and ``start()`` begin to consume. It ends with the broker
        at last. One that broadcasts is a client of its own: ``<ip>@test-1``, the next one ``<ip>@test-2``.

        Args:
            group: As for :meth:`VirtualBroker.consumer`.
            subscription: Likewise.
            listener: Likewise.
            in_order: Likewise.
            options: Likewise.
        """
        options = _with_defaults(self.broker, options)
        target: Client | str = self.address
        if options.get("message_model") is MessageModel.BROADCASTING:
            target = make_client(self.address, instance_name=f"test-{next(self._broadcasting)}")
            self._clients.enter_context(target)
        made = _consumer(target, group, subscription, listener, options, in_order=in_order)
        self._clients.callback(made.close)
        return made

    def polled_consumer(
        self, group: str, subscription: Wanted | None = None, **options: Unpack[LiteOptions]
    ) -> LitePullConsumer:
        """Returns a new member of a group that is polled over a connection, from the first message on.

        It lives on real time, and ends with the broker at last.

        Args:
            group: As for :class:`~seglog.consumer.lite.lite_pull.LitePullConsumer`.
            subscription: Likewise.
            options: Likewise.
        """
        made = LitePullConsumer(self.address, group, subscription, **_polled(self.broker, options))
        self._clients.callback(made.close)
        return made

    def messages(self, topic: str) -> list[Message]:
        """Returns what can be consumed of a topic now, queue after queue, consumed before or not."""
        return _messages(self.broker.store, topic)

    def send_back(self, group: str, message: Message, delay_level: int = 0) -> None:
        """Fails at a message over a connection, as :meth:`VirtualBroker.send_back` does.

        Args:
            group: As for :meth:`VirtualBroker.send_back`.
            message: Likewise.
            delay_level: Likewise.

        Raises:
            ProtocolError: The broker refuses.
        """
        _send_back(self.address, self.broker.config.broker_name, group, message, delay_level)

    @override
    def close(self) -> None:
        """Ends the clients that it has made, the connections, then the broker; a second call does nothing."""
        self._clients.close()
        self._server.close()
        self.broker.close()


def _end(client: Producer | Consumer) -> None:
    with suppress(TimeoutError):  # its listener waits for time that does not pass any more
        client.close()


def _consumer(
    target: Client | LocalLink | str,
    group: str,
    subscription: Wanted | None,
    listener: Listener | None,
    options: ConsumerOptions,
    *,
    in_order: bool,
) -> Consumer:
    kind = OrderlyConsumer if as_flag("in_order", in_order) else PushConsumer
    return kind(target, group, subscription, listener, **options)


def _with_defaults(broker: Broker, options: ConsumerOptions) -> ConsumerOptions:
    """Returns settings for tests; what clients that broadcast write is beside the store, not in the home."""
    return {"consume_from": ConsumeFrom.FIRST, "offset_folder": _offsets_beside(broker), **options}


def _polled(broker: Broker, options: LiteOptions) -> LiteOptions:
    return {"consume_from": ConsumeFrom.FIRST, "offset_folder": _offsets_beside(broker), **options}


def _offsets_beside(broker: Broker) -> Path:
    return broker.store.path.with_name(f"{broker.store.path.name}.offsets")


def _send_back(
    target: LocalLink | str, broker_name: str, group: str, message: Message, delay_level: int
) -> None:
    with make_client(target) as client:
        client.routes.to_read(message.topic)
        sending = SendBack(client, group).retry_later(message, broker_name, delay_level)
        wait_for(client.home, start(client.home, sending, "a message that is sent back"))


def _messages(store: MessageStore, topic: str) -> list[Message]:
    found: list[Message] = []
    for queue in store.queues():
        queue_offset = queue.min_offset
        while queue.topic == topic and queue_offset < queue.max_offset:
            page = store.get(topic, queue.queue_id, queue_offset, _PAGE)
            found += page.messages
            queue_offset = max(queue_offset + 1, page.next_offset)
    return found

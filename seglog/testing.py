"""A broker for tests: virtual time, clients of its own, and the same files for the same calls.

    with VirtualBroker.at(tmp_path) as broker:
        broker.producer().send("orders", b"42 apples", delay_level=18)
        broker.advance("2h")
        assert [message.body for message in broker.messages("orders")] == [b"42 apples"]

With pytest the fixture ``seglog_broker`` is one of these. What a broker does by time it does in
:meth:`advance`, at its moment and in the thread of the test. Beside the test run the threads that every store
has which is open for writing; no answer and no byte depends on when they have their turns, and they end with
the broker.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Self, Unpack

from typing_extensions import override

from seglog.broker.access import Before
from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.client.connect import make_client
from seglog.client.home import start, wait_for
from seglog.client.links import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.listener import ConsumeFrom, Listener
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.send_back import SendBack
from seglog.consumer.settings import ConsumerOptions, Wanted
from seglog.producer.producer import Producer
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.files import DiskUsage, StoreRoot
from seglog.storage.format.record import Host, Message
from seglog.storage.store import MessageStore
from seglog.text import moment

SEGMENT_SIZE_BYTES: Final = 64 << 20
QUEUE_FILE_SIZE_BYTES: Final = 200_000
"""Smaller files than a broker's: a test opens and drops many."""
_PAGE: Final = 1_024


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
    ) -> Self:
        """Opens the store at ``path``, which is created if it is not there, and a broker over it.

        How full the disk really is does not count.

        Args:
            path: The store directory.
            clock: Its time; from 2023-11-14 on by default.
            config: Names and settings.
            before: As for ``Broker.open``.

        Raises:
            StoreError: As ``MessageStore.open`` raises it.
        """
        clock, config = clock or VirtualClock(), config or BrokerConfig()
        store = MessageStore.open(
            path,
            segment_size_bytes=SEGMENT_SIZE_BYTES,
            queue_file_size_bytes=QUEUE_FILE_SIZE_BYTES,
            max_message_size_bytes=config.max_message_size_bytes,
            store_host=Host.parse(config.address),
            clock=clock,
            files=RoomyFiles(path),
        )
        return cls(store, clock=clock, config=config, before=before)

    def link(self) -> LocalLink:
        """Returns a link for one more client."""
        self._clients += 1
        return LocalLink(self, f"127.0.0.1@0#{self._clients}")

    def producer(self, group: str = "test-producer") -> Producer:
        """Returns a new producer; its messages take the queues of a topic in turn, from the first one on."""
        link = self.link()
        ids = UniqueIds(self._clock, process_id=self._clients, life=0)
        return Producer(link, group, ids=ids, first_turn=0)

    def consumer(
        self,
        group: str,
        subscription: Wanted,
        listener: Listener,
        **options: Unpack[ConsumerOptions],
    ) -> OrderlyConsumer:
        """Returns a new member of a group, which consumes from the first message on.

        Once it is started it does so in :meth:`advance`; ``run_until_idle`` starts it too.

        Args:
            group: As for :class:`~seglog.consumer.orderly.OrderlyConsumer`.
            subscription: Likewise.
            listener: Likewise.
            options: Likewise.
        """
        options = {"consume_from": ConsumeFrom.FIRST, **options}
        return OrderlyConsumer(self.link(), group, subscription, listener, **options)

    def messages(self, topic: str) -> list[Message]:
        """Returns what can be consumed of a topic now, queue after queue, consumed before or not."""
        found: list[Message] = []
        for queue in self.store.queues():
            queue_offset = queue.min_offset
            while queue.topic == topic and queue_offset < queue.max_offset:
                page = self.store.get(topic, queue.queue_id, queue_offset, _PAGE)
                found += page.messages
                queue_offset = max(queue_offset + 1, page.next_offset)
        return found

    def send_back(self, group: str, message: Message, delay_level: int = 0) -> None:
        """Fails at a message as a consumer of a group does that has it tried again.

        Args:
            group: The group.
            message: As it was consumed.
            delay_level: When it comes again; by default later after every failure, and in the end never.

        Raises:
            ProtocolError: The broker refuses.
        """
        with make_client(self.link()) as client:
            client.routes.to_read(message.topic)
            sending = SendBack(client, group).retry_later(message, self.config.broker_name, delay_level)
            wait_for(client.home, start(client.home, sending, "a message that is sent back"))

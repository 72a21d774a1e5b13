"""VirtualBroker: a broker without sockets, on virtual time, over a store of small files."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self, TypedDict

from typing_extensions import override

from seglog.broker.access import Before
from seglog.broker.broker import Broker
from seglog.broker.settings import BrokerConfig
from seglog.client.links import LocalLink
from seglog.clock import Clock, VirtualClock
from seglog.consumer.consumer import Consumer
from seglog.consumer.lite import LitePullConsumer
from seglog.producer.producer import Producer
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.directory import LogRoot
from seglog.storage.files import DiskUsage
from seglog.storage.format.names import COMMIT_LOG
from seglog.storage.format.record import Host
from seglog.storage.store import MessageStore
from seglog.testing.for_tests import C, ForTests
from seglog.text import moment

SEGMENT_SIZE_BYTES: Final = 64 << 20
QUEUE_FILE_SIZE_BYTES: Final = 200_000
"""Smaller files than a broker's, since a test opens and deletes many stores."""
USUAL_CONFIG: Final = BrokerConfig(enable_property_filter=True)
"""A broker's settings with SQL92 filters on, which are off by default in RocketMQ."""


class NewSizes(TypedDict, total=False):
    """Lengths of the files of a new store, as ``MessageStore.open`` takes them."""

    segment_size_bytes: int
    queue_file_size_bytes: int


class RoomyFiles(LogRoot):
    """The machine's files on a disk that is never full.

    The usage of the real disk differs between machines and runs, and a broker's retention and refusals depend
    on it.
    """

    @override
    def usage(self, path: Path) -> DiskUsage:
        """Returns an empty disk."""
        return DiskUsage(0, 1 << 40)


def new_sizes(files: RoomyFiles) -> NewSizes:
    """Returns the lengths of the files of a new store; none for a store that exists, which keeps its own."""
    if files.exists(files.path / COMMIT_LOG):
        return {}
    return {"segment_size_bytes": SEGMENT_SIZE_BYTES, "queue_file_size_bytes": QUEUE_FILE_SIZE_BYTES}


class VirtualBroker(Broker, ForTests):
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
        """Opens the store at ``path``, creating it if needed, and a broker over it.

        The real usage of the disk is ignored.

        Args:
            path: The store directory.
            clock: Its time; from 2023-11-14 on by default.
            config: Names and settings; by default those of a broker that filters by SQL92 too.
            before: As for ``Broker.open``.
            liveness_clock: Likewise.

        Raises:
            StoreError: As ``MessageStore.open`` raises it.
        """
        clock, config = clock or VirtualClock(), config or USUAL_CONFIG
        files = RoomyFiles(path)
        store = MessageStore.open(
            path,
            **new_sizes(files),
            max_message_size_bytes=config.max_message_size_bytes,
            store_host=Host.parse(config.address),
            clock=clock,
            files=files,
        )
        return cls(store, clock=clock, liveness_clock=liveness_clock, config=config, before=before)

    def link(self) -> LocalLink:
        """Returns a link for a new client."""
        self._clients += 1
        return LocalLink(self, f"127.0.0.1@0#{self._clients}")

    @override
    def _served(self) -> Broker:
        return self

    @override
    def _address(self) -> LocalLink:
        return self.link()

    @override
    def _usual_of_producers(self) -> tuple[UniqueIds, int]:
        return UniqueIds(self._clock, process_id=self._clients, life=0), 0

    @override
    def _own(self, client: C) -> C:
        if self._made is None:
            self._made = ExitStack()
        self._made.callback(_end, client)
        return client

    @override
    def close(self) -> None:
        """Closes the clients that it made, which commit finished messages, then the broker.

        A second call does nothing.
        """
        made, self._made = self._made, None
        try:
            if made is not None and not self.is_closed:
                made.close()
        finally:
            super().close()


def _end(client: Producer[Any] | Consumer[Any] | LitePullConsumer[Any]) -> None:
    with suppress(TimeoutError):  # its listener waits for virtual time, which no longer passes
        client.close()

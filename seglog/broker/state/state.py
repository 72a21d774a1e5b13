"""The parts of a broker that its handlers use."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from seglog.broker.delay.delivery import Delivery
from seglog.broker.figures.figures import Figures
from seglog.broker.filters.consumer_filters import ConsumerFilters
from seglog.broker.offsets.broadcast_offsets import BroadcastOffsets
from seglog.broker.offsets.offset_sync import OffsetSync
from seglog.broker.offsets.offsets import ConsumerOffsets
from seglog.broker.retention.disk_watermark import DiskGate
from seglog.broker.retention.retention import LogRetention
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.settings.live_config import LiveConfig
from seglog.broker.state.refusals import Refusals
from seglog.broker.tables import GroupTable, TopicTable
from seglog.broker.tables.clients import ClientTable
from seglog.broker.tables.lock_snapshot import LockPicture
from seglog.broker.tables.name_server import KeyValues, WritePermission
from seglog.broker.tables.pulled_topics import PulledTopics
from seglog.broker.tables.queue_locks import QueueLocks
from seglog.broker.tables.relays import Relays
from seglog.broker.tables.request_modes import RequestModes
from seglog.remoting.command import Request, Response
from seglog.remoting.peer import Peer
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.store import MessageStore
from seglog.storage.writes import UnsyncedAppends

AnyAppends: TypeAlias = MessageStore | UnsyncedAppends
"""The append calls of a handler: a store, whose calls wait for the disk, or calls that do not wait."""

TrySend: TypeAlias = Callable[[Request, Peer], Response | None]
"""Answers a send that is usual; None for any other request, of which nothing was done."""


class SavedTable(Protocol):
    """A table that is kept in a file."""

    @property
    def is_dirty(self) -> bool:
        """Whether :meth:`persist` has changes to save."""

    def persist(self) -> None:
        """Saves its changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """The parts of one broker, which ``assembly.py`` makes.

    Attributes:
        settings: Its names and options.
        offset_sync: Brings the offsets to the disk for clients that wait.
        lock_record: The record of locks that hold over a restart.
        ids: Makes ids for messages without one.
        stamp: Encoded properties that every message gets.
        send_ext: Fields of every answer to a send; Java's client fails on one without any.
        hot_bytes: A message this close to the log's end, in bytes, counts as in memory.
        delivery: Delivers delayed messages.
        random: Chooses queues if the client leaves the choice to the broker.
        clients: The clients that are online.
        pulled_topics: Topics that groups pull without naming them in a heartbeat.
        broadcasts: The offsets of broadcasting clients.
        filters: The SQL92 filters of groups.
        disk: Refuses sends while the disk is nearly full.
        retention: Deletes old files of the log.
        relays: The requests that wait for answers of clients.
        request_modes: How groups get the messages of topics.
        key_values: Values that clients keep with the name server.
        write_permission: The write permission shown in routes.
        figures: The counts and rates.
        refusals: Makes answers of errors.
        try_send: Answers a send that is usual; None for any other request, of which nothing was done.
        now_ms: Returns the time of the broker's clock.
        opened_ms: When it was opened, by that clock.
    """

    settings: LiveConfig
    store: MessageStore
    topics: TopicTable
    groups: GroupTable
    offsets: ConsumerOffsets
    offset_sync: OffsetSync
    locks: QueueLocks
    lock_record: LockPicture
    ids: UniqueIds
    stamp: bytes
    send_ext: Mapping[str, str]
    hot_bytes: int
    delivery: Delivery
    random: random.Random
    clients: ClientTable
    pulled_topics: PulledTopics
    broadcasts: BroadcastOffsets
    filters: ConsumerFilters
    disk: DiskGate
    retention: LogRetention
    relays: Relays
    request_modes: RequestModes
    key_values: KeyValues
    write_permission: WritePermission
    figures: Figures
    refusals: Refusals
    try_send: TrySend
    now_ms: Callable[[], int]
    opened_ms: int

    @property
    def config(self) -> BrokerConfig:
        """The settings as they are now."""
        return self.settings.now

    def stop(self) -> None:
        """Ends the threads that write for it, after what is waited for is on the disk."""
        self.lock_record.stop()
        self.offset_sync.close()

    def takes_part(self, group: str, topic: str) -> bool:
        """Returns whether a request about a group's topics includes this one; yes if the group is offline."""
        online = self.clients.consumers(group)
        if online is None or not online.subscriptions or topic in online.subscriptions:
            return True
        return self.pulled_topics.has(group, topic)

    @property
    def tables(self) -> tuple[SavedTable, ...]:
        """The tables that are saved every few seconds and at close, in this order."""
        return self.topics, self.groups, self.offsets, self.filters, self.delivery

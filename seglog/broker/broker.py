"""A broker inside the process: the parts wired together, and one entrance for requests.

    with Broker.open("/var/lib/orders") as broker:
        link = LocalLink(broker)

It has no sockets. What it does by time has a thread for each duty, which ends with :meth:`Broker.close`. On
a virtual clock there are none, and :meth:`Broker.advance` does what falls into the time that passes:

    with Broker.open(path, clock=VirtualClock()) as broker:
        broker.advance("2h")
"""

from __future__ import annotations

import math
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from seglog.broker.broadcast_offsets import BroadcastOffsets, BroadcastScan
from seglog.broker.client_scan import ClientScan
from seglog.broker.clients import ClientTable
from seglog.broker.config import BrokerConfig
from seglog.broker.delay_levels import DelayLevels
from seglog.broker.delay_offsets import DelayOffsets
from seglog.broker.delivery import Delivery
from seglog.broker.disk_gate import DiskGate
from seglog.broker.duration import duration_ms
from seglog.broker.duties import Duties
from seglog.broker.groups import GroupTable
from seglog.broker.handlers.table import HANDLERS
from seglog.broker.held_pulls import HeldPulls, ParkedPull
from seglog.broker.hold_sweep import HoldSweep
from seglog.broker.idle_groups import idle_groups
from seglog.broker.lock_picture import LockPicture
from seglog.broker.offset_history import OffsetHistory
from seglog.broker.offset_past import OffsetPast
from seglog.broker.offsets import ClampedOffset, ConsumerOffsets
from seglog.broker.peer import Peer
from seglog.broker.pull import HeldPull
from seglog.broker.queue_locks import QueueLocks
from seglog.broker.retention import LogRetention
from seglog.broker.saving import Saving
from seglog.broker.send import send_ext_of, stamp_of
from seglog.broker.state import BrokerState
from seglog.broker.topics import TopicTable
from seglog.broker.victims import Standing
from seglog.clock import Clock, SystemClock, VirtualClock
from seglog.errors import SeglogError
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.config_file import ConfigFile
from seglog.storage.files import Files
from seglog.storage.flush import Durability
from seglog.storage.format.host import Host
from seglog.storage.format.names import CONFIG, OURS
from seglog.storage.store import MessageStore

LOCAL_PEER: Final = Peer("local", Host(b"\x7f\x00\x00\x01", 0))
DAY_MS: Final = 86_400_000
HOT_PERCENT: Final = 40
"""``accessMessageInMemoryMaxRatio``: share of the machine's memory that the page cache is taken to keep."""
EVIDENCE: Final = "evidence"
"""Folder under ours for damaged config files."""


class Broker:
    """A broker over one store, made by :meth:`open`; close it, or use it in a ``with`` statement.

    Attributes:
        store: What it keeps messages in; it closes with the broker.
        retention: Deletes old messages, but none that somebody needs.
        clamped_offsets: Commits that lay beyond the end of their queue when the broker opened.
    """

    def __init__(
        self,
        store: MessageStore,
        *,
        clock: Clock | None = None,
        config: BrokerConfig | None = None,
        background: bool | None = None,
    ) -> None:
        """Serves an open store, which from now on is the broker's to close; see :meth:`open`.

        Raises:
            ConfigError: A config file and its backup cannot be read.
        """
        self.store = store
        self.config = config or BrokerConfig()
        self._clock = clock or SystemClock()
        folder = store.path / CONFIG
        evidence = store.path / OURS / EVIDENCE
        files = store.files
        topics_file = ConfigFile(files, folder / "topics.json", evidence)
        topics = TopicTable(topics_file, self.config, self._clock, store.reload_topics)
        offsets = ConsumerOffsets(
            ConfigFile(files, folder / "consumerOffset.json", evidence),
            self._clock,
            OffsetHistory(files, store.path, self._clock),
        )
        queues = store.queues()
        topics.take_over((queue.topic, queue.queue_id) for queue in queues)
        self.clamped_offsets: tuple[ClampedOffset, ...] = offsets.clamp(
            (queue.topic, queue.queue_id, queue.max_offset) for queue in queues
        )
        gate = DiskGate(store.path, self.config.disk_refuse_percent, self.config.disk_force_percent)
        self.retention = LogRetention(self._clock, store, self.config, gate, self._standing)
        is_virtual = isinstance(self._clock, VirtualClock)
        self._delay_offsets = DelayOffsets(
            ConfigFile(files, folder / "delayOffset.json", evidence), self._clock
        )
        self._delivery = Delivery(
            store,
            DelayLevels(self.config.delay_levels),
            self._delay_offsets,
            topics,
            self._clock,
        )
        groups = GroupTable(
            ConfigFile(files, folder / "subscriptionGroup.json", evidence), self.config, self._clock
        )
        clients = ClientTable(self._clock, groups.is_told)
        self._state = BrokerState(
            self.config,
            store,
            topics,
            groups,
            offsets,
            QueueLocks(self._clock, self.config.queue_lock_live_ms),
            # On virtual time the same calls give the same store.
            _virtual_ids(self._clock, store) if is_virtual else UniqueIds(self._clock),
            stamp_of(self.config),
            send_ext_of(self.config),
            _hot_bytes() if self.config.hot_bytes is None else self.config.hot_bytes,
            self._delivery,
            random.Random(0 if is_virtual else None),  # noqa: S311 - spreads load, guards nothing
            clients=clients,
            broadcasts=BroadcastOffsets(self._clock, clients, offsets),
            disk=gate,
            retention=self.retention,
            delay_offsets=self._delay_offsets,
            now_ms=self._clock.now_ms,
        )
        self._held = HeldPulls(store, self._clock)
        self._picture = LockPicture(files, store.path, self._state.locks)
        self._is_closed = False
        self._closing = threading.Lock()
        self._duties = Duties(
            self._clock,
            [
                self._delivery,
                Saving(self._clock, self.config.persist_interval_ms, self._is_anything_unsaved, self.persist),
                ClientScan(self._clock, self._state.clients),
                HoldSweep(self._held),
                BroadcastScan(self._clock, self._state.broadcasts),
                self.retention,
            ],
        )
        has_threads = not is_virtual if background is None else background
        self._time_keeper = threading.get_ident() if is_virtual and not has_threads else None
        if has_threads:
            self._duties.start()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        config: BrokerConfig | None = None,
        background: bool | None = None,
        create: bool = True,
        durability: Durability = Durability.ASYNC,
        segment_size_bytes: int | None = None,
        queue_file_size_bytes: int | None = None,
        record_crc: bool | None = None,
        files: Files | None = None,
    ) -> Broker:
        """Opens the store at ``path`` and a broker over it.

        Args:
            path: The store directory; a directory that a Java broker has left goes on here, and back.
            clock: Source of time stamps, lock ages and intervals.
            config: Names and settings.
            background: Whether threads do what is to be done by time; by default unless the clock is a
                virtual one. Without them :meth:`advance` or :meth:`run_due` does it.
            create: As for ``MessageStore.open``.
            durability: What sends wait for; a message with ``WAIT=false`` never waits for the disk.
            segment_size_bytes: As for ``MessageStore.open``.
            queue_file_size_bytes: As for ``MessageStore.open``.
            record_crc: As for ``MessageStore.open``.
            files: Where the store is.

        Raises:
            ConfigError: A config file and its backup cannot be read.
            StoreError: Whatever ``MessageStore.open`` raises.
        """
        config = config or BrokerConfig()
        store = MessageStore.open(
            path,
            create=create,
            segment_size_bytes=segment_size_bytes,
            queue_file_size_bytes=queue_file_size_bytes,
            durability=durability,
            record_crc=record_crc,
            max_message_size_bytes=config.max_message_size_bytes,
            store_host=Host.parse(config.address),
            clock=clock,
            files=files,
        )
        is_open = False
        try:
            broker = cls(store, clock=clock, config=config, background=background)
            is_open = True
        finally:
            if not is_open:
                store.close()
        return broker

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The store directory."""
        return self.store.path

    @property
    def topics(self) -> TopicTable:
        """Its topics."""
        return self._state.topics

    @property
    def groups(self) -> GroupTable:
        """Its consumer groups."""
        return self._state.groups

    @property
    def offsets(self) -> ConsumerOffsets:
        """What groups have committed."""
        return self._state.offsets

    @property
    def offset_past(self) -> OffsetPast:
        """What their history tells, up to the last :meth:`persist`."""
        return OffsetPast(self.store.files, self.store.path)

    @property
    def clients(self) -> ClientTable:
        """The clients that are online, by group."""
        return self._state.clients

    @property
    def locks(self) -> QueueLocks:
        """Which client may consume which queue in order."""
        return self._state.locks

    def dispatch(self, request: Request, peer: Peer = LOCAL_PEER) -> Response:
        """Answers a request; a pull that is to be held keeps the calling thread until then.

        On virtual time the thread that has opened the broker would wait for itself. For its pulls time passes
        as in :meth:`advance`, until the message comes or the pull is not held any longer; other threads wait
        for it to send or to advance.
        """
        answer = self.answer(request, peer)
        return self._wait(answer) if isinstance(answer, HeldPull) else answer

    def answer(self, request: Request, peer: Peer = LOCAL_PEER) -> Response | HeldPull:
        """Answers a request without waiting: a pull that is to be held comes back as such."""
        handler = HANDLERS[request.code] if 0 <= request.code < len(HANDLERS) else None
        if handler is None:
            return refuse(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported"
            )
        if self._is_closed:
            return refuse(ResponseCode.SERVICE_NOT_AVAILABLE, "the broker was closed")
        try:
            return handler.answer(self._state, request, peer)
        except SeglogError as error:
            return refuse(ResponseCode(error.response_code), str(error))

    def disconnect(self, peer: Peer) -> None:
        """Takes a client out of its groups, whose other clients are told: its connection has ended."""
        self._state.clients.lose(peer)

    def advance(self, by: int | str) -> None:
        """Lets virtual time pass, and does at its moment everything that falls into it.

        Args:
            by: Milliseconds, or a text such as ``"2h"``, ``"90s"``, ``"1h 30m"``, ``"3d"``.

        Raises:
            InvalidArgumentError: ``by`` is no duration, or the broker is on real time.
        """
        self._duties.advance(duration_ms(by) if isinstance(by, str) else by)

    def run_due(self) -> bool:
        """Does what is due now, for a broker without threads on real time; returns whether anything was."""
        return self._duties.run_due()

    def _standing(self) -> Standing:
        idle_days = self.config.retention_idle_days
        since_ms = self._clock.now_ms() - idle_days * DAY_MS
        return Standing(
            self._state.offsets.all(),
            self._delay_offsets.all(),
            idle_groups(self.offset_past, since_ms) if idle_days else (),
        )

    def _is_anything_unsaved(self) -> bool:
        return (
            self._state.topics.is_dirty
            or self._state.offsets.is_dirty
            or self._delivery.is_dirty
            or self._picture.is_stale
        )

    def persist(self) -> None:
        """Saves topics and offsets that have changed, those of delay levels too, and a picture of the locks.

        Raises:
            FullError: There is no space; what was saved before is still there.
        """
        self._state.topics.persist()
        self._state.offsets.persist()
        self._delivery.persist()
        if self._is_closed:
            self._picture.remove()
        else:
            self._picture.draw(self._clock.now_ms())

    def close(self) -> None:
        """Ends held pulls, saves the tables and closes the store; a second call does nothing."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        self._held.close()
        self._duties.stop()
        try:
            self.persist()
        finally:
            self.store.close()

    def park(self, held: HeldPull, wake: Callable[[], None]) -> ParkedPull:
        """Keeps a held pull without a thread; once ``wake`` was called, :meth:`finish` answers it.

        Args:
            held: What :meth:`answer` returned.
            wake: Called once, by any thread, perhaps before this returns; it neither waits nor raises.
        """
        return self._held.park(held, wake)

    @property
    def held_count(self) -> int:
        """How many pulls wait, those of threads included."""
        return len(self._held)

    def unpark(self, parked: ParkedPull) -> None:
        """Forgets a pull whose client does not wait any more."""
        self._held.leave(parked)

    def finish(self, held: HeldPull) -> Response:
        """Answers a held pull as things are now; it is not held again."""
        if self._is_closed:
            return held.nothing_yet
        try:
            return held.answer(self._state)
        except SeglogError as error:
            return refuse(ResponseCode(error.response_code), str(error))

    def _wait(self, held: HeldPull) -> Response:
        if threading.get_ident() == self._time_keeper:
            over = threading.Event()
            parked = self._held.park(held, over.set)
            self._duties.advance(math.ceil(held.hold_ms), over.is_set)
            self._held.leave(parked)
        else:
            # The thread looks at the clock by itself, so that a hold ends where no duty runs as well.
            self._held.wait(held)
        return self.finish(held)


def _virtual_ids(clock: Clock, store: MessageStore) -> UniqueIds:
    """Returns ids that are the same for the same calls, and others after the next open."""
    return UniqueIds(clock, process_id=0, life=store.max_phy_offset)


def _hot_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * HOT_PERCENT // 100

"""A broker inside the process: it connects the parts, and has one entry point for requests.

    with Broker.open("/var/lib/orders") as broker:
        link = LocalLink(broker)

It has no sockets. Each timed duty has a thread, which ends with :meth:`Broker.close`. On a virtual clock
duties have no threads (the store has its own), and :meth:`Broker.advance` does the work that is due in the
time that passes:

    with Broker.open(path, clock=VirtualClock()) as broker:
        broker.advance("2h")
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from typing_extensions import override

from seglog.arguments import as_doing, as_flag, as_int, as_kind
from seglog.broker.access import Before, as_before
from seglog.broker.answers.answering import Answering, Soon
from seglog.broker.answers.held_answer import HeldAnswer
from seglog.broker.answers.send_deadlines import SendDeadlines
from seglog.broker.assembly import assemble
from seglog.broker.figures.figures import Figures, Sampling
from seglog.broker.filters.consumer_filters import ConsumerFilters
from seglog.broker.handlers.gate import Gate
from seglog.broker.handlers.handler import Answer
from seglog.broker.handlers.table import HANDLERS
from seglog.broker.offsets.broadcast_offsets import BroadcastScan
from seglog.broker.offsets.history_tidying import HistoryTidying
from seglog.broker.offsets.offset_history_query import OffsetPast
from seglog.broker.offsets.offsets import ClampedOffset, ConsumerOffsets
from seglog.broker.pulls.held_pulls import HeldPulls, HoldSweep
from seglog.broker.pulls.pull import HeldPull
from seglog.broker.retention.retention import LogRetention
from seglog.broker.settings import BrokerConfig
from seglog.broker.settings.duration import duration_ms
from seglog.broker.settings.live_config import LiveConfig
from seglog.broker.state.state import AnyAppends
from seglog.broker.tables import GroupTable, TopicTable
from seglog.broker.tables.clients import ClientTable
from seglog.broker.tables.queue_locks import QueueLocks
from seglog.broker.tables.relays import Relayed
from seglog.broker.tasks.client_scan import ClientScan
from seglog.broker.tasks.notifying import Notifying
from seglog.broker.tasks.saving import Saving
from seglog.clock import CLOCK_CALLS, Clock, SystemClock, VirtualClock, as_ms
from seglog.closing import Closing
from seglog.forked import Forked, abandon_in_children, forked_error
from seglog.other_names import OF_OPENINGS, advising
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, refuse
from seglog.remoting.later import Deferred
from seglog.remoting.peer import LOCAL_PEER, Peer
from seglog.schedule import Duties, Timers
from seglog.storage.files import Files
from seglog.storage.format.record import Host
from seglog.storage.store import MessageStore
from seglog.storage.threads import WouldWaitError
from seglog.storage.writes import Durability


class Broker(Closing):
    """A broker over one store, made by :meth:`open`; close it, or use it in a ``with`` statement.

    Attributes:
        store: Stores its messages; it closes with the broker.
        clamped_offsets: Committed offsets that were beyond the end of their queue when the broker opened.
    """

    def __init__(
        self,
        store: MessageStore,
        *,
        clock: Clock | None = None,
        liveness_clock: Clock | None = None,
        config: BrokerConfig | None = None,
        background: bool | None = None,
        forget_locks: bool = False,
        before: Before | None = None,
    ) -> None:
        """Serves an open store, which the broker will close; see :meth:`open`.

        Raises:
            ConfigError: A config file and its backup cannot be read.
        """
        self.store = as_kind("store", MessageStore, store)
        config = config or BrokerConfig()
        self._name = config.broker_name
        self._clock = as_doing("clock", SystemClock() if clock is None else clock, CLOCK_CALLS, "a clock")
        liveness = self._clock if liveness_clock is None else liveness_clock
        self._liveness_clock = as_doing("liveness_clock", liveness, CLOCK_CALLS, "a clock")
        state = self._state = assemble(
            store, config, self._clock, self._liveness_clock, forget_locks=forget_locks
        )
        self.clamped_offsets: tuple[ClampedOffset, ...] = state.offsets.clamp(
            (queue.topic, queue.queue_id, queue.max_offset) for queue in store.queues()
        )
        self._gate = None if before is None else Gate(as_before(before), state)
        self._is_inline = isinstance(self._clock, VirtualClock)
        self._held = HeldPulls(store, self._liveness_clock, has_thread=not self._is_inline)
        state.topics.on_deleted = self._held.end_topic
        state.figures.add_gauge("parkedPulls", lambda: self.held_count)
        due = SendDeadlines(self._clock)
        tables = state.topics, state.groups, state.key_values
        self._answering = Answering(store, tables, due, self._handle, self._hold, state.refusals, self._send)
        self._is_closed = self._is_forked = False
        self._closing = threading.Lock()
        abandon_in_children(self, Broker.abandon)
        saving = Saving(self._clock, config.persist_interval_ms, self._is_anything_unsaved, self.persist)
        scan = ClientScan(self._liveness_clock, state.clients), Notifying(state.clients.notices)
        tidying = HistoryTidying(self._clock, state.offsets)
        broadcasts = BroadcastScan(self._liveness_clock, state.broadcasts)
        holds = HoldSweep(self._held), broadcasts, state.relays.timers
        is_one = self._liveness_clock is self._clock
        slow = [] if self._is_inline else [due]  # disks run on real time
        timely = saving, Sampling(self._clock, state.figures)
        of_both = [state.delivery, *timely, *scan, tidying, *holds, state.retention, *slow]
        of_time = [state.delivery, *timely, tidying, state.retention, *slow]
        self._duties = Duties(self._clock, of_both if is_one else of_time)
        self._liveness_duties = Duties(self._liveness_clock, [] if is_one else [*scan, *holds])
        self._time_keeper = self._start(background)

    @override
    def __repr__(self) -> str:
        state = " of another process" if self._is_forked else " closed" if self._is_closed else ""
        return f"<{type(self).__name__} {self._name} over {self.path}{state}>"

    def _start(self, background: bool | None) -> int | None:
        """Starts the threads that ``background`` asks for; returns the thread that moves virtual time."""
        is_virtual = isinstance(self._clock, VirtualClock)
        if background or (background is None and not is_virtual):
            self._duties.start()
        if not isinstance(self._liveness_clock, VirtualClock):
            if background is None or background:
                self._liveness_duties.start()
            return None
        return None if background or not is_virtual else threading.get_ident()

    @classmethod
    @advising(OF_OPENINGS)
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        liveness_clock: Clock | None = None,
        config: BrokerConfig | None = None,
        background: bool | None = None,
        forget_locks: bool = False,
        before: Before | None = None,
        create: bool = True,
        durability: Durability = Durability.ASYNC,
        segment_size_bytes: int | None = None,
        queue_file_size_bytes: int | None = None,
        small: bool = False,
        record_crc: bool | None = None,
        follow: Sequence[str] = (),
        files: Files | None = None,
    ) -> Broker:
        """Opens the store at ``path`` and a broker over it.

        Args:
            path: The store directory; seglog and a Java broker can open the same store in turn.
            clock: Source of timestamps and intervals.
            liveness_clock: Time by which held pulls end, and clients and locks expire; by default ``clock``.
                Give real time to a broker on virtual time that has clients in other processes.
            config: Names and settings.
            background: Whether threads do the timed work; by default yes, except on a virtual clock. Without
                threads :meth:`advance` or :meth:`run_due` does it.
            forget_locks: Whether queues that clients of other processes had locked before are free at once.
            before: Called before each handler with the client and the resources of the request; it raises to
                refuse. With a :class:`~seglog.errors.SeglogError` it chooses the code of the refusal; any
                other exception is logged, and refuses with SYSTEM_ERROR.
            create: As for ``MessageStore.open``.
            durability: Whether sends, and explicit commits in this process, wait for the disk; a message with
                ``WAIT=false`` never does.
            segment_size_bytes: As for ``MessageStore.open``.
            queue_file_size_bytes: As for ``MessageStore.open``.
            small: As for ``MessageStore.open``.
            record_crc: As for ``MessageStore.open``.
            follow: As for ``MessageStore.open``.
            files: The file system of the store; None for the real one.

        Raises:
            ConfigError: A config file and its backup cannot be read.
            StoreError: As ``MessageStore.open``.
        """
        config = BrokerConfig() if config is None else as_kind("config", BrokerConfig, config)
        if background is not None:
            as_flag("background", background)
        if liveness_clock is not None:
            as_doing("liveness_clock", liveness_clock, CLOCK_CALLS, "a clock")
        as_flag("forget_locks", forget_locks)
        if before is not None:
            as_before(before)
        store = MessageStore.open(
            path,
            create=create,
            segment_size_bytes=segment_size_bytes,
            queue_file_size_bytes=queue_file_size_bytes,
            small=small,
            durability=durability,
            record_crc=record_crc,
            max_message_size_bytes=config.max_message_size_bytes,
            store_host=Host.parse(config.address),
            clock=clock,
            follow=follow,
            files=files,
        )
        with ExitStack() as undo:
            undo.callback(store.close)
            broker = cls(
                store,
                clock=clock,
                liveness_clock=liveness_clock,
                config=config,
                background=background,
                forget_locks=forget_locks,
                before=before,
            )
            undo.pop_all()
        return broker

    @property
    def path(self) -> Path:
        """The store directory."""
        return self.store.path

    @property
    def config(self) -> BrokerConfig:
        """The current settings; requests may change some of them."""
        return self._state.config

    @property
    def clock(self) -> Clock:
        """The clock of the broker; :meth:`advance` moves a virtual one."""
        return self._clock

    @property
    def liveness_clock(self) -> Clock:
        """The clock of its clients: heartbeats, locks, held pulls."""
        return self._liveness_clock

    @property
    def is_closed(self) -> bool:
        """Whether the broker was closed."""
        return self._is_closed

    @property
    def timers(self) -> Timers:
        """Deadlines of connections, on the liveness clock."""
        return self._state.relays.timers

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
        """The committed offsets of groups."""
        return self._state.offsets

    @property
    def offset_past(self) -> OffsetPast:
        """The history of the offsets, up to the last :meth:`persist`."""
        return OffsetPast(self.store.files, self.store.path)

    @property
    def filters(self) -> ConsumerFilters:
        """The SQL92 filters of consumer groups."""
        return self._state.filters

    @property
    def clients(self) -> ClientTable:
        """The clients that are online, by group."""
        return self._state.clients

    @property
    def figures(self) -> Figures:
        """Its counts and rates."""
        return self._state.figures

    @property
    def settings(self) -> LiveConfig:
        """The current settings and those lent by other parts; see :attr:`config`."""
        return self._state.settings

    @property
    def locks(self) -> QueueLocks:
        """The locks of queues that are consumed in order."""
        return self._state.locks

    @property
    def retention(self) -> LogRetention:
        """Deletes old messages, except those that a group needs."""
        return self._state.retention

    def dispatch(self, request: Request, peer: Peer = LOCAL_PEER) -> Response:
        """Answers a request; a held pull blocks the calling thread.

        A request that is passed on to clients blocks it too. On virtual time the thread that opened the
        broker would wait for itself: during its requests time passes as in :meth:`advance`, until the message
        or answer arrives or the wait ends; other threads wait until that thread sends or advances.
        """
        if self._gate is not None and not self._is_closed:
            refused = self._gate.refusal(request, peer)
            if refused is not None:
                return refused
        answer = self._handle(request, peer, self.store)
        return answer if isinstance(answer, Response) else self._wait(answer)

    async def dispatch_async(self, request: Request, peer: Peer = LOCAL_PEER) -> Response:
        """Answers a request as :meth:`dispatch` does, for a task: a held pull blocks no thread."""
        loop = asyncio.get_running_loop()
        answer = self.answer(request, peer, loop.call_soon)
        if not isinstance(answer, Deferred):
            return answer
        if isinstance(self._liveness_clock, VirtualClock):
            return await answer
        # Without duties only this timeout ends the hold; virtual time, though, passes only in advance().
        if isinstance(answer, HeldAnswer):
            timer = loop.call_later(answer.hold_ms / 1000, answer.end)
        elif isinstance(answer, Relayed):
            timer = loop.call_later((answer.timeout_ms + 1) / 1000, self.timers.run)
        else:
            return await answer
        try:
            return await answer
        finally:
            timer.cancel()

    def answer(
        self, request: Request, peer: Peer = LOCAL_PEER, soon: Soon = lambda begin: begin()
    ) -> Response | Deferred[Response]:
        """Answers a request without waiting, or returns the deferred answer.

        A held pull and a send that waits for the disk occupy no thread. Sends of one peer are stored in the
        order of the calls. On virtual time a send is on the disk when this returns.

        Args:
            request: What is asked.
            peer: Who asks.
            soon: Called with a function that begins the sync that a send waits for: an event loop calls that
                function after all sends of its turn. At once by default.
        """
        if self._gate is not None and not self._is_closed:
            refused = self._gate.refusal(request, peer)
            if refused is not None:
                return refused
        if self._is_inline:
            made = self._handle(request, peer, self.store)
            return self._hold(made) if isinstance(made, HeldPull) else made
        return self._answering.answer(request, peer, soon)

    def _send(self, request: Request, peer: Peer) -> Response | None:
        return None if self._is_closed else self._state.try_send(request, peer)

    def _handle(self, request: Request, peer: Peer, appends: AnyAppends) -> Answer:
        handler = HANDLERS.get(request.code)
        if handler is None:
            return self._state.refusals.not_supported(request.code)
        if self._is_closed:
            if self._is_forked:
                raise forked_error(self._what)
            return refuse(ResponseCode.SERVICE_NOT_AVAILABLE, "the broker was closed")
        try:
            return self._state.try_send(request, peer) or handler.answer(self._state, request, peer, appends)
        except WouldWaitError:
            raise
        except Exception as error:  # noqa: BLE001 - the client gets an answer, and the loop continues
            return self._state.refusals.of(request.code, error)

    def settle(self) -> Deferred[None]:
        """Returns what is resolved once committed offsets are as durable as acknowledged sends are."""
        return self._state.offset_sync.settle()

    def disconnect(self, peer: Peer) -> None:
        """Removes a client whose connection ended from its groups, and notifies their other clients."""
        self._state.clients.lose(peer)

    def advance(self, by: int | str | timedelta) -> None:
        """Moves virtual time forward, and runs every duty at its time.

        Idle consumers cost time too: in a virtual day an ``OrderlyConsumer`` makes some 25,000 requests and
        its locks are recorded 4,320 times, most of a CPU second or more; a ``PushConsumer`` makes 21,000
        requests. Start consumers after long waits where you can.

        Args:
            by: Milliseconds, a ``timedelta``, or a text such as ``"2h"``, ``"90s"``, ``"1h 30m"``, ``"3d"``.

        Raises:
            InvalidArgumentError: ``by`` is no duration, or leads behind November 9999; or the broker is
                on real time.
        """
        self._duties.advance(duration_ms(by) if isinstance(by, str) else as_int("by", as_ms(by), 0))

    def run_due(self) -> bool:
        """Runs the due duties of a broker without threads on real time; returns whether any was due."""
        return any([self._duties.run_due(), self._liveness_duties.run_due()])

    @property
    def _what(self) -> str:
        return f"the broker over {self.path}"

    def _is_anything_unsaved(self) -> bool:
        return self._state.lock_record.is_stale or any(table.is_dirty for table in self._state.tables)

    def persist(self) -> None:
        """Saves changed tables (topics, groups, offsets, filters) and a snapshot of the locks.

        Raises:
            FullError: There is no space; what was saved before is unchanged.
        """
        for table in self._state.tables:
            table.persist()
        if self._is_closed:
            self._state.lock_record.close(self._clock.now_ms())
        else:
            self._state.lock_record.draw(self._clock.now_ms())

    def abandon(self) -> None:
        """Closes the broker in a forked child: each use raises ClosedError there."""
        self._is_closed = self._is_forked = True
        self._closing = threading.Lock()  # another thread of the parent may have held it
        left: Any = Forked(self._what)
        self._state = self._duties = self._liveness_duties = self._answering = left

    @override
    def close(self) -> None:
        """Ends held pulls, saves the tables and closes the store; in a forked child it does nothing.

        A second call does nothing. Where a table cannot be saved, it raises once the store is closed.
        """
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        self._held.close()
        self._state.relays.close()
        self._duties.stop()
        self._liveness_duties.stop()
        self._answering.close()
        self._state.stop()
        with closing(self.store), closing(self._state.offsets):
            self.persist()
            self._state.offsets.tidy()

    @property
    def held_count(self) -> int:
        """The number of held pulls, including those that block threads."""
        return len(self._held)

    def _hold(self, held: HeldPull) -> HeldAnswer:
        return HeldAnswer(self._held, held, self._finish)

    def _finish(self, held: HeldPull) -> Response:
        """Answers a held pull from the present state; it is not held again."""
        if self._is_closed:
            return held.nothing_yet
        try:
            return held.answer(self._state)
        except Exception as error:  # noqa: BLE001 - as any other request
            return self._state.refusals.of(RequestCode.PULL_MESSAGE, error)

    def _wait(self, answer: HeldPull | Deferred[Response]) -> Response:
        if isinstance(answer, HeldPull):
            return self._wait_for_pull(answer)
        if isinstance(answer, Relayed):
            if threading.get_ident() == self._time_keeper and not answer.is_done:
                self._duties.advance(answer.timeout_ms, lambda: answer.is_done)
            self._state.relays.wait(answer)
        return answer.wait()

    def _wait_for_pull(self, held: HeldPull) -> Response:
        if threading.get_ident() == self._time_keeper:
            over = threading.Event()
            parked = self._held.park(held, over.set)
            self._duties.advance(math.ceil(held.hold_ms), over.is_set)
            self._held.leave(parked)
        else:
            # The thread watches the clock itself, so that a hold also ends if no duty runs.
            self._held.wait(held)
        return self._finish(held)

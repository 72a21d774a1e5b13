"""MessageStore: a RocketMQ store directory as an embedded durable queue.

    with MessageStore.open("/var/lib/orders") as store:
        put = store.put("orders", b"42 apples", tags="fruit", keys="o-1")
        for message in store.get("orders", 0, put.queue_offset):
            print(message.queue_offset, message.body)

One process writes; any number read beside it with ``read_only=True``. Calls come from any thread, and from
tasks: ``await store.put_async(...)``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from seglog.arguments import (
    MAX_I32,
    MAX_I64,
    MAX_TIMEOUT_MS,
    as_choice,
    as_doing,
    as_enum,
    as_flag,
    as_int,
    as_kind,
    as_mapping,
    as_text,
    as_timeout_ms,
    refusal,
)
from seglog.clock import CLOCK_CALLS, Clock, SystemClock
from seglog.errors import (
    ClosedError,
    CorruptError,
    InvalidArgumentError,
    InvalidNameError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
    StoreInUseError,
)
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.directory.index_files import checked_division
from seglog.storage.directory.known_topics import configured_kinds
from seglog.storage.directory.reading_root import ReadingRoot
from seglog.storage.files.files import Files
from seglog.storage.files.os_errors import explain_os_error, explained
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.findings.findings import Finding
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.index.index_view import MAX_TIMESTAMP_MS
from seglog.storage.format.names import MAX_QUEUE_ID, check_queue_id, check_topic
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES, Units
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import Message, decode_message_id
from seglog.storage.format.record.put_properties import encode_all_properties
from seglog.storage.format.record.record import FILLER, MAGIC_V1, MAGIC_V2
from seglog.storage.format.record.tombstone import is_tombstone
from seglog.storage.index.key_memory import KeyMemory
from seglog.storage.index.key_query import KeyQuery
from seglog.storage.kernels.decode import decode_message
from seglog.storage.kernels.native_reads import new_reads
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.opening import Opened, open_reader, open_writer
from seglog.storage.overlay.lost_messages import LostMessages
from seglog.storage.queues.batch_queue import BatchQueue
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.reads.batch_get import batch_offset_by_time, read_batch_queue
from seglog.storage.reads.buffer_leases import Leases
from seglog.storage.reads.compaction_get import read_compaction_queue
from seglog.storage.reads.ext_codes import ExtCodes
from seglog.storage.reads.get import (
    MAX_FILTER_BYTES,
    MAX_TOTAL_BYTES,
    GetResult,
    read_queue,
    without_repairable,
)
from seglog.storage.reads.message_filter import MessageFilter, TagFilter, make_filter
from seglog.storage.reads.offset_by_time import Boundary, offset_by_time
from seglog.storage.reads.queue_view import QueueView
from seglog.storage.reads.reader import Reader, SnapshotQueue
from seglog.storage.reads.record_ranges import Place
from seglog.storage.reads.sequential_reads import DEFAULT_MAX_COUNT, PlainReads
from seglog.storage.reads.snapshot_batch_queue import SnapshotBatchQueue
from seglog.storage.recovery.recover import RecoveryReport
from seglog.storage.retention import Retention
from seglog.storage.scan.holes_file import OTHERS, load_holes
from seglog.storage.threads.waiters import Waiters
from seglog.storage.writes.appender import Appender
from seglog.storage.writes.async_appends import AsyncAppends
from seglog.storage.writes.async_calls import AsyncCalls
from seglog.storage.writes.deferred_records import INNER
from seglog.storage.writes.fast_path import open_fast_path
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, QueueInfo, RawMessage
from seglog.storage.writes.writer import Writer

if TYPE_CHECKING:
    from seglog.storage.kernels import _native

AnyQueue: TypeAlias = ConsumeQueue | BatchQueue | SnapshotQueue | SnapshotBatchQueue
DEFAULT_MAX_MESSAGE_BYTES: Final = 4 << 20
DEFAULT_FLUSH_INTERVAL_MS: Final = 500
DEFAULT_RECOVERY_STEP_BYTES: Final = 32 << 20
DEFAULT_STORE_HOST: Final = Host(b"\x7f\x00\x00\x01", 10911)


class MessageStore(AsyncCalls):
    """A store, made by :meth:`open`; close it, or use it in a ``with`` statement.

    Attributes:
        path: The store directory.
        recovery: What opening it did and found.
        record_crc: Whether new records carry ``__CRC32#``.
        retention: What of it may be deleted, and the call that does it.
        files: Its files. Whoever keeps more in its directory goes through them: a failed sync of any is the
            last one of all.
    """

    def __init__(
        self,
        path: Path,
        opened: Opened,
        waiters: Waiters,
        appender: Appender | None,
    ) -> None:
        """Serves an opened store; applications call :meth:`open`."""
        self.path = path
        self.recovery: RecoveryReport = opened.report
        self.record_crc = opened.record_crc if appender is None else appender.record_crc
        self._side: Writer | Reader = opened.side
        self._lock = opened.lock
        self._own_folder: StoreRoot | None = None
        self._waiters = waiters
        self.files = opened.files
        self._appender = appender
        self._async = None if appender is None else AsyncAppends(appender)
        self._closed = False
        self._leases = Leases(str(path))
        self._ext_codes = ExtCodes(self.files, path)
        self._key_memory = KeyMemory()
        self._reads = self._new_reads()
        self.retention = Retention(
            opened.side, lambda: self._side.geometry.segment_size_bytes, self._forget_queues
        )
        if type(self) is MessageStore:  # others may have changed what is called
            # What is asked of it most enters the kernel at once: a step in Python would take as long as all
            # of it. The methods below get back what is not plain.
            vars(self)["get"] = self._reads.get
            if appender is not None:
                ways = (self.put, self.put_batch, self.append, self.append_batch)
                calls, try_put = open_fast_path(appender, self._writer(), *ways)
                vars(self).update(calls)
                self._appends_async().take_fast_path(try_put, self._writer().grant)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        read_only: bool = False,
        segment_size_bytes: int | None = None,
        queue_file_size_bytes: int | None = None,
        index_geometry: IndexGeometry | None = None,
        compaction_sizes: CompactionSizes | None = None,
        durability: Durability = Durability.ASYNC,
        record_crc: bool | None = None,
        max_message_size_bytes: int = DEFAULT_MAX_MESSAGE_BYTES,
        flush_interval_ms: int = DEFAULT_FLUSH_INTERVAL_MS,
        recovery_step_bytes: int = DEFAULT_RECOVERY_STEP_BYTES,
        store_host: Host = DEFAULT_STORE_HOST,
        clock: Clock | None = None,
        follow: Sequence[str] = (),
        files: Files | None = None,
    ) -> MessageStore:
        """Opens the store at ``path``, recovering it first where it was not closed.

        Args:
            path: The store directory (RocketMQ's ``storePathRootDir``).
            create: Whether a store is made in an absent or empty directory.
            read_only: Whether to read only, possibly beside a writer; nothing is written, and what recovery
                would serve is served. :meth:`refresh` and :meth:`wait_for` follow the writer.
            segment_size_bytes: Length of commit-log files of a new store, 1 GiB by default.
            queue_file_size_bytes: Length of queue files of a new store, 6,000,000 by default.
            index_geometry: Slots and entries of the key-index files of a store that has none yet
                (``maxHashSlotNum``, ``maxIndexNum``), 5,000,000 and 20,000,000 by default.
            compaction_sizes: Lengths of the files of compaction topics in a store that has none yet, as
                :func:`seglog.storage.format.queue.compaction.compaction_sizes` rounds them
                (``compactionMappedFileSize``, ``compactionCqMappedFileSize``), 100 and 10 MiB by default.
            durability: What puts wait for unless they say otherwise.
            record_crc: Whether new records carry RocketMQ's ``__CRC32#`` over the whole record; None lets
                new stores write it and existing stores keep their way.
            max_message_size_bytes: Longest body (``maxMessageSize``).
            flush_interval_ms: How often ASYNC puts are brought to the disk.
            recovery_step_bytes: How far the log grows from one recovery point to the next: about so much of
                it is walked by the open after a crash, see :mod:`seglog.storage.survey.incremental_survey`.
                0 for no
                points: every open walks the whole log.
            store_host: Address written into records, part of message ids; its port is not 0, which marks
                tombstones.
            clock: Source of time stamps.
            follow: Folders directly in the store that may be links to folders elsewhere, such as
                ``("commitlog",)`` where ``storePathCommitLog`` is on another disk. Through no other link is
                anything read or written.
            files: Where the store is; None for its real files.

        Raises:
            NotFoundError: There is no store, and none is to be made.
            NotAStoreError: The directory holds something else.
            UnsupportedStoreError: RocksDB queues or a DLedger log.
            StoreLockedError: Another process has it open for writing.
            ReadOnlyError: It cannot be written.
            InvalidArgumentError: Lengths that do not fit the store.
            FullError: No space for what opening must write.
            FileKindError: A link, pipe, device or socket is in the store, and it is to be written.
        """
        root = _root_of(path)
        durability = as_enum("durability", Durability, durability)
        as_flag("create", create)
        as_flag("read_only", read_only)
        if record_crc is not None:
            as_flag("record_crc", record_crc)
        max_message_size_bytes = as_int("max_message_size_bytes", max_message_size_bytes, 0, MAX_I32)
        flush_interval_ms = as_int("flush_interval_ms", flush_interval_ms, 1, MAX_TIMEOUT_MS)
        recovery_step_bytes = as_int("recovery_step_bytes", recovery_step_bytes, 0)
        if as_kind("store_host", Host, store_host).port == 0:
            raise refusal("store_host", store_host, "a port that is not 0, which marks tombstones")
        if index_geometry is not None:
            as_kind("index_geometry", IndexGeometry, index_geometry)
            division = (index_geometry.slot_count, index_geometry.entry_count)
            index_geometry = checked_division("index_geometry", *division)
        if compaction_sizes is not None:
            as_kind("compaction_sizes", CompactionSizes, compaction_sizes)
            log_bytes, queue_bytes = compaction_sizes
            compaction_sizes = CompactionSizes(
                as_int("compaction_sizes log_bytes", log_bytes, 1, MAX_I32),
                # The last unit of a queue file is kept for its end.
                as_int("compaction_sizes queue_bytes", queue_bytes, 2 * BATCH_UNIT_BYTES, MAX_I32),
            )
        wanted = (
            _length("segment_size_bytes", segment_size_bytes),
            _length("queue_file_size_bytes", queue_file_size_bytes),
        )
        clock = as_doing("clock", SystemClock() if clock is None else clock, CLOCK_CALLS, "a clock")
        own = None
        if files is None:
            own = ReadingRoot(root, follow=follow) if read_only else StoreRoot(root, follow=follow)
            files = own
        else:
            as_doing("files", files, ("open", "list_dir", "lock"), "files (seglog.storage.files.files.Files)")
        waiters = Waiters(clock)
        with ExitStack() as undone:
            if own is not None:
                undone.callback(own.close)
            if read_only:
                opened = open_reader(root, files, clock)
            else:
                opened = open_writer(
                    root,
                    files,
                    clock,
                    wanted,
                    waiters,
                    index_geometry,
                    compaction_sizes,
                    create=create,
                    recovery_step_bytes=recovery_step_bytes,
                )
            if opened.lock is not None:
                undone.callback(opened.lock.release)
            undone.callback(opened.side.close)
            appender = None
            if isinstance(opened.side, Writer):
                appender = Appender(
                    opened.side,
                    clock,
                    record_crc=opened.record_crc if record_crc is None else record_crc,
                    store_host=store_host,
                    durability=durability,
                    max_message_size_bytes=max_message_size_bytes,
                )
                opened.side.start_background(flush_interval_ms)
            store = cls(root, opened, waiters, appender)
            store._own_folder = own
            undone.pop_all()
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # An error on its way is what the caller must see; its traceback holds arrays anyway.
            self.close(force=error is not None)
        except StoreInUseError:
            # Nobody can close it any more, and it must not stay locked.
            self.close(force=True)
            raise

    @property
    def read_only(self) -> bool:
        """Whether puts are refused."""
        return isinstance(self._side, Reader)

    @property
    def later_findings(self) -> tuple[Finding, ...]:
        """What reads found since the open in parts of the log that it did not walk; see ``recovery``."""
        guard = None if isinstance(self._side, Reader) else self._side.log.guard
        return () if guard is None else guard.findings

    @property
    def lost_in_front(self) -> tuple[LostMessages, ...]:
        """Messages before the first of their queue that the log has other records in place of."""
        known = [
            one
            for hole in load_holes(self.files, self.path)
            if hole.why == OTHERS and hole.phy_offset >= self.min_phy_offset
            for one in hole.lost
        ]
        known += self._side.lost_in_gaps() if isinstance(self._side, Reader) else []
        return tuple(
            one
            for one in dict.fromkeys(known)
            if (queue := self._side.queue(one.topic, one.queue_id)) and one.offsets.stop <= queue.min_offset
        )

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of its files."""
        return self._side.geometry

    @property
    def min_phy_offset(self) -> int:
        """Where the log starts; -1 for a store that was opened for reading and has no log file."""
        return self._side.min_phy_offset if isinstance(self._side, Reader) else self._side.log.min_phy_offset

    @property
    def max_phy_offset(self) -> int:
        """Where the log ends."""
        return self._side.end_phy_offset if isinstance(self._side, Reader) else self._side.log.end_phy_offset

    def put(
        self,
        topic: str,
        body: bytes | memoryview,
        *,
        queue_id: int = 0,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        durability: Durability | None = None,
    ) -> PutResult:
        """Appends one message.

        Args:
            topic: Its topic, which needs no other declaration.
            body: The payload.
            queue_id: Its queue in the topic, from 0.
            tags: The tag that consumers filter by.
            keys: Index keys: one text with blanks between them, or several texts without blanks.
            properties: More properties; names and values must not hold 0x01 or 0x02.
            flag: The application's own 32 bits.
            durability: What to wait for; None for the store's setting.

        Raises:
            InvalidNameError: No topic or queue can be called so.
            MessageIllegalError: Body or properties are too large.
            FullError: No space; nothing was written.
            ReadOnlyError: The store was opened for reading.
            StoreFailedError: A flush failed; nothing is acknowledged any more.
        """
        appender = self._appends()
        raw, code = encode_all_properties(tags, keys, properties)
        if properties and INNER in raw:
            return self.append(topic, queue_id, body, raw, code, flag=flag, durability=durability)
        return appender.ensured(appender.put(topic, queue_id, body, raw, code, flag, durability))

    def append(
        self,
        topic: str,
        queue_id: int,
        body: bytes | memoryview,
        properties: bytes,
        tags_code: int,
        *,
        sys_flag: int = 0,
        flag: int = 0,
        born_timestamp_ms: int | None = None,
        born_host: Host | None = None,
        store_host: Host | None = None,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        durability: Durability | None = None,
        delay_ms: int | None = None,
    ) -> PutResult:
        """Appends one message whose properties are encoded already, as brokers have them.

        Args:
            topic: As in :meth:`put`.
            queue_id: As in :meth:`put`.
            body: Stored as it is.
            properties: Stored as they are, but for a ``__CRC32#`` entry, and for the queue offsets that an
                inner batch or a message with INNER_MULTI_DISPATCH gets.
            tags_code: Goes into the queue unit; in the delay topic the delivery time does instead.
            sys_flag: RocketMQ's bits; those of the address families are set here. With INNER_BATCH the body
                is a batch as clients send it, and the topic one with batch queues.
            flag: The application's own 32 bits.
            born_timestamp_ms: The client's time; now by default.
            born_host: The client; the store's own host by default.
            store_host: The broker; the store's own host by default. With port 0, :data:`LOST_FLAG` and a body
                of zeros the message would be a tombstone: that is refused.
            reconsume_times: Deliveries that failed.
            prepared_transaction_offset: Physical offset of the half message of a COMMIT.
            durability: As in :meth:`put`.
            delay_ms: In the delay topic, what the message waits, where that is not what RocketMQ's own level
                in its DELAY says. A recovery that makes the queue unit again knows only those.

        Raises:
            As :meth:`put`.
        """
        appender = self._appends()
        appended = appender.append(
            topic,
            queue_id,
            body,
            properties,
            tags_code,
            sys_flag=sys_flag,
            flag=flag,
            born_timestamp_ms=born_timestamp_ms,
            born_host=born_host,
            store_host=store_host,
            reconsume_times=reconsume_times,
            prepared_transaction_offset=prepared_transaction_offset,
            durability=durability,
            delay_ms=delay_ms,
        )
        return appender.ensured(appended)

    def put_batch(
        self,
        topic: str,
        messages: Sequence[NewMessage | bytes],
        *,
        queue_id: int = 0,
        durability: Durability | None = None,
    ) -> BatchResult:
        """Appends messages to one queue, behind each other in one file and with one store time.

        All are acknowledged or none; of a batch that a crash interrupts, a prefix may remain.

        Raises:
            InvalidArgumentError: There are none.
            MessageIllegalError: One is too large, or all together are for one commit-log file.
            As :meth:`put`, for the rest.
        """
        appender = self._appends()
        drafts = appender.new_drafts(topic, queue_id, messages)
        return appender.ensured(appender.put_drafts(topic, queue_id, drafts, durability))

    def append_batch(
        self,
        topic: str,
        queue_id: int,
        messages: Sequence[RawMessage],
        *,
        sys_flag: int = 0,
        born_timestamp_ms: int | None = None,
        born_host: Host | None = None,
        reconsume_times: int = 0,
        durability: Durability | None = None,
    ) -> BatchResult:
        """Appends messages as :meth:`put_batch` does, with properties as brokers have them.

        Args:
            topic: As in :meth:`put`.
            queue_id: As in :meth:`put`.
            messages: At least one.
            sys_flag: As in :meth:`append`, of all of them.
            born_timestamp_ms: As in :meth:`append`, of all of them.
            born_host: As in :meth:`append`, of all of them.
            reconsume_times: As in :meth:`append`, of all of them.
            durability: As in :meth:`put`.

        Raises:
            As :meth:`put_batch`.
        """
        appender = self._appends()
        drafts = appender.raw_drafts(
            topic, queue_id, messages, sys_flag, born_timestamp_ms, born_host, reconsume_times
        )
        return appender.ensured(appender.put_drafts(topic, queue_id, drafts, durability))

    def get(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_count: int = DEFAULT_MAX_COUNT,
        filter: str | MessageFilter | None = None,  # noqa: A002 - RocketMQ's own word for it
        *,
        max_bytes: int = MAX_TOTAL_BYTES,
    ) -> GetResult:
        """Reads messages of one queue from ``queue_offset`` on.

        Args:
            topic: The topic.
            queue_id: The queue.
            queue_offset: Where to start; outside of the queue the result says where to go on.
            max_count: Messages at most, 1 or more.
            filter: ``TagA || TagB``, ``*`` for all, or any :class:`MessageFilter`.
            max_bytes: Stored bytes at most; the first message always comes whole.

        Returns:
            Status, messages and the queue offset to ask for next. For a queue that never had a message the
            status is ``NO_MESSAGE_IN_QUEUE``; for one that no store can have, ``NO_MATCHED_LOGIC_QUEUE``.

        Raises:
            InvalidArgumentError: ``max_count`` or ``max_bytes`` is below 1.
            ClosedError: The store was closed.
        """
        self._check_open()
        topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        queue_offset = as_int("queue_offset", queue_offset, useful_to=MAX_I64)
        max_count, max_bytes = as_int("max_count", max_count, 1), as_int("max_bytes", max_bytes, 1)
        wanted = make_filter(filter)
        if topic in self._side.compaction_topics:
            return self._get_compaction(topic, queue_id, queue_offset, max_count, wanted, max_bytes)
        queue = self._side.queue(topic, queue_id)
        if queue is None and _can_exist(topic, queue_id):
            return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        self._tell_reads(topic, queue_id, queue, filter, wanted)
        if isinstance(self._side, Writer):
            self._side.log.recheck()
        try:
            if isinstance(queue, BatchQueue | SnapshotBatchQueue):
                found = read_batch_queue(queue, self._side.log, queue_offset, max_count, wanted, max_bytes)
            else:
                codes = None if wanted is None else partial(self._tags_codes, topic, queue_id)
                found = read_queue(queue, self._side.log, queue_offset, max_count, wanted, max_bytes, codes)
        except FileNotFoundError as error:
            if not self._has_left_front(topic, queue_id, queue, queue_offset + 1):
                raise explain_os_error(error) from error
        except OSError as error:
            raise explain_os_error(error) from error
        else:
            if not found.lost:
                return found
            if not self._has_left_front(topic, queue_id, queue, found.lost[0].start + 1):
                return self._without_repairable(topic, queue_id, found)
        # Retention removed what we looked at: that is not lost, and the queue begins behind it.
        return self.get(topic, queue_id, queue_offset, max_count, filter, max_bytes=max_bytes)

    def queue(self, topic: str, queue_id: int) -> QueueView:
        """Returns a queue as numpy arrays, as it is now; see :mod:`seglog.storage.reads.queue_view`.

        Raises:
            NotFoundError: It never had a message.
            InvalidArgumentError: A batch queue has no unit for each message.
            ClosedError: The store was closed.
        """
        self._check_open()
        queue = self._queue_of(topic, queue_id)
        if queue is None:
            raise NotFoundError(f"no queue {topic}/{queue_id} in {self.path} ever had a message")
        if isinstance(queue, BatchQueue | SnapshotBatchQueue):
            raise InvalidArgumentError(f"{topic}/{queue_id} is a batch queue", help="read it with get")
        place = Place(
            queue.min_offset,
            queue.max_offset,
            self.max_phy_offset,
            self.geometry.segment_size_bytes,
            is_shared=not self.read_only,
        )
        return QueueView(topic, queue_id, queue, self._side.log, place, self._leases)

    def message_at(self, phy_offset: int) -> Message:
        """Returns the message whose record starts at ``phy_offset``, verified.

        Raises:
            NotFoundError: No record starts there, or one that stands for a lost message.
        """
        self._check_open()
        if type(phy_offset) is not int:
            phy_offset = as_int("phy_offset", phy_offset, useful_to=MAX_I64)
        record = None if isinstance(self._reads, PlainReads) else self._reads.record_at(phy_offset)
        if record is None:
            if isinstance(self._side, Reader) and phy_offset in self._side.log.withheld:
                raise NotFoundError(
                    f"the record at {phy_offset} is damaged, and what it was can be proven",
                    help=f"run `seglog repair {self.path}`",
                )
            with explained():
                record = self._record_at(phy_offset) if phy_offset >= 0 else None
            if record is not None and is_tombstone(record):
                raise NotFoundError(f"the message at {phy_offset} was lost; a tombstone is in its place")
        try:
            if record is not None:
                message = decode_message(record, verify=True)
                if message.phy_offset == phy_offset:
                    return message
        except CorruptError as error:
            raise NotFoundError(f"no message starts at {phy_offset}: {error}") from error
        reason = ": phy_offset is 0 or more" if phy_offset < 0 else ""
        raise NotFoundError(f"no message starts at {phy_offset}{reason}")

    def query(
        self, topic: str, key: str, max_count: int = 64, *, begin_ms: int = 0, end_ms: int = MAX_TIMESTAMP_MS
    ) -> list[Message]:
        """Returns messages of a topic that have a key, or were given it as unique key, in log order.

        Args:
            topic: The topic.
            key: One of the message's KEYS, or its UNIQ_KEY.
            max_count: At most this many, the newest.
            begin_ms: Earliest store time.
            end_ms: Latest store time.

        Raises:
            InvalidArgumentError: ``max_count`` is below 1.
        """
        self._check_open()
        as_text("topic", topic)
        as_text("key", key)
        max_count = as_int("max_count", max_count, 1)
        begin_ms, end_ms = as_int("begin_ms", begin_ms), as_int("end_ms", end_ms)
        side, indexed = self._side, None
        with explained():
            if isinstance(side, Writer):
                side.index.catch_up()
                indexed = side.index.position
            size = self.geometry.segment_size_bytes
            lookup = KeyQuery(
                self.files, self.path, size, self._message_or_none, side.holes, indexed, self._key_memory
            )
            log = (max(0, self.min_phy_offset), self.max_phy_offset)
            return lookup.find(topic, key, max_count, (begin_ms, end_ms), log)

    def message_by_id(self, message_id: str) -> Message:
        """Returns the message that an offsetMsgId names, as results of puts carry it.

        Raises:
            InvalidArgumentError: That is no such id.
            NotFoundError: No message is there, or it is another one than the id was made for.
        """
        host, phy_offset = decode_message_id(message_id)
        message = self.message_at(phy_offset)
        if message.store_host != host:
            raise NotFoundError(f"the message at {phy_offset} was stored by {message.store_host}, not {host}")
        return message

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Returns the queue offset of the first message, 0 for a queue that never had one."""
        queue = self._queue_of(topic, queue_id)
        return 0 if queue is None else queue.min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Returns the queue offset that the next message gets."""
        queue = self._queue_of(topic, queue_id)
        return 0 if queue is None else queue.max_offset

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary = "lower"
    ) -> int:
        """Returns the queue offset of the first message stored at or after a moment.

        Args:
            topic: The topic.
            queue_id: The queue.
            timestamp_ms: The moment.
            boundary: ``upper`` for the last message at or before it instead.
        """
        self._check_open()
        timestamp_ms = as_int("timestamp_ms", timestamp_ms)
        as_choice("boundary", get_args(Boundary), boundary)
        queue = self._queue_of(topic, queue_id)
        if queue is None:
            return 0
        low = queue.min_offset
        try:
            if isinstance(queue, BatchQueue | SnapshotBatchQueue):
                return batch_offset_by_time(queue, timestamp_ms, boundary)
            return offset_by_time(queue, self._side.log, timestamp_ms, boundary)
        except FileNotFoundError as error:
            if queue.min_offset > low or self._side.queue(topic, queue_id) is not queue:  # while we looked
                return self.offset_by_time(topic, queue_id, timestamp_ms, boundary)
            raise explain_os_error(error) from error
        except OSError as error:
            raise explain_os_error(error) from error

    def wait_for(self, topic: str, queue_id: int, queue_offset: int, timeout_ms: float) -> bool:
        """Waits until the queue has a message at ``queue_offset``; returns whether it has."""
        queue = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return self.wait_for_any({queue: queue_offset}, timeout_ms)

    def wait_for_any(self, queues: Mapping[tuple[str, int], int], timeout_ms: float) -> bool:
        """Waits until one of many queues has a message at its offset; returns whether one has.

        Args:
            queues: The queue offset to wait for, by topic and queue.
            timeout_ms: How long to wait.
        """
        self._check_open()
        timeout_ms = as_timeout_ms("timeout_ms", timeout_ms)
        queues = _checked_queues(queues)
        if isinstance(self._side, Reader):
            with explained():
                has_any = self._side.wait_for_any(queues, timeout_ms)
            self._forget_queues()
            return has_any
        return self._waiters.wait(queues, lambda: self._has_any(queues), timeout_ms) and not self._closed

    @override
    async def wait_for_any_async(self, queues: Mapping[tuple[str, int], int], timeout_ms: float) -> bool:
        """Waits as :meth:`wait_for_any` does; for a store opened for reading a thread looks meanwhile."""
        self._check_open()
        timeout_ms = as_timeout_ms("timeout_ms", timeout_ms)
        queues = _checked_queues(queues)
        if isinstance(self._side, Reader):
            return await asyncio.to_thread(self.wait_for_any, queues, timeout_ms)
        has_any = await self._waiters.wait_async(queues, lambda: self._has_any(queues), timeout_ms)
        return has_any and not self._closed

    def listen(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Has ``wake`` called after every put to a queue, until :meth:`unlisten`; also when the store closes.

        Args:
            topic: The topic.
            queue_id: The queue.
            wake: Called by the thread that puts, before its call returns: quick, and never raising. The
                message can be read already.

        Raises:
            ReadOnlyError: The store was opened for reading; it sees no puts.
        """
        self._writer()
        if not callable(wake):
            raise refusal("wake", wake, "a function")
        topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        self._waiters.listen((topic, queue_id), wake)

    def unlisten(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Ends what :meth:`listen` began with the same ``wake``; a call may still be under way."""
        self._waiters.unlisten((topic, queue_id), wake)

    def _has_any(self, queues: Mapping[tuple[str, int], int]) -> bool:
        return self._closed or any(self.max_offset(*key) > offset for key, offset in queues.items())

    def reload_topics(self) -> None:
        """Takes up the attributes of topics that were added to ``config/topics.json`` since the open.

        Raises:
            ReadOnlyError: The store was opened for reading.
        """
        self._writer().add_kinds(configured_kinds(self.files, self.path))
        self._forget_queues()

    def topics(self) -> list[str]:
        """Returns the topics that have a queue, sorted as Java sorts strings."""
        return sorted({queue.topic for queue in self._side.queues()}, key=_java_order)

    def queues(self) -> list[QueueInfo]:
        """Returns every queue and its range, sorted by topic (as Java sorts strings) and number."""
        found = [
            QueueInfo(queue.topic, queue.queue_id, queue.min_offset, queue.max_offset, queue.max_phy_offset)
            for queue in self._side.queues()
        ]
        return sorted(found, key=lambda info: (_java_order(info.topic), info.queue_id))

    @override
    def flush(self) -> None:
        """Returns once everything put before is on the disk.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
        """
        self._check_open()
        self._writer().flush()

    def refresh(self) -> int:
        """Lets a read-only store see what was written since; returns how many records that were."""
        self._check_open()
        if not isinstance(self._side, Reader):
            return 0
        with explained():
            found = self._side.refresh()
        self._key_memory.forget()
        self._forget_queues()
        return found

    def close(self, *, force: bool = False) -> None:
        """Closes the store cleanly; a second call does nothing. Records that are still held stay valid.

        Args:
            force: Whether to close although arrays of :meth:`queue` still share memory with it. They stay
                valid too, but show what the next owner of the files makes of them.

        Raises:
            StoreInUseError: Such arrays are alive; the store stays open. At the end of a ``with`` block it
                is closed all the same.
            StoreFailedError: What was put could not be brought to the disk; the next open recovers.
        """
        if self._closed:
            return
        self._leases.close(force=force)
        self._closed = True
        self._reads.close()
        try:
            self._side.close()
        finally:
            if self._async is not None:
                self._async.close()
            if self._lock is not None:
                self._lock.release()
            if self._own_folder is not None:
                # An open folder keeps its file system from being unmounted.
                self._own_folder.close()

    def _queue_of(self, topic: str, queue_id: int) -> AnyQueue | None:
        if type(topic) is not str or type(queue_id) is not int:
            topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return self._side.queue(topic, queue_id)

    def _record_at(self, phy_offset: int) -> memoryview | None:
        head = self._side.log.read(phy_offset, FILLER.size_bytes)
        if head is None:
            return None
        size, magic = FILLER.struct.unpack_from(head)
        # A size that is none may be anything; nobody wants a gigabyte read for it.
        return self._side.log.read(phy_offset, size) if magic in {MAGIC_V1, MAGIC_V2} and size > 0 else None

    def _get_compaction(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_count: int,
        wanted: MessageFilter | None,
        max_bytes: int,
    ) -> GetResult:
        queue = self._side.compaction_queue(topic, queue_id)
        units = None if queue is None else queue.units
        with explained():
            return read_compaction_queue(units, queue, queue_offset, max_count, wanted, max_bytes)

    def _new_reads(self) -> _native.Reads[GetResult] | PlainReads:
        log = self._side.log
        made = None
        if isinstance(log, CommitLog):
            made = new_reads(
                self.get,
                GetResult,
                TagFilter,
                (GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE),
                (log.tail, log.maps),
                (DEFAULT_MAX_COUNT, MAX_TOTAL_BYTES, MAX_FILTER_BYTES // CQ_UNIT_BYTES),
            )
        return made or PlainReads(self.get, log)

    def _tell_reads(
        self,
        topic: str,
        queue_id: int,
        queue: object,
        expression: str | MessageFilter | None,
        wanted: MessageFilter | None,
    ) -> None:
        """Tells whoever serves plain reads of a queue and a filter that somebody asked for."""
        reads = self._reads
        if isinstance(reads, PlainReads):
            if isinstance(queue, ConsumeQueue | SnapshotQueue):
                reads.add(topic, queue_id, queue)
            return
        if isinstance(queue, ConsumeQueue) and queue.maps is not None and type(topic) is str:
            reads.add(topic, queue_id, queue.tail, queue.maps)
        if type(expression) is str:
            reads.know(expression, wanted.tag_set if isinstance(wanted, TagFilter) else None)

    def _has_left_front(self, topic: str, queue_id: int, queue: AnyQueue | None, least_min: int) -> bool:
        """Returns whether a queue is another one now, or begins at ``least_min`` or later."""
        if isinstance(self._side, Reader):
            self._side.leave_front()
        now = self._side.queue(topic, queue_id)
        return now is not queue or (now is not None and now.min_offset >= least_min)

    def _without_repairable(self, topic: str, queue_id: int, found: GetResult) -> GetResult:
        if isinstance(self._side, Writer):
            return found  # opening mended it
        return without_repairable(found, self._side.repairable(topic, queue_id))

    def _forget_queues(self) -> None:
        if isinstance(self._reads, PlainReads):
            self._reads.forget(self._side.log)
        else:
            self._reads.forget()

    def _tags_codes(self, topic: str, queue_id: int, units: Units) -> npt.NDArray[np.int64]:
        return self._ext_codes.resolve(topic, queue_id, units, self._side.log)

    def _message_or_none(self, phy_offset: int) -> Message | None:
        try:
            return self.message_at(phy_offset)
        except NotFoundError:
            return None

    def _writer(self) -> Writer:
        if isinstance(self._side, Reader):
            raise self._refusal()
        return self._side

    @override
    def _appends(self) -> Appender:
        if self._appender is None:
            raise self._refusal()
        return self._appender

    @override
    def _appends_async(self) -> AsyncAppends:
        if self._async is None:
            raise self._refusal()
        return self._async

    def _refusal(self) -> ReadOnlyError:
        self._check_open()
        return ReadOnlyError(f"{self.path} was opened for reading", help="open it without read_only=True")

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the store {self.path} was closed")


def _length(name: str, size_bytes: int | None) -> int | None:
    return None if size_bytes is None else as_int(name, size_bytes, 1, MAX_I32)


def _root_of(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise refusal("path", path, "str or a path")
    try:
        root = Path(path).absolute()
    except TypeError:  # a path of bytes
        raise refusal("path", path, "str or a path") from None
    if "\0" in str(root):
        raise NotAStoreError(f"{str(root)!r} is no path: it holds NUL")
    try:
        os.fsencode(root)
    except UnicodeEncodeError:
        raise NotAStoreError(f"{str(root)!r} is no path: it holds what no file name can") from None
    return root


def _checked_queues(queues: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
    """Returns the offsets to wait for in queues.

    Raises:
        InvalidArgumentError: A topic, queue or offset is of another type.
    """
    found: dict[tuple[str, int], int] = {}
    for key, queue_offset in as_mapping("queues", queues).items():
        try:
            topic, queue_id = key
        except (TypeError, ValueError):
            raise refusal("queues", key, "a topic and a queue id as each key") from None
        queue = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        found[queue] = as_int("queue_offset", queue_offset, useful_to=MAX_I64)
    return found


def _can_exist(topic: str, queue_id: int) -> bool:
    try:
        return bool(check_topic(topic)) and check_queue_id(queue_id) >= 0
    except InvalidNameError:
        return False


def _java_order(text: str) -> bytes:
    """Sort key that orders strings by UTF-16 code units, as Java does."""
    return text.encode("utf-16-be", "surrogatepass")

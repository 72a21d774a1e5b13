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
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, get_args

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
    NotAStoreError,
    NotFoundError,
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
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.index.index_view import MAX_TIMESTAMP_MS
from seglog.storage.format.names import MAX_QUEUE_ID
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import Message, decode_message_id
from seglog.storage.format.record.record import FILLER, MAGIC_V1, MAGIC_V2
from seglog.storage.format.record.tombstone import is_tombstone
from seglog.storage.index.key_memory import KeyMemory
from seglog.storage.index.key_query import KeyQuery
from seglog.storage.kernels.decode import decode_message
from seglog.storage.opening import Opened, open_reader, open_writer
from seglog.storage.overlay.lost_messages import LostMessages
from seglog.storage.reads.buffer_leases import Leases
from seglog.storage.reads.ext_codes import ExtCodes
from seglog.storage.reads.fast_reads import open_reads
from seglog.storage.reads.offset_by_time import Boundary
from seglog.storage.reads.open_queues import OpenQueue
from seglog.storage.reads.queue_reader import QueueReader
from seglog.storage.reads.queue_view import QueueView
from seglog.storage.reads.readings import LogQueueReading, Readings
from seglog.storage.reads.record_ranges import Place
from seglog.storage.recovery.recover import RecoveryReport
from seglog.storage.retention import Retention
from seglog.storage.scan.holes_file import OTHERS, load_holes
from seglog.storage.threads.waiters import Waiters
from seglog.storage.writes.appends import PutSettings
from seglog.storage.writes.async_appends import AsyncAppends
from seglog.storage.writes.async_calls import AsyncCalls
from seglog.storage.writes.calls import Calls
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import QueueInfo

DEFAULT_MAX_MESSAGE_BYTES: Final = 4 << 20
DEFAULT_FLUSH_INTERVAL_MS: Final = 500
DEFAULT_RECOVERY_STEP_BYTES: Final = 32 << 20
DEFAULT_STORE_HOST: Final = Host(b"\x7f\x00\x00\x01", 10911)


class MessageStore(Calls, AsyncCalls):
    """A store, made by :meth:`open`; close it, or use it in a ``with`` statement.

    Attributes:
        path: The store directory.
        recovery: What opening it did and found.
        record_crc: Whether new records carry ``__CRC32#``.
        retention: What of it may be deleted, and the call that does it.
        files: Its files. Whoever keeps more in its directory goes through them: a failed sync of any is the
            last one of all.
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        """Serves an opened store; applications call :meth:`open`."""
        self.path = path
        self.recovery: RecoveryReport = opened.report
        self.record_crc = opened.record_crc
        self.files = opened.files
        self._core = opened.core
        self._lock = opened.lock
        self._own_folder: StoreRoot | None = None
        self._closed = False
        self._leases = Leases(str(path))
        self._key_memory = KeyMemory()
        self._readings = Readings(ExtCodes(self.files, path))
        self._appends = opened.appends
        self._tasks = AsyncAppends(opened.appends, opened.fast_path)
        self._reads = open_reads(self._core.log)
        self._queue_reader = QueueReader(self._core, self._readings, self._reads, self._check_open)
        if not self._serve_natively(opened.fast_path, self._reads.native):
            self._fast_path = opened.fast_path
        self.retention = Retention(self._core)
        self._core.on_change(self._forget_queues)

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
                    Waiters(clock),
                    index_geometry,
                    compaction_sizes,
                    create=create,
                    recovery_step_bytes=recovery_step_bytes,
                    puts=PutSettings(
                        record_crc, store_host, durability, max_message_size_bytes, flush_interval_ms
                    ),
                )
            if opened.lock is not None:
                undone.callback(opened.lock.release)
            undone.callback(opened.core.close)
            store = cls(root, opened)
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
        return self._core.read_only

    @property
    def later_findings(self) -> tuple[Finding, ...]:
        """What reads found since the open in parts of the log that it did not walk; see ``recovery``."""
        return self._core.later_findings

    @property
    def lost_in_front(self) -> tuple[LostMessages, ...]:
        """Messages before the first of their queue that the log has other records in place of."""
        known = [
            one
            for hole in load_holes(self.files, self.path)
            if hole.why == OTHERS and hole.phy_offset >= self.min_phy_offset
            for one in hole.lost
        ]
        known += self._core.lost_in_gaps()
        return tuple(
            one
            for one in dict.fromkeys(known)
            if (queue := self._core.queues.find(one.topic, one.queue_id))
            and one.offsets.stop <= queue.min_offset
        )

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of its files."""
        return self._core.geometry

    @property
    def min_phy_offset(self) -> int:
        """Where the log starts; -1 for a store that was opened for reading and has no log file."""
        return self._core.log.min_phy_offset

    @property
    def max_phy_offset(self) -> int:
        """Where the log ends."""
        return self._core.log.end_phy_offset

    def queue(self, topic: str, queue_id: int) -> QueueView:
        """Returns a queue as numpy arrays, as it is now; see :mod:`seglog.storage.reads.queue_view`.

        Raises:
            NotFoundError: It never had a message.
            InvalidArgumentError: A batch queue has no unit for each message.
            ClosedError: The store was closed.
        """
        self._check_open()
        reading = self._reading_of(topic, queue_id)
        if reading is None:
            raise NotFoundError(f"no queue {topic}/{queue_id} in {self.path} ever had a message")
        queue = reading.with_units()
        place = Place(
            queue.min_offset,
            queue.max_offset,
            self.max_phy_offset,
            self.geometry.segment_size_bytes,
            is_shared=not self.read_only,
        )
        return QueueView(topic, queue_id, queue, self._core.log, place, self._leases)

    def message_at(self, phy_offset: int) -> Message:
        """Returns the message whose record starts at ``phy_offset``, verified.

        Raises:
            NotFoundError: No record starts there, or one that stands for a lost message.
        """
        self._check_open()
        if type(phy_offset) is not int:
            phy_offset = as_int("phy_offset", phy_offset, useful_to=MAX_I64)
        record = self._reads.record_at(phy_offset)
        if record is None:
            if phy_offset in self._core.log.withheld:
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
        holes, size = self._core.holes, self.geometry.segment_size_bytes
        with explained():
            indexed = self._core.indexed()
            lookup = KeyQuery(
                self.files, self.path, size, self._message_or_none, holes, indexed, self._key_memory
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
        reading = self._reading_of(topic, queue_id)
        if reading is None:
            return 0
        low = self.min_offset(topic, queue_id)
        try:
            return reading.offset_by_time(self._core.log, timestamp_ms, boundary)
        except FileNotFoundError as error:
            if reading.is_superseded(self._core.queues.find(topic, queue_id), low + 1):  # while we looked
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
        return self._core.wait_for_any(_checked_queues(queues), timeout_ms)

    async def wait_for_any_async(self, queues: Mapping[tuple[str, int], int], timeout_ms: float) -> bool:
        """Waits as :meth:`wait_for_any` does; for a store opened for reading a thread looks meanwhile."""
        self._check_open()
        timeout_ms = as_timeout_ms("timeout_ms", timeout_ms)
        return await self._core.wait_for_any_async(_checked_queues(queues), timeout_ms)

    async def wait_for_async(self, topic: str, queue_id: int, queue_offset: int, timeout_ms: float) -> bool:
        """Waits until the queue has a message at ``queue_offset``; returns whether it has."""
        queue = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return await self.wait_for_any_async({queue: queue_offset}, timeout_ms)

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
        if not callable(wake):
            raise refusal("wake", wake, "a function")
        topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        self._core.listen(topic, queue_id, wake)

    def unlisten(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Ends what :meth:`listen` began with the same ``wake``; a call may still be under way."""
        self._core.unlisten(topic, queue_id, wake)

    def reload_topics(self) -> None:
        """Takes up the attributes of topics that were added to ``config/topics.json`` since the open.

        Raises:
            ReadOnlyError: The store was opened for reading.
        """
        self._core.add_kinds(configured_kinds(self.files, self.path))

    def topics(self) -> list[str]:
        """Returns the topics that have a queue, sorted as Java sorts strings."""
        return sorted({queue.topic for queue in self._core.queues}, key=_java_order)

    def queues(self) -> list[QueueInfo]:
        """Returns every queue and its range, sorted by topic (as Java sorts strings) and number."""
        found = [
            QueueInfo(queue.topic, queue.queue_id, queue.min_offset, queue.max_offset, queue.max_phy_offset)
            for queue in self._core.queues
        ]
        return sorted(found, key=lambda info: (_java_order(info.topic), info.queue_id))

    def flush(self) -> None:
        """Returns once everything put before is on the disk.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
        """
        self._check_open()
        self._core.flush()

    async def flush_async(self) -> None:
        """Returns once everything put before is on the disk, as :meth:`flush` does."""
        await asyncio.to_thread(self.flush)

    def refresh(self) -> int:
        """Lets a read-only store see what was written since; returns how many records that were."""
        self._check_open()
        return self._core.refresh()

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
            self._core.close()
        finally:
            self._tasks.close()
            if self._lock is not None:
                self._lock.release()
            if self._own_folder is not None:
                # An open folder keeps its file system from being unmounted.
                self._own_folder.close()

    def _queue_of(self, topic: str, queue_id: int) -> OpenQueue | None:
        if type(topic) is not str or type(queue_id) is not int:
            topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return self._core.queues.find(topic, queue_id)

    def _reading_of(self, topic: str, queue_id: int) -> LogQueueReading | None:
        topic, queue_id = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return self._readings.in_log(self._core.queues, topic, queue_id)

    def _record_at(self, phy_offset: int) -> memoryview | None:
        log = self._core.log
        head = log.read(phy_offset, FILLER.size_bytes)
        if head is None:
            return None
        size, magic = FILLER.struct.unpack_from(head)
        # A size that is none may be anything; nobody wants a gigabyte read for it.
        return log.read(phy_offset, size) if magic in {MAGIC_V1, MAGIC_V2} and size > 0 else None

    def _forget_queues(self) -> None:
        self._reads.forget(self._core.log)
        self._key_memory.forget()

    def _message_or_none(self, phy_offset: int) -> Message | None:
        try:
            return self.message_at(phy_offset)
        except NotFoundError:
            return None

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


def _java_order(text: str) -> bytes:
    """Sort key that orders strings by UTF-16 code units, as Java does."""
    return text.encode("utf-16-be", "surrogatepass")

"""MessageStore: a RocketMQ store directory as an embedded durable queue.

    with MessageStore.open("/var/lib/orders") as store:
        put = store.put("orders", b"42 apples", tags="fruit", keys="o-1")
        for message in store.get("orders", 0, put.queue_offset):
            print(message.queue_offset, message.body)

One process writes; any number of processes read beside it with ``read_only=True``. Any thread may call, and
so may tasks: ``await store.put_async(...)``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Final, Self

from seglog.arguments import (
    MAX_I32,
    MAX_TIMEOUT_MS,
    as_doing,
    as_enum,
    as_flag,
    as_int,
    as_kind,
    as_timeout_ms,
    refusal,
)
from seglog.clock import CLOCK_CALLS, Clock, SystemClock
from seglog.errors import NotAStoreError, StoreInUseError
from seglog.storage.directory import (
    NOTHING_KNOWN,
    FileSizes,
    LogRoot,
    ReadingRoot,
    checked_division,
    configured_kinds,
)
from seglog.storage.directory.geometry import SMALL_FILES
from seglog.storage.files import Files, StoreRoot
from seglog.storage.findings.findings import Finding
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import Message
from seglog.storage.lookups import Lookups
from seglog.storage.opening import Opened, open_reader, open_writer
from seglog.storage.overlay.lost_messages import LostMessages
from seglog.storage.reads.fast_reads import open_reads
from seglog.storage.reads.get import MAX_TOTAL_BYTES, GetResult
from seglog.storage.reads.message_filter import MessageFilter
from seglog.storage.reads.queue_reader import QueueReader
from seglog.storage.reads.sequential_reads import DEFAULT_MAX_COUNT
from seglog.storage.recovery.store_recovery import RecoveryReport
from seglog.storage.retention import Retention
from seglog.storage.scan.holes_file import OTHERS, load_holes
from seglog.storage.threads.waiters import Waiters
from seglog.storage.waits import Waits
from seglog.storage.writes.appends import PutSettings
from seglog.storage.writes.async_appends import AsyncAppends
from seglog.storage.writes.async_calls import AsyncCalls
from seglog.storage.writes.calls import Calls
from seglog.storage.writes.flush import Durability

DEFAULT_MAX_MESSAGE_BYTES: Final = 4 << 20
DEFAULT_FLUSH_INTERVAL_MS: Final = 500
DEFAULT_RECOVERY_STEP_BYTES: Final = 32 << 20
DEFAULT_STORE_HOST: Final = Host(b"\x7f\x00\x00\x01", 10911)
_NOTHING_YET: Final = (
    GetStatus.OFFSET_OVERFLOW_ONE,
    GetStatus.OFFSET_OVERFLOW_BADLY,
    GetStatus.NO_MESSAGE_IN_QUEUE,
    GetStatus.NO_MATCHED_LOGIC_QUEUE,
)
"""The statuses of a read at or behind the end of a queue."""


class MessageStore(Calls, AsyncCalls, Lookups, Waits):
    """A store, returned by :meth:`open`; close it, or use it in a ``with`` statement.

    Attributes:
        path: The store directory.
        recovery: The report of the opening: its actions and findings.
        record_crc: Whether new records carry ``__CRC32#``.
        durability: The durability of puts that give none.
        retention: The deletable files of the log, and the call that deletes them.
        files: Its files. Programs that keep other files in its directory must use them: after a failed sync
            of any file, nothing is synced any more.
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        """Serves an opened store; applications call :meth:`open`."""
        super().__init__(path, opened.files, opened.core)
        self.recovery: RecoveryReport = opened.report
        self.record_crc = opened.record_crc
        self.durability = opened.durability
        self._lock = opened.lock
        self._own_folder: StoreRoot | None = None
        self._appends = opened.appends
        self._tasks = AsyncAppends(opened.appends, opened.fast_path, opened.durability)
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
        small: bool = False,
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
        """Opens the store at ``path``; recovers it first if it was not closed.

        Args:
            path: The store directory (RocketMQ's ``storePathRootDir``).
            create: Whether to create a store in an absent or empty directory.
            read_only: Whether to open for reading, possibly beside a writer. Nothing is written; the messages
                are those that recovery would serve. :meth:`refresh` and :meth:`wait_for` follow the writer.
            segment_size_bytes: Length of commit-log files of a new store, 1 GiB by default.
            queue_file_size_bytes: Length of queue files of a new store, 6,000,000 by default.
            index_geometry: Slots and entries of the key-index files of a store that has none yet
                (``maxHashSlotNum``, ``maxIndexNum``), 5,000,000 and 20,000,000 by default.
            compaction_sizes: Lengths of the files of compaction topics in a store that has none yet, as
                :func:`seglog.storage.format.queue.compaction.compaction_sizes` rounds them
                (``compactionMappedFileSize``, ``compactionCqMappedFileSize``), 100 and 10 MiB by default.
            small: Whether a new store has short files, for tests and desktops: 16 MiB of the log, 6,000 units
                of a queue, 200,000 index entries, unless a length is given above. To continue with such a
                store, RocketMQ needs the lines that ``seglog info`` prints. An existing store keeps its
                lengths.
            durability: The durability of puts that give none.
            record_crc: Whether new records carry RocketMQ's ``__CRC32#`` over the whole record; None: new
                stores, and stores without a record, write it; others continue as their newest record.
            max_message_size_bytes: Longest body (``maxMessageSize``).
            flush_interval_ms: The interval in which ASYNC puts are synced.
            recovery_step_bytes: Growth of the log from one recovery point to the next. The open after a crash
                walks about this much of the log, see :mod:`seglog.storage.survey.incremental_survey`.
                0 for no points: every open walks the whole log.
            store_host: Address written into records, part of message ids; its port must not be 0, which marks
                tombstones.
            clock: Source of time stamps.
            follow: Folders directly in the store that may be links to folders elsewhere, such as
                ``("commitlog",)`` if ``storePathCommitLog`` is on another disk. No other link is followed.
            files: The file layer of the store; None for real files.

        Raises:
            NotFoundError: There is no store, and ``create`` is false or ``read_only`` is true.
            NotAStoreError: The directory holds something else.
            UnsupportedStoreError: A DLedger log, or older messages in tiered storage; or, for writing, queues
                in RocksDB, or a log in several folders that no ``broker.conf`` in the store states.
            StoreLockedError: Another process has it open for writing.
            ReadOnlyError: The directory cannot be written.
            InvalidArgumentError: Lengths that do not fit the store.
            FullError: No space for the files that the opening must write.
            FileKindError: The opening must write a file that is a link, pipe, device or socket.
        """
        root = _root_of(path)
        durability = as_enum("durability", Durability, durability)
        as_flag("create", create)
        as_flag("read_only", read_only)
        as_flag("small", small)
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
                # At least two units: the last unit of a queue file marks its end.
                as_int("compaction_sizes queue_bytes", queue_bytes, 2 * BATCH_UNIT_BYTES, MAX_I32),
            )
        wanted = FileSizes(
            _length("queue_file_size_bytes", queue_file_size_bytes),
            index_geometry,
            _length("segment_size_bytes", segment_size_bytes),
            compaction=compaction_sizes,
        )
        clock = as_doing("clock", SystemClock() if clock is None else clock, CLOCK_CALLS, "a clock")
        own = None
        if files is None:
            own = ReadingRoot(root, follow=follow) if read_only else LogRoot(root, follow=follow)
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
                    SMALL_FILES if small else NOTHING_KNOWN,
                    Waiters(clock),
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
            # After an error in the block the store closes in any case: the caller must see that error, and
            # its traceback keeps arrays alive.
            self.close(force=error is not None)
        except StoreInUseError:
            # The caller has no way to close it after the block, and the store must not stay locked.
            self.close(force=True)
            raise

    @property
    def later_findings(self) -> tuple[Finding, ...]:
        """Findings of reads since the open, in parts of the log that it did not walk; see ``recovery``."""
        return self._core.later_findings

    @property
    def lost_in_front(self) -> tuple[LostMessages, ...]:
        """Lost messages before the first message of their queue."""
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

    def reload_topics(self) -> None:
        """Reads the attributes of topics that were added to ``config/topics.json`` since the open.

        Raises:
            ReadOnlyError: The store was opened for reading.
        """
        self._core.add_kinds(configured_kinds(self.files, self.path))

    def flush(self) -> None:
        """Returns once all messages put before are on the disk.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
        """
        self._check_open()
        self._tasks.drain()  # gathered puts of tasks count as put before
        self._core.flush()

    async def flush_async(self) -> None:
        """Returns once all messages put before are on the disk, as :meth:`flush` does."""
        await asyncio.to_thread(self.flush)

    async def get_async(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_count: int = DEFAULT_MAX_COUNT,
        filter: str | MessageFilter | None = None,  # noqa: A002 - as in get
        *,
        max_bytes: int = MAX_TOTAL_BYTES,
        timeout_ms: float,
    ) -> GetResult:
        """Reads messages as :meth:`get` does, and waits for the first one if there is none yet.

        Args:
            topic: As in :meth:`get`, like all arguments that follow.
            queue_id: The queue.
            queue_offset: First queue offset to read.
            max_count: Messages at most.
            filter: The wait does not end at messages that the filter rules out.
            max_bytes: Stored bytes at most.
            timeout_ms: The longest total wait; ``float("inf")`` waits without a limit.

        Returns:
            The result of :meth:`get`; after the timeout, its result without messages.

        Raises:
            InvalidArgumentError: As :meth:`get`, or ``timeout_ms`` is no duration.
            ClosedError: The store was closed, perhaps during the wait.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + as_timeout_ms("timeout_ms", timeout_ms) / 1000
        while True:
            found = self.get(topic, queue_id, queue_offset, max_count, filter, max_bytes=max_bytes)
            if found.status is GetStatus.NO_MATCHED_MESSAGE and found.next_offset > queue_offset:
                queue_offset = found.next_offset
                await asyncio.sleep(0)
            elif found.status not in _NOTHING_YET:
                return found
            elif not await self.wait_for_async(
                topic, queue_id, queue_offset, max(0.0, (end_s - loop.time()) * 1000)
            ):
                self._check_open()  # its end ends waits too
                return found

    async def follow(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        filter: str | MessageFilter | None = None,  # noqa: A002 - as in get
        *,
        timeout_ms: float,
    ) -> AsyncIterator[Message]:
        """Yields the messages of a queue from ``queue_offset`` on, and then messages that are put later.

        Other tasks run after each read. Messages that cannot be read are skipped, as by :meth:`get`.

        Args:
            topic: The topic.
            queue_id: The queue.
            queue_offset: First queue offset; an offset before the first message starts at the first message.
            filter: As in :meth:`get`.
            timeout_ms: The longest wait for the next message; then the iteration ends. ``float("inf")``
                waits without a limit.

        Raises:
            InvalidArgumentError: An argument is of another type.
            ClosedError: The store was closed.
        """
        timeout_ms = as_timeout_ms("timeout_ms", timeout_ms)
        while True:
            found = self.get(topic, queue_id, queue_offset, filter=filter)
            if found.status not in _NOTHING_YET:
                for message in found:
                    yield message
                queue_offset = found.next_offset
            elif not await self.wait_for_async(topic, queue_id, queue_offset, timeout_ms):
                self._check_open()  # its end ends waits too
                return
            await asyncio.sleep(0)

    def refresh(self) -> int:
        """Reads new records of the log into a read-only store; returns their number."""
        self._check_open()
        return self._core.refresh()

    def close(self, *, force: bool = False) -> None:
        """Closes the store cleanly; a second call does nothing. Records that the caller holds stay valid.

        Args:
            force: Whether to close even if arrays of :meth:`queue` share memory with the store. The arrays
                stay valid, but change when the next owner of the files changes the files.

        Raises:
            StoreInUseError: Such arrays are alive; the store stays open. At the end of a ``with`` block the
                store is closed nevertheless.
            StoreFailedError: Puts could not be synced; the next open recovers.
        """
        if self._closed:
            return
        self._leases.close(force=force)  # first: if it raises, the store stays open as it is
        self._closed = True
        try:
            try:
                self._reads.close()
                self._tasks.drain()
            finally:
                self._core.close()
        finally:  # also after a failed sync, or an interrupt: the lock must not outlive the store
            try:
                self._tasks.close()
            finally:
                if self._lock is not None:
                    self._lock.release()
                if self._own_folder is not None:
                    # An open folder keeps its file system from being unmounted.
                    self._own_folder.close()

    def _forget_queues(self) -> None:
        self._reads.forget(self._core.log)
        self._key_memory.forget()


def _name_calls(store: type[MessageStore]) -> None:
    """Lets Python's errors about arguments name the store's class, not the base class that has the call."""
    for base in store.__mro__[1:]:
        for name, call in vars(base).items():
            if isinstance(call, FunctionType) and not name.startswith("_"):
                call.__qualname__ = f"{store.__name__}.{name}"


_name_calls(MessageStore)


def _length(name: str, size_bytes: int | None) -> int | None:
    return None if size_bytes is None else as_int(name, size_bytes, 1, MAX_I32)


def _root_of(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise refusal("path", path, "str or a path")
    if path == "":
        # Path("") is the current directory: an unset setting would make a store there.
        raise refusal("path", path, "the store's directory; . is the current one")
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

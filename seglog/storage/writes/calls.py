"""The calls of a store that append and read: declared here only.

:class:`PythonCalls` has the signatures and the documentation of all of them. With native kernels,
:data:`Calls` is a subclass of it in C: its methods enter the kernel at once, and call the methods here for
arguments that are not plain. Their signatures and docstrings are copied from these. So ``inspect``, ``help``,
``mock.patch`` and subclasses see real methods, and ``super().put`` uses the fast path too. The calls for
tasks in :mod:`seglog.storage.writes.async_calls` have the same parameters; a test checks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from seglog.storage.format.record.host import Host
from seglog.storage.kernels.calls.store_calls import with_native_calls
from seglog.storage.reads.fast_reads import FastReads
from seglog.storage.reads.get import MAX_TOTAL_BYTES, GetResult
from seglog.storage.reads.message_filter import MessageFilter
from seglog.storage.reads.queue_reader import QueueReader
from seglog.storage.reads.sequential_reads import DEFAULT_MAX_COUNT
from seglog.storage.writes.appender import Appends
from seglog.storage.writes.fast_path import NO_FAST_PATH, FastPath
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage


class PythonCalls:
    """The calls of a :class:`~seglog.storage.store.MessageStore` that append and read; for overriding."""

    __slots__ = ()  # the C subclass adds its own fields; MessageStore has all others

    _fast_path: FastPath = NO_FAST_PATH
    _appends: Appends
    _reads: FastReads
    _queue_reader: QueueReader

    def put(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
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
            InvalidArgumentError: An argument has another type or is out of range, or a key has a blank.
            InvalidNameError: The name of the topic or the number of the queue is not valid.
            MessageIllegalError: Body or properties are too large, or a property holds 0x01 or 0x02.
            FullError: No space; nothing was written.
            StoreError: The machine lacks something else, such as descriptors; nothing was written.
            ReadOnlyError: The store was opened for reading.
            ClosedError: The store was closed.
            StoreFailedError: The disk failed, now or earlier; nothing is acknowledged any more.
        """
        made = self._fast_path.try_put(topic, body, queue_id, tags, keys, properties, flag, durability)
        appends = self._appends
        if made is None:
            return appends.ensured(
                appends.put(topic, body, queue_id, tags, keys, properties, flag, durability)
            )
        if made.durability is Durability.SYNC:
            appends.ensure(made.phy_offset + made.size_bytes)
        return made

    def append(
        self,
        topic: str,
        queue_id: int,
        body: bytes | bytearray | memoryview,
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
        """Appends one message with encoded properties, as brokers do.

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
                in its DELAY says. A recovery that rebuilds the queue unit knows only those.

        Raises:
            As :meth:`put`.
        """
        appends = self._appends
        appended = appends.append(
            topic,
            queue_id,
            body,
            properties,
            tags_code,
            sys_flag,
            flag,
            born_timestamp_ms,
            born_host,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            durability,
            delay_ms,
        )
        return appends.ensured(appended)

    def put_batch(
        self,
        topic: str,
        messages: Sequence[NewMessage | bytes],
        *,
        queue_id: int = 0,
        durability: Durability | None = None,
    ) -> BatchResult:
        """Appends messages to one queue, contiguous in one file and with one store time.

        All are acknowledged or none; of a batch that a crash interrupts, a prefix may remain.

        Raises:
            InvalidArgumentError: There are none, or an argument has another type or is out of range.
            MessageIllegalError: One is too large, or all together are for one commit-log file.
            As :meth:`put`, for the rest.
        """
        appends = self._appends
        made = self._fast_path.try_put_batch(topic, messages, queue_id, durability)
        if made is None:
            made = appends.put_batch_again(topic, messages, queue_id, durability)
        if made is not None:
            if made.durability is Durability.SYNC:
                appends.ensure(made.phy_offset + made.size_bytes)
            return made
        records = appends.new_records(topic, queue_id, messages)
        return appends.ensured(appends.put_records(topic, queue_id, records, durability))

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
        """Appends messages as :meth:`put_batch` does, with encoded properties, as brokers do.

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
        appends = self._appends
        records = appends.raw_records(
            topic, queue_id, messages, sys_flag, born_timestamp_ms, born_host, reconsume_times
        )
        return appends.ensured(appends.put_records(topic, queue_id, records, durability))

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
            queue_offset: Where to start; outside of the queue the result says where to continue.
            max_count: Messages at most, 1 or more.
            filter: ``TagA || TagB``, ``*`` for all, or any :class:`MessageFilter`.
            max_bytes: Stored bytes at most; the first message always comes whole.

        Returns:
            Status, messages and the queue offset to ask for next. For a queue that never had a message the
            status is ``NO_MESSAGE_IN_QUEUE``; for one that no store can have, ``NO_MATCHED_LOGIC_QUEUE``.

        Raises:
            InvalidArgumentError: An argument has another type, ``max_count`` or ``max_bytes`` is below 1, or
                the filter names no tag.
            ClosedError: The store was closed.
            StoreError: A file of the queue or the log cannot be opened or read.
        """
        found = self._reads.try_get(topic, queue_id, queue_offset, max_count, filter, max_bytes)
        if found is not None:
            return found
        return self._queue_reader.get(topic, queue_id, queue_offset, max_count, filter, max_bytes)

    def _serve_natively(self, _fast_path: FastPath, _reads: object) -> bool:
        """Sets the native fast path and reads that the calls try first; returns whether there are any."""
        return False


Calls: TypeAlias = PythonCalls
if not TYPE_CHECKING:
    Calls = with_native_calls(PythonCalls)

"""The calls of a store that look up messages by physical offset, id or key, and queues and their ranges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

import numpy as np

from seglog.arguments import MAX_I64, as_choice, as_flag, as_int, as_text
from seglog.errors import CorruptError, NotFoundError
from seglog.storage.directory import IndexFile, list_index_files
from seglog.storage.files import Files, explain_os_error, explained
from seglog.storage.format.index.index_view import MAX_TIMESTAMP_MS
from seglog.storage.format.names import MAX_QUEUE_ID
from seglog.storage.format.queue import BatchUnits, Units
from seglog.storage.format.record import FILLER, MAGIC_V1, MAGIC_V2, Message, decode_message_id, is_tombstone
from seglog.storage.index.key_memory import KeyMemory
from seglog.storage.index.key_query import KeyQuery
from seglog.storage.index_check.index_chains import is_whole
from seglog.storage.kernels.decode import decode_message
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.reads.buffer_leases import Leases
from seglog.storage.reads.ext_codes import ExtCodes
from seglog.storage.reads.fast_reads import FastReads
from seglog.storage.reads.offset_by_time import Boundary
from seglog.storage.reads.open_queues import OpenQueue
from seglog.storage.reads.queue_view import QueueView
from seglog.storage.reads.readings import LogQueueReading, Readings
from seglog.storage.reads.record_ranges import Place
from seglog.storage.reads.snapshot_queue import SnapshotQueue
from seglog.storage.store_base import StoreBase, StoreCore
from seglog.storage.writes.values import QueueInfo
from seglog.text import shell_text

_UNITS_AT_ONCE: Final = 1 << 16


def _iter_units(queue: OpenQueue, first_offset: int, end_offset: int) -> Iterator[Units | BatchUnits]:
    """Yields the units of a range of a queue that are there; of a batch queue from the end backwards."""
    if isinstance(queue, ConsumeQueue | SnapshotQueue):
        start, end = max(first_offset, queue.min_offset), min(end_offset, queue.max_offset)
        while start < end:
            count = min(end - start, _UNITS_AT_ONCE)
            yield queue.units(start, count)
            start += count
        return
    index = queue.end_index
    while index > queue.first_index:
        count = min(index - queue.first_index, _UNITS_AT_ONCE)
        index -= count
        units = queue.units(index, count)
        begins = units["base_queue_offset"]
        yield units[(begins >= first_offset) & (begins < end_offset)]
        if begins[0] < first_offset:
            return


class Lookups(StoreBase):
    """Looks up messages and queues of an open store."""

    _reads: FastReads

    def __init__(self, path: Path, files: Files, core: StoreCore) -> None:
        super().__init__(path, files, core)
        self._leases = Leases(str(path))
        self._key_memory = KeyMemory()
        self._readings = Readings(ExtCodes(files, path))

    def queue(self, topic: str, queue_id: int) -> QueueView:
        """Returns a snapshot of a queue as numpy arrays; see :mod:`seglog.storage.reads.queue_view`.

        Raises:
            NotFoundError: The queue never had a message.
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
            NotFoundError: No record starts there, or the record is a tombstone.
        """
        self._check_open()
        if type(phy_offset) is not int:
            phy_offset = as_int("phy_offset", phy_offset, useful_to=MAX_I64)
        record = self._reads.record_at(phy_offset)
        if record is None:
            if phy_offset in self._core.log.withheld:
                raise NotFoundError(
                    f"the record at {phy_offset} is damaged, and what it was can be proven",
                    help=f"run `seglog repair {shell_text(self.path)}`",
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

    def record_at(self, phy_offset: int) -> bytes:
        """Returns the bytes of the record that starts at ``phy_offset``, verified.

        Raises:
            NotFoundError: As :meth:`message_at`.
        """
        message = self.message_at(phy_offset)
        with explained():
            record = self._record_at(message.phy_offset)
        if record is None:  # retention removed its file meanwhile
            raise NotFoundError(f"no message starts at {phy_offset}")
        return bytes(record)

    def query(
        self,
        topic: str,
        key: str,
        max_count: int = 64,
        *,
        begin_ms: int = 0,
        end_ms: int = MAX_TIMESTAMP_MS,
        by_tag: bool = False,
    ) -> list[Message]:
        """Returns the messages of a topic with a key or unique key, in log order.

        Args:
            topic: The topic.
            key: One of the message's KEYS, or its UNIQ_KEY.
            max_count: At most this many, the newest.
            begin_ms: Earliest store time.
            end_ms: Latest store time.
            by_tag: Whether ``key`` is the tag of messages instead. An index that RocketMQ before 5.4 created
                has no tags, so a query by tag finds nothing in it.

        Raises:
            InvalidArgumentError: ``max_count`` is below 1, or an argument has another type.
            ClosedError: The store was closed.
        """
        self._check_open()
        as_text("topic", topic)
        as_text("key", key)
        max_count = as_int("max_count", max_count, 1)
        begin_ms, end_ms = as_int("begin_ms", begin_ms), as_int("end_ms", end_ms)
        as_flag("by_tag", by_tag)
        holes, size = self._core.holes, self.geometry.segment_size_bytes
        with explained():
            indexed = self._core.indexed()
            lookup = KeyQuery(
                self.files,
                self.path,
                size,
                self._message_or_none,
                holes,
                indexed,
                self._key_memory,
                self._is_index_whole,
            )
            log = (max(0, self.min_phy_offset), self.max_phy_offset)
            return lookup.find(topic, key, max_count, (begin_ms, end_ms), log, by_tag=by_tag)

    def _is_index_whole(self, file: IndexFile) -> bool:
        """Returns whether the chains of an index file are whole, as far as no writer is at it."""
        if not self.read_only and not file.is_full:
            return True  # it was looked at by the opening, and is ours since
        return is_whole(self.files, file)

    def index_end(self) -> tuple[int, int]:
        """Returns store time and physical offset of the last record in the newest file of the key index.

        Both are 0 without a file. Records that are indexed during the call may be missing.
        """
        self._check_open()
        with explained():
            found, _damaged = list_index_files(self.files, self.path)
        if not found:
            return 0, 0
        return found[-1].header.end_timestamp_ms, found[-1].header.end_phy_offset

    def message_by_id(self, message_id: str) -> Message:
        """Returns the message of an offsetMsgId, which the results of puts have.

        Raises:
            InvalidArgumentError: The text is not an offsetMsgId.
            NotFoundError: No message is at its physical offset, or another broker stored it.
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

    def stored_bytes(self, topic: str, queue_id: int, first_offset: int, end_offset: int) -> int:
        """Returns how many bytes the records of a range of a queue have, as its units say.

        Messages that the queue no longer has do not count.

        Args:
            topic: The topic.
            queue_id: The queue.
            first_offset: Queue offset of the first message.
            end_offset: Queue offset after the last message.

        Raises:
            InvalidArgumentError: An offset is no integer.
            StoreError: A file of the queue cannot be read.
        """
        first_offset, end_offset = as_int("first_offset", first_offset), as_int("end_offset", end_offset)
        queue = self._queue_of(topic, queue_id)
        if queue is None:
            return 0
        with explained():
            return sum(
                int(units["size_bytes"].sum(dtype=np.int64))
                for units in _iter_units(queue, first_offset, end_offset)
            )

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary = "lower"
    ) -> int:
        """Returns the queue offset of the first message stored at or after a time.

        Args:
            topic: The topic.
            queue_id: The queue.
            timestamp_ms: The time.
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
            # Retention removed a file during the search: search again.
            if reading.is_superseded(self._core.queues.find(topic, queue_id), low + 1):
                return self.offset_by_time(topic, queue_id, timestamp_ms, boundary)
            raise explain_os_error(error) from error
        except OSError as error:
            raise explain_os_error(error) from error

    def topics(self) -> list[str]:
        """Returns the topics that have a queue, sorted as Java sorts strings."""
        return sorted({queue.topic for queue in self._core.queues}, key=_java_order)

    def queues(self) -> list[QueueInfo]:
        """Returns every queue and its range, sorted by topic (as Java sorts strings) and number."""
        queues = list(self._core.queues)
        order = {topic: _java_order(topic) for topic in {queue.topic for queue in queues}}
        queues.sort(key=lambda queue: (order[queue.topic], queue.queue_id))
        return [
            QueueInfo(queue.topic, queue.queue_id, queue.min_offset, queue.max_offset, queue.max_phy_offset)
            for queue in queues
        ]

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
        # Only with a right magic: a damaged size may be any number, and must not cause a read of a gigabyte.
        return log.read(phy_offset, size) if magic in {MAGIC_V1, MAGIC_V2} and size > 0 else None

    def _message_or_none(self, phy_offset: int) -> Message | None:
        try:
            return self.message_at(phy_offset)
        except NotFoundError:
            return None


def _java_order(text: str) -> bytes:
    """Returns a sort key that orders strings by UTF-16 code units, as Java does."""
    return text.encode("utf-16-be", "surrogatepass")

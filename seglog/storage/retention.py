"""The files of a store that retention may delete, their ages, and the call that deletes them.

Retention deletes whole files of the log, oldest first. A file is as old as its newest message, by the store's
own clock. RocketMQ takes the time of the file's last change from the file system instead, which a copy of the
store sets to now, and which a virtual clock cannot move. The first message behind a file gives the file's
age: it was stored when the file was full. The file of the last message always stays: its name alone shows
    where the log
continues.

Source: ``MappedFileQueue.java deleteExpiredFileByTime``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from seglog.arguments import as_int, as_text
from seglog.storage.format.record.record import FILLER, MAGIC_V1, MAGIC_V2, MIN_RECORD_BYTES, store_time_of
from seglog.storage.reads.get import RecordSource
from seglog.storage.reads.offset_by_position import offsets_from
from seglog.storage.store_base import StoreCore
from seglog.storage.writes.log_trimmer import Trimmed


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A file of the log that retention may delete.

    Attributes:
        first_phy_offset: Physical offset of its first byte.
        end_phy_offset: Physical offset of its end.
        newest_store_ms: No message in it was stored later.
    """

    first_phy_offset: int
    end_phy_offset: int
    newest_store_ms: int


class Retention:
    """The deletable files and topics of one open store.

    Args:
        core: The store.

    Thread rule: any thread.
    """

    def __init__(self, core: StoreCore) -> None:
        self._core = core

    @property
    def compaction_topics(self) -> frozenset[str]:
        """Topics that are served from logs of their own, which retention does not delete."""
        return self._core.queues.kinds.compaction

    def segments(self) -> list[LogSegment]:
        """Returns the files of the log that may be deleted, oldest first, up to a file of unknown age."""
        return list(self._iter_segments())

    def oldest(self) -> LogSegment | None:
        """Returns the file of the log to delete first, None if none may be deleted."""
        return next(self._iter_segments(), None)

    def _iter_segments(self) -> Iterator[LogSegment]:
        log, size = self._core.log, self._core.geometry.segment_size_bytes
        low, last = log.min_phy_offset, log.last_phy_offset
        if last < 0 or low < 0:
            return
        last_file = last - last % size
        for first in range(low, last_file, size):
            following = range(first + size, last_file + 1, size)
            times_ms = (_store_ms(log, at) for at in following)
            later_ms = next((ms for ms in times_ms if ms is not None), None)
            if later_ms is None:
                return
            # The larger of both: the clock may have been set back while the file was written.
            yield LogSegment(first, first + size, max(later_ms, _store_ms(log, first) or 0))

    def offsets_from(self, phy_offsets: Sequence[int]) -> Mapping[tuple[str, int], list[int]]:
        """Returns by topic and queue the queue offset of the first message at or behind each physical offset.

        Args:
            phy_offsets: Physical offsets, ascending.

        Raises:
            InvalidArgumentError: One of them is no integer.
        """
        phy_offsets = [as_int("phy_offsets", one) for one in phy_offsets]
        return offsets_from(self._core.queues, phy_offsets)

    def delete_before(self, phy_offset: int) -> Trimmed:
        """Deletes the files of the log that end at or below ``phy_offset``, and their queue and index files.

        Raises:
            InvalidArgumentError: ``phy_offset`` is no integer.
            ReadOnlyError: The store was opened for reading.
            StoreError: As ``LogTrimmer.trim``.
        """
        return self._core.trim(as_int("phy_offset", phy_offset))

    def delete_topic(self, topic: str) -> int:
        """Deletes the queues of a topic and returns their number; the log keeps the messages for now.

        If the topic is in ``config/topics.json``, the caller removes it there first: the next open rebuilds
        the queues of known topics. A new queue of the topic begins at 0.

        Raises:
            ReadOnlyError: The store was opened for reading.
            InvalidArgumentError: It is a compaction topic, or no text.
            StoreError: A file could not be deleted.
        """
        return self._core.drop_topic(as_text("topic", topic))


def _store_ms(log: RecordSource, phy_offset: int) -> int | None:
    """Returns the store time of the record at ``phy_offset``; None if no record can be read there."""
    head = log.read(phy_offset, MIN_RECORD_BYTES)
    if head is None or FILLER.struct.unpack_from(head)[1] not in {MAGIC_V1, MAGIC_V2}:
        return None
    return store_time_of(head)

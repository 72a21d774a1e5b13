"""Writes recovery points of a store that is open for writing, so that the next open walks less of the log.

A point is written in the background whenever the log has grown by a step, and at a clean close. A point is
the end of the log at one moment. First everything before that end is synced. Then the new blocks of the log
and the new units of the queues since the last point are checksummed, which takes a third of a millisecond per
MiB. Then the point's file is replaced. The append lock is held only to read the end of the log.

A store gets no point if a walk finds more than a point can record: holes, mended or deleted queues, or
queues that are not plain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from seglog.clock import Clock
from seglog.errors import CorruptError, FullError, StoreFailedError
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.files.files import Files
from seglog.storage.findings.code import Severity
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.ours.recovery_point import QueueSum, RecoveryPoint
from seglog.storage.format.ours.seal import SEAL_BLOCK_BYTES, checksum
from seglog.storage.format.queue.consume_queue import PRE_BLANK_BYTES, Units
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.queues.batch_queue import BatchQueue
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.seals import read_seal, seal_file, segment_path
from seglog.storage.small_files.recovery_point_file import remove_recovery_point, write_recovery_point
from seglog.storage.survey.store_survey import Survey
from seglog.storage.threads.background import Background

_PIECE_BYTES: Final = 8 << 20
"""Bytes read and summed while holding the GIL: 3 ms. Releasing it beside a busy writer costs 5 ms a time."""
_PIECE_UNITS: Final = 1 << 16
_STEP_PER_FILE: Final = 16
"""The point's file is rewritten only when the log has grown by this many times the size of the file."""
_MOST_AT_ONCE_BYTES: Final = 16 << 30
"""A longer stretch is not summed here: the seals of old segments, which are written anyway, have the sums."""
_TELLING: Final = frozenset({"queue-deleted", "topic-name", "record-queue-offset"})
"""Findings of stores that every open must walk whole."""


class LogEnd(NamedTuple):
    """The end of the log at a moment when every record before it has its unit.

    Attributes:
        phy_offset: Physical offset of the end.
        last_phy_offset: Physical offset of the last record.
        last_store_ms: Its store time.
        newest_store_ms: The latest store time of any record.
    """

    phy_offset: int
    last_phy_offset: int
    last_store_ms: int
    newest_store_ms: int


def can_have_points(found: Survey) -> bool:
    """Returns whether a point can record everything that a survey found in a store."""
    if found.holes or found.mended or found.batch_queues or found.kinds.special:
        return False
    if any(f.severity is Severity.LOSS or f.code in _TELLING for f in found.findings):
        return False
    if any(topic.startswith(LMQ_PREFIX) or "\ufffd" in topic for topic, _queue_id in found.queues):
        return False
    # In a queue that started over, or has records with a wrong queue offset, the next offset does not follow
    # from the last unit.
    ends = {key: state.max_offset for key, state in found.queues.items()}
    return all(ends.get(key) == end for key, end in found.scan.next_queue_offsets.items())


class PointKeeper:
    """The recovery points of one open store.

    Args:
        files: The file layer of the store.
        root: The store directory.
        clock: The time.
        geometry: Lengths of its files.
        found: The survey of the opening; None for a new store.
        step_bytes: Growth of the log from one point to the next.
        log_end: Returns the end of the log.
        flush: Syncs log and queues.
        queues: Iterates over all queues as they are at that moment.
        indexed: Returns the position of the index, as :attr:`KeyIndex.position`.
        mark: Writes our mark into the lock file.

    Thread rule: :meth:`start`, :meth:`stop` and :meth:`finish` belong to one owner.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        clock: Clock,
        geometry: StoreGeometry,
        found: Survey | None,
        step_bytes: int,
        *,
        log_end: Callable[[], LogEnd],
        flush: Callable[[], None],
        queues: Iterable[ConsumeQueue | BatchQueue],
        indexed: Callable[[], tuple[int, int]],
        mark: Callable[[], None],
    ) -> None:
        self._files = files
        self._root = root
        self._geometry = geometry
        self._step_bytes = step_bytes
        self._log_end = log_end
        self._flush = flush
        self._all_queues = queues
        self._indexed = indexed
        self._mark = mark
        self._background = Background(clock, "seglog-point", self._round)
        self._file_lock = threading.Lock()
        self._is_over = found is not None and not can_have_points(found)
        self._min_phy_offset = 0 if found is None else max(0, found.min_phy_offset)
        self._sums = _LogSums(files, root, geometry.segment_size_bytes, self._min_phy_offset)
        self._first_slots: dict[tuple[str, int], int] = {}
        self._queues: dict[tuple[str, int], _QueueSums] = {}
        self._end_phy_offset = self._min_phy_offset
        self._begins_at = self._min_phy_offset
        self._file_bytes = 0
        if found is not None:
            self._first_slots = {key: state.file_slot for key, state in found.queues.items()}
            if found.point is not None:
                self._go_on(found.point)

    def start(self, interval_ms: float) -> None:
        """Starts the thread, which checks every ``interval_ms`` whether the log has grown by a step."""
        self._background.start(interval_ms)

    def stop(self) -> None:
        """Returns once the thread has ended; waits for the piece that it sums."""
        self._background.stop()

    def finish(self) -> None:
        """Writes the point of a clean close, if little is left to sum; the caller has synced everything.

        Raises:
            OSError: The disk failed.
        """
        self._drop_expired()
        end = self._log_end()
        if self._is_over or end.phy_offset - self._min_phy_offset < self._step_bytes:
            return
        if end.phy_offset > self._end_phy_offset and self._is_little(end.phy_offset):
            try:
                self._write(end, lambda: True)
            except FullError:
                return  # the last point stays valid

    def expire(self, phy_offset: int) -> None:
        """Notes that the log begins at a segment now, for the next point."""
        self._begins_at = phy_offset

    def forget(self) -> None:
        """Removes the point and writes no more points: its record of the log is not true any more."""
        with self._file_lock:  # the thread may be writing a point
            self._is_over = True
            with suppress(OSError):  # if the point stays, the next read of the block finds the damage again
                remove_recovery_point(self._files, self._root)

    def _drop_expired(self) -> None:
        if self._begins_at > self._min_phy_offset:
            self._min_phy_offset = self._begins_at
            self._sums.expire(self._min_phy_offset)

    def _round(self) -> bool:
        self._drop_expired()
        end = self._log_end()
        grown = end.phy_offset - self._end_phy_offset
        if not self._is_over and grown >= max(self._step_bytes, _STEP_PER_FILE * self._file_bytes):
            try:
                if self._is_little(end.phy_offset):
                    self._flush()
                    self._write(end, self._is_wanted)
            except FullError:
                return True  # tries again in the next round
            except FileNotFoundError:
                return self._begins_at > self._min_phy_offset  # retention removed it: the next round knows
            except (OSError, StoreFailedError):
                return False  # the flusher reports the error
        return not self._is_over

    def _is_little(self, end: int) -> bool:
        return end - self._sums.next_phy_offset(end) <= _MOST_AT_ONCE_BYTES

    def _write(self, end: LogEnd, go_on: Callable[[], bool]) -> None:
        """Writes the point of a log end that is on the disk; gives up if ``go_on`` returns False."""
        if end.last_phy_offset < self._min_phy_offset:
            return  # the next open checks a point by the last record, and there is none
        tail_crc = self._sums.extend(end.phy_offset, go_on)
        if tail_crc is None or not self._sum_queues(end.phy_offset, go_on):
            return
        crcs = self._sums.crcs[:] if tail_crc < 0 else [*self._sums.crcs, tail_crc]
        indexed, index_end = self._indexed()
        point = RecoveryPoint(
            self._min_phy_offset,
            end.phy_offset,
            self._geometry.segment_size_bytes,
            self._geometry.queue_file_size_bytes,
            end.last_phy_offset,
            end.last_store_ms,
            end.newest_store_ms,
            min(indexed, end.phy_offset),
            index_end,
            self._sums.first_phy_offset,
            np.array(crcs, np.uint32),
            tuple(
                QueueSum(*key, sums.first_slot, sums.end_slot, tuple(sums.crcs), tuple(sums.last_places))
                for key, sums in sorted(self._queues.items())
                if sums.end_slot > sums.first_slot
            ),
        )
        with self._file_lock:
            if self._is_over:
                return  # a reader found damage meanwhile
            # The mark before the point: the next open believes a point only with our mark in the lock file.
            self._mark()
            self._file_bytes = write_recovery_point(self._files, self._root, point)
        self._end_phy_offset = end.phy_offset

    def _sum_queues(self, end_phy_offset: int, go_on: Callable[[], bool]) -> bool:
        """Sums the new units of all queues; returns False if a queue prevents a point, or at a stop."""
        for queue in self._all_queues:
            key = (queue.topic, queue.queue_id)
            if isinstance(queue, BatchQueue) or queue.topic.startswith(LMQ_PREFIX):
                self._is_over = True
                return False
            sums = self._queues.get(key)
            if sums is None:
                first = self._first_slots.get(key, 0)
                sums = self._queues[key] = _QueueSums(first, first)
            sums.expire(queue)
            while sums.end_slot < queue.max_offset:
                if not go_on():
                    return False
                left = sums.extend(queue, end_phy_offset)
                if left is None:
                    # If retention removed the files, the next round sums without them. Otherwise the units do
                    # not lead to neighbouring messages, or files are missing: no more points.
                    self._is_over = queue.file_offset <= sums.first_slot
                    return False
                if not left:
                    break
        return True

    def _is_wanted(self) -> bool:
        return not self._background.is_stopping

    def _go_on(self, point: RecoveryPoint) -> None:
        """Continues from the point at which the opening began its walk."""
        self._end_phy_offset = point.end_phy_offset
        self._sums.take(point)
        per_file = self._geometry.units_per_file
        for queue in point.queues:
            first = max(queue.first_slot, self._first_slots[queue.topic, queue.queue_id])
            gone = min(first // per_file - queue.first_slot // per_file, len(queue.crcs))
            if gone and first % per_file:
                continue  # retention removed the start of a file's sum: sum the queue again
            self._queues[queue.topic, queue.queue_id] = _QueueSums(
                first if gone else queue.first_slot,
                max(first, queue.end_slot),
                list(queue.crcs[gone:]),
                list(queue.last_places[gone:]),
            )


@dataclass(slots=True)
class _QueueSums:
    """The checksums of the units of one queue; see :class:`QueueSum`."""

    first_slot: int
    end_slot: int
    crcs: list[int] = field(default_factory=list)
    last_places: list[int] = field(default_factory=list)

    def expire(self, queue: ConsumeQueue) -> None:
        """Drops the sums of files that retention removed."""
        if queue.file_offset > self.first_slot:
            gone = queue.file_offset // queue.units_per_file - self.first_slot // queue.units_per_file
            del self.crcs[:gone]
            del self.last_places[:gone]
            self.first_slot = queue.file_offset
            self.end_slot = max(self.end_slot, self.first_slot)

    def extend(self, queue: ConsumeQueue, end_phy_offset: int) -> bool | None:
        """Sums the next piece of the units whose records are below ``end_phy_offset``.

        Returns:
            Whether more units may follow; None if the units do not lead to ascending records.
        """
        per_file = queue.units_per_file
        file_end = self.end_slot - self.end_slot % per_file + per_file
        units = queue.copied_units(self.end_slot, min(_PIECE_UNITS, file_end - self.end_slot))
        places = units["phy_offset"].astype(np.int64)
        count = int(np.argmax(places >= end_phy_offset)) if (places >= end_phy_offset).any() else len(places)
        if not _are_messages(units[:count], places[:count], self.last_places[-1] if self.last_places else -1):
            return None
        if count:
            number = self.end_slot // per_file - self.first_slot // per_file
            if number == len(self.crcs):
                self.crcs.append(0)
                self.last_places.append(-1)
            self.crcs[number] = checksum(units[:count].tobytes(), self.crcs[number], keeps_gil=True)
            self.last_places[number] = int(places[count - 1])
            self.end_slot += count
        return count == len(units)


def _are_messages(units: Units, places: np.ndarray[tuple[int], np.dtype[np.int64]], before: int) -> bool:
    sizes = units["size_bytes"]
    are_records = (sizes >= MIN_RECORD_BYTES) & (sizes < PRE_BLANK_BYTES)
    return bool(are_records.all() and (np.diff(places, prepend=before) > 0).all())


class _LogSums:
    """The checksums of the blocks of a log, for segments without seals.

    Attributes:
        first_phy_offset: Start of the first block; the segments below have seals.
        crcs: CRC-32C of each complete block from there on, segment by segment.
    """

    def __init__(self, files: Files, root: Path, segment_bytes: int, start: int) -> None:
        self._files = files
        self._root = root
        self._segment_bytes = segment_bytes
        self.first_phy_offset = start - start % segment_bytes
        self._next = self.first_phy_offset
        self.crcs: list[int] = []

    def next_phy_offset(self, end: int) -> int:
        """Returns the start of the first block below ``end`` that is neither summed nor in a seal."""
        self._drop_sealed(end)
        return self._next

    def take(self, point: RecoveryPoint) -> None:
        """Takes the block sums of a point, except for segments that do not exist any more."""
        per_segment = -(-self._segment_bytes // SEAL_BLOCK_BYTES)
        gone = max(0, self.first_phy_offset - point.blocks_from) // self._segment_bytes
        self.first_phy_offset = max(self.first_phy_offset, point.blocks_from)
        self.crcs = point.block_crcs[gone * per_segment :].tolist()
        end = point.end_phy_offset
        self._next = end - end % self._segment_bytes
        if end % self._segment_bytes:
            self._next += end % self._segment_bytes // SEAL_BLOCK_BYTES * SEAL_BLOCK_BYTES
            if end > self._next:
                self.crcs.pop()  # the last block was not complete: it is summed again

    def expire(self, phy_offset: int) -> None:
        """Drops the sums of segments below an offset, which were removed."""
        per_segment = -(-self._segment_bytes // SEAL_BLOCK_BYTES)
        while self.first_phy_offset + self._segment_bytes <= phy_offset:
            self.first_phy_offset += self._segment_bytes
            del self.crcs[:per_segment]
        self._next = max(self._next, self.first_phy_offset)

    def extend(self, end: int, go_on: Callable[[], bool]) -> int | None:
        """Sums the blocks up to ``end``.

        Returns:
            The CRC-32C of the part of the last block up to ``end``, -1 if ``end`` is a block's end; None if
            ``go_on`` returned False.
        """
        self._drop_sealed(end)
        while self._next < end:
            if not go_on():
                return None
            first = self._next - self._next % self._segment_bytes
            stop = min(end, first + self._segment_bytes, self._next + _PIECE_BYTES)
            crcs = self._sum(first, self._next, stop)
            is_part = stop == end and stop % self._segment_bytes and (stop - first) % SEAL_BLOCK_BYTES
            if is_part:
                self.crcs += crcs[:-1]
                self._next = stop - (stop - first) % SEAL_BLOCK_BYTES
                return crcs[-1]
            self.crcs += crcs
            self._next = stop
        return -1

    def _sum(self, first: int, start: int, end: int) -> list[int]:
        data = memoryview(np.empty(end - start, np.uint8))  # type: ignore[arg-type]  # numpy is a buffer
        with closing(self._files.open(self._root / segment_path(first), writable=False)) as handle:
            data = data[: handle.read_into(data, start - first)]
        blocks = range(0, len(data), SEAL_BLOCK_BYTES)
        return [checksum(data[at : at + SEAL_BLOCK_BYTES], keeps_gil=True) for at in blocks]

    def _drop_sealed(self, end: int) -> None:
        """Drops the sums of segments below ``end`` that have a seal now, if both agree."""
        per_segment = -(-self._segment_bytes // SEAL_BLOCK_BYTES)
        while self.first_phy_offset + self._segment_bytes <= end:
            if not self._files.exists(self._root / seal_file(self.first_phy_offset)):
                return
            known = self.crcs[:per_segment]
            is_summed = self._next >= self.first_phy_offset + self._segment_bytes
            try:
                seal = read_seal(self._files, self._root, self.first_phy_offset)
            except CorruptError:
                return
            sums = seal.blocks["crc32c"].tolist()
            if seal.segment_bytes != self._segment_bytes or known != sums[: len(known)]:
                return
            if self._next > self.first_phy_offset and not is_summed:
                return  # the segment is summed in part: dropped in a later round
            self.first_phy_offset += self._segment_bytes
            self._next = max(self._next, self.first_phy_offset)
            del self.crcs[:per_segment]

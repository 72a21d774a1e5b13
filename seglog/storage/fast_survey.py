"""A survey that begins at the recovery point: what opening a store needs, without a walk over all of it.

The result is that of a full survey, but for the rows of records below the point. That is so because the
point is used only where all of this holds; anything else, and the log is walked from its start:

* No RocketMQ started on the store since (the mark in ``lock``, see :mod:`seglog.storage.store_lock`). Only a
  writer that does not know the point could cut the log below it, and go on from there in such a way that
  no look at a few places shows it.
* Every segment below the point is there in full length, and its first block, and the last one before the
  point, have the checksums that the point or a seal has of them. The other blocks are held against theirs
  when they are first read (:mod:`seglog.storage.block_guard`): to read all of them here would be the walk
  again.
* The units of every queue that lead below the point have the checksums that the point has of them: 20
  bytes a message, read in bulk. What a queue's files hold is derived, and is never believed for itself;
  here it was held against the log when it was written.
* The store has plain queues only, and nothing ever was lost, mended or deleted in it; points are not
  written otherwise (:mod:`seglog.storage.point_keeper`).
* The log goes on behind the point as a log does: queue offsets of each queue grow from where the point has
  them. There the queues are worked out as in a full survey, each with the last two units below the point
  for context, since nothing in that work looks further back.

Retention may have taken segments and queue files meanwhile, if all they held has expired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from seglog.errors import CorruptError
from seglog.storage.block_guard import BlockGuard
from seglog.storage.checkpoint_file import read_checkpoint
from seglog.storage.derived_findings import LogEnd, checkpoint_findings, config_findings
from seglog.storage.dispatch import dispatch, topics_with_inner_batches
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format import properties as props
from seglog.storage.format.batch_consume_queue import BATCH_UNIT
from seglog.storage.format.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, Units
from seglog.storage.format.names import ABORT_FILE, BATCH_CONSUME_QUEUE, segment_file_name
from seglog.storage.format.record import Damage, examine
from seglog.storage.format.recovery_point import QueueSum, RecoveryPoint
from seglog.storage.format.seal import checksum
from seglog.storage.geometry import NOTHING_KNOWN
from seglog.storage.kernels.walk import ROW, Rows
from seglog.storage.known_topics import configured_kinds
from seglog.storage.lengths import find_lengths
from seglog.storage.log_facts import stated_place
from seglog.storage.log_files import LogFile, LogReader, list_log_files, place_log_files
from seglog.storage.log_scan import LogScan
from seglog.storage.lost_messages import lost_in_holes
from seglog.storage.message_counts import standing_losses
from seglog.storage.misnamed import find_misnamed
from seglog.storage.queue_files import QueueFiles, list_queues, read_units
from seglog.storage.queue_overlay import LogFacts, QueueState, behind_findings, is_message, overlay_queue
from seglog.storage.recovery_point_file import RECOVERY_POINT_FILE_NAME, read_recovery_point
from seglog.storage.survey import (
    Survey,
    add_lost_tail,
    check_is_store,
    empty_file_findings,
    living_queues,
    log_findings,
    log_start,
    queue_file_findings,
    tombstone_findings,
)

_CONTEXT_UNITS: Final = 2
_HEAD_BYTES: Final = 64 << 10
"""Of the last record: enough to tell whether its size can be right."""
_NO_UNITS: Final = np.empty(0, CQ_UNIT.dtype)
_NO_ROWS: Final = np.empty(0, ROW)

Key = tuple[str, int]


class _DoubtError(Exception):
    """Why a recovery point is not used; ends nothing but the attempt."""


def survey_from_point(root: Path, files: Files, *, is_marked: bool) -> Survey | Finding | None:
    """Surveys a store from its recovery point on.

    Args:
        root: The store directory; the caller holds its lock.
        files: Where it is.
        is_marked: Whether the lock still has our mark.

    Returns:
        The survey; why the point cannot be used, to be told; None if there is no point.

    Raises:
        NotAStoreError: Something else is there.
        UnsupportedStoreError: The store is of another kind.
    """
    if not check_is_store(files, root):
        return None
    try:
        point = read_recovery_point(files, root)
        if point is None:
            return None
        _demand(is_marked, "another engine started on the store since")
        return _Attempt(root, files, point).run()
    except CorruptError as error:
        why = str(error)
    except _DoubtError as doubt:
        why = str(doubt)
    return Finding("recovery-point-unused", RECOVERY_POINT_FILE_NAME, found=why)


@dataclass(frozen=True, slots=True)
class _Known:
    """A queue whose units below the point are as they must be.

    Attributes:
        begin_slot: Queue offset of the first unit that the files hold and that counts.
        end_slot: Queue offset behind the last unit that leads below the point.
        min_slot: Queue offset of the first of those whose record the log still has; ``end_slot`` if none.
    """

    begin_slot: int
    end_slot: int
    min_slot: int


class _Attempt:
    """One survey from a point."""

    def __init__(self, root: Path, files: Files, point: RecoveryPoint) -> None:
        self._root = root
        self._files = files
        self._point = point
        self._log_files, self._findings = list_log_files(files, root)
        self._queue_files = {(queue.topic, queue.queue_id): queue for queue in list_queues(files, root)}
        self._start = self._log_files[0].first_offset if self._log_files else -1

    def run(self) -> Survey:
        point = self._point
        checkpoint = read_checkpoint(self._files, self._root)  # before the walk: a writer may go on
        lengths = find_lengths(self._files, self._root, self._log_files, self._queue_files.values())
        geometry = lengths.geometry(NOTHING_KNOWN, self._root)
        found = (geometry.segment_size_bytes, geometry.queue_file_size_bytes)
        _demand(found == (point.segment_bytes, point.queue_file_bytes), "files have other lengths")
        self._check_kinds()
        self._log_files, misplaced = place_log_files(self._log_files, point.segment_bytes)
        self._findings += misplaced
        guard = BlockGuard(self._files, self._root, point)
        try:
            self._check_log(guard)
        finally:
            guard.close()
        known = {(queue.topic, queue.queue_id): self._check_queue(queue) for queue in point.queues}
        reader = LogReader(self._files, self._root, point.segment_bytes)
        scan = LogScan(reader, self._log_files, point.segment_bytes)
        scan.resume(
            point.end_phy_offset,
            (point.last_phy_offset, point.last_store_timestamp_ms),
            {key: queue.end_slot for key, queue in known.items() if queue.min_slot < queue.end_slot},
        )
        try:
            rows = scan.run()
        finally:
            scan.close()
        mode = "abnormal" if self._files.exists(self._root / ABORT_FILE) else "normal"
        result = Survey(
            self._root,
            lengths,
            geometry,
            mode,
            checkpoint,
            self._log_files,
            scan,
            rows,
            {},
            self._queue_files,
            self._findings,
            walked_from=point.end_phy_offset,
            guard=guard,
            point=point,
        )
        listed = len(result.findings)
        result.queues = self._overlay(result, known)
        result.lost_in_holes = lost_in_holes(result.holes, result.queues, {})
        result.record_crc = self._has_record_crc()
        add_lost_tail(result, reader)
        result.findings[listed:listed] = log_findings(
            self._log_files, geometry, scan.holes, scan.tail, scan.end_phy_offset, result.lost_in_holes
        )
        segment = result.geometry.segment_size_bytes
        log = (max(0, result.min_phy_offset), result.max_phy_offset)
        result.standing = standing_losses(self._files, result.root, segment, log, result.holes)
        result.findings += tombstone_findings(result.standing, segment)
        log_end = LogEnd(result.newest_store_ms, scan.last_store_ms, result.max_phy_offset)
        result.findings += checkpoint_findings(self._files, self._root, checkpoint, log_end, mode)
        result.findings += config_findings(self._files, self._root)
        for queue in self._queue_files.values():
            result.findings += queue_file_findings(queue, geometry.queue_file_size_bytes)
        for state in result.queues.values():
            state.findings += behind_findings(state, result.max_phy_offset, geometry.queue_file_size_bytes)
            with_files = self._queue_files.get((state.topic, state.queue_id))
            if with_files is not None:
                state.findings += empty_file_findings(self._files, with_files, state.max_offset)
            result.findings += state.findings
        return result

    def _check_kinds(self) -> None:
        kinds = configured_kinds(self._files, self._root)
        _demand(not kinds.special, "topics.json has topics that are not plain")
        batch_queues = list_queues(self._files, self._root, BATCH_CONSUME_QUEUE, BATCH_UNIT)
        _demand(next(batch_queues, None) is None, "there are batch queues")

    def _check_log(self, guard: BlockGuard) -> None:
        point = self._point
        start, end, segment = self._start, point.end_phy_offset, point.segment_bytes
        _demand(point.min_phy_offset <= start <= point.last_phy_offset, "the log starts elsewhere")
        _demand(point.last_phy_offset < end, "its last record is behind it")
        newest_ms, last_ms = point.newest_store_timestamp_ms, point.last_store_timestamp_ms
        _demand(start == point.min_phy_offset or newest_ms <= last_ms, "the newest record may have expired")
        below = [file for file in self._log_files if file.first_offset < end]
        whole = "segments below the point are missing or not in full length"
        # Counted before they are listed: the point may claim any length.
        _demand(segment > 0 and len(below) == (end - start + segment - 1) // segment, whole)
        wanted = [LogFile(first, segment) for first in range(start, end, segment)]
        _demand(below == wanted, whole)
        behind = [file.first_offset for file in self._log_files if file.first_offset >= end]
        # At the end of a segment the walk must find the next one where it is, or nothing at all.
        _demand(bool(end % segment) or not behind or behind[0] == end, "the segment behind it is missing")
        for first in behind:
            is_named = stated_place(self._files, self._root, segment_file_name(first)) in (None, first)
            _demand(is_named, f"the segment at {first} has another's name")
        if self._findings:
            _demand(not find_misnamed(self._files, self._root).moves, "a file of the log has another name")
        for first in range(start, end, segment):
            _demand(guard.is_sound(first, first + 1), f"the segment at {first} is not as it was")
        _demand(guard.is_sound(end - 1, end), "the log before the point is not as it was")

    def _check_queue(self, queue: QueueSum) -> _Known:
        """Holds the files of a queue against their checksums, and finds its first unit."""
        name = f"queue {queue.topic}/{queue.queue_id}"
        size = self._point.queue_file_bytes
        per_file = size // CQ_UNIT_BYTES
        files = self._queue_files.get((queue.topic, queue.queue_id))
        if files is None or not files.sizes:
            raise _DoubtError(f"{name} has no files")
        number_0 = queue.first_slot // per_file
        names = range(number_0 * size, queue.end_slot * CQ_UNIT_BYTES, size)
        _demand(0 <= queue.first_slot <= queue.end_slot, f"{name} ends before it begins")
        _demand(len(queue.crcs) == len(names), f"{name} has checksums of other files")
        there = min(files.sizes)
        _demand(there in names, f"{name} begins elsewhere")
        gone = (there - names[0]) // size
        _demand(not gone or queue.last_places[gone - 1] < self._start, f"{name} has lost files")
        _demand(all(files.sizes.get(first) == size for first in names[gone:]), f"{name} has lost files")
        begin = max(queue.first_slot, there // CQ_UNIT_BYTES)
        min_slot = queue.end_slot
        for number in range(gone, len(queue.crcs)):
            low = max(begin, (number_0 + number) * per_file)
            high = min(queue.end_slot, (number_0 + number + 1) * per_file)
            data = self._read_units(files, low, high)
            _demand(checksum(data) == queue.crcs[number], f"the units of {name} are not as they were")
            if min_slot == queue.end_slot and queue.last_places[number] >= self._start:
                places = np.frombuffer(data, CQ_UNIT.dtype)["phy_offset"]
                min_slot = low + int(np.searchsorted(places.astype(np.int64), self._start))
        return _Known(begin, queue.end_slot, min_slot)

    def _read_units(self, files: QueueFiles, low: int, high: int) -> bytes:
        """Returns the bytes of units of one file."""
        start = low * CQ_UNIT_BYTES
        position = start % self._point.queue_file_bytes
        handle = self._files.open(files.directory / segment_file_name(start - position), writable=False)
        try:
            buffer = bytearray((high - low) * CQ_UNIT_BYTES)
            count = handle.read_into(memoryview(buffer), position)
        finally:
            handle.close()
        return bytes(buffer[:count])

    def _has_record_crc(self) -> bool:
        """Returns whether the last record below the point has ``__CRC32#``."""
        point = self._point
        last = point.last_phy_offset
        reader = LogReader(self._files, self._root, point.segment_bytes)
        try:
            # A filler may lie between it and the point: it takes the rest of the segment.
            record = reader.read(last, min(_HEAD_BYTES, point.end_phy_offset - last))
            row = examine(record, 0, last, verify=False)
            if isinstance(row, Damage) and row.kind == "size" and len(record) == _HEAD_BYTES:
                size = min(int(str(row.found)), point.end_phy_offset - last)
                record = reader.read(last, max(size, 0))
                row = examine(record, 0, last, verify=False)
        finally:
            reader.close()
        if isinstance(row, Damage):
            raise _DoubtError("the last record before the point is none")
        end = row.size_bytes
        return bytes(record[end - props.CRC_PROPERTY_BYTES : end]).startswith(props.CRC_NAME)

    def _overlay(self, found: Survey, known: dict[Key, _Known]) -> dict[Key, QueueState]:
        """Works out what each queue must hold behind the point."""
        further = found.scan.inner.take_further()
        inner = (
            len(further)
            or found.scan.inner.ranges
            or topics_with_inner_batches(found.rows, found.scan.queues)
        )
        _demand(not inner, "records behind the point are of more than one message or queue")
        placed = dispatch(found.rows, further, found.scan.queues, ()).plain
        with_files = self._queue_files.keys()
        living, odd = living_queues(self._files, self._root, found.mode, placed.keys(), with_files)
        _demand(not odd, "there are deleted topics, or topics without folder")
        facts = LogFacts(
            max(0, log_start(found.log_files, found.max_phy_offset)),
            found.max_phy_offset,
            tuple(found.holes),
            found.rows["phy_offset"],
            found.rows["size_bytes"],
            found.geometry.queue_file_size_bytes,
        )
        return {
            key: self._overlay_queue(key, placed.get(key, _NO_ROWS), known.get(key), facts) for key in living
        }

    def _overlay_queue(self, key: Key, rows: Rows, known: _Known | None, facts: LogFacts) -> QueueState:
        files = self._queue_files.get(key)
        name = f"queue {key[0]}/{key[1]}"
        if known is None or files is None:
            first, stored = 0, _NO_UNITS
            if files is not None:
                first, stored = read_units(self._files, files, facts.file_size_bytes)
            self._check_beyond(name, stored)
            has_files = files is not None and bool(files.sizes)
            return overlay_queue(*key, rows, first, stored, facts, has_files=has_files)
        slots = rows["queue_offset"]
        follow = not len(rows) or (slots[0] >= known.end_slot and bool((np.diff(slots) > 0).all()))
        _demand(follow, f"{name} goes on with other queue offsets")
        first = max(known.begin_slot, known.end_slot - _CONTEXT_UNITS)
        stored = self._stored_from(files, first)
        context = stored[: known.end_slot - first]
        self._check_beyond(name, stored[len(context) :])
        there = context["phy_offset"] >= facts.min_phy_offset
        before = np.zeros(int(there.sum()), ROW)
        for field in ("phy_offset", "size_bytes", "tags_code"):
            before[field] = context[field][there]
        before["queue_offset"] = first + np.flatnonzero(there)
        state = overlay_queue(*key, np.concatenate([before, rows]), first, stored, facts, has_files=True)
        odd = state.mended or any(finding.code == "record-queue-offset" for finding in state.findings)
        _demand(not odd and state.max_offset >= known.end_slot, f"{name} has odd queue offsets")
        if known.min_slot < known.end_slot:
            state.min_offset = known.min_slot
        per_file = facts.file_size_bytes // CQ_UNIT_BYTES
        # Files of which retention took every message go, but for the one that the next unit belongs to.
        kept = min(state.min_offset, state.max_offset - 1) // per_file * per_file
        if max(known.begin_slot, kept) < state.first_slot:
            state.held_from = max(known.begin_slot, kept)
        return state

    def _check_beyond(self, name: str, units: Units) -> None:
        below = is_message(units) & (units["phy_offset"] < self._point.end_phy_offset)
        _demand(not below.any(), f"{name} has more units that lead below the point")

    def _stored_from(self, files: QueueFiles, slot: int) -> Units:
        """Returns the units of a queue's files from one on."""
        size = self._point.queue_file_bytes
        start = slot * CQ_UNIT_BYTES // size * size
        rest = replace(
            files, sizes={first: length for first, length in files.sizes.items() if first >= start}
        )
        first, units = read_units(self._files, rest, size)
        return units[slot - first :]


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _DoubtError(otherwise)

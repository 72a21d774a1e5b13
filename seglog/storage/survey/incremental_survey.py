"""A survey that begins at the recovery point, so that opening a store needs no walk over the whole log.

The result is that of a full survey, except that rows of records below the point are missing. The point is
used only if all of these conditions hold; otherwise the log is walked from its start:

* No RocketMQ started on the store since (the mark in ``lock``, see :mod:`seglog.storage.files.store_lock`).
  Only a writer that does not know the point could cut the log below it, and continue there in such a way
  that a check of a few places does not show it.
* Every segment below the point has its full length. The first block of every segment, and the last block
* before
  the point, have the checksums in the point or in a seal. The other blocks are checked when they are first
  read (:mod:`seglog.storage.seals.block_guard`): reading all of them here would be the walk again.
* The units of every queue that lead below the point have the checksums in the point: 20 bytes a message, read
* in
  bulk. Queue files are derived and not believed by themselves; these units were compared with the log when
  the point was written.
* The store has plain queues only, and nothing was ever lost, mended or deleted in it; otherwise no points are
  written (:mod:`seglog.storage.recovery.recovery_points`).
* Behind the point the queue offsets of each queue continue from those in the point. There the queues are
* derived
  as in a full survey, each with its last two units below the point as context; no rule looks further back.

Retention may have removed segments and queue files meanwhile, if all their messages have expired.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.directory import LogFile, LogReader, configured_kinds, find_misnamed
from seglog.storage.directory.log_facts import stated_place
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.ours.recovery_point import RecoveryPoint
from seglog.storage.format.record import Damage, examine
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.walk import Rows
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.scan.listed import ListedStore, list_whole, mode_of
from seglog.storage.scan.queue_overlays import Key, Overlays, overlay_queues
from seglog.storage.seals.block_guard import BlockGuard
from seglog.storage.small_files.recovery_point_file import RECOVERY_POINT_FILE_NAME, read_recovery_point
from seglog.storage.survey.point_queues import DoubtError, KnownQueue, PointQueues, demand, known_queues
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.dispatch import dispatch, topics_with_inner_batches
from seglog.storage.walk.log_records import has_record_crc
from seglog.storage.walk.log_scan import LogScan

_HEAD_BYTES: Final = 64 << 10
"""Bytes of the last record that are read first: enough to check whether its size can be right."""


def survey_from_point(root: Path, files: Files, *, is_marked: bool) -> Survey | Finding | None:
    """Surveys a store from its recovery point on.

    Args:
        root: The store directory; the caller holds its lock.
        files: The file layer of the store.
        is_marked: Whether the lock still has our mark.

    Returns:
        The survey; a finding with the reason if the point cannot be used; None if there is no point.

    Raises:
        NotAStoreError: The directory holds something else.
        UnsupportedStoreError: The store is of another kind.
    """
    try:
        point = read_recovery_point(files, root)
        if point is None:
            return None
        demand(is_marked, "another engine started on the store since")
        return _Attempt(root, files, point).run()
    except CorruptError as error:
        why = str(error)
    except DoubtError as doubt:
        why = str(doubt)
    return Finding("recovery-point-unused", RECOVERY_POINT_FILE_NAME, found=why)


class _Attempt:
    """One survey from a point."""

    def __init__(self, root: Path, files: Files, point: RecoveryPoint) -> None:
        self._root = root
        self._files = files
        self._point = point
        self._store: ListedStore = list_whole(files, root)

    def run(self) -> Survey:
        point, store = self._point, self._store
        found = (store.geometry.segment_size_bytes, store.geometry.queue_file_size_bytes)
        demand(found == (point.segment_bytes, point.queue_file_bytes), "files have other lengths")
        demand(
            not configured_kinds(self._files, self._root).special, "topics.json has topics that are not plain"
        )
        demand(not store.batch_files, "there are batch queues")
        guard = BlockGuard(self._files, self._root, point)
        with closing(guard):
            self._check_log(guard)
        known = known_queues(store, point, self._files)
        with closing(LogReader(self._files, self._root, point.segment_bytes)) as reader:
            scan = LogScan(reader, store.log_files, point.segment_bytes)
            scan.resume(
                point.end_phy_offset,
                (point.last_phy_offset, point.last_store_timestamp_ms),
                {key: queue.end_slot for key, queue in known.items() if queue.min_slot < queue.end_slot},
            )
            rows = scan.run()
            record_crc = has_record_crc(reader, rows[-1]) if len(rows) else self._has_record_crc(reader)
        store.mode = mode_of(self._files, self._root)
        queues = self._overlay(scan, rows, known)
        newest_ms = int(rows["store_timestamp_ms"].max(initial=point.newest_store_timestamp_ms))
        result = Survey.of(store, scan, rows, queues, self._files, record_crc=record_crc, newest_ms=newest_ms)
        result.point, result.guard = point, guard
        return result

    def _check_log(self, guard: BlockGuard) -> None:
        point = self._point
        start = self._store.log_files[0].first_offset if self._store.log_files else -1
        end, segment = point.end_phy_offset, point.segment_bytes
        demand(point.min_phy_offset <= start <= point.last_phy_offset, "the log starts elsewhere")
        demand(point.last_phy_offset < end, "its last record is behind it")
        newest_ms, last_ms = point.newest_store_timestamp_ms, point.last_store_timestamp_ms
        demand(start == point.min_phy_offset or newest_ms <= last_ms, "the newest record may have expired")
        below = [file for file in self._store.log_files if file.first_offset < end]
        whole = "segments below the point are missing or not in full length"
        # Counted before the list is built: a damaged point may claim any length.
        demand(segment > 0 and len(below) == (end - start + segment - 1) // segment, whole)
        wanted = [LogFile(first, segment) for first in range(start, end, segment)]
        demand(below == wanted, whole)
        behind = [file.first_offset for file in self._store.log_files if file.first_offset >= end]
        # If the point is at the end of a segment, the next segment must follow directly, or none at all.
        demand(bool(end % segment) or not behind or behind[0] == end, "the segment behind it is missing")
        for first in behind:
            is_named = stated_place(self._files, self._root, segment_file_name(first)) in (None, first)
            demand(is_named, f"the segment at {first} has another's name")
        if self._store.findings:
            demand(not find_misnamed(self._files, self._root).moves, "a file of the log has another name")
        for first in range(start, end, segment):
            demand(guard.is_sound(first, first + 1), f"the segment at {first} is not as it was")
        demand(guard.is_sound(end - 1, end), "the log before the point is not as it was")

    def _has_record_crc(self, reader: LogReader) -> bool:
        """Returns whether the last record below the point has ``__CRC32#``."""
        point = self._point
        last = point.last_phy_offset
        # A filler may be between the record and the point: it takes the rest of the segment.
        record = reader.read(last, min(_HEAD_BYTES, point.end_phy_offset - last))
        row = examine(record, 0, last, verify=False)
        if isinstance(row, Damage) and row.kind == "size" and len(record) == _HEAD_BYTES:
            size = min(int(str(row.found)), point.end_phy_offset - last)
            record = reader.read(last, max(size, 0))
            row = examine(record, 0, last, verify=False)
        if isinstance(row, Damage):
            raise DoubtError("the last record before the point is none")
        return props.ends_with_record_crc(record[: row.size_bytes])

    def _overlay(self, scan: LogScan, rows: Rows, known: dict[Key, KnownQueue]) -> Overlays:
        """Returns the right content of each queue behind the point."""
        further = scan.inner.take_further()
        inner = len(further) or scan.inner.ranges or topics_with_inner_batches(rows, scan.queues)
        demand(not inner, "records behind the point are of more than one message or queue")
        facts = LogFacts(
            max(0, self._store.log_start(scan.end_phy_offset)),
            scan.end_phy_offset,
            tuple(scan.holes),
            rows["phy_offset"],
            rows["size_bytes"],
            self._point.queue_file_bytes,
            self._store.mode == "normal",
        )
        placed = dispatch(rows, further, scan.queues, ()).plain
        seen = PointQueues(known, placed, facts, self._point.end_phy_offset, self._files)
        queues = overlay_queues(self._store, seen, (), self._files)
        demand(not queues.findings, "there are deleted topics, or topics without folder")
        return queues

"""Finds the end of a log without a walk over it, and messages after that end that its queues have units for.

The units of all queues show where the last message of the log is. If the record there is valid and belongs to
the unit, only the bytes after it are walked: records without a place in a queue, and records that a writer
has not put into queues yet. If there are no queues, or they do not fit the log, the last file that begins
with a record is walked; if that file is damaged, all files are walked, because then everything before the
damage decides what a record after it is (see :mod:`seglog.storage.walk.behind_damage`).

Queues may lead past the end of the log. Whether these units are a lost tail, or remains of an older life, is
decided by the rule of the doctor (:mod:`seglog.storage.overlay.lost_tail`), so that both report the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from seglog.logs import logger
from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.queue_units import Queue, StoreQueues
from seglog.storage.directory import MOST_RECORD_BYTES, Listing, LogFile, LogReader
from seglog.storage.files import Files
from seglog.storage.format.record import RecordRow
from seglog.storage.overlay import UNIT, BatchQueueState, LostMessages, QueueState, TailFacts, find_lost_tail
from seglog.storage.small_files import read_checkpoint
from seglog.storage.walk import MISSING, LogScan, RecordsBehind, record_at

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log.

    Attributes:
        phy_offset: Physical offset of the end.
        last_phy_offset: Physical offset of its last record; -1 for a log without records.
        holes: Stretches without records that a walk found.
        lost: Messages after the end that queues have units for.
        following: Next queue offset of each queue, from the records that were walked.
        is_walked: Whether a file had to be walked, because the queues do not show the end.
    """

    phy_offset: int
    last_phy_offset: int
    holes: tuple[Loss, ...]
    lost: tuple[Loss, ...]
    following: Mapping[tuple[str, int], int]
    is_walked: bool


def find_log_end(files: Files, root: Path, listing: Listing, queues: StoreQueues, *, verify: bool) -> LogEnd:
    """Returns the end of a log.

    Args:
        files: Access to the store.
        root: The store directory.
        listing: Its files.
        queues: Its queues, which were read before.
        verify: Whether to compute checksums.
    """
    with closing(LogReader(files, root, listing.geometry.segment_size_bytes)) as reader:
        scan = _behind_last_message(files, root, reader, listing, queues, verify=verify)
        is_walked, first = scan is None, 0
        if scan is None:
            scan, first = _last_file(reader, listing, verify=verify)
            if listing.log_files and listing.queue_files:
                _log.info("%s: the queues do not fit the log; a file of it was walked", root)
        holes = holes_of(scan, first)
        lost = lost_behind(reader, listing, queues, scan.end_phy_offset)
    following = dict(scan.next_queue_offsets)
    return LogEnd(scan.end_phy_offset, scan.last_phy_offset, holes, lost, following, is_walked)


def holes_of(scan: LogScan, first: int = 0) -> tuple[Loss, ...]:
    """Returns the holes that a walk found, without missing files.

    Args:
        scan: The walk.
        first: Holes that end before it do not count.
    """
    return tuple(
        Loss(hole.phy_offset, hole.end, hole.why, hole.expected, hole.found)
        for hole in scan.holes
        if hole.end > first and hole.why != MISSING.kind
    )


def lost_behind(
    reader: LogReader, listing: Listing, queues: StoreQueues, end_phy_offset: int
) -> tuple[Loss, ...]:
    """Returns the messages after the end of a log that queues have units for: none, or its lost tail.

    Args:
        reader: The log.
        listing: The store's files.
        queues: Its queues, which were read before the end was determined.
        end_phy_offset: The end.
    """
    last = queues.last_message
    if last is None or last[2] < end_phy_offset:
        return ()
    plain: dict[tuple[str, int], QueueState] = {}
    batch: dict[tuple[str, int], BatchQueueState] = {}
    for queue, end in queues.ends.items():
        number = queues.number_at(queue, end_phy_offset, end)
        if number >= end or not _continues(reader, listing, queues, queue, number):
            continue
        before = queues.units(queue, number - 1, number) if number else queues.units(queue, 0, 0)
        behind = queues.units(queue, number, end)
        if queue.is_batch:
            batch[queue.key] = BatchQueueState(*queue.key, number - 1, before, 0, [], False, behind)
        else:
            first = number - len(before)
            state = QueueState(*queue.key, first, before, first, [], agrees=False)
            state.behind, state.behind_slot = behind, number
            plain[queue.key] = state
    if not plain and not batch:
        return ()
    segment = listing.geometry.segment_size_bytes
    files_end = max((file.first_offset for file in listing.log_files), default=0) + segment
    facts = TailFacts(
        end_phy_offset,
        files_end,
        segment,
        is_record=RecordsBehind(reader, end_phy_offset, segment).has_record,
    )
    records = find_lost_tail(plain, batch, facts)
    if not records:
        return ()
    runs: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for record in records:
        runs[record.topic, record.queue_id] += [record.queue_offset, record.queue_offset + record.batch_size]
    messages = tuple(LostMessages(*key, range(min(run), max(run)), UNIT) for key, run in sorted(runs.items()))
    end = records[-1].end
    told = f"none behind {end_phy_offset}"
    return (Loss(end_phy_offset, end, "log-tail-lost", f"records up to {end}", told, messages),)


def _behind_last_message(
    files: Files, root: Path, reader: LogReader, listing: Listing, queues: StoreQueues, *, verify: bool
) -> LogScan | None:
    """Walks on from the last message in the queues; None if the queues do not fit the log."""
    last = queues.last_message
    if last is None:
        return None
    queue, number, phy_offset = last
    known = {file.first_offset for file in listing.log_files}
    segment = listing.geometry.segment_size_bytes
    if phy_offset - phy_offset % segment not in known:
        return None
    found = record_at(reader, phy_offset, verify=verify, most_bytes=MOST_RECORD_BYTES)
    if found is None or not _is_of(found[1], queue, queues.queue_offset(queue, number)):
        return None
    checkpoint = read_checkpoint(files, root)
    scan = LogScan(reader, listing.log_files, segment, verify=verify)
    following = {
        one.key: queues.queue_offset(one, end) for one, end in queues.ends.items() if one.key != queue.key
    }
    scan.resume(phy_offset, (-1, 0), following)
    _run(scan)
    # A log that was cut keeps the records of its older life after the end, and queues keep their units; those
    # records are older than the records that were written since.
    return None if scan.last_store_ms < checkpoint.physic_timestamp_ms else scan


def _is_of(row: RecordRow, queue: Queue, queue_offset: int) -> bool:
    topic = row.topic.decode("utf-8", "surrogateescape")
    return (topic, row.queue_id, row.queue_offset) == (*queue.key, queue_offset)


def _continues(reader: LogReader, listing: Listing, queues: StoreQueues, queue: Queue, number: int) -> bool:
    """Returns whether a queue fits the log up to a unit: not if the log has another message before it."""
    if not number:
        return True
    phy_offset = int(queues.units(queue, number - 1, number)["phy_offset"][0])
    if not listing.log_files or phy_offset < listing.log_files[0].first_offset:
        return True
    found = record_at(reader, phy_offset, most_bytes=MOST_RECORD_BYTES)
    return found is None or _is_of(found[1], queue, queues.queue_offset(queue, number - 1))


def _last_file(reader: LogReader, listing: Listing, *, verify: bool) -> tuple[LogScan, int]:
    """Walks the last file that begins with a record, or all files; returns the walk and the file's start."""
    log_files, segment = listing.log_files, listing.geometry.segment_size_bytes
    begun = next((file for file in reversed(log_files) if _begins(reader, file)), None)
    last = log_files if begun is None else log_files[log_files.index(begun) :]
    scan = _scanned(reader, last, segment, verify=verify)
    if scan.holes and len(last) < len(log_files):
        scan = _scanned(reader, log_files, segment, verify=verify)
    return scan, last[0].first_offset if last else 0


def _begins(reader: LogReader, file: LogFile) -> bool:
    return record_at(reader, file.first_offset, most_bytes=MOST_RECORD_BYTES) is not None


def _scanned(
    reader: LogReader, log_files: list[LogFile], segment_size_bytes: int, *, verify: bool
) -> LogScan:
    scan = LogScan(reader, log_files, segment_size_bytes, verify=verify)
    _run(scan)
    return scan


def _run(scan: LogScan) -> None:
    for _rows in scan.iter_rows():
        pass  # only the end of the walk matters
    scan.close()

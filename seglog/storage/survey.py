"""Reads a store directory, whole, and says what is in it and what opening it would serve; writes nothing.

Everything that looks at a store stands on this: ``open`` recovers by it, reading commands show it, the
doctor and the audit compare with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from seglog.errors import NotAStoreError, NotFoundError, UnsupportedStoreError
from seglog.storage.batch_overlay import (
    BatchQueueState,
    batch_behind_findings,
    overlay_batch_queue,
    units_of_rows,
)
from seglog.storage.block_guard import BlockGuard
from seglog.storage.checkpoint_file import read_checkpoint
from seglog.storage.compaction_copies import CommitRecords
from seglog.storage.compaction_files import (
    CompactionState,
    compacted_queues,
    infer_compaction_sizes,
    list_compaction_files,
    load_state,
    queue_ids,
)
from seglog.storage.derived_findings import LogEnd, checkpoint_findings, config_findings
from seglog.storage.dispatch import RowsByQueue, dispatch, topics_with_inner_batches
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format import names
from seglog.storage.format.batch_consume_queue import BATCH_UNIT
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.consume_queue import CQ_UNIT, CQ_UNIT_BYTES
from seglog.storage.format.record import Damage
from seglog.storage.format.recovery_point import RecoveryPoint
from seglog.storage.format.tombstone import LostRecord
from seglog.storage.gathered import chosen
from seglog.storage.geometry import NOTHING_KNOWN, FileSizes, StoreGeometry
from seglog.storage.holes_file import KnownHole
from seglog.storage.kernels.walk import ROW, Rows, are_dispatched
from seglog.storage.known_topics import TopicKinds, configured_kinds, known_topics
from seglog.storage.lengths import Lengths
from seglog.storage.listing import Listing, list_store, no_queue_length
from seglog.storage.log_files import LogFile, LogReader
from seglog.storage.log_gone import log_gone
from seglog.storage.log_records import RecordsBehind, has_record_crc
from seglog.storage.log_scan import Hole, LogScan, Progress
from seglog.storage.lost_messages import LostMessages, lost_in_holes, tell_lost
from seglog.storage.lost_tail import TailFacts, find_lost_tail, lost_findings, take_up
from seglog.storage.message_counts import MessageCounts, count_messages, lost_of_store, standing_losses
from seglog.storage.queue_files import QueueFiles, data_end, queue_directory, read_units
from seglog.storage.queue_overlay import LogFacts, QueueState, behind_findings, overlay_queue, rows_as_placed
from seglog.storage.scratch import Room

_KNOWN_NAMES = frozenset(
    {
        names.COMMIT_LOG,
        names.CONSUME_QUEUE,
        names.BATCH_CONSUME_QUEUE,
        names.INDEX,
        names.CHECKPOINT_FILE,
        names.ABORT_FILE,
        names.CONFIG,
        names.LOCK_FILE,
    }
)
_TELLING_NAMES = _KNOWN_NAMES - {names.CONFIG, names.LOCK_FILE, names.INDEX}
"""Names that other folders hardly have; ``config`` or ``index`` alone prove nothing."""
_ROCKSDB_NAME = re.compile(r"CURRENT|IDENTITY|(MANIFEST|OPTIONS)-\d+|\d+\.(sst|log)")
"""Files of a RocksDB in a folder that otherwise holds only folders (``RocksDBConsumeQueueStore.java``)."""
Offsets: TypeAlias = dict[tuple[str, int], frozenset[int]]
"""Queue offsets by topic and queue."""
_NO_UNITS = np.empty(0, CQ_UNIT.dtype)
_NO_BATCH_UNITS = np.empty(0, BATCH_UNIT.dtype)


@dataclass(slots=True)
class Survey:
    """A store as it was found.

    Attributes:
        root: The store directory.
        lengths: What is known of the lengths of its files.
        geometry: The lengths to go by.
        mode: ``normal`` after a clean stop, ``abnormal`` with an ``abort`` file (a crash, or a live writer).
        checkpoint: Its checkpoint.
        log_files: Commit-log files in order.
        scan: The walk, which can go on from its end.
        rows: ``(n,) ROW``, every valid record in log order.
        queues: What each queue must hold, by topic and number.
        queue_files: The files of each queue that has a directory.
        findings: Everything that is not as it should be.
        kinds: Topics of other kinds than the plain one.
        batch_queues: What each batch queue must hold.
        batch_files: The files of each batch queue that has a directory.
        compaction: What the own log of each compaction queue holds, as far as it counts.
        compaction_rows: ``(n,) ROW`` for each, what the commit log has of it.
        walked_from: Where the walk began; rows of records below are not here.
        guard: Checks records below that place before they are served; None if there are none.
        point: The recovery point that the walk began at.
        lost_in_holes: The messages that each of :attr:`holes` took.
        lost_tail: Records behind the log's end that only queue units know, in log order.
        standing: Stretches of the log of which earlier recoveries wrote down what was lost there.
        withheld: Where records lie that a reader steps over, as a repair would serve them otherwise.
        repairable: The queue offsets of these.
        record_crc: Whether the newest record has ``__CRC32#``; a log without records may as well begin.
    """

    root: Path
    lengths: Lengths
    geometry: StoreGeometry
    mode: str
    checkpoint: Checkpoint
    log_files: list[LogFile]
    scan: LogScan
    rows: Rows
    queues: dict[tuple[str, int], QueueState]
    queue_files: dict[tuple[str, int], QueueFiles]
    findings: list[Finding]
    kinds: TopicKinds = field(default_factory=TopicKinds)
    batch_queues: dict[tuple[str, int], BatchQueueState] = field(default_factory=dict)
    batch_files: dict[tuple[str, int], QueueFiles] = field(default_factory=dict)
    compaction: dict[tuple[str, int], CompactionState] = field(default_factory=dict)
    compaction_rows: RowsByQueue = field(default_factory=dict)
    walked_from: int = 0
    guard: BlockGuard | None = None
    point: RecoveryPoint | None = None
    lost_in_holes: list[list[LostMessages]] = field(default_factory=list)
    lost_tail: list[LostRecord] = field(default_factory=list)
    standing: list[KnownHole] = field(default_factory=list)
    withheld: frozenset[int] = frozenset()
    repairable: Offsets = field(default_factory=dict)
    record_crc: bool = True

    @property
    def min_phy_offset(self) -> int:
        """Where the log starts; -1 without any segment, as RocketMQ says it."""
        return log_start(self.log_files, self.max_phy_offset)

    @property
    def max_phy_offset(self) -> int:
        """Where the log ends: the place of the next record."""
        return self.scan.end_phy_offset

    @property
    def tombstone_timestamp_ms(self) -> int:
        """The store time of tombstones behind the log's end: that of the record before, and never 0."""
        return max(1, self.scan.last_store_ms)

    @property
    def newest_store_ms(self) -> int:
        """The latest store time of any record, 0 without records."""
        known_ms = 0 if self.point is None else self.point.newest_store_timestamp_ms
        return int(self.rows["store_timestamp_ms"].max(initial=known_ms))

    @property
    def mended(self) -> dict[int, int]:
        """Queue offset by physical offset of records that say another one of themselves."""
        # An LMQ queue holds records of other queues: what they say of themselves is not said of it.
        own = (state for state in self.queues.values() if not state.topic.startswith(names.LMQ_PREFIX))
        return {place: slot for state in own for place, slot in state.mended.items()}

    @property
    def holes(self) -> list[Hole]:
        """Unreadable stretches of the log."""
        return self.scan.holes

    @property
    def counts(self) -> MessageCounts:
        """How many messages its queues hold, and how many they lost."""
        lost = lost_of_store(self.lost_in_holes, self.queues.values(), self.lost_tail, self.standing)
        return count_messages([*self.queues.values(), *self.batch_queues.values()], lost)


def check_is_store(files: Files, root: Path) -> bool:
    """Returns whether there is a store at ``root``; False for an absent or empty directory.

    Raises:
        NotAStoreError: Something else is there.
        UnsupportedStoreError: A store of a kind that this engine does not read.
    """
    entries = files.list_dir(root)
    if not entries:
        if files.exists(root) and not files.is_dir(root):
            raise NotAStoreError(f"{root} is a file, not a store directory")
        return False
    found = {entry.name for entry in entries}
    ledgers = sorted(name for name in found if name.startswith("dledger-"))
    if ledgers:
        raise UnsupportedStoreError(
            f"{root} is a DLedger store ({ledgers[0]}/): its log is in another format"
        )
    for queues in (names.CONSUME_QUEUE, names.BATCH_CONSUME_QUEUE):
        if any(_ROCKSDB_NAME.fullmatch(entry.name) for entry in files.list_dir(root / queues)):
            raise UnsupportedStoreError(f"{root} keeps its queues in RocksDB (storeType=defaultRocksDB)")
    if found.isdisjoint(_TELLING_NAMES) and not found <= _KNOWN_NAMES:
        shown = ", ".join(sorted(found)[:4])
        raise NotAStoreError(f"{root} is no RocketMQ store: it holds {shown}, but no commitlog/")
    return True


def survey(
    root: Path,
    files: Files,
    *,
    verify: bool = True,
    progress: Progress | None = None,
    given: FileSizes = NOTHING_KNOWN,
) -> Survey:
    """Reads everything that decides what a store holds.

    Args:
        root: The store directory.
        files: Where it is.
        verify: Whether to check checksums; everything else is always checked.
        progress: Told how far the walk over the log is.
        given: Lengths of files that the caller knows.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: Its files prove another length than is given.
    """
    if not check_is_store(files, root):
        raise NotFoundError(f"there is no store at {root}")
    found = _survey(root, files, list_store(files, root, given, asks_queues=False), verify, progress)
    if found.lengths.are_queues_asked or _queues_agree(found):
        return found
    listing = list_store(files, root, given)
    if replace(listing.lengths, are_queues_asked=False) == found.lengths:
        return found
    return _survey(root, files, listing, verify, progress)


def _queues_agree(found: Survey) -> bool:
    """Returns whether the files of every queue say what the log says, and nothing else."""
    size = found.geometry.queue_file_size_bytes
    for key, queue in found.queue_files.items():
        last, state = max(queue.sizes, default=-1), found.queues.get(key)
        if last >= 0 and not (
            state is not None
            and state.agrees
            and last < state.max_offset * CQ_UNIT_BYTES
            and queue.sizes[last] <= size
        ):
            return False
    return True


def _survey(root: Path, files: Files, listing: Listing, verify: bool, progress: Progress | None) -> Survey:
    geometry, log_files, findings = listing.geometry, listing.log_files, listing.findings
    queue_files, batch_files = listing.queue_files, listing.batch_files
    checkpoint = read_checkpoint(files, root)  # before the walk: a writer may go on
    reader = LogReader(files, root, geometry.segment_size_bytes)
    scan = LogScan(reader, log_files, geometry.segment_size_bytes, verify=verify)
    room = Room()
    try:
        rows = scan.run(progress, room)
    finally:
        scan.close()
    result = Survey(
        root,
        listing.lengths,
        geometry,
        "abnormal" if files.exists(root / names.ABORT_FILE) else "normal",
        checkpoint,
        log_files,
        scan,
        rows,
        {},
        queue_files,
        findings,
        batch_files=batch_files,
    )
    listed = len(result.findings)
    _overlay(result, files, room)
    result.lost_in_holes = lost_in_holes(result.holes, result.queues, result.batch_queues)
    add_lost_tail(result, reader)
    result.findings[listed:listed] = log_findings(
        log_files, geometry, scan.holes, scan.tail, scan.end_phy_offset, result.lost_in_holes
    )
    log = (max(0, result.min_phy_offset), result.max_phy_offset)
    segment = geometry.segment_size_bytes
    result.standing = standing_losses(files, root, segment, log, result.holes)
    result.findings += tombstone_findings(result.standing, segment)
    if len(rows):
        times = rows["store_timestamp_ms"]
        log_end = LogEnd(int(times.max()), int(times[-1]), result.max_phy_offset)
        result.findings += checkpoint_findings(files, root, checkpoint, log_end, result.mode)
    result.findings += config_findings(files, root)
    if result.queues:
        result.findings += no_queue_length(geometry, result.findings)
    for queue in queue_files.values():
        if geometry.is_queue_file_known:
            result.findings += queue_file_findings(queue, geometry.queue_file_size_bytes)
    for queue in batch_files.values():
        result.findings += queue_file_findings(queue, geometry.batch_file_size_bytes)
    end = result.max_phy_offset
    for state in result.queues.values():
        state.findings += behind_findings(state, end, geometry.queue_file_size_bytes)
        with_files = queue_files.get((state.topic, state.queue_id))
        if with_files is not None:
            state.findings += empty_file_findings(files, with_files, state.max_offset)
        result.findings += state.findings
    for batch_state in result.batch_queues.values():
        batch_state.findings += batch_behind_findings(batch_state, end, geometry.batch_file_size_bytes)
        result.findings += batch_state.findings
    if not log_files and (gone := log_gone(files, root, [*queue_files.values(), *batch_files.values()])):
        result.findings = gone + [one for one in result.findings if one.code != "queue-beyond-log"]
    return result


def tombstone_findings(standing: Iterable[KnownHole], segment: int) -> list[Finding]:
    """Returns a note for each stretch that tombstones stand in for.

    Args:
        standing: What earlier recoveries wrote down of them.
        segment: Length of the log's files, in bytes.
    """
    findings: list[Finding] = []
    for known in standing:
        told = tell_lost(known.lost)
        finding = _log_finding("tombstones", known.phy_offset, segment, known.size_bytes, "", told)
        findings.append(replace(finding, messages=sum(len(one.offsets) for one in known.lost)))
    return findings


def log_start(log_files: list[LogFile], end_phy_offset: int) -> int:
    """Returns where a log with that end starts; -1 without any segment, as RocketMQ says it."""
    kept = [file.first_offset for file in log_files if file.first_offset < end_phy_offset]
    if not kept and end_phy_offset > 0:
        return end_phy_offset
    return min(kept, default=-1)


def _overlay(found: Survey, files: Files, room: Room) -> None:
    """Works out what each queue must hold, for queues of the log and queues that only have files."""
    further = found.scan.inner.take_further()
    found.kinds = _topic_kinds(found, files)
    placed = dispatch(found.rows, further, found.scan.queues, found.kinds.batch, room)
    for queues, with_files, folder in (
        (placed.plain, found.queue_files, names.CONSUME_QUEUE),
        (placed.batch, found.batch_files, names.BATCH_CONSUME_QUEUE),
    ):
        keys, findings = living_queues(
            files, found.root, found.mode, queues.keys(), with_files.keys(), folder
        )
        found.findings += findings
        for key in queues.keys() - set(keys):
            del queues[key]
    in_queues = chosen(found.rows, are_dispatched, room)
    facts = LogFacts(
        max(0, found.min_phy_offset),
        found.max_phy_offset,
        tuple(found.holes),
        in_queues["phy_offset"],
        in_queues["size_bytes"],
        found.geometry.queue_file_size_bytes,
    )
    found.queues = _overlay_plain(found, files, placed.plain, facts, room)
    batch_facts = replace(facts, file_size_bytes=found.geometry.batch_file_size_bytes)
    found.batch_queues = _overlay_batch(found, files, placed.batch, batch_facts)
    found.compaction_rows = {
        key: rows_as_placed(rows, found.queues[key])
        for key, rows in placed.plain.items()
        if key[0] in found.kinds.compaction
    }
    _load_compaction(found, files)


def add_lost_tail(found: Survey, reader: LogReader) -> None:
    """Takes up what the queues know of records behind the end of the log."""
    if not found.log_files:
        return
    segment = found.geometry.segment_size_bytes
    try:
        if len(found.rows):
            found.record_crc = has_record_crc(reader, found.rows[-1])
        facts = TailFacts(
            found.max_phy_offset,
            max(file.first_offset for file in found.log_files) + segment,
            segment,
            found.record_crc,
            RecordsBehind(reader, found.max_phy_offset, segment).has_record,
        )
        found.lost_tail = find_lost_tail(found.queues, found.batch_queues, facts)
    finally:
        reader.close()
    take_up(found.lost_tail, found.queues, found.batch_queues, facts, found.tombstone_timestamp_ms)
    found.findings += lost_findings(found.lost_tail, found.max_phy_offset, segment)


def _load_compaction(found: Survey, files: Files) -> None:
    keys = {key for key in found.queues if key[0] in found.kinds.compaction}
    keys |= {
        (topic, number) for topic in found.kinds.compaction for number in queue_ids(files, found.root, topic)
    }
    listed = [list_compaction_files(files, found.root, *key) for key in sorted(keys)]
    sizes = infer_compaction_sizes(listed)
    compacted = compacted_queues(files, found.root)
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        for queue in listed:
            key = (queue.topic, queue.queue_id)
            # What retention took from the commit log cannot be made again: then what is there must do.
            may_have_gaps = key in compacted or found.min_phy_offset > 0
            known = found.queues.get(key)
            end_offset = None if known is None else known.max_offset
            hints = None if known is None else (known.first_slot, known.units)
            records = None if hints is None else CommitRecords(files, found.root, reader, key, *hints)
            found.compaction[key] = load_state(
                files, queue, sizes, compacted=may_have_gaps, end_offset=end_offset, records=records
            )


def _topic_kinds(found: Survey, files: Files) -> TopicKinds:
    """Returns the kinds by directory, attribute and record; the directories of a topic are believed first."""
    configured = configured_kinds(files, found.root)
    told = configured.batch | topics_with_inner_batches(found.rows, found.scan.queues)
    return replace(configured, batch=batch_topics(told, found.queue_files, found.batch_files))


def batch_topics(
    told: Collection[str],
    with_files: Collection[tuple[str, int]],
    with_batch_files: Collection[tuple[str, int]],
) -> frozenset[str]:
    """Returns the topics that have batch queues; directories are believed before anything else.

    Args:
        told: Topics that are said to have some, by attribute or by inner batches in the log.
        with_files: Topic and number of every plain queue that has a directory.
        with_batch_files: Topic and number of every batch queue that has one.
    """
    plain = {topic for topic, _queue_id in with_files}
    return frozenset(topic for topic, _queue_id in with_batch_files) | (frozenset(told) - plain)


def _overlay_plain(
    found: Survey, files: Files, rows: RowsByQueue, facts: LogFacts, room: Room
) -> dict[tuple[str, int], QueueState]:
    states: dict[tuple[str, int], QueueState] = {}
    for topic, queue_id in sorted({*rows, *found.queue_files}):
        if topic in found.kinds.batch:
            continue
        queue = found.queue_files.get((topic, queue_id))
        first_slot, stored = 0, _NO_UNITS
        if queue is not None:
            first_slot, stored = read_units(files, queue, facts.file_size_bytes, room)
        states[topic, queue_id] = overlay_queue(
            topic,
            queue_id,
            rows.get((topic, queue_id), np.empty(0, ROW)),
            first_slot,
            stored,
            facts,
            has_files=queue is not None and bool(queue.sizes),
            room=room,
        )
    return states


def _overlay_batch(
    found: Survey, files: Files, rows: RowsByQueue, facts: LogFacts
) -> dict[tuple[str, int], BatchQueueState]:
    states: dict[tuple[str, int], BatchQueueState] = {}
    for topic, queue_id in sorted({*rows, *found.batch_files}):
        queue = found.batch_files.get((topic, queue_id))
        first_index, stored = 0, _NO_BATCH_UNITS
        if queue is not None:
            first_index, stored = read_units(files, queue, facts.file_size_bytes)
        states[topic, queue_id] = overlay_batch_queue(
            topic,
            queue_id,
            units_of_rows(rows.get((topic, queue_id), np.empty(0, ROW)), found.scan.inner.ranges),
            first_index,
            stored,
            facts,
            has_files=queue is not None and bool(queue.sizes),
        )
    return states


def living_queues(
    files: Files,
    root: Path,
    mode: str,
    in_log: Collection[tuple[str, int]],
    with_files: Collection[tuple[str, int]],
    folder: str = names.CONSUME_QUEUE,
) -> tuple[list[tuple[str, int]], list[Finding]]:
    """Returns which queues a store has, sorted, and findings about those that do not count.

    Args:
        files: Where the store is.
        root: The store directory.
        mode: ``normal`` or ``abnormal``, as :attr:`Survey.mode`.
        in_log: Topic and number of every queue of which the log has a record with a place in it.
        with_files: Topic and number of every queue that has a directory.
        folder: The one that queues of their kind share.
    """
    findings: list[Finding] = []
    # After a crash the topic table may be behind the log; then every queue of the log counts.
    known = known_topics(files, root) if mode == "normal" else None
    living: list[tuple[str, int]] = []
    for topic, queue_id in sorted({*in_log, *with_files}):
        if not names.can_name_directory(topic):
            findings.append(Finding("topic-name", names.COMMIT_LOG, found=repr(topic)))
            continue
        is_known = known is None or topic in known or topic.startswith(names.LMQ_PREFIX)
        if not is_known and (topic, queue_id) not in with_files:
            findings.append(Finding("queue-deleted", queue_directory(topic, queue_id, folder)))
        else:
            living.append((topic, queue_id))
    return living, findings


def log_findings(
    log_files: list[LogFile],
    geometry: StoreGeometry,
    holes: list[Hole],
    tail: Damage | None,
    end_phy_offset: int,
    lost: Sequence[Sequence[LostMessages]] = (),
) -> list[Finding]:
    """Returns what is not as it should be about a log that was walked to its end.

    Args:
        log_files: Its files.
        geometry: Their length.
        holes: What the walk stepped over.
        tail: What is wrong at its end.
        end_phy_offset: Where that is.
        lost: What each of the holes took, as far as anybody asked.
    """
    segment = geometry.segment_size_bytes
    findings: list[Finding] = []
    for hole, messages in zip(holes, lost or [()] * len(holes), strict=True):
        code = "log-file-missing" if hole.why == "missing-file" else "log-hole"
        told = "; ".join(text for text in (hole.found, tell_lost(messages)) if text)
        finding = _log_finding(code, hole.phy_offset, segment, hole.size_bytes, hole.expected, told)
        findings.append(replace(finding, messages=sum(len(one.offsets) for one in messages)))
    if tail is not None:
        findings.append(
            _log_finding("log-torn-tail", end_phy_offset, segment, 0, str(tail.expected), str(tail.found))
        )
    for file in log_files:
        if file.size_bytes != segment and geometry.is_segment_known:
            findings.append(
                _log_finding(
                    "log-file-size", file.first_offset, segment, 0, str(segment), str(file.size_bytes)
                )
            )
        elif file.first_offset > end_phy_offset:
            findings.append(_log_finding("log-spare", file.first_offset, segment, 0, "", ""))
    return findings


def _log_finding(code: str, phy_offset: int, segment: int, size: int, expected: str, got: str) -> Finding:
    position = phy_offset % segment
    file = f"{names.COMMIT_LOG}/{names.segment_file_name(phy_offset - position)}"
    return Finding(code, file, position, size, expected, got)


def queue_file_findings(queue: QueueFiles, file_size_bytes: int) -> list[Finding]:
    """Returns what is not as it should be about the names and lengths of a queue's files."""
    wrong = [
        Finding(
            "queue-file-size",
            f"{queue.name}/{names.segment_file_name(first)}",
            expected=str(file_size_bytes),
            found=str(size),
        )
        for first, size in sorted(queue.sizes.items())
        if size != file_size_bytes
    ]
    return wrong + [Finding("queue-file-stray", f"{queue.name}/{name}") for name in queue.strays]


def empty_file_findings(files: Files, queue: QueueFiles, max_offset: int) -> list[Finding]:
    """Returns a finding for each file of a plain queue that begins behind its last unit and holds none.

    RocketMQ takes the first unit of its last file without a look (``ConsumeQueue.java
    truncateDirtyLogicFiles``), so one of zeros counts as a message.
    """
    findings: list[Finding] = []
    for first, size in sorted(queue.sizes.items()):
        if not size or first < max_offset * queue.layout.size_bytes:
            continue
        file = f"{queue.name}/{names.segment_file_name(first)}"
        handle = files.open(queue.directory / names.segment_file_name(first), writable=False)
        try:
            if not data_end(handle, queue.layout.size_bytes):
                findings.append(Finding("queue-file-empty", file, 0, 0, "a unit", "zeros"))
        finally:
            handle.close()
    return findings

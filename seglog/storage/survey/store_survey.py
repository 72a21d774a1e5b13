"""Reads a whole store directory and reports its content and the messages that opening it would serve.

A survey writes nothing. It walks the log in one go and keeps a row of 44 bytes for every record. ``open``
recovers by it, reading commands show it, and a repair compares with it. An audit
(:mod:`seglog.storage.audit`) draws the same conclusions from a walk that can be divided over threads or
machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from seglog.storage.compaction.copies import CommitRecords
from seglog.storage.compaction.files import (
    CompactionState,
    compacted_queues,
    infer_compaction_sizes,
    list_compaction_files,
    load_state,
    queue_ids,
)
from seglog.storage.directory import NOTHING_KNOWN, FileSizes, LogReader
from seglog.storage.directory.broker_topics import TopicKinds, configured_kinds
from seglog.storage.files.files import Files
from seglog.storage.format import names
from seglog.storage.format.ours.recovery_point import RecoveryPoint
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from seglog.storage.format.record.tombstone import LostRecord
from seglog.storage.kernels.walk import QueueTable, Rows, are_dispatched
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.overlay.lost_messages import LostMessages, Offsets
from seglog.storage.overlay.queue_overlay import QueueState, rows_as_placed
from seglog.storage.scan.conclusion import WalkedLog, conclude
from seglog.storage.scan.doubt import earlier_doubt
from seglog.storage.scan.holes_file import KnownHole
from seglog.storage.scan.listed import ListedStore, list_whole, mode_of
from seglog.storage.scan.message_counts import MessageCounts, count_messages, lost_of_store
from seglog.storage.scan.queue_overlays import Key, Overlays, batch_topics, overlay_queues
from seglog.storage.scan.replaced_log import ReplacedLog
from seglog.storage.seals.block_guard import BlockGuard
from seglog.storage.segments.scratch import Room
from seglog.storage.survey.row_queues import RowQueues
from seglog.storage.walk import Hole, LogScan, Progress
from seglog.storage.walk.dispatch import RowsByQueue, dispatch, topics_with_inner_batches
from seglog.storage.walk.growable_rows import chosen
from seglog.storage.walk.log_records import has_record_crc


@dataclass(slots=True)
class Survey(ListedStore):
    """The state of a store.

    Attributes:
        scan: The walk, which can continue from its end.
        rows: ``(n,) ROW``, every valid record in log order.
        queues: The right content of each queue, by topic and number.
        batch_queues: The right content of each batch queue.
        lost_in_holes: The messages that were in each of :attr:`holes`.
        lost_tail: Records behind the end of the log that only queue units prove, in log order.
        standing: Stretches of the log whose losses earlier recoveries have written down.
        replaced: The files of the log that were replaced.
        record_crc: Whether the newest record has ``__CRC32#``; true for a log without records.
        kinds: Topics that are not plain.
        compaction: The valid content of the own log of each compaction queue.
        compaction_rows: ``(n,) ROW`` for each compaction queue, its records in the commit log.
        point: The recovery point at which the walk began; rows of records below it are missing.
        guard: Checks records below that point before they are served; None without a point.
        withheld: Physical offsets of records that a reader skips, because a repair would change them.
        repairable: The queue offsets of these records.
    """

    scan: LogScan
    rows: Rows
    queues: dict[Key, QueueState]
    batch_queues: dict[Key, BatchQueueState]
    lost_in_holes: list[list[LostMessages]]
    lost_tail: list[LostRecord]
    standing: list[KnownHole]
    replaced: ReplacedLog
    record_crc: bool
    kinds: TopicKinds = field(default_factory=TopicKinds)
    compaction: dict[Key, CompactionState] = field(default_factory=dict)
    compaction_rows: RowsByQueue = field(default_factory=dict)
    point: RecoveryPoint | None = None
    guard: BlockGuard | None = None
    withheld: frozenset[int] = frozenset()
    repairable: Offsets = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        store: ListedStore,
        scan: LogScan,
        rows: Rows,
        queues: Overlays,
        files: Files,
        *,
        record_crc: bool,
        newest_ms: int | None,
    ) -> Survey:
        """Returns the survey that follows from a walk.

        Args:
            store: The listing of the store.
            scan: The walk.
            rows: The records that the walk found.
            queues: The queues.
            files: The file layer of the store.
            record_crc: As :attr:`record_crc`.
            newest_ms: The latest store time of any record, None without records.
        """
        log = WalkedLog(scan.holes, scan.tail, scan.end_phy_offset, newest_ms, scan.last_store_ms, record_crc)
        found = conclude(store, log, queues, files)
        return cls(
            store.root,
            store.lengths,
            store.geometry,
            store.mode,
            store.checkpoint,
            store.log_files,
            store.queue_files,
            store.batch_files,
            store.rocksdb,
            found.findings,
            scan,
            rows,
            queues.plain,
            queues.batch,
            found.lost_in_holes,
            found.lost_tail,
            found.standing,
            found.replaced,
            record_crc,
        )

    @property
    def numbers(self) -> QueueTable:
        """The queues by the numbers that rows have for them."""
        return self.scan.queues

    @property
    def walked_from(self) -> int:
        """Physical offset at which the walk began; rows of records below it are missing."""
        return 0 if self.point is None else self.point.end_phy_offset

    @property
    def min_phy_offset(self) -> int:
        """Physical offset of the log's first byte; -1 without any segment, as in RocketMQ."""
        return self.log_start(self.max_phy_offset)

    @property
    def max_phy_offset(self) -> int:
        """End of the log: the physical offset of the next record."""
        return self.scan.end_phy_offset

    @property
    def tombstone_timestamp_ms(self) -> int:
        """The store time of tombstones behind the end of the log: that of the last record, and never 0."""
        return max(1, self.scan.last_store_ms)

    @property
    def newest_store_ms(self) -> int:
        """The latest store time of any record, 0 without records."""
        known_ms = 0 if self.point is None else self.point.newest_store_timestamp_ms
        return int(self.rows["store_timestamp_ms"].max(initial=known_ms))

    @property
    def mended(self) -> dict[int, int]:
        """The right queue offset by physical offset, for records whose own field has a wrong one."""
        # Without LMQ queues: their records belong to other queues, whose offsets the fields of the records
        # have.
        own = (state for state in self.queues.values() if not state.topic.startswith(names.LMQ_PREFIX))
        return {place: slot for state in own for place, slot in state.mended.items()}

    @property
    def all_queues(self) -> Mapping[Key, QueueState | BatchQueueState]:
        """Its plain and its batch queues."""
        return {**self.queues, **self.batch_queues}

    @property
    def holes(self) -> list[Hole]:
        """Unreadable stretches of the log."""
        return self.scan.holes

    @property
    def counts(self) -> MessageCounts:
        """Numbers of messages that its queues hold and that they lost."""
        lost = lost_of_store(self.lost_in_holes, self.all_queues.values(), self.lost_tail, self.standing)
        counts = count_messages([*self.queues.values(), *self.batch_queues.values()], lost)
        return replace(counts, earlier=earlier_doubt(self.standing))


def survey(
    root: Path,
    files: Files,
    *,
    verify: bool = True,
    progress: Progress | None = None,
    given: FileSizes = NOTHING_KNOWN,
) -> Survey:
    """Surveys a whole store.

    Args:
        root: The store directory.
        files: The file layer of the store.
        verify: Whether to check checksums; everything else is always checked.
        progress: Called with the progress of the walk over the log.
        given: Lengths of files that the caller knows.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: The directory holds something else.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: Its files prove another length than is given.
    """
    found = _survey(list_whole(files, root, given, asks_queues=False), files, progress, verify=verify)
    if found.lengths.are_queues_asked or _queues_agree(found):
        return found
    store = list_whole(files, root, given)
    if replace(store.lengths, are_queues_asked=False) == found.lengths:
        return found
    return _survey(store, files, progress, verify=verify)


def _queues_agree(found: Survey) -> bool:
    """Returns whether the files of every queue agree with the log, and hold nothing else."""
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


def _survey(store: ListedStore, files: Files, progress: Progress | None, *, verify: bool) -> Survey:
    root, segment = store.root, store.geometry.segment_size_bytes
    room = Room()
    with closing(LogReader(files, root, segment)) as reader:
        scan = LogScan(reader, store.log_files, segment, verify=verify)
        with closing(scan):
            rows = scan.run(progress, room)
        record_crc = has_record_crc(reader, rows[-1]) if len(rows) else True
    store.mode = mode_of(files, root)
    further = scan.inner.take_further()
    kinds = configured_kinds(files, root)
    told = kinds.batch | topics_with_inner_batches(rows, scan.queues)
    # A topic's directories decide whether it has plain or batch queues.
    kinds = replace(kinds, batch=batch_topics(told, store.queue_files, store.batch_files))
    placed = dispatch(rows, further, scan.queues, kinds.batch, room)
    in_queues = chosen(rows, are_dispatched, room)
    facts = LogFacts(
        max(0, store.log_start(scan.end_phy_offset)),
        scan.end_phy_offset,
        tuple(scan.holes),
        in_queues["phy_offset"],
        in_queues["size_bytes"],
        store.geometry.queue_file_size_bytes,
        store.mode == "normal",
    )
    seen = RowQueues(placed, scan.inner.ranges, facts, store.geometry.batch_file_size_bytes, files, room)
    queues = overlay_queues(store, seen, kinds.batch, files)
    newest_ms = int(rows["store_timestamp_ms"].max()) if len(rows) else None
    # Before Survey.of adds lost records behind the end of the log to the queues: these have no rows.
    compaction_rows = {
        key: rows_as_placed(of_queue, queues.plain[key])
        for key, of_queue in placed.plain.items()
        if key[0] in kinds.compaction and key in queues.plain
    }
    compaction = _load_compaction(store, facts.min_phy_offset, kinds, queues, files)
    found = Survey.of(store, scan, rows, queues, files, record_crc=record_crc, newest_ms=newest_ms)
    found.kinds, found.compaction, found.compaction_rows = kinds, compaction, compaction_rows
    return found


def _load_compaction(
    store: ListedStore, min_phy_offset: int, kinds: TopicKinds, queues: Overlays, files: Files
) -> dict[Key, CompactionState]:
    keys = {key for key in queues.plain if key[0] in kinds.compaction}
    keys |= {(topic, number) for topic in kinds.compaction for number in queue_ids(files, store.root, topic)}
    listed = [list_compaction_files(files, store.root, *key) for key in sorted(keys)]
    sizes = infer_compaction_sizes(listed)
    compacted = compacted_queues(files, store.root)
    loaded: dict[Key, CompactionState] = {}
    with closing(LogReader(files, store.root, store.geometry.segment_size_bytes)) as reader:
        for queue in listed:
            key = (queue.topic, queue.queue_id)
            # Records that retention removed from the commit log cannot be compared: the files may have gaps.
            may_have_gaps = key in compacted or min_phy_offset > 0
            known = queues.plain.get(key)
            end_offset = None if known is None else known.max_offset
            hints = None if known is None else (known.first_slot, known.units)
            records = None if hints is None else CommitRecords(files, store.root, reader, key, *hints)
            loaded[key] = load_state(
                files, queue, sizes, compacted=may_have_gaps, end_offset=end_offset, records=records
            )
    return loaded

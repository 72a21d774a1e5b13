"""``seglog info``: the contents and the state of a store, and what opening it would do.

It uses the survey, so it changes nothing. Without ``--verify`` checksums are not computed: the walk over the
log still checks everything else in every record.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
import numpy as np

from seglog.cli.read import java_lines
from seglog.cli.read.reading import file_sizes, log_as_stated, survey_store
from seglog.cli.ui import options, render
from seglog.cli.ui.findings import show_findings
from seglog.doctor.plans import unfinished_findings
from seglog.errors import CorruptError, Ending
from seglog.storage.directory import (
    BATCH_FILE,
    INDEX_ENTRIES,
    INDEX_SLOTS,
    LOG_PATHS,
    NOTHING_KNOWN,
    QUEUE_FILE,
    READ_ONLY_PATHS,
    SEGMENT,
    SEPARATE_QUEUES,
    FileSizes,
    LogReader,
    last_data_end,
    list_index_files,
)
from seglog.storage.findings import Severity, findings_fields
from seglog.storage.format.index import DEFAULT_INDEX_GEOMETRY
from seglog.storage.format.names import COMMIT_LOG, CONFIG
from seglog.storage.format.record import CRC32, decode_message
from seglog.storage.overlay import BatchQueueState, QueueState, is_message
from seglog.storage.scan import MessageCounts, doubt_of
from seglog.storage.survey import Survey, count_placeholders

_MAX_QUEUES_SHOWN: Final = 200
_DERIVED: Final = (
    "queue-missing",
    "queue-short",
    "queue-due",
    "queue-beyond-log",
    "queue-unit-wrong",
    "queue-unit-stray",
)
_REFUSED: Final = frozenset(
    {"log-empty", "log-folder", "queue-length-unknown", "rocksdb-queues", "undo-unfinished"}
)


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that are shown about a store.

    Attributes:
        state: ``clean``, ``open`` (a process has it open) or ``crashed``.
        holder: Id of the process that has it open for writing, -1 if the system does not report it, None if
            none.
        disk_bytes: Space on the disk; files have holes.
        file_bytes: Sum of the lengths of its files.
        cut_bytes: Bytes that recovery would move from the log's end to the attic.
        record_crc: Whether its newest record has ``__CRC32#``.
        placeholders: Number of placeholders of a compaction, for each queue that has any.
    """

    found: Survey
    path: Path
    state: str
    holder: int | None
    disk_bytes: int
    file_bytes: int
    cut_bytes: int
    record_crc: bool
    placeholders: Counter[tuple[str, int]]

    @property
    def counts(self) -> MessageCounts:
        """Number of messages in its queues, of lost messages, and of placeholders."""
        return replace(self.found.counts, placeholders=self.placeholders.total())

    @property
    def may_be_more(self) -> bool:
        """Whether more messages may be lost than are counted."""
        return bool(doubt_of(self.found.findings) or self.counts.earlier)

    @property
    def queues(self) -> list[QueueState | BatchQueueState]:
        """Its queues in RocketMQ's order."""
        return sorted(
            [*self.found.queues.values(), *self.found.batch_queues.values()],
            key=lambda queue: (java_lines.java_order(queue.topic), queue.queue_id),
        )

    @property
    def kind(self) -> str:
        """The kind of the store, in words."""
        return (
            "RocketMQ broker store"
            if options.reading(self.path).is_dir(self.path / CONFIG)
            else "message store"
        )

    @property
    def config_lines(self) -> list[str]:
        """Lines that ``broker.conf`` needs so that a RocketMQ broker can open the store."""
        geometry = self.found.geometry
        lines = [f"storePathRootDir={self.path.resolve()}", *self._log_lines]
        # A length that is only guessed is left out, because the user would take it for a known one.
        if geometry.is_segment_known:
            lines.append(f"{SEGMENT}={geometry.segment_size_bytes}")
        if geometry.is_queue_file_known:
            lines.append(f"{QUEUE_FILE}={geometry.queue_file_size_bytes}")
        if any(files.sizes for files in self.found.batch_files.values()):
            lines.append(f"{BATCH_FILE}={geometry.batch_file_size_bytes}")
        lines += self._rocksdb_lines
        index, _damaged = list_index_files(options.reading(self.path), self.path)
        if index and (division := index[-1].geometry) != DEFAULT_INDEX_GEOMETRY:
            lines += [f"{INDEX_SLOTS}={division.slot_count}", f"{INDEX_ENTRIES}={division.entry_count}"]
        return [*lines, "enabledAppendPropCRC=true"] if self.record_crc else lines

    @property
    def _log_lines(self) -> list[str]:
        """Lines without which a broker does not find a log that is not in ``commitlog`` alone."""
        files = options.reading(self.path)
        folders, read_only = files.places.every_folder()
        if folders == (COMMIT_LOG,):
            return []
        found = ((LOG_PATHS, folders), (READ_ONLY_PATHS, read_only))
        root = self.path.resolve()
        return [f"{name}={','.join(str(root / one) for one in of)}" for name, of in found if of]

    @property
    def _rocksdb_lines(self) -> list[str]:
        """Lines without which a broker does not find the queues that the store has in RocksDB."""
        parts = self.found.rocksdb_queues
        if not parts:
            return []
        is_double = self.found.has_queue_files
        lines = ["rocksdbCQDoubleWriteEnable=true" if is_double else "storeType=defaultRocksDB"]
        is_apart = any(part.name == SEPARATE_QUEUES for part in parts)
        return [*lines, "useSeparateStorePathForRocksdbCQ=true"] if is_apart else lines

    @property
    def rebuilt_queues(self) -> int:
        """Number of queues that recovery would repair from the log."""
        # Some findings name a file of the queue, others its folder.
        wrong = {
            tuple(finding.file.split("/")[:3]) for finding in self.found.findings if finding.code in _DERIVED
        }
        return len(wrong)

    @property
    def tombstones(self) -> int:
        """Number of lost records at the log's end that would get a tombstone."""
        return len(self.found.lost_tail)


@click.command
@options.store
@click.option("--verify", is_flag=True, help="Compute the checksums of all records.")
@options.file_sizes
@options.as_json
def command(*, path: Path, verify: bool, given: FileSizes, as_json: bool) -> None:
    """Show what STORE holds and what state it is in.

    With --verify the exit code is 5 if messages are lost, and 1 if a repair saves all that cannot be read.
    """
    facts = gather(path, verify=verify, given=given)
    if as_json:
        render.emit(_fields(facts))
    else:
        _show(facts)
    if verify and any(one.severity is Severity.LOSS for one in facts.found.findings):
        raise click.exceptions.Exit(Ending.LOSS)
    if verify and facts.found.withheld:
        raise click.exceptions.Exit(Ending.FINDINGS)


def gather(path: Path, *, verify: bool, given: FileSizes = NOTHING_KNOWN) -> Facts:
    """Gathers the facts about a store.

    Args:
        path: The store directory.
        verify: Whether to compute the checksums of all records.
        given: Lengths of files that the caller knows.

    Raises:
        SeglogError: There is no store, or it cannot be read.
    """
    found = survey_store(path, verify=verify, given=given)
    found.findings += unfinished_findings(options.reading(path), path)
    holder = options.reading(path).lock_holder()
    state = "clean" if found.mode == "normal" else "crashed"
    with closing(LogReader(log_as_stated(path), path, found.geometry.segment_size_bytes)) as reader:
        cut_bytes = 0 if holder is not None else _bytes_behind_end(found, reader)
        record_crc = _has_record_crc(found, reader)
        placeholders = count_placeholders(found, reader)
    sizes = list(file_sizes(options.reading(path), path))
    disk_bytes, file_bytes = sum(disk for disk, _length in sizes), sum(length for _disk, length in sizes)
    return Facts(
        found,
        path,
        "open" if holder is not None else state,
        holder,
        disk_bytes,
        file_bytes,
        cut_bytes,
        record_crc,
        placeholders,
    )


def last_store_ms(queue: QueueState | BatchQueueState, found: Survey) -> int | None:
    """Returns the store time of a queue's newest message, None if no message can be read."""
    starts = found.rows["phy_offset"]
    if not len(starts):
        return None
    wanted = queue.units["phy_offset"][is_message(queue.units)].astype(np.int64)
    at = np.searchsorted(starts, wanted).clip(max=len(starts) - 1)
    readable = at[starts[at] == wanted]
    return int(found.rows["store_timestamp_ms"][readable[-1]]) if len(readable) else None


def _bytes_behind_end(found: Survey, reader: LogReader) -> int:
    segment = found.geometry.segment_size_bytes
    total = 0
    for file in found.log_files:
        start = max(found.max_phy_offset, file.first_offset)
        if start < file.first_offset + segment:
            total += last_data_end(reader, start, file.first_offset + segment) - start
    return total


def _has_record_crc(found: Survey, reader: LogReader) -> bool:
    if not len(found.rows):
        return False
    newest = found.rows[-1]
    try:
        message = decode_message(reader.read(int(newest["phy_offset"]), int(newest["size_bytes"])))
    except CorruptError:
        return False
    return CRC32 in message.properties


def _fields(facts: Facts) -> dict[str, object]:
    found = facts.found
    counts = facts.counts
    return {
        "kind": "info",
        "path": str(facts.path),
        "storeKind": facts.kind,
        "state": facts.state,
        "holder": facts.holder,
        "mappedFileSizeCommitLog": found.geometry.segment_size_bytes,
        "mappedFileSizeConsumeQueue": found.geometry.queue_file_size_bytes,
        "enabledAppendPropCRC": facts.record_crc,
        "minPhyOffset": found.min_phy_offset,
        "maxPhyOffset": found.max_phy_offset,
        "records": len(found.rows),
        "messages": counts.messages,
        "lostMessages": counts.lost,
        "mayBeMore": facts.may_be_more,
        "placeholders": counts.placeholders,
        "diskBytes": facts.disk_bytes,
        "fileBytes": facts.file_bytes,
        "queues": [
            {
                "topic": queue.topic,
                "queueId": queue.queue_id,
                "minOffset": queue.min_offset,
                "maxOffset": queue.max_offset,
                "count": queue.max_offset - queue.min_offset,
                "lost": counts.lost_of.get((queue.topic, queue.queue_id), 0),
                "placeholders": facts.placeholders[queue.topic, queue.queue_id],
                "lastStoreTimestamp": last_store_ms(queue, found),
            }
            for queue in facts.queues
        ],
        "findings": [*findings_fields(found.findings)],
        "recovery": {
            "mode": found.mode,
            "cutBytes": facts.cut_bytes,
            "rebuiltQueues": facts.rebuilt_queues,
            "tombstones": facts.tombstones,
        },
        "brokerConf": facts.config_lines,
    }


def _messages_text(facts: Facts) -> str:
    counts = facts.counts
    return render.messages_text(
        counts.messages, counts.lost, counts.placeholders, may_be_more=facts.may_be_more
    )


def _show(facts: Facts) -> None:
    found = facts.found
    geometry = found.geometry
    log_start = max(0, found.min_phy_offset)
    log_size = render.size_text(found.max_phy_offset - log_start)
    log_files = render.count_text(len(found.log_files), "file")
    topics = len({queue.topic for queue in facts.queues})
    counts = facts.counts
    render.facts(
        {
            "store": f"{facts.path} ({facts.kind})",
            "state": _state_text(facts),
            "log": f"{log_start}..{found.max_phy_offset}, {log_size} in {log_files}"
            f" of {render.size_text(geometry.segment_size_bytes)}",
            "records": render.count_text(len(found.rows)),
            "queues": f"{render.count_text(len(facts.queues))} of {render.count_text(topics, 'topic')},"
            f" {_messages_text(facts)}",
            "disk": f"{render.size_text(facts.disk_bytes)} for files of {render.size_text(facts.file_bytes)}",
            "recovery": _recovery_text(facts),
        }
    )
    if facts.queues:
        more = [*(["lost"] if counts.lost else []), *(["placeholders"] if counts.placeholders else [])]
        render.say()
        render.table(
            ("topic", "queue", "min", "max", "messages", *more, "last stored"),
            [_queue_cells(queue, facts, counts) for queue in facts.queues[:_MAX_QUEUES_SHOWN]],
            numbers=("queue", "min", "max", "messages", *more),
        )
        _say_rest(len(facts.queues) - _MAX_QUEUES_SHOWN)
    if found.findings:
        render.say()
        show_findings(found.findings, facts.path)
    render.say()
    render.say("broker.conf for a RocketMQ broker on this folder:")
    for line in facts.config_lines:
        render.say("  ", line)


def _state_text(facts: Facts) -> str:
    if facts.holder is not None:
        return (
            f"open for writing by process {facts.holder}"
            if facts.holder > 0
            else "open for writing by a process"
        )
    return "closed cleanly" if facts.state == "clean" else "not closed: its last writer crashed or was killed"


def _recovery_text(facts: Facts) -> str:
    if facts.holder is not None:
        return "none while it is open"
    if not _REFUSED.isdisjoint(finding.code for finding in facts.found.findings):
        return "none: opening for writing is refused, see `seglog check`"
    steps = []
    if facts.cut_bytes:
        steps.append(f"moves {render.size_text(facts.cut_bytes)} behind the log's end to seglog/attic")
    if facts.rebuilt_queues:
        steps.append(f"puts {render.count_text(facts.rebuilt_queues, 'queue')} right from the log")
    if facts.tombstones:
        lost = render.count_text(facts.tombstones, "record")
        steps.append(f"puts tombstones in the place of {lost} lost with the log's end")
    return " and ".join(steps) if steps else "nothing to do"


def _queue_cells(queue: QueueState | BatchQueueState, facts: Facts, counts: MessageCounts) -> tuple[str, ...]:
    stored_ms = last_store_ms(queue, facts.found)
    key = queue.topic, queue.queue_id
    return (
        render.printable(queue.topic),
        str(queue.queue_id),
        str(queue.min_offset),
        str(queue.max_offset),
        str(counts.messages_of[key] - facts.placeholders[key]),
        *([str(counts.lost_of.get(key, 0))] if counts.lost else []),
        *([str(facts.placeholders[key])] if counts.placeholders else []),
        "-" if stored_ms is None else render.time_text(stored_ms),
    )


def _say_rest(count: int) -> None:
    if count > 0:
        render.say(f"… and {render.count_text(count)} more; --json prints all")

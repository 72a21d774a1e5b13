"""Recovers a store that was just surveyed, before it serves anything.

Bytes that recovery cuts off the log, overwrites or removes are first copied to
:mod:`seglog.storage.small_files.attic`. Then the tail is zeroed, so that no record of an earlier log can
appear again. Lost messages whose queue units still exist get tombstones there, and so do holes of the last
file, at which RocketMQ would cut the log. Queue files are rewritten to agree with the log. Everything is on
the disk before the first read: a message that was served must still exist after the next power failure.

The ``abort`` file is written first and stays until a clean close, so a crash during recovery is just another
crash: the next open recovers again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from seglog.storage.compaction.files import CompactionState
from seglog.storage.directory.log_files import LogReader, last_data_end, list_log_files, place_log_files
from seglog.storage.directory.queue_files import list_staged, queue_directory
from seglog.storage.files.files import Files, read_start
from seglog.storage.findings.findings import Finding
from seglog.storage.format.checkpoint import CHECKPOINT_FILE_BYTES, Checkpoint
from seglog.storage.format.names import (
    ABORT_FILE,
    CHECKPOINT_FILE,
    COMMIT_LOG,
    parse_segment_file_name,
    segment_file_name,
)
from seglog.storage.format.queue import BATCH_UNIT_BYTES, CQ_UNIT, CQ_UNIT_BYTES, Units, in_use, pre_blanks
from seglog.storage.format.ranges import ranges_of
from seglog.storage.log.commit_log import HoleMap
from seglog.storage.overlay import BatchQueueState, QueueState, is_message, lost_in_gaps
from seglog.storage.overlay.kept_units import are_passed_over
from seglog.storage.recovery.recover_compaction import write_copies
from seglog.storage.recovery.recover_holes import fill_hole, last_file_holes, split_holes
from seglog.storage.recovery.recover_lost import write_tombstones
from seglog.storage.recovery.recover_queues import (
    QueueFile,
    remove_beyond,
    remove_expired,
    write_batch_queue,
    write_file,
)
from seglog.storage.scan.doubt import Doubt, doubt_of, earlier_doubt, lost_end
from seglog.storage.scan.holes_file import (
    LOST_END,
    OTHERS,
    TOMBSTONES,
    KnownHole,
    known_holes,
    load_holes,
    merge_holes,
    save_holes,
)
from seglog.storage.seals.seal_files import list_seals, retire_seals
from seglog.storage.small_files import Attic, write_checkpoint
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.behind_damage import Hole

_ZEROS = bytes(1 << 20)
_NEVER = 1 << 62
"""An offset that no log reaches."""


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The report of an opening.

    Attributes:
        mode: ``created``, ``normal`` (after a clean stop) or ``abnormal`` (after a crash).
        records: Number of valid records in the log, from ``walked_from`` on.
        end_phy_offset: Physical offset at which the log continues.
        cut_bytes: Bytes behind the end that were no records and were moved to the attic.
        rewritten_queue_files: Number of queue files that did not agree with the log.
        findings: Everything that was not in order.
        elapsed_ms: Duration of the opening.
        walked_from: Physical offset at which the walk over the log began: its start, or a recovery point.
        doubt: Whether the store may have lost more messages than are counted, now or earlier.
    """

    mode: str
    records: int = 0
    end_phy_offset: int = 0
    cut_bytes: int = 0
    rewritten_queue_files: int = 0
    findings: tuple[Finding, ...] = ()
    elapsed_ms: float = 0.0
    walked_from: int = 0
    doubt: Doubt = field(default=Doubt())


def recover(
    found: Survey,
    files: Files,
    pid: int,
    now_ms: int,
    *,
    thorough: bool = False,
) -> RecoveryReport:
    """Applies the plan of a survey; the caller holds the store lock.

    Args:
        found: A survey made under the lock.
        files: The file layer of the store.
        pid: Written into the abort file, as RocketMQ does.
        now_ms: The time of discovery for damage that was not known before.
        thorough: Whether to fill holes of earlier files too, and to keep the legible parts of their records:
            for a repair, which has an undo pack. The opening of a store leaves such holes as they are.
    """
    with Attic(files, found.root) as attic:
        return _recover(found, files, attic, (pid, now_ms), thorough=thorough)


def _recover(
    found: Survey, files: Files, attic: Attic, by: tuple[int, int], *, thorough: bool
) -> RecoveryReport:
    pid, now_ms = by
    doubt = doubt_of(found.findings)
    # Before the holes are split: a part without messages may be of a hole whose messages are known.
    open_at = {
        (parse_segment_file_name(one.file.rpartition("/")[2]) or 0) + one.position_bytes
        for one in found.findings
        if one.may_be_more
    }
    unnamed = [
        hole
        for hole, lost in zip(found.holes, found.lost_in_holes, strict=True)
        if not lost or hole.phy_offset in open_at
    ]
    if thorough:
        split_holes(found)
    # On the disk before the first change: after a crash from here on the next open must recover again.
    files.write_file(found.root / ABORT_FILE, b"%d" % pid)
    files.sync_dir(found.root)
    # The losses are written down before the first change: after a crash during the steps below, the queue
    # units that prove a loss may be overwritten already.
    seen = known_holes(found.holes, found.lost_in_holes, found.lost_tail, found.max_phy_offset, now_ms)
    seen += [
        KnownHole(gap.phy_offset, gap.size_bytes, OTHERS, first_seen_ms=now_ms, lost=(lost,))
        for state in found.all_queues.values()
        for gap, lost in zip(state.gaps, lost_in_gaps(state), strict=True)
    ]
    seen = [replace(one, is_open=one.why == OTHERS or _is_in(one, unnamed)) for one in seen]
    seen += [
        KnownHole(one.start, len(one), OTHERS, first_seen_ms=now_ms, is_open=True)
        for one in found.replaced.marks
    ]
    seen += lost_end(doubt, found.max_phy_offset, now_ms)
    holes = list(found.holes) if thorough else last_file_holes(found)
    _keep_evidence(found, files, seen, holes)
    # The log before the queues: units must lead to records that are on the disk.
    _fill_holes(found, files, attic, holes, thorough=thorough)
    cut_bytes = _cut_log(found, files, attic)
    if found.mode == "abnormal" or cut_bytes or found.lost_tail or found.replaced.closing:
        _sync_log(found, files)  # after a crash, records that were read may be in the page cache only
    write_tombstones(found, files)  # behind the end that was just zeroed
    # Staged files were created ahead of appends and never got their names: they hold no unit that counts.
    for path in list_staged(files, found.root):
        files.remove(path)
    rewritten = sum(_write_queue(found, files, attic, state) for state in found.queues.values())
    rewritten += sum(write_batch_queue(found, files, attic, state) for state in found.batch_queues.values())
    for compaction in found.compaction.values():
        for path in compaction.dropped:
            attic.keep_file(path)
        for folder in {path.parent for path in compaction.dropped}:
            files.sync_dir(folder)
        _write_rebuilt(found, files, attic, compaction)
    write_copies(found, files, attic)
    _write_checkpoint(found, files, attic)  # after log and queues, which it covers
    left = {hole.phy_offset for hole in found.holes}
    _keep_evidence(found, files, seen, [hole for hole in seen if hole.phy_offset not in left])
    return RecoveryReport(
        found.mode,
        len(found.rows),
        found.max_phy_offset,
        cut_bytes,
        rewritten,
        tuple(found.findings),
        walked_from=found.walked_from,
        doubt=doubt | earlier_doubt(found.standing),
    )


def kept_log_files(found: Survey) -> list[int]:
    """Returns the first offsets of the commit-log files to keep: those that begin before the end of the log.

    A file that begins exactly at the end is kept if it is the only one: its name alone shows the end. So is
    the file of 0, though an empty log needs none: a crash may leave the queues as they were, and without any
    file of the log they would say that it is lost.
    """
    end = found.max_phy_offset
    kept = [file.first_offset for file in found.log_files if file.first_offset < end]
    if not kept:
        kept = [file.first_offset for file in found.log_files if file.first_offset == end]
    return kept


def _cut_log(found: Survey, files: Files, attic: Attic) -> int:
    """Zeroes the log behind its end and removes later files; returns the number of bytes that held data."""
    segment = found.geometry.segment_size_bytes
    end = found.max_phy_offset
    # Seals first: a seal of a segment that is about to change would report damage in it.
    cut = [first for first in list_seals(files, found.root) if first + segment > end]
    retire_seals(files, found.root, cut, attic)
    kept = set(kept_log_files(found))
    cut_bytes = 0
    with closing(LogReader(files, found.root, segment)) as reader:
        for file in found.log_files:
            start = max(end, file.first_offset)
            file_end = file.first_offset + segment
            if start >= file_end:
                continue
            data_end = last_data_end(reader, start, file_end)
            if data_end > start:
                cut_bytes += data_end - start
                _keep_log(attic, reader, (start, data_end), segment)  # synced before the bytes are changed
            path = found.root / COMMIT_LOG / segment_file_name(file.first_offset)
            if file.first_offset not in kept:
                files.remove(path)
            elif data_end > start:
                _zero(files, path, start - file.first_offset, data_end - file.first_offset)
    # Files that are too short get their full length again: appends map whole segments.
    for file in found.log_files:
        if file.first_offset in kept and file.size_bytes < segment:
            _extend(files, found.root / COMMIT_LOG / segment_file_name(file.first_offset), segment)
    if found.log_files:
        files.sync_dir(found.root / COMMIT_LOG)
    return cut_bytes


def _keep_log(attic: Attic, reader: LogReader, stretch: tuple[int, int], segment: int) -> None:
    """Copies a stretch of the log to the attic, durably, before it is overwritten."""
    for at, chunk in reader.chunks(*stretch):
        if any(chunk):
            position = at % segment
            attic.keep(f"{COMMIT_LOG}/{segment_file_name(at - position)}", position, chunk)
    attic.sync()


def _zero(files: Files, path: Path, start: int, end: int) -> None:
    with closing(files.open(path, writable=True)) as handle:
        for at in range(start, end, len(_ZEROS)):
            handle.write_at(_ZEROS[: end - at], at)
        handle.sync()


def _extend(files: Files, path: Path, size_bytes: int) -> None:
    with closing(files.open(path, writable=True)) as handle:
        handle.set_size(size_bytes)
        handle.sync()


def _sync_log(found: Survey, files: Files) -> None:
    segment = found.geometry.segment_size_bytes
    for first in kept_log_files(found):
        if first + segment <= found.walked_from:
            continue  # it was synced before the recovery point was written
        with closing(
            files.open(found.root / COMMIT_LOG / segment_file_name(first), writable=False)
        ) as handle:
            handle.sync()


def _write_rebuilt(found: Survey, files: Files, attic: Attic, compaction: CompactionState) -> None:
    """Writes the queue files of a compaction topic that are rebuilt from their log files."""
    folder = compaction.files.queue_directory
    for first, content in compaction.rebuilt.items():
        path = folder / segment_file_name(first)
        if first in compaction.files.queues:
            held = files.read_file(path)
            name = path.relative_to(found.root).as_posix()
            attic.keep_units(name, held, content, BATCH_UNIT_BYTES)
        files.make_dirs(folder)
        files.write_file(path, content)
    if compaction.rebuilt:
        files.sync_dir(folder)


def _write_queue(found: Survey, files: Files, attic: Attic, state: QueueState) -> int:
    """Makes the files of one queue agree with the log; returns how many files it changed."""
    size = found.geometry.queue_file_size_bytes
    known = found.queue_files.get((state.topic, state.queue_id))
    directory = known.directory if known else found.root / queue_directory(state.topic, state.queue_id)
    stored = dict(known.sizes) if known is not None else {}
    start = state.file_slot * CQ_UNIT_BYTES
    if not state.agrees:
        for first in stored:
            if first + size <= start:
                _keep_wrong_head(found, files, attic, directory / segment_file_name(first))
    changed = remove_expired(files, directory, stored, size, start)
    beyond = [first for first in stored if first >= state.max_offset * CQ_UNIT_BYTES]
    if state.agrees and not beyond and all(length == size for length in stored.values()):
        return changed
    for first in beyond:
        # An empty queue file does harm: RocketMQ takes its first unit without a check, and our next append
        # could not create a file of that name.
        remove_beyond(files, attic, found.root, directory / segment_file_name(first), CQ_UNIT_BYTES)
        changed += 1
    if len(state.units):
        start = state.first_slot * CQ_UNIT_BYTES
        keep = partial(attic.keep_units, unit_bytes=CQ_UNIT_BYTES)
        folder = queue_directory(state.topic, state.queue_id)
        for first in range(start - start % size, state.max_offset * CQ_UNIT_BYTES, size):
            target = QueueFile(found.root, folder, first, size, exists=first in stored)
            changed += _write_queue_file(files, target, state, keep)
    if changed:
        files.sync_dir(directory)
    return changed


def _keep_wrong_head(found: Survey, files: Files, attic: Attic, path: Path) -> None:
    """Keeps the units of a file that goes with retention, but those that lead to what retention removed."""
    held = files.read_file(path)
    units = np.frombuffer(held, CQ_UNIT.dtype, len(held) // CQ_UNIT_BYTES)
    wanted = units.copy()
    wanted[~are_passed_over(units, found.min_phy_offset)] = np.zeros((), CQ_UNIT.dtype)
    attic.keep_units(path.relative_to(found.root).as_posix(), held, wanted.tobytes(), CQ_UNIT_BYTES)


def _write_queue_file(
    files: Files, target: QueueFile, state: QueueState, keep: Callable[[str, bytes, bytes], None]
) -> int:
    slot = target.first // CQ_UNIT_BYTES
    below = max(0, state.first_slot - slot) * CQ_UNIT_BYTES
    units = _file_units(state, slot, target.size_bytes // CQ_UNIT_BYTES).tobytes()

    def content(held: bytes) -> bytes:
        # Slots before the first unit keep theirs, whose messages left with retention. With one that is all
        # zeros the queue would end there for RocketMQ.
        before = np.frombuffer(held[:below], CQ_UNIT.dtype).copy()
        empty = ~in_use(before)
        before[empty] = pre_blanks(int(empty.sum()))
        return before.tobytes() + units

    return write_file(files, target, content, keep)


def _file_units(state: QueueState, slot: int, count: int) -> Units:
    """Returns the units of the file that begins at ``slot``; pre-blank units for lost messages."""
    start = max(0, slot - state.first_slot)
    units = state.units[start : max(0, slot + count - state.first_slot)].copy()
    lost = ~in_use(units)
    if lost.any():
        units[lost] = pre_blanks(int(lost.sum()))
    return units.astype(CQ_UNIT.dtype, copy=False)


def _fill_holes(found: Survey, files: Files, attic: Attic, holes: Sequence[Hole], *, thorough: bool) -> None:
    """Fills holes of the log after their bytes are in the attic."""
    segment = found.geometry.segment_size_bytes
    # All holes are in the attic before the first one is filled: no byte is overwritten that is not kept.
    with closing(LogReader(files, found.root, segment)) as reader:
        for hole in holes:
            _keep_log(attic, reader, (hole.phy_offset, hole.end), segment)
    for hole in holes:
        fill_hole(found, files, hole, thorough=thorough)
    if thorough:
        changed = {hole.phy_offset - hole.phy_offset % segment for hole in holes}
        # A repair also fills holes of segments that may have seals; their seals would report damage.
        retire_seals(files, found.root, sorted(changed), attic)
        listed, _strays = list_log_files(files, found.root)
        found.log_files, _misplaced = place_log_files(listed, segment)


def _keep_evidence(
    found: Survey, files: Files, seen: list[KnownHole], filled: Sequence[Hole | KnownHole]
) -> None:
    """Writes the known facts about the log's holes to a file before they are filled; queues may lose them.

    Args:
        found: The survey.
        files: The file layer of the store.
        seen: The holes, and the lost tail.
        filled: The holes that tombstones replace.
    """
    before = load_holes(files, found.root)
    places = {hole.phy_offset for hole in filled}
    now = [
        replace(hole, why=TOMBSTONES)
        if hole.phy_offset in places and hole.why not in {OTHERS, LOST_END}
        else hole
        for hole in seen
    ]
    if now or before:
        behind = [*found.lost_tail, *found.replaced.closing]
        end = max(found.max_phy_offset, *(lost.end for lost in behind), 0)
        log = (max(0, found.min_phy_offset), end)
        save_holes(files, found.root, merge_holes(now, before, log, partial(_missing, found)))


def _is_in(known: KnownHole, holes: Sequence[Hole]) -> bool:
    return any(hole.phy_offset <= known.phy_offset and known.end <= hole.end for hole in holes)


def _missing(found: Survey, topic: str, queue_id: int, offsets: range) -> tuple[range, ...]:
    """Returns the queue offsets of a range that were assigned but lead to no readable message."""
    state: QueueState | BatchQueueState | None = found.queues.get((topic, queue_id))
    state = state or found.batch_queues.get((topic, queue_id))
    if state is None:
        return (offsets,)
    end = min(offsets.stop, state.max_offset)
    start = min(max(offsets.start, state.min_offset), end)
    readable = np.zeros(end - start, np.bool_)
    holes = HoleMap(found.holes)
    if isinstance(state, QueueState):
        units = state.units[max(0, start - state.first_slot) : max(0, end - state.first_slot)]
        readable[len(readable) - len(units) :] = is_message(units) & ~holes.covers_each(units["phy_offset"])
    else:
        for unit in state.units[~holes.covers_each(state.units["phy_offset"])]:
            first = int(unit["base_queue_offset"]) - start
            readable[max(0, first) : max(0, first + int(unit["batch_size"]))] = True
    return ranges_of((start + index, 1) for index in np.flatnonzero(~readable).tolist())


def _write_checkpoint(found: Survey, files: Files, attic: Attic) -> None:
    """Limits the checkpoint to the end of the log: otherwise RocketMQ would begin its walk behind damage."""
    checkpoint = found.checkpoint
    newest_ms = found.newest_store_ms
    right = Checkpoint(
        _within(checkpoint.physic_timestamp_ms, newest_ms),
        _within(checkpoint.logics_timestamp_ms, newest_ms),
        _within(checkpoint.index_timestamp_ms, newest_ms),
        checkpoint.master_flushed_offset if 0 <= checkpoint.master_flushed_offset < _NEVER else 0,
        max(found.scan.last_phy_offset, 0),
        _within(checkpoint.logics_phy_offset, found.max_phy_offset),
    )
    if any(was > now for was, now in zip(astuple(checkpoint), astuple(right), strict=True)):
        # The old checkpoint is newer than the log: it is evidence of a loss.
        attic.keep(CHECKPOINT_FILE, 0, read_start(files, found.root / CHECKPOINT_FILE, CHECKPOINT_FILE_BYTES))
        attic.sync()
    if checkpoint != right or not files.exists(found.root / CHECKPOINT_FILE):
        write_checkpoint(files, found.root, right)
    found.checkpoint = right


def _within(value: int, limit: int) -> int:
    return min(value, limit) if value >= 0 else 0

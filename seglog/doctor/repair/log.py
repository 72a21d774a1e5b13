"""The log and its queues: runs the recovery of an opening, but over every file of the log.

The report on each hole is read from the result: the tombstones that now exist, and the records after the hole
that RocketMQ would cut off after its next crash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from seglog.clock import Clock
from seglog.doctor.plans.actions import Action
from seglog.doctor.repair.derived import mend_compaction
from seglog.storage.compaction import Key, known_offsets
from seglog.storage.directory import folder_of_queue, queue_directory
from seglog.storage.files import Files
from seglog.storage.findings import Finding, Severity
from seglog.storage.format.names import (
    ABORT_FILE,
    BATCH_CONSUME_QUEUE,
    CHECKPOINT_FILE,
    COMMIT_LOG,
    segment_file_name,
)
from seglog.storage.format.queue import valid_batch_prefix, view_batch_units
from seglog.storage.format.ranges import ranges_of
from seglog.storage.overlay import (
    UNIT,
    BatchQueueState,
    LostMessages,
    QueueGap,
    QueueState,
    lost_in_gaps,
    lost_in_holes,
)
from seglog.storage.recovery import recover
from seglog.storage.scan import lost_of_tail
from seglog.storage.small_files import remove_recovery_point
from seglog.storage.survey import Survey, survey
from seglog.storage.walk import Hole
from seglog.text import count_text

_TAIL: Final = "tail"
_FOR_OTHERS: Final = frozenset({"config-damaged", "log-file-packed", "log-file-stray", "queue-file-stray"})
"""Findings that recovery does not act on."""
_WITHOUT_CURE: Final = frozenset({"topic-name", "record-queue-offset", "queue-length-unknown"})
"""Findings for which the log has no better data."""
_IN_QUEUES: Final = frozenset(
    {
        "queue-missing",
        "queue-short",
        "queue-due",
        "queue-beyond-log",
        "queue-unit-wrong",
        "queue-unit-stray",
        "queue-file-due",
        "queue-file-empty",
    }
)
_SERVED_AGAIN: Final = frozenset({"queue-missing", "queue-short", "queue-due", "queue-unit-wrong"})


def needs_recovery(found: Survey) -> bool:
    """Returns whether opening a store for writing, or filling all holes of its log, would repair anything."""
    passed = _FOR_OTHERS | _WITHOUT_CURE
    wrong = [one for one in found.findings if one.severity is not Severity.NOTE and one.code not in passed]
    torn = any(one.code == "log-torn-tail" for one in found.findings)
    return (
        bool(wrong) or torn or found.mode == "abnormal" or _compaction_is_behind(found) or _has_rebuilt(found)
    )


def remove_queue_files(found: Survey, files: Files) -> None:
    """Removes the files of all plain queues."""
    for queue in found.queue_files.values():
        for first in queue.sizes:
            files.remove(queue.directory / segment_file_name(first))


def mend_log(found: Survey, files: Files, clock: Clock) -> list[Action]:
    """Recovers a store, including the holes of all files; returns the actions."""
    holes = _whole_holes(found)
    actions = list(_told(found))
    was_behind = _compaction_is_behind(found)
    torn_at = found.max_phy_offset  # recovery moves the end past the tombstones of the lost end
    known = {key: known_offsets(files, state) for key, state in found.compaction.items()}
    gaps = {key: tuple(state.gaps) for key, state in found.all_queues.items() if state.gaps}
    report = recover(found, files, 0, clock.now_ms(), thorough=True)
    remove_recovery_point(files, found.root)
    mend_compaction(found, files)
    files.remove(found.root / ABORT_FILE)
    after = survey(found.root, files)
    told = list(_of_holes(holes, found, after, gaps))
    if report.cut_bytes:
        told.append(Action("tail-cut", *_place(torn_at, found), size_bytes=report.cut_bytes))
    lost = tuple(_lost_of_compaction(known, after))
    rebuilt = list(_of_rebuilt(found))
    if was_behind:
        has_files = any(state.files.logs or state.files.queues for state in found.compaction.values())
        detail = "" if has_files else "no file is left that shows their lengths: those of RocketMQ"
        told.append(Action("compaction", "compaction", detail=detail, lost=lost))
    elif rebuilt:
        rebuilt[0] = replace(rebuilt[0], lost=lost)
    told += [*rebuilt, *_of_copies(found)]
    told += actions
    end = next((at for at, action in enumerate(told) if action.kind == "close"), len(told))
    return [*told[:end], *_of_spares(found, after), *told[end:]]


def _of_spares(found: Survey, after: Survey) -> Iterator[Action]:
    """Yields an action for the files after the log's end, which recovery removed; it names the first."""
    left = {file.first_offset for file in after.log_files}
    spare = [file for file in found.log_files if file.first_offset not in left]
    if spare:
        name = f"{COMMIT_LOG}/{segment_file_name(spare[0].first_offset)}"
        size_bytes = sum(file.size_bytes for file in spare)
        yield Action("spare", name, size_bytes=size_bytes, detail=count_text(len(spare), "file"))


def _compaction_is_behind(found: Survey) -> bool:
    for key, state in found.compaction.items():
        rows = found.compaction_rows.get(key)
        if state.dropped:
            return True
        if rows is not None and len(rows) and int(rows["queue_offset"][-1]) >= state.units.max_offset:
            return True
    return False


def _has_rebuilt(found: Survey) -> bool:
    return any(state.rebuilt or state.changed for state in found.compaction.values())


def _of_rebuilt(found: Survey) -> Iterator[Action]:
    """Yields an action for each queue file of a compaction topic that was rebuilt from its log file."""
    for state in found.compaction.values():
        folder = state.files.queue_directory.relative_to(found.root).as_posix()
        for first, content in state.rebuilt.items():
            served = valid_batch_prefix(view_batch_units(content))
            detail = f"with {count_text(served, 'unit')}"
            yield Action("compaction-queue", f"{folder}/{segment_file_name(first)}", detail=detail)


def _of_copies(found: Survey) -> Iterator[Action]:
    """Yields an action for each log file of a compaction topic in which records were written again."""
    for (topic, queue_id), state in found.compaction.items():
        folder = state.files.log_directory.relative_to(found.root).as_posix()
        log_bytes = state.units.sizes.log_bytes
        for first in sorted(state.changed):
            here = range(first, first + log_bytes)
            offsets = sorted(one.record.queue_offset for place, one in state.lost.items() if place in here)
            lost = tuple(
                LostMessages(topic, queue_id, one, UNIT)
                for one in ranges_of((offset, 1) for offset in offsets)
            )
            copied = sum(place in here for place in state.copies)
            detail = f"{count_text(copied, 'record')} from the commit log"
            yield Action(
                "compaction-record", f"{folder}/{segment_file_name(first)}", detail=detail, lost=lost
            )


def _lost_of_compaction(known: Mapping[Key, set[int]], after: Survey) -> Iterator[LostMessages]:
    """Yields the messages that had a unit in a compaction topic and are no longer served."""
    for (topic, queue_id), offsets in known.items():
        state = after.compaction.get((topic, queue_id))
        units = None if state is None else state.units.units(0, state.units.end_index)
        served = set[int]() if units is None else set(units["base_queue_offset"].tolist())
        for lost in ranges_of((offset, 1) for offset in sorted(offsets - served)):
            yield LostMessages(topic, queue_id, lost, UNIT)


def _whole_holes(found: Survey) -> list[Hole]:
    """Returns the holes; the lost end of the log is one of them."""
    holes = list(found.holes)
    if found.lost_tail:
        end = found.max_phy_offset
        holes.append(Hole(end, found.lost_tail[-1].end - end, _TAIL))
    return holes


def _of_holes(
    holes: list[Hole], found: Survey, after: Survey, gaps: Mapping[Key, Sequence[QueueGap]]
) -> Iterator[Action]:
    segment = found.geometry.segment_size_bytes
    lost = lost_in_holes(holes, after.queues, after.batch_queues, gaps)
    if found.lost_tail:
        lost[-1] = [*lost_of_tail(found.lost_tail)]  # as a check counts them, and as they are written down
    starts = after.rows["phy_offset"]
    ends = [*(hole.phy_offset for hole in holes), after.max_phy_offset][1:]
    for hole, messages, following in zip(holes, lost, ends, strict=True):
        low, high = np.searchsorted(starts, (hole.end, following)).tolist()
        position = hole.phy_offset % segment
        file = f"{COMMIT_LOG}/{segment_file_name(hole.phy_offset - position)}"
        yield Action(
            {_TAIL: "tail-lost", "missing-file": "segment"}.get(hole.why, "hole"),
            file,
            position,
            hole.size_bytes,
            f"damage: {hole.why}" if hole.why != _TAIL else "",
            saved=max(0, high - low),
            lost=tuple(messages),
        )


def _told(found: Survey) -> Iterator[Action]:
    """Yields the actions of recovery that follow from the survey alone, without a look at the result."""
    by_queue: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in found.findings:
        if finding.code in _IN_QUEUES:
            by_queue[folder_of_queue(finding.file)].append(finding)
        elif finding.code in {"log-file-size", "queue-file-size"}:
            detail = f"{finding.found} bytes, the others have {finding.expected}"
            yield Action("length", finding.file, detail=detail)
        elif finding.code.startswith("checkpoint-") and finding.severity is not Severity.NOTE:
            yield Action("checkpoint", CHECKPOINT_FILE, detail=finding.code)
    with_gaps: dict[str, QueueState | BatchQueueState] = {
        queue_directory(*key): state for key, state in found.queues.items() if state.gaps
    }
    with_gaps |= {
        queue_directory(*key, BATCH_CONSUME_QUEUE): state
        for key, state in found.batch_queues.items()
        if state.gaps
    }
    for folder in sorted({*by_queue, *with_gaps}):
        findings = by_queue[folder]
        saved = sum(finding.messages for finding in findings if finding.code in _SERVED_AGAIN)
        codes = ", ".join(dict.fromkeys(finding.code for finding in findings))
        size = sum(finding.size_bytes for finding in findings)
        lost = tuple(lost_in_gaps(with_gaps[folder]) if folder in with_gaps else ())
        yield Action("queue", folder, size_bytes=size, detail=codes, saved=saved, lost=lost)
    if found.mode == "abnormal":
        yield Action("close", ABORT_FILE)


def _place(phy_offset: int, found: Survey) -> tuple[str, int]:
    position = phy_offset % found.geometry.segment_size_bytes
    return f"{COMMIT_LOG}/{segment_file_name(phy_offset - position)}", position

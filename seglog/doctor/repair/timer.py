"""The timer's files: log and wheel are rebuilt from the timer topic, and the checkpoint is estimated.

RocketMQ repairs little of this by itself: it refuses to start with a wheel or a file of a wrong length, and
without ``timercheck`` it delivers everything again that the commit log still has. The commit log shows which
messages the timer took from its topic, and when each is due; it does not show how far the timer delivered.
But a delivery is a record of the log, so the timer's progress is close to the end of the log. The timer
restarts :data:`MARGIN_MS` before that end: messages that were due in this time may be delivered twice, but
none is left out.

Source: ``store/.../timer/TimerMessageStore.java load, recover``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.doctor.parts.timer_check import MOST_READ_MS, TIMER_CHECK, TIMER_WHEEL, timer_findings
from seglog.doctor.parts.timer_messages import (
    TIMER_LOG,
    iter_timer_messages,
    stored_timer_units,
    wanted_units,
)
from seglog.doctor.plans.actions import Action, move_away
from seglog.doctor.repair.delays import MARGIN_MS
from seglog.storage.directory import LogReader, infer_file_size, numbered_files
from seglog.storage.files import Files, read_start
from seglog.storage.format.names import parse_segment_file_name, segment_file_name
from seglog.storage.format.system_names import TIMER_TOPIC
from seglog.storage.format.timer import (
    DEFAULT_PRECISION_MS,
    DEFAULT_TIMER_LOG_FILE_BYTES,
    TIMER_CHECKPOINT_FILE_BYTES,
    TIMER_SLOT,
    TIMER_UNIT_BYTES,
    TIMER_WHEEL_FILE_BYTES,
    TimerCheckpoint,
    TimerUnits,
    decode_timer_checkpoint,
    encode_timer_checkpoint,
    iter_timer_log,
    pack_units,
    unit_positions,
    wheel_slots,
)
from seglog.storage.overlay import QueueState, is_message
from seglog.storage.survey import Survey
from seglog.text import count_text, moment

_OF_LOG: Final = frozenset({"timer-log-damaged", "timer-log-file", "timer-unit-stray"})
_OF_CHECK: Final = frozenset({"timer-check-missing", "timer-check-size", "timer-check-ahead"})


@dataclass(frozen=True, slots=True)
class _Timer:
    """The right contents of the timer's files.

    Attributes:
        units: ``(n,) TIMER_UNIT.dtype``, the units of its log.
        positions: ``(n,)``, the position of each unit in the log.
        made: Number of units that the log lacked.
        is_log_new: Whether the log must be written.
        check: The timer's progress.
    """

    units: TimerUnits
    positions: npt.NDArray[np.int64]
    made: int
    is_log_new: bool
    check: TimerCheckpoint


def mend_timer(found: Survey, files: Files, given_bytes: int | None = None) -> Iterator[Action]:
    """Repairs the timer's files; yields the actions.

    Args:
        found: A survey of the store, whose log and queues are already repaired.
        files: Access to the store.
        given_bytes: Length of a file of its log by the configuration, where none is left that shows it.
    """
    root = found.root
    for entry in files.list_dir(root / TIMER_LOG):
        if parse_segment_file_name(entry.name) is None and not entry.is_dir:
            yield move_away(files, root, f"{TIMER_LOG}/{entry.name}")
    wrong = timer_findings(found, files, found.all_queues, found.min_phy_offset)
    codes = {finding.code for finding in wrong}
    if not codes:
        return
    knows_length = any(not entry.is_dir for entry in files.list_dir(root / TIMER_LOG))
    first, size_bytes = _geometry(files, root, given_bytes or DEFAULT_TIMER_LOG_FILE_BYTES)
    timer = _read_timer(found, files, codes, first, size_bytes)
    why = ", ".join(sorted(codes))
    if timer.is_log_new:
        _write_log(files, root, timer, first, size_bytes)
        units = count_text(len(timer.units), "unit")
        detail = f"{why}: {units}, {timer.made} of them of messages that it lacked"
        if not knows_length:
            source = "as RocketMQ has it" if given_bytes is None else "as configured"
            detail += f"; files of {size_bytes:,} bytes, {source} (mappedFileSizeTimerLog)"
        yield Action("timer", TIMER_LOG, detail=detail)
    if timer.is_log_new or codes - _OF_CHECK:
        slots = _write_wheel(files, root / TIMER_WHEEL, timer)
        detail = f"{why}: {count_text(slots, 'slot')} in use, from the timer log"
        yield Action("timer", TIMER_WHEEL, detail=detail)
    if timer.is_log_new or codes & _OF_CHECK:
        files.make_dirs((root / TIMER_CHECK).parent)
        files.write_file(root / TIMER_CHECK, encode_timer_checkpoint(timer.check))
        at = f"continues at {timer.check.last_queue_offset} of {TIMER_TOPIC}"
        due = f"with what is due from {moment(timer.check.last_read_timestamp_ms)} on"
        yield Action("timer", TIMER_CHECK, detail=f"{why}: {at}, {due}")


def _geometry(files: Files, root: Path, default_bytes: int) -> tuple[int, int]:
    """Returns the first offset of the timer log, and the length of its files in bytes."""
    sizes = numbered_files(files, root / TIMER_LOG)
    return min(sizes, default=0), infer_file_size(sizes.items(), default_bytes)


def _read_timer(found: Survey, files: Files, codes: set[str], first: int, size_bytes: int) -> _Timer:
    queue = found.queues.get((TIMER_TOPIC, 0)) or QueueState.empty(TIMER_TOPIC, 0)
    path = found.root / TIMER_CHECK
    check = decode_timer_checkpoint(read_start(files, path, TIMER_CHECKPOINT_FILE_BYTES))
    stored, positions = stored_timer_units(files, found.root)
    taken = _taken(queue, check, stored, codes)
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        messages = list(iter_timer_messages(reader, queue.units[: max(0, taken - queue.first_slot)]))
    read_ms = check.last_read_timestamp_ms
    if not 0 < read_ms <= MOST_READ_MS:
        last_ms = min(found.scan.last_store_ms, MOST_READ_MS)
        read_ms = max(0, last_ms - MARGIN_MS) // DEFAULT_PRECISION_MS * DEFAULT_PRECISION_MS
    wanted = wanted_units(messages, stored, read_ms)
    is_log_new = bool(codes & _OF_LOG or wanted.made)
    if is_log_new:
        stored = pack_units(wanted.units)
        positions = unit_positions(len(stored), first, size_bytes)
    end = int(positions[-1]) + TIMER_UNIT_BYTES if len(positions) else first
    check = replace(
        check,
        last_read_timestamp_ms=read_ms,
        last_flushed_position=end,
        last_queue_offset=taken,
        master_queue_offset=taken,
    )
    return _Timer(stored, positions, wanted.made, is_log_new, check)


def _taken(queue: QueueState, check: TimerCheckpoint, stored: TimerUnits, codes: set[str]) -> int:
    """Returns the offset of the timer topic up to which the timer put messages into its log."""
    end = queue.max_offset
    stated = min(check.last_queue_offset, check.master_queue_offset)
    if "timer-check-missing" in codes or not 0 < stated <= end:
        return end
    known = np.flatnonzero(np.isin(queue.units["phy_offset"], stored["phy_offset"]) & is_message(queue.units))
    return max(stated, queue.first_slot + int(known[-1]) + 1 if len(known) else 0)


def _write_log(files: Files, root: Path, timer: _Timer, first: int, size_bytes: int) -> None:
    folder = root / TIMER_LOG
    files.make_dirs(folder)
    for entry in files.list_dir(folder):
        if not entry.is_dir:
            files.remove(folder / entry.name)
    for start, data in iter_timer_log(timer.units, timer.positions, first, size_bytes):
        with closing(files.create(folder / segment_file_name(start), size_bytes)) as handle:
            handle.write_at(data, 0)
            handle.sync()
    files.sync_dir(folder)


def _write_wheel(files: Files, path: Path, timer: _Timer) -> int:
    numbers, slots = wheel_slots(timer.units, timer.positions)
    if files.exists(path):
        files.remove(path)
    with closing(files.create(path, TIMER_WHEEL_FILE_BYTES)) as handle:
        for number, slot in zip(numbers.tolist(), slots, strict=True):
            handle.write_at(slot.tobytes(), number * TIMER_SLOT.size_bytes)
        handle.sync()
    return len(numbers)

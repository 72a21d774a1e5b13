"""Compares the timer's files with each other and with the queue that the timer reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.doctor.parts.timer_messages import TIMER_LOG
from seglog.storage.directory import (
    LogReader,
    QueueFiles,
    StoreGeometry,
    has_data,
    infer_file_size,
    list_queue,
    numbered_files,
    queue_directory,
    read_units_left,
)
from seglog.storage.files import Files, read_start
from seglog.storage.findings import Finding
from seglog.storage.format.layout import I32
from seglog.storage.format.names import CONFIG, OURS, parse_segment_file_name, segment_file_name
from seglog.storage.format.queue import Units
from seglog.storage.format.record import FILLER, FLAG_AT, LOST_FLAG, Damage, examine, is_tombstone
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
    occupied_slots,
    read_timer_log,
    view_timer_slots,
)
from seglog.storage.scan import ListedStore, QueueEnds, Queues

TIMER_WHEEL: Final = "timerwheel"
TIMER_CHECK: Final = f"{CONFIG}/timercheck"
MOST_READ_MS: Final = 1 << 42
"""The timer never reads a slot in the future: a later time (2109) is damage. RocketMQ would wait for it."""
_PLACE: Final = np.dtype([("phy_offset", "i8"), ("size_bytes", "i4")])
_Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class _TimerLog:
    """The units of the timer log, with their positions in it."""

    start: int = 0
    end: int = 0
    positions: list[_Ints] = field(default_factory=list)
    slot_times_ms: list[_Ints] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def timer_findings(store: ListedStore, files: Files, queues: Queues, min_phy_offset: int) -> list[Finding]:
    """Returns the findings on the timer; empty if it was never used.

    Args:
        store: The store.
        files: Access to the store.
        queues: Its queues.
        min_phy_offset: Start of its log; -1 without any.
    """
    root, min_phy_offset = store.root, max(0, min_phy_offset)
    sizes = {entry.name: entry.size_bytes for entry in files.list_dir(root) if not entry.is_dir}
    listed = [entry for entry in files.list_dir(root / TIMER_LOG) if not entry.is_dir]
    queue = queues.get((TIMER_TOPIC, 0))
    known = QueueFiles(TIMER_TOPIC, 0, root / queue_directory(TIMER_TOPIC, 0))
    _first, units = read_units_left(files, list_queue(files, known), store.geometry.queue_file_size_bytes)
    with closing(LogReader(files, root, store.geometry.segment_size_bytes)) as reader:
        log = _read_log(files, root, units, min_phy_offset, reader)
    check, findings = _check_findings(files, root, log, queue, is_used=bool(listed))
    wheel_bytes = sizes.get(TIMER_WHEEL)
    if not wheel_bytes:  # RocketMQ treats an empty file as a new one
        has_snapshot = any(name.startswith(f"{TIMER_WHEEL}.") for name in sizes)
        if log.positions and not has_snapshot:
            findings.append(Finding("timer-wheel-missing", TIMER_WHEEL))
    elif wheel_bytes != TIMER_WHEEL_FILE_BYTES:
        words = (str(TIMER_WHEEL_FILE_BYTES), str(wheel_bytes))
        findings.append(Finding("timer-wheel-size", TIMER_WHEEL, 0, 0, *words))
    else:
        findings += _wheel_findings(files.read_file(root / TIMER_WHEEL), log, check, min_phy_offset)
    return log.findings + findings


def timer_notes(store: ListedStore, files: Files, queues: Queues) -> list[Finding]:
    """Returns notes on the normal state of the timer: the number of waiting messages."""
    queue = queues.get((TIMER_TOPIC, 0))
    if queue is None:
        return []
    count = waiting_timers(files, store.root, store.geometry, queue.min_offset, queue.max_offset)
    return [Finding("timer-waiting", queue_directory(TIMER_TOPIC, 0), messages=count)] if count else []


def waiting_timers(
    files: Files, root: Path, geometry: StoreGeometry, min_offset: int, max_offset: int
) -> int:
    """Returns the number of timer messages that wait for their time.

    They are the messages in slots of the wheel that the timer has not read yet, and those that the timer has
    not taken from its topic yet; without the tombstones of lost ones, which come to nothing.

    Args:
        files: Access to the store.
        root: The store directory.
        geometry: The lengths of its files.
        min_offset: Start of the queue of the timer topic.
        max_offset: End of that queue.
    """
    if max_offset <= min_offset:
        return 0
    sizes = {entry.name: entry.size_bytes for entry in files.list_dir(root) if not entry.is_dir}
    check = decode_timer_checkpoint(read_start(files, root / TIMER_CHECK, TIMER_CHECKPOINT_FILE_BYTES))
    next_offset = max(min_offset, check.last_queue_offset)
    count = max(0, max_offset - next_offset)
    # Without a timer's state it takes all from its topic again: those in the wheel are among them.
    has_wheel = check != TimerCheckpoint() and sizes.get(TIMER_WHEEL) == TIMER_WHEEL_FILE_BYTES
    if has_wheel:
        slots = view_timer_slots(files.read_file(root / TIMER_WHEEL))
        chosen = slots[occupied_slots(slots)]
        is_ahead = _is_ahead(chosen["slot_time"].astype(np.int64) * DEFAULT_PRECISION_MS, check)
        count += int(np.clip(chosen["message_count"][is_ahead], 0, None).sum())
    if not files.exists(root / OURS):
        return count  # only a repair of ours, which leaves that folder, makes tombstones
    places = [_untaken(files, root, geometry, next_offset, max_offset)]
    if has_wheel:
        places += _in_wheel(files, root, check)
    with closing(LogReader(files, root, geometry.segment_size_bytes)) as reader:
        return max(
            0, count - sum(_is_tombstone(reader, *place) for each in places for place in each.tolist())
        )


def _is_ahead(slot_ms: _Ints, check: TimerCheckpoint) -> npt.NDArray[np.bool_]:
    """Returns which slots the timer has yet to read, by their times."""
    return (slot_ms >= check.last_read_timestamp_ms) & (slot_ms <= MOST_READ_MS)


def _untaken(
    files: Files, root: Path, geometry: StoreGeometry, next_offset: int, max_offset: int
) -> npt.NDArray[np.void]:
    """Returns the places of the messages that the timer has not taken from its topic."""
    known = QueueFiles(TIMER_TOPIC, 0, root / queue_directory(TIMER_TOPIC, 0))
    first, units = read_units_left(files, list_queue(files, known), geometry.queue_file_size_bytes)
    untaken = units[max(0, next_offset - first) : max(0, max_offset - first)]
    return _places(untaken["phy_offset"], untaken["size_bytes"])


def _in_wheel(files: Files, root: Path, check: TimerCheckpoint) -> Iterator[npt.NDArray[np.void]]:
    """Yields the places of the messages in slots that the timer has yet to read, by file of its log."""
    for first in numbered_files(files, root / TIMER_LOG):
        units = read_timer_log(files.read_file(root / TIMER_LOG / segment_file_name(first))).units
        ahead = units[_is_ahead(_slot_times_ms(units), check)]
        yield _places(ahead["phy_offset"], ahead["record_bytes"])


def _is_tombstone(reader: LogReader, phy_offset: int, size_bytes: int) -> bool:
    flag = reader.read(phy_offset + FLAG_AT, I32.size)
    if len(flag) < I32.size or I32.unpack(flag)[0] != LOST_FLAG:
        return False
    record = reader.read(phy_offset, size_bytes)
    return len(record) == size_bytes and is_tombstone(memoryview(record))


def _slot_times_ms(units: TimerUnits) -> _Ints:
    """Returns when the messages of units of the timer log are due, in ms."""
    return units["write_timestamp_ms"].astype(np.int64) + units["delay_ms"].astype(np.int64)


def _check_findings(
    files: Files, root: Path, log: _TimerLog, queue: QueueEnds | None, *, is_used: bool
) -> tuple[TimerCheckpoint, list[Finding]]:
    sizes = {f"{CONFIG}/{entry.name}": entry.size_bytes for entry in files.list_dir(root / CONFIG)}
    size = sizes.get(TIMER_CHECK, 0)
    head = read_start(files, root / TIMER_CHECK, TIMER_CHECKPOINT_FILE_BYTES) if size else b""
    check = decode_timer_checkpoint(head)
    if not size or (size == TIMER_CHECKPOINT_FILE_BYTES and check == TimerCheckpoint()):
        # A file of zeros is equal to a missing file: RocketMQ starts over with either.
        count = 0 if queue is None else queue.max_offset - queue.min_offset
        missing = Finding("timer-check-missing", TIMER_CHECK, messages=count)
        return check, [missing] if is_used and count else []
    findings: list[Finding] = []
    if size != TIMER_CHECKPOINT_FILE_BYTES:
        words = (str(TIMER_CHECKPOINT_FILE_BYTES), str(size))
        findings.append(Finding("timer-check-size", TIMER_CHECK, 0, 0, *words))
    end = 0 if queue is None else queue.max_offset
    wrong = {
        "next slot to read": (0, max(0, check.last_read_timestamp_ms), MOST_READ_MS),
        "queue offset": (8 * 2, check.last_queue_offset, end),
        "queue offset of the master": (8 * 3, check.master_queue_offset, end),
        "place in the timer log": (8, check.last_flushed_position, log.end),
    }
    for name, (position, found, most) in wrong.items():
        if not 0 <= found <= most:
            words = (f"a {name} up to {most}", str(found))
            findings.append(Finding("timer-check-ahead", TIMER_CHECK, position, 8, *words))
    return check, findings


def _read_log(files: Files, root: Path, units: Units, min_phy_offset: int, reader: LogReader) -> _TimerLog:
    log = _TimerLog()
    for entry in files.list_dir(root / TIMER_LOG):
        if not entry.is_dir and parse_segment_file_name(entry.name) is None:
            words = ("a name of twenty digits", entry.name)
            log.findings.append(Finding("timer-log-file", f"{TIMER_LOG}/{entry.name}", 0, 0, *words))
    listed = numbered_files(files, root / TIMER_LOG)
    size = infer_file_size(listed.items(), DEFAULT_TIMER_LOG_FILE_BYTES)
    log.start = min(listed, default=0)
    places = _places(units["phy_offset"], units["size_bytes"])
    for first, length in listed.items():
        name = f"{TIMER_LOG}/{segment_file_name(first)}"
        if length != size:
            log.findings.append(Finding("timer-log-file", name, 0, 0, str(size), str(length)))
        data = files.read_file(root / name)
        found = read_timer_log(data)
        is_last = first == max(listed)
        rest = memoryview(data)[found.end_bytes :]  # a view: it may be most of 100 MB
        if not found.is_closed and (not is_last or has_data(rest)):
            words = ("a unit", rest[:TIMER_UNIT_BYTES].hex())
            log.findings.append(Finding("timer-log-damaged", name, found.end_bytes, len(rest), *words))
        log.positions.append(first + TIMER_UNIT_BYTES * np.arange(len(found.units), dtype=np.int64))
        log.slot_times_ms.append(_slot_times_ms(found.units))
        log.end = first + length if found.is_closed and not is_last else first + found.end_bytes
        log.findings += _stray_units(name, found.units, places, min_phy_offset, reader)
    return log


def _places(phy_offsets: npt.NDArray[np.generic], sizes: npt.NDArray[np.generic]) -> npt.NDArray[np.void]:
    places = np.empty(len(phy_offsets), _PLACE)
    places["phy_offset"], places["size_bytes"] = phy_offsets, sizes
    return places


def _stray_units(
    name: str, units: TimerUnits, places: npt.NDArray[np.void], min_phy_offset: int, reader: LogReader
) -> Iterator[Finding]:
    living = units["phy_offset"] >= min_phy_offset  # retention removes the log before the timer's
    stray = living & ~np.isin(_places(units["phy_offset"], units["record_bytes"]), places)
    # The queue may lack units of messages that are in the log.
    asked = set(zip(units["phy_offset"][stray].tolist(), units["record_bytes"][stray].tolist(), strict=True))
    there = [place for place in asked if _is_timer_record(reader, *place)]
    if there:
        stray &= ~np.isin(_places(units["phy_offset"], units["record_bytes"]), np.array(there, _PLACE))
    backwards = units["previous_position"] >= (np.arange(len(units)) + 1) * TIMER_UNIT_BYTES + int(
        name.rpartition("/")[2]
    )
    for mask, expected in (
        (stray, f"the place of a message of {TIMER_TOPIC}"),
        (backwards, "a unit before it in the same slot"),
    ):
        if mask.any():
            first = int(mask.argmax())
            yield Finding(
                "timer-unit-stray",
                name,
                first * TIMER_UNIT_BYTES,
                int(mask.sum()) * TIMER_UNIT_BYTES,
                expected,
                f"{units['phy_offset'][first]}, previous {units['previous_position'][first]}",
                int(mask.sum()),
            )


def _is_timer_record(reader: LogReader, phy_offset: int, size_bytes: int) -> bool:
    head = reader.read(phy_offset, FILLER.size_bytes)
    if len(head) < FILLER.size_bytes or FILLER.struct.unpack(head)[0] != size_bytes:
        return False
    row = examine(reader.read(phy_offset, size_bytes), 0, phy_offset)
    return not isinstance(row, Damage) and row.topic == TIMER_TOPIC.encode()


def _wheel_findings(
    data: bytes, log: _TimerLog, check: TimerCheckpoint, min_phy_offset: int
) -> list[Finding]:
    slots = view_timer_slots(data)
    positions = np.concatenate([np.empty(0, np.int64), *log.positions])
    times = np.concatenate([np.empty(0, np.int64), *log.slot_times_ms])
    numbers = occupied_slots(slots)
    chosen = slots[numbers]
    slot_ms = chosen["slot_time"].astype(np.int64) * DEFAULT_PRECISION_MS
    # Slots that the timer has read may lead to files that it removed.
    waiting = slot_ms >= check.last_read_timestamp_ms
    numbers, chosen, slot_ms = numbers[waiting], chosen[waiting], slot_ms[waiting]
    last = chosen["last_position"].astype(np.int64)
    at = np.searchsorted(positions, last).clip(max=max(len(positions) - 1, 0))
    if len(positions):
        # The timer removes no file of its log in which a waiting slot begins.
        leads = (positions[at] == last) & np.isin(chosen["first_position"].astype(np.int64), positions)
        leads &= times[at] // DEFAULT_PRECISION_MS == chosen["slot_time"]
    else:
        leads = np.zeros(len(last), np.bool_)
    if min_phy_offset == 0:  # the timer removes no file whose messages still exist
        leads &= chosen["first_position"] >= log.start
    wrong = np.flatnonzero(~leads)
    if not len(wrong):
        return []
    first = int(wrong[0])
    return [
        Finding(
            "timer-slot-wrong",
            TIMER_WHEEL,
            int(numbers[first]) * TIMER_SLOT.size_bytes,
            len(wrong) * TIMER_SLOT.size_bytes,
            f"units of {slot_ms[first]} in the timer log",
            f"places {chosen['first_position'][first]} to {last[first]}",
            int(np.clip(chosen["message_count"][wrong], 0, None).sum()),
        )
    ]

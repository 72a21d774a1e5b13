"""Messages that the timer must still deliver: their records in the commit log, and their units in its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.doctor.message import copy_names
from seglog.storage.directory import LogReader, numbered_files
from seglog.storage.files import Files
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue import Units
from seglog.storage.format.record import Damage, examine, tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.format.timer import (
    DEFAULT_PRECISION_MS,
    TIMER_ROLL,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
    TimerUnit,
    TimerUnits,
    due_unit,
    is_timer_unit,
)
from seglog.storage.overlay import is_message

TIMER_LOG: Final = "timerlog"
_ROLLS: Final = "TIMER_ROLL_TIMES"


@dataclass(frozen=True, slots=True)
class TimerMessage:
    """One record of the timer topic.

    Attributes:
        due_ms: Time at which it must be delivered.
        is_delete: Whether it removes another message from the timer.
        rolls: Number of times that it was rolled over.
    """

    phy_offset: int
    size_bytes: int
    store_timestamp_ms: int
    due_ms: int
    topic_hash: int
    is_delete: bool
    unique_key: str
    rolls: int


def iter_timer_messages(reader: LogReader, units: Units) -> Iterator[TimerMessage]:
    """Yields the messages of units of the timer topic; messages without a time are left out."""
    for phy_offset, size_bytes, _code in units[is_message(units)].tolist():
        record = reader.read(phy_offset, size_bytes)
        row = examine(record, 0, phy_offset, verify=False)
        if isinstance(row, Damage):
            continue
        start = row.properties_at
        named = props.decode_properties(bytes(record[start : start + row.properties_bytes]))
        due, rolls = named.get(copy_names.TIMER_OUT_MS, ""), named.get(_ROLLS, "")
        if not due.isdecimal():
            continue
        yield TimerMessage(
            phy_offset,
            size_bytes,
            row.store_timestamp_ms,
            int(due),
            tags_code(named.get(props.REAL_TOPIC, "")),
            copy_names.TIMER_DEL_UNIQKEY in named,
            named.get(props.UNIQ_KEY, ""),
            int(rolls) if rolls.isdecimal() else 0,
        )


def stored_timer_units(files: Files, root: Path) -> tuple[TimerUnits, npt.NDArray[np.int64]]:
    """Returns everything in the timer log that can be a unit, also after damage, and the positions."""
    parts, places = [np.empty(0, TIMER_UNIT.dtype)], [np.empty(0, np.int64)]
    for first in numbered_files(files, root / TIMER_LOG):
        data = files.read_file(root / TIMER_LOG / segment_file_name(first))
        units = np.frombuffer(data, TIMER_UNIT.dtype, len(data) // TIMER_UNIT_BYTES)
        numbers = np.flatnonzero(is_timer_unit(units))
        parts.append(units[numbers])
        places.append(first + numbers * TIMER_UNIT_BYTES)
    return np.concatenate(parts), np.concatenate(places)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The units that a timer log must hold.

    Attributes:
        units: ``(n,)`` in the order of the timer topic.
        made: Number of units that were rebuilt.
    """

    units: list[TimerUnit]
    made: int


def wanted_units(messages: list[TimerMessage], stored: TimerUnits, read_ms: int) -> Wanted:
    """Returns the units of messages that the timer took from its topic.

    Existing units are kept if their time is possible. Missing units are made for messages that are not due at
    ``read_ms``, and always for the last message, because RocketMQ continues in the topic after the last
    unit's message.

    Args:
        messages: The messages that the timer took, in order.
        stored: The units in its log.
        read_ms: Time of the slot that the timer reads next.
    """
    held = _by_place(stored)
    newest_roll: dict[str, int] = {}
    for message in messages:
        newest_roll[message.unique_key] = max(message.rolls, newest_roll.get(message.unique_key, 0))
    units: list[TimerUnit] = []
    made = 0
    for message in messages:
        unit = held.get((message.phy_offset, message.size_bytes))
        if unit is not None and _can_be(unit, message):
            units.append(unit)
            continue
        was_put_again = bool(message.unique_key) and message.rolls < newest_roll[message.unique_key]
        is_waiting = message.due_ms >= read_ms and not was_put_again
        if is_waiting or message is messages[-1]:
            units.append(_unit_of(message, read_ms, is_waiting=is_waiting))
            made += 1
    return Wanted(units, made)


def _by_place(stored: TimerUnits) -> dict[tuple[int, int], TimerUnit]:
    held: dict[tuple[int, int], TimerUnit] = {}
    for _size, *values in stored.tolist():
        unit = TimerUnit(*values)
        held.setdefault((unit.phy_offset, unit.record_bytes), unit)
    return held


def _can_be(unit: TimerUnit, message: TimerMessage) -> bool:
    """Returns whether a unit has the time of its message, or an earlier one at which it is rolled over."""
    if unit.magic & TIMER_ROLL:
        return unit.write_timestamp_ms <= unit.fire_timestamp_ms < message.due_ms
    return _slot(unit.fire_timestamp_ms) == _slot(message.due_ms)


def _unit_of(message: TimerMessage, read_ms: int, *, is_waiting: bool) -> TimerUnit:
    place = (message.phy_offset, message.size_bytes, message.topic_hash)
    taken_ms = _slot(message.store_timestamp_ms) * DEFAULT_PRECISION_MS
    if is_waiting:
        now_ms = max(taken_ms, read_ms)
        return due_unit(max(message.due_ms, now_ms), now_ms, *place, is_delete=message.is_delete)
    past_ms = _slot(min(taken_ms, message.due_ms, read_ms - 1)) * DEFAULT_PRECISION_MS
    return due_unit(past_ms, past_ms, *place, is_delete=message.is_delete)


def _slot(time_ms: int) -> int:
    return time_ms // DEFAULT_PRECISION_MS

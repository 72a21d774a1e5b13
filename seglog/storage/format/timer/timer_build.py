"""Timer log and wheel, rebuilt from the units that must be in them.

Both follow from the units: a unit's place from the number of units before it, the unit before it in its slot
and the slots of the wheel from the times. What the wheel of RocketMQ holds about files of the log that it
removed is left out; nothing reads it.

Source: ``store/.../timer/TimerLog.java append``, ``TimerMessageStore.java doEnqueue``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.timer.timer import (
    DEFAULT_PRECISION_MS,
    DEFAULT_SLOT_COUNT,
    TIMER_DELETE,
    TIMER_END,
    TIMER_NORMAL,
    TIMER_ROLL,
    TIMER_SLOT,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
    TimerSlots,
    TimerUnit,
    TimerUnits,
    encode_timer_end,
    encode_timer_unit,
)

ROLL_WINDOW_MS: Final = 2 * 86_400_000
"""``timerRollWindowSlot`` of RocketMQ: a message that is due later is put into the wheel again before."""
_NONE: Final = -1
_Ints = npt.NDArray[np.int64]


def due_unit(
    due_ms: int, now_ms: int, phy_offset: int, record_bytes: int, topic_hash: int, *, is_delete: bool = False
) -> TimerUnit:
    """Returns the unit that RocketMQ makes of a timer message, without the unit before it.

    Args:
        due_ms: ``TIMER_OUT_MS`` of the message.
        now_ms: When it is enqueued, a multiple of the precision; not behind ``due_ms``.
        phy_offset: Where the message is in ``rmq_sys_wheel_timer``.
        record_bytes: How long it is.
        topic_hash: Java hash of its real topic.
        is_delete: Whether it takes another message out.
    """
    magic = TIMER_NORMAL | (TIMER_DELETE if is_delete else 0)
    wait_ms = due_ms - now_ms
    if wait_ms >= ROLL_WINDOW_MS:
        magic |= TIMER_ROLL
        # What is left behind the first round must not be too short a second one.
        is_near = wait_ms - ROLL_WINDOW_MS < ROLL_WINDOW_MS // 3
        wait_ms = ROLL_WINDOW_MS // 2 if is_near else ROLL_WINDOW_MS
    return TimerUnit(_NONE, magic, now_ms, wait_ms, phy_offset, record_bytes, topic_hash)


def pack_units(units: list[TimerUnit]) -> TimerUnits:
    """Returns units as ``(n,) TIMER_UNIT.dtype``."""
    return np.frombuffer(b"".join(map(encode_timer_unit, units)), TIMER_UNIT.dtype)


def unit_positions(count: int, first: int, file_size_bytes: int) -> _Ints:
    """Returns where units are in the timer log, ``(n,)``.

    Args:
        count: How many.
        first: Of the log's first file, its first offset.
        file_size_bytes: Length of its files.
    """
    per_file = (file_size_bytes - TIMER_END.size_bytes) // TIMER_UNIT_BYTES
    files, within = np.divmod(np.arange(count, dtype=np.int64), per_file)
    positions: _Ints = first + files * file_size_bytes + within * TIMER_UNIT_BYTES
    return positions


def slot_times_ms(units: TimerUnits) -> _Ints:
    """Returns the time of each unit's slot, ``(n,)``."""
    times: _Ints = units["write_timestamp_ms"].astype(np.int64) + units["delay_ms"].astype(np.int64)
    return times


def iter_timer_log(
    units: TimerUnits, positions: _Ints, first: int, file_size_bytes: int
) -> Iterator[tuple[int, bytes]]:
    """Yields the files of a timer log: their first offset, and what they begin with; zeros follow.

    Args:
        units: ``(n,) TIMER_UNIT.dtype`` in the order in which they were enqueued; which unit is before each
            in its slot is found here.
        positions: Their places, of :func:`unit_positions`.
        first: First offset of the first file.
        file_size_bytes: Length of a file.
    """
    linked = units.astype(TIMER_UNIT.dtype)
    slots = slot_times_ms(units) // DEFAULT_PRECISION_MS
    order = np.argsort(slots, kind="stable")
    same = slots[order][1:] == slots[order][:-1]
    linked["previous_position"] = _NONE
    linked["previous_position"][order[1:][same]] = positions[order[:-1][same]]
    end = int(positions[-1]) if len(positions) else first
    for start in range(first, end + 1, file_size_bytes):
        low, high = np.searchsorted(positions, (start, start + file_size_bytes)).tolist()
        data = linked[low:high].tobytes()
        if high < len(linked):
            data += encode_timer_end(file_size_bytes - len(data))
        yield start, data


def wheel_slots(units: TimerUnits, positions: _Ints) -> tuple[_Ints, TimerSlots]:
    """Returns the slots of a wheel that lead to units: ``(m,)`` numbers in order, and what they hold.

    A slot holds one time; of those that share a number the one that was enqueued last.
    """
    times = slot_times_ms(units) // DEFAULT_PRECISION_MS
    numbers = times % DEFAULT_SLOT_COUNT
    last_times = dict(zip(numbers.tolist(), times.tolist(), strict=True))
    counts = np.where(units["magic"] & TIMER_DELETE, -1, 1)
    used = np.array(sorted(last_times), np.int64)
    slots = np.zeros(len(used), TIMER_SLOT.dtype)
    slots["slot_time"] = [last_times[number] for number in used.tolist()]
    at = np.searchsorted(used, numbers)
    is_held = slots["slot_time"][at] == times if len(used) else np.zeros(0, np.bool_)
    at, places, counts = at[is_held], positions[is_held], counts[is_held]
    slots["last_position"] = slots["first_position"] = _NONE
    slots["last_position"][at] = places  # the last of several counts
    slots["first_position"][at[::-1]] = places[::-1]
    totals = np.zeros(len(used), np.int64)
    np.add.at(totals, at, counts)
    slots["message_count"] = totals
    return used, slots

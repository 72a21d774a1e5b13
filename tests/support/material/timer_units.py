"""Units of the timer log, one by one, as RocketMQ reads and chains them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from seglog.errors import TruncatedError
from seglog.storage.format.layout import Buffer
from seglog.storage.format.timer.timer import (
    TIMER_END,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
    TimerUnit,
    read_timer_log,
)


def decode_timer_unit(buffer: Buffer, at: int = 0) -> TimerUnit | None:
    """Returns the unit at byte ``at`` of a file, None if there is none.

    Raises:
        TruncatedError: Fewer than 52 bytes are left.
    """
    if at < 0 or len(buffer) - at < TIMER_UNIT_BYTES:
        raise TruncatedError(
            "timer-unit", position_bytes=at, expected=f"{TIMER_UNIT_BYTES} bytes", found=len(buffer) - at
        )
    size, *values = TIMER_UNIT.struct.unpack_from(buffer, at)
    unit = TimerUnit(*values)
    return unit if size == TIMER_UNIT_BYTES and len(read_timer_log(buffer[at : at + size]).units) else None


def timer_log_rolls(position_bytes: int, file_size_bytes: int) -> bool:
    """Returns whether the next unit goes to another file: an end mark must fit behind every unit."""
    return TIMER_UNIT_BYTES + TIMER_END.size_bytes > file_size_bytes - position_bytes


def iter_timer_chain(
    unit_at: Callable[[int], TimerUnit | None], last_position: int
) -> Iterator[tuple[int, TimerUnit]]:
    """Yields the units of a slot with their positions, newest first.

    Ends where a damaged chain stops leading backwards.

    Args:
        unit_at: Returns the unit at a byte of the timer log, None if there is none.
        last_position: Of the slot; -1 for none.
    """
    position, below = last_position, last_position + 1
    while 0 <= position < below:
        unit = unit_at(position)
        if unit is None:
            return
        yield position, unit
        below, position = position, unit.previous_position

"""The timer: its wheel, its log, and how far it came.

Pure: bytes to values and back.

Called by checks and repairs of the timer's files.
Truth: RocketMQ's sources and files, as each module names them.
"""

from __future__ import annotations

from seglog.storage.format.timer.timer import (
    DEFAULT_PRECISION_MS,
    DEFAULT_TIMER_LOG_FILE_BYTES,
    TIMER_ROLL,
    TIMER_SLOT,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
    TIMER_WHEEL_FILE_BYTES,
    TimerUnit,
    TimerUnits,
    is_timer_unit,
    occupied_slots,
    read_timer_log,
    view_timer_slots,
)
from seglog.storage.format.timer.timer_build import (
    due_unit,
    iter_timer_log,
    pack_units,
    unit_positions,
    wheel_slots,
)
from seglog.storage.format.timer.timer_checkpoint import (
    TIMER_CHECKPOINT,
    TIMER_CHECKPOINT_FILE_BYTES,
    TimerCheckpoint,
    decode_timer_checkpoint,
    encode_timer_checkpoint,
)

__all__ = [
    "DEFAULT_PRECISION_MS",
    "DEFAULT_TIMER_LOG_FILE_BYTES",
    "TIMER_CHECKPOINT",
    "TIMER_CHECKPOINT_FILE_BYTES",
    "TIMER_ROLL",
    "TIMER_SLOT",
    "TIMER_UNIT",
    "TIMER_UNIT_BYTES",
    "TIMER_WHEEL_FILE_BYTES",
    "TimerCheckpoint",
    "TimerUnit",
    "TimerUnits",
    "decode_timer_checkpoint",
    "due_unit",
    "encode_timer_checkpoint",
    "is_timer_unit",
    "iter_timer_log",
    "occupied_slots",
    "pack_units",
    "read_timer_log",
    "unit_positions",
    "view_timer_slots",
    "wheel_slots",
]

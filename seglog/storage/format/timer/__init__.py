"""The timer: its wheel, its log, and how far it came.

Pure: bytes to values and back.

Called by checks and repairs of the timer's files.
Truth: RocketMQ's sources and files, as each module names them.
"""

from seglog.storage.format.timer.timer import DEFAULT_PRECISION_MS as DEFAULT_PRECISION_MS
from seglog.storage.format.timer.timer import DEFAULT_TIMER_LOG_FILE_BYTES as DEFAULT_TIMER_LOG_FILE_BYTES
from seglog.storage.format.timer.timer import TIMER_ROLL as TIMER_ROLL
from seglog.storage.format.timer.timer import TIMER_SLOT as TIMER_SLOT
from seglog.storage.format.timer.timer import TIMER_UNIT as TIMER_UNIT
from seglog.storage.format.timer.timer import TIMER_UNIT_BYTES as TIMER_UNIT_BYTES
from seglog.storage.format.timer.timer import TIMER_WHEEL_FILE_BYTES as TIMER_WHEEL_FILE_BYTES
from seglog.storage.format.timer.timer import TimerUnit as TimerUnit
from seglog.storage.format.timer.timer import TimerUnits as TimerUnits
from seglog.storage.format.timer.timer import is_timer_unit as is_timer_unit
from seglog.storage.format.timer.timer import occupied_slots as occupied_slots
from seglog.storage.format.timer.timer import read_timer_log as read_timer_log
from seglog.storage.format.timer.timer import view_timer_slots as view_timer_slots
from seglog.storage.format.timer.timer_build import due_unit as due_unit
from seglog.storage.format.timer.timer_build import iter_timer_log as iter_timer_log
from seglog.storage.format.timer.timer_build import pack_units as pack_units
from seglog.storage.format.timer.timer_build import unit_positions as unit_positions
from seglog.storage.format.timer.timer_build import wheel_slots as wheel_slots
from seglog.storage.format.timer.timer_checkpoint import TIMER_CHECKPOINT as TIMER_CHECKPOINT
from seglog.storage.format.timer.timer_checkpoint import (
    TIMER_CHECKPOINT_FILE_BYTES as TIMER_CHECKPOINT_FILE_BYTES,
)
from seglog.storage.format.timer.timer_checkpoint import TimerCheckpoint as TimerCheckpoint
from seglog.storage.format.timer.timer_checkpoint import decode_timer_checkpoint as decode_timer_checkpoint
from seglog.storage.format.timer.timer_checkpoint import encode_timer_checkpoint as encode_timer_checkpoint

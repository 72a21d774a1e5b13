"""The timer wheel and its log: which messages are due when.

The wheel has a slot for each second (of ``timerPrecisionMs``) of two weeks; a slot leads to the newest of
its units in the timer log, and each unit to the one before it in its slot. A slot's number is its time
modulo the number of slots, so it holds a time's units only if its ``slot_time`` says so. Far times wait in
an earlier slot and are put again from there (``TIMER_ROLL``).

Truth: the messages of ``rmq_sys_wheel_timer`` in the commit log, but only up to ``timercheck``: without
it, messages that were delivered already would be again.

Source: ``store/.../timer/TimerWheel.java``, ``Slot.java``, ``TimerLog.java``, ``TimerMessageStore.java``.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import Buffer, Field, Layout
from seglog.storage.format.record.record import MAGIC_BLANK

TIMER_SLOT: Final = Layout(
    "Timer wheel slot",
    "store/.../timer/Slot.java",
    (
        Field("slot_time", "i64", "precisions since 1970", "seconds with the default precision"),
        Field("first_position", "i64", "bytes from timer log start", "oldest unit; -1 for none"),
        Field("last_position", "i64", "bytes from timer log start", "newest unit; -1 for none"),
        Field("message_count", "i32", "messages", "normal units less delete units"),
        Field("magic", "i32", "–", "0"),
    ),
)
TIMER_UNIT: Final = Layout(
    "Timer log unit",
    "store/.../timer/TimerLog.java UNIT_SIZE",
    (
        Field("size_bytes", "i32", "bytes", "52"),
        Field("previous_position", "i64", "bytes from timer log start", "unit before in the slot, or -1"),
        Field("magic", "i32", "bits", "1 normal, 2 to be put again, 4 delete"),
        Field("write_timestamp_ms", "i64", "ms", "when it was enqueued"),
        Field("delay_ms", "i32", "ms", "from then to the slot's time"),
        Field("phy_offset", "i64", "bytes from log start", "the record in rmq_sys_wheel_timer"),
        Field("record_bytes", "i32", "bytes", "size of that record"),
        Field("topic_hash", "i32", "–", "Java hash of REAL_TOPIC"),
        Field("reserved", "i64", "–", "0"),
    ),
)
TIMER_END: Final = Layout(
    "Timer log end of file",
    "store/.../timer/TimerLog.java MIN_BLANK_LEN",
    (
        Field("rest_bytes", "i32", "bytes", "everything that is left of the file"),
        Field("reserved", "i64", "–", "0"),
        Field("magic", "u32", "–", "0xCBD43194"),
    ),
)

TIMER_NORMAL: Final = 1
TIMER_ROLL: Final = 2
TIMER_DELETE: Final = 4
_MAGIC_BITS: Final = 15

TIMER_UNIT_BYTES: Final = TIMER_UNIT.size_bytes
DEFAULT_SLOT_COUNT: Final = 2 * 7 * 86_400
DEFAULT_PRECISION_MS: Final = 1000
TIMER_WHEEL_FILE_BYTES: Final = DEFAULT_SLOT_COUNT * TIMER_SLOT.size_bytes
DEFAULT_TIMER_LOG_FILE_BYTES: Final = 100 << 20

TimerSlots = npt.NDArray[np.void]
TimerUnits = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class TimerUnit:
    """One unit of the timer log; the fields are those of the table."""

    previous_position: int
    magic: int
    write_timestamp_ms: int
    delay_ms: int
    phy_offset: int
    record_bytes: int
    topic_hash: int
    reserved: int = 0

    @property
    def fire_timestamp_ms(self) -> int:
        """The time of the unit's slot."""
        return self.write_timestamp_ms + self.delay_ms


@dataclass(frozen=True, slots=True)
class TimerLogFile:
    """What a file of the timer log holds.

    Attributes:
        units: ``(n,) TIMER_UNIT.dtype``, the valid units, a read-only view.
        end_bytes: Where they end in the file.
        is_closed: Whether an end mark says that the log continues in the next file.
    """

    units: TimerUnits
    end_bytes: int
    is_closed: bool


def view_timer_slots(buffer: Buffer) -> TimerSlots:
    """Returns all slots of a wheel as a read-only ``(n,) TIMER_SLOT.dtype`` that shares memory."""
    slots = np.frombuffer(buffer, TIMER_SLOT.dtype, len(buffer) // TIMER_SLOT.size_bytes)
    slots.flags.writeable = False
    return slots


def occupied_slots(slots: TimerSlots) -> npt.NDArray[np.int64]:
    """Returns the numbers of the slots that lead to units: those whose time belongs where they are."""
    times = slots["slot_time"]
    fits = (times > 0) & (slots["last_position"] >= 0)
    numbers = np.flatnonzero(fits)
    occupied: npt.NDArray[np.int64] = numbers[times[numbers] % len(slots) == numbers]
    return occupied


def is_timer_unit(units: TimerUnits) -> npt.NDArray[np.bool_]:
    """Returns for each of ``(n,) TIMER_UNIT.dtype`` whether RocketMQ takes it for a unit."""
    is_unit: npt.NDArray[np.bool_] = (units["size_bytes"] == TIMER_UNIT_BYTES) & (
        units["magic"] & ~_MAGIC_BITS == 0
    )
    return is_unit


def encode_timer_unit(unit: TimerUnit) -> bytes:
    """Returns the 52 bytes of a unit."""
    return TIMER_UNIT.struct.pack(TIMER_UNIT_BYTES, *astuple(unit))


def read_timer_log(buffer: Buffer) -> TimerLogFile:
    """Returns the units of a file up to the first thing that is none, as RocketMQ's recovery does."""
    units: TimerUnits = np.frombuffer(buffer, TIMER_UNIT.dtype, len(buffer) // TIMER_UNIT_BYTES)
    valid = is_timer_unit(units)
    count = len(units) if valid.all() else int(valid.argmin())
    units = units[:count]
    units.flags.writeable = False
    end = count * TIMER_UNIT_BYTES
    is_closed = (
        len(buffer) - end >= TIMER_END.size_bytes
        and TIMER_END.struct.unpack_from(buffer, end)[2] == MAGIC_BLANK
    )
    return TimerLogFile(units, end, is_closed)


def encode_timer_end(rest_bytes: int) -> bytes:
    """Returns the mark that closes a file with so many bytes left, the mark's own included."""
    return TIMER_END.struct.pack(rest_bytes, 0, MAGIC_BLANK)

"""The file ``config/timercheck``: how far the timer came.

Truth: this file and nothing else. Without it every timer message that is still in the commit log is
enqueued again, and those that are due are delivered a second time; a repair that rebuilds the wheel must
write both queue offsets as the end of ``rmq_sys_wheel_timer``.

Source: ``store/.../timer/TimerCheckpoint.java``.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Final

from seglog.storage.format.layout import Buffer, Field, Layout

TIMER_CHECKPOINT: Final = Layout(
    "timercheck",
    "store/.../timer/TimerCheckpoint.java flush",
    (
        Field("last_read_timestamp_ms", "i64", "ms", "next slot to read"),
        Field("last_flushed_position", "i64", "bytes from timer log start", "end of the flushed units"),
        Field("last_queue_offset", "i64", "messages", "enqueued so far of rmq_sys_wheel_timer"),
        Field("master_queue_offset", "i64", "messages", "the same on the master"),
        Field("state_version", "i64", "–", "of the data version"),
        Field("version_timestamp_ms", "i64", "ms", "of the data version"),
        Field("version_counter", "i64", "–", "of the data version"),
    ),
)

TIMER_CHECKPOINT_FILE_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class TimerCheckpoint:
    """Values of the file; all 0 for a store that has none."""

    last_read_timestamp_ms: int = 0
    last_flushed_position: int = 0
    last_queue_offset: int = 0
    master_queue_offset: int = 0
    state_version: int = 0
    version_timestamp_ms: int = 0
    version_counter: int = 0


def decode_timer_checkpoint(data: Buffer) -> TimerCheckpoint:
    """Returns the values; a short or empty file counts as all 0, as one that RocketMQ extends."""
    if len(data) < TIMER_CHECKPOINT.size_bytes:
        return TimerCheckpoint()
    return TimerCheckpoint(*TIMER_CHECKPOINT.struct.unpack_from(data))


def encode_timer_checkpoint(checkpoint: TimerCheckpoint) -> bytes:
    """Returns the 4096 bytes of the file."""
    return TIMER_CHECKPOINT.struct.pack(*astuple(checkpoint)).ljust(TIMER_CHECKPOINT_FILE_BYTES, b"\0")

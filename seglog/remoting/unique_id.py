"""Message ids that producers give (UNIQ_KEY), unique without asking anyone.

32 hexadecimal digits with an IPv4 address, 56 with IPv6: the address, the process id (16 bits), a number
of this life of the process (32 bits, Java: the hash of the class loader), milliseconds since the first of
the month (32 bits) and a counter (16 bits). So an id is unique within a process as long as fewer than
65,536 are made in a millisecond, and across processes as far as address, process id and number are.

The month is UTC's here and the local one in Java; readers only show an approximate time from it.

Source: ``MessageClientIDSetter.java createUniqID``.
"""

from __future__ import annotations

import datetime as dt
import itertools
import os
import secrets
from typing import Final

from seglog.clock import Clock, SystemClock
from seglog.storage.format.layout import Field, Layout

_LOOPBACK = bytes((127, 0, 0, 1))
UNIQUE_ID: Final = Layout(
    "Message id (UNIQ_KEY), behind the address bytes",
    "MessageClientIDSetter.java createUniqID",
    (
        Field("process_id", "i16", "–", "low 16 bits"),
        Field("life", "i32", "–", "distinguishes two lives of a process; Java: hash of the class loader"),
        Field("since_month_ms", "i32", "ms", "since the first of the month, by the producer's clock"),
        Field("counter", "i16", "–", "low 16 bits of the number of ids made before"),
    ),
)
_LIFE: Final = UNIQUE_ID.part("process_id", "life")


class UniqueIds:
    """Makes message ids.

    Args:
        clock: Gives the time in the ids.
        address: 4 or 16 bytes.
        process_id: Defaults to this process's.
        life: 32 bits that no other process with this address and process id has; random by default.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        address: bytes = _LOOPBACK,
        process_id: int | None = None,
        life: int | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        process = os.getpid() if process_id is None else process_id
        number = secrets.randbits(32) if life is None else life
        fixed = address + _LIFE.pack(_signed(process, 16), _signed(number, 32))
        self._fixed = fixed.hex().upper()
        self._count = itertools.count()
        self._month_start_ms = 0
        self._month_end_ms = 0

    def next(self) -> str:
        """Returns a new id."""
        now_ms = self._clock.now_ms()
        if now_ms >= self._month_end_ms:
            self._month_start_ms, self._month_end_ms = _month_of(now_ms)
        # A clock that was set back across the month's start would give a negative time: Java holds it at 0.
        since_ms = max(0, now_ms - self._month_start_ms)
        return f"{self._fixed}{since_ms:08X}{next(self._count) & 0xFFFF:04X}"


def _signed(value: int, bits: int) -> int:
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


def _month_of(now_ms: int) -> tuple[int, int]:
    now = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC)
    start = dt.datetime(now.year, now.month, 1, tzinfo=dt.UTC)
    end = (start + dt.timedelta(days=32)).replace(day=1)
    return int(start.timestamp()) * 1000, int(end.timestamp()) * 1000

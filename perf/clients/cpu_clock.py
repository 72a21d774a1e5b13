"""CPU time of another process: user and system, of all its threads, to the nanosecond."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def cpu_s(pid: int) -> float:
    """Returns the CPU seconds that a process has used.

    ``/proc/PID/stat`` has them in hundredths of a second, which is too coarse for a second of work.

    Args:
        pid: Of a process that runs.

    Raises:
        OSError: It does not.
    """
    clock = ctypes.c_int()
    error = _LIBC.clock_getcpuclockid(ctypes.c_int(pid), ctypes.byref(clock))
    if error:
        raise OSError(error, os.strerror(error))
    return time.clock_gettime(clock.value)

"""A folder in memory for the files of tests: a sync costs nothing there, and nothing is written to a disk."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final

IN_MEMORY: Final = tuple(
    f"tests/{folder}/"
    for folder in (
        *(
            "broker",
            "cli",
            "client",
            "consumer",
            "damage",
            "doctor",
            "producer",
            "server",
            "spark",
            "storage",
        ),
    )
)
"""Whose tests sync often; what a disk does to that is shown by tests that simulate or mount one."""

_FOLDER: Final = Path("/dev/shm")
_MEMORY: Final = Path("/proc/meminfo")
_ROOM_BYTES: Final = 2 << 30
"""Of a process; a test has some megabytes there, and leaves nothing."""
_LEFT_BYTES: Final = 4 << 30
"""For the processes themselves."""


def in_memory(test: str) -> Path | None:
    """Returns where the folder of a test is made in memory; None where it is on the disk.

    Args:
        test: Its file and name as pytest has them, from the root of the repository.
    """
    return room_in_memory() if test.startswith(IN_MEMORY) else None


def room_in_memory() -> Path | None:
    """Returns the folder in memory; None where the machine has none that it may write to, or no room."""
    return _FOLDER if _has_room() else None


@cache
def _has_room() -> bool:
    """Returns whether the machine could write to the folder, with room in it, when the first test asked."""
    if not (_MEMORY.is_file() and _FOLDER.is_dir() and os.access(_FOLDER, os.W_OK | os.X_OK)):
        return False
    room = os.statvfs(_FOLDER)
    sizes = dict(line.split(":") for line in _MEMORY.read_text().splitlines())
    free_bytes = int(sizes["MemAvailable"].split()[0]) << 10
    return room.f_bavail * room.f_frsize >= _ROOM_BYTES and free_bytes >= _ROOM_BYTES + _LEFT_BYTES

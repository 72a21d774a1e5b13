"""Flushes for those who leave the disk to the system, as our store and RocketMQ's flush by themselves."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

INTERVAL_S: Final = 0.5
"""Both engines' default between two flushes."""


class Flusher:
    """Syncs every file of a directory again and again, in a thread of the harness.

    Pages that a map made dirty go to the disk with the others, as ``fdatasync`` is of a file and not of who
    wrote to it. The time that it takes on a core counts as CPU time of no contestant.

    Args:
        directory: Where the log is; folders within too.
        interval_s: Between two turns.

    Attributes:
        synced_bytes: Length of all files of the last turn, each as it was then; 0 before the first.
    """

    def __init__(self, directory: Path, interval_s: float = INTERVAL_S) -> None:
        self.synced_bytes = 0
        self._directory = directory
        self._interval_s = interval_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._is_over.wait(self._interval_s):
            self.synced_bytes = sum(map(_sync, _files(self._directory)))


def _files(directory: Path) -> Iterator[Path]:
    for folder, _folders, names in os.walk(directory):
        yield from (Path(folder, name) for name in names)


def _sync(path: Path) -> int:
    """Returns how long the file was; 0 if its owner has removed it meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fdatasync(descriptor)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    return 0

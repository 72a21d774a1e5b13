"""The processes of a Spark job, the anonymous memory of each, and the CPU time of all.

Memory is ``RssAnon``: pages of mapped files count as memory only until others need it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

_LOOK_S: Final = 0.1
_KINDS: Final = {"worker": b"pyspark.daemon", "kernel": b"multiprocessing.spawn", "Java": b"java"}
"""What is in the command of each of the processes; the first that fits counts."""


def processes(driver: int) -> Iterator[tuple[str, str]]:
    """Yields a driver, its Java, Spark's Python workers and the kernel's, with their numbers.

    Args:
        driver: Number of the driver's process.
    """
    yield "driver", str(driver)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(driver):
            with contextlib.suppress(OSError):  # it ended meanwhile
                command = (entry / "cmdline").read_bytes()
                kind = next((kind for kind, text in _KINDS.items() if text in command), None)
                if kind is not None and _is_below(int(entry.name), driver):
                    yield kind, entry.name


class MemoryWatch:
    """Looks at the anonymous memory of the processes every now and then, in a thread.

    Args:
        driver: Number of the driver's process.

    Attributes:
        most: The most that was seen of one of each kind, in bytes.
    """

    def __init__(self, driver: int) -> None:
        self.most: Counter[str] = Counter()
        self._ticks: dict[str, int] = {}
        self._driver = driver
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all processes that were seen, each until it was seen last."""
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _look(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            for kind, number in processes(self._driver):
                with contextlib.suppress(OSError):
                    lines = Path(f"/proc/{number}/status").read_text().splitlines()
                    kib = next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
                    self.most[kind] = max(self.most[kind], kib << 10)
                    fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
                    self._ticks[number] = sum(map(int, fields[11:13]))


def _is_below(pid: int, driver: int) -> bool:
    while pid > 1:
        if pid == driver:
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return False

"""What the figures were taken on; no names of hosts."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and what ran on it.

    Attributes:
        java: Version of the Java that took part, empty if none did.
    """

    cores: int
    memory_gib: int
    kernel: str
    python: str
    java: str

    @override
    def __str__(self) -> str:
        """One line for the report."""
        return (
            f"{self.cores} cores, {self.memory_gib} GiB, Linux {self.kernel}, Python {self.python}"
            f"{f', Java {self.java}' if self.java else ''}"
        )


def describe(java: str = "") -> Machine:
    """Returns this machine.

    Args:
        java: Version of the Java that took part, empty if none did.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    kernel = re.match(r"[0-9.]+", platform.release())
    return Machine(
        os.cpu_count() or 1,
        round(memory / (1 << 30)),
        kernel.group().rstrip(".") if kernel else "",
        platform.python_version(),
        java,
    )

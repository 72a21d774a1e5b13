"""The machine of the figures, without host names."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and its software.

    Attributes:
        java: Version of the Java that took part, empty if none did.
        build: The compiler of the interpreter, and whether it used profiles and the linker's view.
    """

    cores: int
    memory_gib: int
    kernel: str
    python: str
    java: str
    build: str = ""

    @override
    def __str__(self) -> str:
        """One line for the report."""
        return (
            f"{self.cores} cores, {self.memory_gib} GiB, Linux {self.kernel}, Python {self.python}"
            f"{f' ({self.build})' if self.build else ''}{f', Java {self.java}' if self.java else ''}"
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
        interpreter_build(),
    )


def interpreter_build() -> str:
    """Returns the compiler of this interpreter, and which of the two flags that matter it was built with.

    Both make it up to a third quicker; the interpreters of distributions have them, one that was built by
    hand may not.
    """
    given = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    flags = [
        flag if f"{flag}'" in given or f"{flag}=" in given else f"no {flag}"
        for flag in ("--enable-optimizations", "--with-lto")
    ]
    return ", ".join([platform.python_compiler(), *flags])


def commit_of(checkout: Path) -> str:
    """Returns the short number of the commit that is checked out, empty where there is none.

    A ``+`` says that a file of engine, bench or judge is not as the commit has it; results do not count.
    """
    head = _git(checkout, "rev-parse", "--short=9", "HEAD")
    changed = _git(checkout, "status", "--porcelain", "--", "seglog", "perf", "tests", ":!perf/RESULTS*")
    return f"{head}{'+' if head and changed else ''}"


def _git(checkout: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

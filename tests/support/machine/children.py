"""Processes that outlive the call that starts them: every one is ended, and awaited with patience.

What a call runs to its end is `subprocess.run` with a limit from :mod:`tests.support.machine.patience`.
"""

from __future__ import annotations

import atexit
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

Words: TypeAlias = Sequence[str | Path]
Process: TypeAlias = subprocess.Popen[Any]

_STARTED: Final[set[Process]] = set()
"""Also those that their owner has dropped: they run on."""
_CRASHED: Final[list[Process]] = []
"""Those that ended by themselves as no program should, since the test began."""
_CRASHES: Final = frozenset(
    code
    for one in ("ABRT", "BUS", "FPE", "ILL", "SEGV")
    for code in (-signal.Signals[f"SIG{one}"], 128 + signal.Signals[f"SIG{one}"])
) | {1}
"""Exit codes: of signals that a fault raises, and of an exception of Python."""


def start(words: Words, **options: Any) -> Process:
    """Starts a process for an owner that calls :func:`end`; otherwise it ends with this process.

    Args:
        words: The command.
        options: Those of ``subprocess.Popen``.
    """
    process: Process = subprocess.Popen([str(word) for word in words], **options)
    _STARTED.add(process)
    return process


@contextmanager
def child(words: Words, **options: Any) -> Iterator[Process]:
    """Starts a process, and kills it at the end if it runs then.

    Args:
        words: The command.
        options: Those of ``subprocess.Popen``.
    """
    process = start(words, **options)
    try:
        yield process
    finally:
        end(process)


def end(process: Process) -> None:
    """Kills a process if it runs, waits for it, and closes its pipes."""
    _STARTED.discard(process)
    if process.poll() in _CRASHES:
        _CRASHED.append(process)
    if process.returncode is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:  # what was written last was for a process that has ended
                continue


def has_crashed() -> bool:
    """Returns whether a process has crashed, or ended with an exception, since the test began."""
    return bool(_CRASHED) or any(process.poll() in _CRASHES for process in _STARTED)


def forget_crashes() -> None:
    """Begins with another test."""
    _CRASHED.clear()


@atexit.register
def _end_all() -> None:
    for process in list(_STARTED):
        if process.poll() is None:
            end(process)

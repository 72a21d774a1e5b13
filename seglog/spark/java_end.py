"""How Spark's Java process ended, and the important part of its output."""

from __future__ import annotations

import signal
import subprocess
import traceback
from collections.abc import Iterable
from typing import Final

_WAIT_S: Final = 5.0
_SHOWN_LINES: Final = 5
_OF_SHELL: Final = 128
_NO_CAUSE: Final = ("WARNING:", "NOTE: Picked up ", "Picked up ")
"""Beginnings of lines that Java prints at a normal start."""


def end_text(code: int) -> str:
    """Returns a text on how a process ended.

    Args:
        code: The code of :attr:`subprocess.Popen.returncode`.
    """
    if code < 0:
        return f"it was killed by {_signal_name(-code)}"
    is_signal = code > _OF_SHELL  # a shell returns the signal of its command in this form
    return f"it ended with exit code {code}" + (f" ({_signal_name(code - _OF_SHELL)})" if is_signal else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def ended_java() -> str | None:
    """Returns how the Java of this process ended; None if it runs, or another process started it.

    Connections break a moment before a process has ended, so this waits for the end for a while.
    """
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    try:
        return None if process is None else end_text(process.wait(_WAIT_S))
    except subprocess.TimeoutExpired:
        return None


def end_within(error: BaseException) -> str | None:
    """Returns how the process ended that a function of PySpark started before it raised an error.

    The error of PySpark only states that it ended; the process object is in the frames of the traceback.
    """
    for frame, _line in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen) and process.poll() is not None:
            return end_text(process.returncode)
    return None


def printed_text(lines: Iterable[str]) -> str:
    """Returns the last lines that Java printed, without the warnings of a normal start."""
    said = [line.strip() for line in lines if line.strip() and not line.startswith(_NO_CAUSE)]
    return " / ".join(said[-_SHOWN_LINES:]) or "it printed nothing"

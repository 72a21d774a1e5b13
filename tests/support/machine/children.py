"""Processes that outlive the call that starts them: every one is ended, and awaited with patience.

What a call runs to its end is `subprocess.run` with a limit from :mod:`tests.support.machine.patience`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

Words: TypeAlias = Sequence[str | Path]
Process: TypeAlias = subprocess.Popen[Any]


@contextmanager
def child(words: Words, **options: Any) -> Iterator[Process]:
    """Starts a process, and kills it at the end if it runs then.

    Args:
        words: The command.
        options: Those of ``subprocess.Popen``.
    """
    process: Process = subprocess.Popen([str(word) for word in words], **options)
    try:
        yield process
    finally:
        end(process)


def end(process: Process) -> None:
    """Kills a process if it runs, waits for it, and closes its pipes."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:  # what was written last was for a process that has ended
                continue

"""Copies to this process's stderr what Java, and the Python workers below it, print on theirs.

Spark passes the stderr of its workers to its Java, so warnings of a read arrive that way. A thread reads the
pipe for as long as Java lives. Lines before the session exists come from Java itself, and are only kept for
the error of a Java that does not start; later lines are written to the current ``sys.stderr``, line by line.
Stack traces of workers are left out: a job that failed raises them here, and those of stopped workers are of
no interest.
"""

from __future__ import annotations

import atexit
import codecs
import os
import select
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Final

_CHUNK_BYTES: Final = 1 << 16
_KEPT_LINES: Final = 100
_DRAIN_S: Final = 1.0
_NAP_S: Final = 0.001
_CLOSED: Final = -1
_LOSS: Final = ": data loss: "
_STACK_S: Final = 2.0
_AGAIN_S: Final = 60.0
_KEPT_LOSSES: Final = 10_000
_STACK: Final = "Traceback (most recent call last)"
_OF_STACKS: Final = ("Exception ignored in", "During handling of the above", "The above exception was the")


class JavaStderr:
    """A pipe for the stderr of a Java that is about to start, and the thread that reads it.

    The thread ends with Java. It is a daemon thread, so it does not keep a process alive. A forked child has
    no such thread, and closes its end of the pipe.
    """

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        # Unbuffered, so that there is no lock that a fork could leave taken.
        self._reader = os.fdopen(reader, "rb", buffering=0)
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._is_handed_on = threading.Event()
        self._open_stacks = 0
        self._taken_s = 0.0
        self._said_losses: dict[str, float] = {}
        self._thread = threading.Thread(target=self._follow, name="seglog-java-stderr", daemon=True)
        self._thread.start()
        os.register_at_fork(after_in_child=self._reader.close)
        atexit.register(self._drain)

    def fileno(self) -> int:
        """Returns the end of the pipe that Java writes to."""
        return self._writer

    def close_writer(self) -> None:
        """Closes this process's writing end, once: the pipe ends when Java's end is closed too."""
        writer, self._writer = self._writer, _CLOSED
        if writer != _CLOSED:
            os.close(writer)

    def hand_on(self) -> None:
        """From now on lines are copied to stderr."""
        self._is_handed_on.set()

    def lines_so_far(self) -> list[str]:
        """Returns the last lines of a Java that has ended before anything was copied."""
        self._thread.join(_DRAIN_S)
        return list(self._kept)

    def _follow(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        begun = ""
        while chunk := self._reader.read(_CHUNK_BYTES):
            *lines, begun = (begun + decoder.decode(chunk)).split("\n")
            self._take(lines)
        atexit.unregister(self._drain)
        self._take([line for line in (begun + decoder.decode(b"", final=True),) if line])
        self._reader.close()

    def _take(self, lines: list[str]) -> None:
        if not self._is_handed_on.is_set():
            self._kept.extend(lines)
        elif (lines := self._without_stacks(lines)) and sys.stderr is not None:  # it may be None
            with suppress(OSError, ValueError):  # stderr is closed; Java must not block nevertheless
                sys.stderr.write("".join(f"{line}\n" for line in lines))
                sys.stderr.flush()

    def _without_stacks(self, lines: list[str]) -> list[str]:
        """Leaves out stack traces and their exceptions' lines; those of several workers may be mixed."""
        kept: list[str] = []
        now = time.monotonic()
        if now - self._taken_s > _STACK_S:
            self._open_stacks = 0  # of a worker that was killed while it printed
        self._taken_s = now
        for line in lines:
            if _LOSS in line:
                kept += [line] if self._is_news(line) else []
            elif line.startswith(_STACK):
                self._open_stacks += 1
            elif self._open_stacks and line[:1] not in ("", " "):
                self._open_stacks -= 1
            elif not self._open_stacks and not line.startswith(_OF_STACKS):
                kept.append(line)
        return kept

    def _is_news(self, line: str) -> bool:
        """Returns whether a line is no repetition of a recent loss: commands read stores in several jobs."""
        now = time.monotonic()
        said = self._said_losses.get(line)
        if len(self._said_losses) >= _KEPT_LOSSES:
            self._said_losses.clear()
        self._said_losses[line] = now
        return said is None or now - said > _AGAIN_S

    def _drain(self) -> None:
        """Waits until the thread has read what Java has written, because this process ends now."""
        give_up = time.monotonic() + _DRAIN_S
        with suppress(ValueError):  # the thread has read to the end meanwhile, and closed its side
            while time.monotonic() < give_up and select.select([self._reader], [], [], 0)[0]:
                time.sleep(_NAP_S)

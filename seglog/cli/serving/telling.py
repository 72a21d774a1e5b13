"""What the process says of itself: lines on standard output, and its log on standard error.

Both go through outlets: a terminal that stands still, a pipe without a reader and a full disk keep no
client waiting.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from typing_extensions import override

from seglog.cli.serving.outlet import Outlet
from seglog.cli.ui import render
from seglog.logs import logger

Tell = Callable[[dict[str, object], str], None]
"""Told what happened, as JSON and for people."""
_log = logger(__name__)
_NOT_READ = "are missing here: this was not read, or could not be written"


@contextmanager
def told(*, as_json: bool) -> Iterator[Tell]:
    """Yields what says on standard output what happens.

    Args:
        as_json: Whether it is said as JSON.
    """

    def line_of(fields: dict[str, object], text: str) -> str:
        return f"{render.json_text(fields)}\n" if as_json else render.line_text(text)

    def missing(count: int) -> str:
        return line_of({"kind": "missing", "lines": count}, f"{render.count_text(count, 'line')} {_NOT_READ}")

    with _lines(sys.stdout, "stdout", missing) as put:
        yield lambda fields, text: put(line_of(fields, text))


@contextmanager
def logged() -> Iterator[None]:
    """Writes to stderr meanwhile what is logged, what clients set too."""
    log, level = logger("seglog"), logger("seglog").level
    with _lines(
        sys.stderr, "stderr", lambda count: f"{render.count_text(count, 'line')} {_NOT_READ}\n"
    ) as put:
        handler = _Handler(put)
        hooks = threading.excepthook, sys.unraisablehook
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logging.root.addHandler(handler)
        log.setLevel(logging.INFO)
        threading.excepthook, sys.unraisablehook = _log_end_of_thread, _log_unraisable
        try:
            yield
        finally:
            threading.excepthook, sys.unraisablehook = hooks
            log.setLevel(level)
            logging.root.removeHandler(handler)


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    """Logs what a thread has ended with; the interpreter itself would wait for stderr."""
    if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
        name = "a thread" if ended.thread is None else ended.thread.name
        _log.error("%s has ended with %r", name, ended.exc_value, exc_info=ended.exc_value)


def _log_unraisable(what: sys.UnraisableHookArgs) -> None:
    """Logs an exception that has no caller, and what it was raised in."""
    _log.error(
        "%s %r: %r", what.err_msg or "ignored in", what.object, what.exc_value, exc_info=what.exc_value
    )


class _Handler(logging.Handler):
    """Gives what is logged to a function, line by line."""

    def __init__(self, put: Callable[[str], None]) -> None:
        super().__init__()
        self._put = put

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._put(f"{self.format(record)}\n")


@contextmanager
def _lines(stream: IO[str], name: str, missing: Callable[[int], str]) -> Iterator[Callable[[str], None]]:
    """Yields what takes lines for a stream."""
    stream.flush()
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:  # it is in memory, where nothing waits

        def write(line: str) -> None:
            stream.write(line)

        yield write
        return
    with Outlet(descriptor, name, missing) as outlet:
        yield outlet.put

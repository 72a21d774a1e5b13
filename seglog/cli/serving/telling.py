"""The output of the process: events on standard output, and its log on standard error.

Both are written through outlets, so a stopped terminal, a pipe without a reader and a full disk do not make
clients wait.
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
"""Called with an event, as JSON fields and as text."""
_log = logger(__name__)
_NOT_READ = "are missing here: this was not read, or could not be written"


@contextmanager
def told(*, as_json: bool) -> Iterator[Tell]:
    """Yields a function that prints events on standard output.

    Args:
        as_json: Whether it prints JSON.
    """

    def line_of(fields: dict[str, object], text: str) -> str:
        return f"{render.json_text(fields)}\n" if as_json else render.line_text(text)

    def missing(count: int) -> str:
        return line_of({"kind": "missing", "lines": count}, f"{render.count_text(count, 'line')} {_NOT_READ}")

    with _lines(sys.stdout, "stdout", missing) as put:
        yield lambda fields, text: put(line_of(fields, text))


@contextmanager
def logged() -> Iterator[None]:
    """Writes the log to stderr within the block, with the levels that clients set."""
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
    """Logs the exception that ended a thread; the interpreter itself would write to stderr and block."""
    if ended.exc_value is not None and not issubclass(ended.exc_type, SystemExit):
        name = "a thread" if ended.thread is None else ended.thread.name
        _log.error("%s has ended with %r", name, ended.exc_value, exc_info=ended.exc_value)


def _log_unraisable(what: sys.UnraisableHookArgs) -> None:
    """Logs an exception that has no caller, and the object in which it was raised."""
    _log.error(
        "%s %r: %r", what.err_msg or "ignored in", what.object, what.exc_value, exc_info=what.exc_value
    )


class _Handler(logging.Handler):
    """Passes log records to a function, line by line."""

    def __init__(self, put: Callable[[str], None]) -> None:
        super().__init__()
        self._put = put

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._put(f"{self.format(record)}\n")


@contextmanager
def _lines(stream: IO[str], name: str, missing: Callable[[int], str]) -> Iterator[Callable[[str], None]]:
    """Yields a function that writes lines to a stream."""
    stream.flush()
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:  # a stream in memory, which never blocks

        def write(line: str) -> None:
            stream.write(line)

        yield write
        return
    with Outlet(descriptor, name, missing) as outlet:
        yield outlet.put

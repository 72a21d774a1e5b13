"""Ctrl-C while Spark works: ends the command and Spark, without output.

Spark's own handler asks Java to cancel all jobs over the connection from which the interrupted call reads.
This fails with two stack traces. Here Python's handler is restored; the session, and so its jobs, end with
the command.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_LOGGERS: Final = (None, "py4j.clientserver", "py4j.java_gateway")
"""Loggers to which py4j writes a stack trace when an interrupt breaks its connection, before it raises."""


@contextmanager
def plain_interrupts() -> Iterator[Callable[[], None]]:
    """Yields a function that replaces Spark's handler by the former one, to call once there is a session.

    Raises:
        KeyboardInterrupt: Also if the interrupt caused another error in the block, by breaking a connection.
    """
    before = signal.getsignal(signal.SIGINT)

    def take_back() -> None:
        if threading.current_thread() is threading.main_thread():  # Spark too sets its handler only there
            signal.signal(signal.SIGINT, before)

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_of_none)  # noqa: TID251 - PySpark's, not ours
    try:
        yield take_back
    except Exception as error:
        if _is_of_interrupt(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(_is_of_none)  # noqa: TID251 - PySpark's, not ours


def _is_of_interrupt(error: BaseException | None) -> bool:
    """Returns whether an error is an interrupt, or was raised while one was handled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _is_of_none(record: logging.LogRecord) -> bool:
    return not record.exc_info or not _is_of_interrupt(record.exc_info[1])

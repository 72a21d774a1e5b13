"""Ctrl-C while Spark works: the command ends, Spark with it, and nothing is printed.

Spark's own handler asks Java to cancel all jobs, over the connection from which the interrupted call reads:
that fails with two stacks. Here the interrupt is Python's again; the session, and so its jobs, end with the
command.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_LOGGERS: Final = (None, "py4j.clientserver", "py4j.java_gateway")
"""Where py4j logs, with a stack, what an interrupt does to its connection, before it raises the interrupt."""


@contextmanager
def plain_interrupts() -> Iterator[Callable[[], None]]:
    """Lends what puts the handler that there was back in the place of Spark's, once there is a session.

    Raises:
        KeyboardInterrupt: Also where it came to something else in the block: a connection that it broke.
    """
    before = signal.getsignal(signal.SIGINT)

    def take_back() -> None:
        if threading.current_thread() is threading.main_thread():  # Spark has a handler there only, too
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
    """Whether an error is an interrupt, or came while one was handled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _is_of_none(record: logging.LogRecord) -> bool:
    return not record.exc_info or not _is_of_interrupt(record.exc_info[1])

"""Ctrl-C while Spark works: the command ends, Spark with it, and nothing is printed.

Spark's own handler asks Java to cancel all jobs, over the connection from which the interrupted call reads:
that fails with two stacks. Here the interrupt is Python's again; the session, and so its jobs, end with the
command.
"""

from __future__ import annotations

import logging
import signal
import threading
from types import TracebackType
from typing import Final, Self

_LOGGED: Final = "KeyboardInterrupt while sending command."
"""What py4j logs, with its stack, before it raises the same."""


class PlainInterrupts:
    """Puts the handler that there was back in the place of Spark's; made before the session is."""

    def __init__(self) -> None:
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Spark has a handler there only, too
            signal.signal(signal.SIGINT, self._before)
        logging.getLogger().addFilter(_is_not_interrupt)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        logging.getLogger().removeFilter(_is_not_interrupt)


def _is_not_interrupt(record: logging.LogRecord) -> bool:
    return record.msg != _LOGGED

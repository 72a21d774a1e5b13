"""The loggers of this package: each message is one line, without characters that control a terminal.

Logging never raises to its caller, not even if a handler or filter of the application raises, or ``str()`` of
one of its objects. A log line that is lost is better than a queue that is no longer served.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from seglog.text import printable, text_of

_ERRORS: Final = logging.Handler()
"""Prints the error of a handler, as handlers of ``logging`` do, unless ``logging.raiseExceptions`` is off."""


def logger(name: str) -> logging.Logger:
    """Returns the logger of a module; its messages are escaped so that each is one valid line.

    Names, remarks and addresses may come from the network: a line end in one of them would forge a line of
    the log, and half a surrogate pair, which JSON can carry, would make the handler of a UTF-8 file fail.
    Errors of handlers are not raised.

    Args:
        name: The module, ``__name__``.
    """
    found = logging.getLogger(name)  # noqa: TID251 - it is the one that all others are told to use
    found.addFilter(_escape)  # added once, for any number of calls
    vars(found).setdefault("handle", partial(_handle, found))
    return found


def _handle(log: logging.Logger, record: logging.LogRecord) -> None:
    try:
        type(log).handle(log, record)  # the application may have set a class of its own
    except Exception:  # noqa: BLE001 - its handlers and filters are in any case
        _ERRORS.handleError(record)


def _escape(record: logging.LogRecord) -> bool:
    try:
        text = record.getMessage()
    except Exception:
        if not isinstance(record.args, tuple) or all(map(_has_text, record.args)):
            raise  # the format itself is wrong
        record.args = tuple(each if _has_text(each) else text_of(each) for each in record.args)
        text = record.getMessage()
    if not text.isprintable():
        record.msg, record.args = printable(text), None
    return True


def _has_text(value: object) -> bool:
    try:
        str(value)
        repr(value)
    except Exception:  # noqa: BLE001 - the application's code
        return False
    return True

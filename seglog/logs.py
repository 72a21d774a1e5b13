"""The loggers of this package: each message is one line, without what a terminal would act upon.

The caller goes on in any case: also if a handler or filter of the application raises, or ``str()`` of one
of its objects does. A log line that is lost is better than a queue that is no longer served.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from seglog.text import printable, text_of

_ERRORS: Final = logging.Handler()
"""Prints what a handler raised, as those of ``logging`` do, unless ``logging.raiseExceptions`` is off."""


def logger(name: str) -> logging.Logger:
    """Returns the logger of a module, whose messages have no character that a line of a log must not have.

    Names, remarks and addresses come from the network too: one with a line end would write a line of its own,
    and half a surrogate pair, which JSON can carry, ends the handler of a file in UTF-8. It raises nothing
    that a handler does.

    Args:
        name: The module, ``__name__``.
    """
    found = logging.getLogger(name)  # noqa: TID251 - it is the one that all others are told to use
    found.addFilter(_escape)  # once, however often it is asked for
    vars(found).setdefault("handle", partial(_handle, found))
    return found


def _handle(log: logging.Logger, record: logging.LogRecord) -> None:
    try:
        type(log).handle(log, record)  # the class may be the application's
    except Exception:  # noqa: BLE001 - its handlers and filters are in any case
        _ERRORS.handleError(record)


def _escape(record: logging.LogRecord) -> bool:
    try:
        text = record.getMessage()
    except Exception:
        if not isinstance(record.args, tuple) or all(map(_has_text, record.args)):
            raise  # it is the format that is wrong
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

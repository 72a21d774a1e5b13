"""The loggers of this package: each message is one line, without what a terminal would act upon."""

from __future__ import annotations

import logging

from seglog.text import printable


def logger(name: str) -> logging.Logger:
    """Returns the logger of a module, whose messages have no character that a line of a log must not have.

    Names, remarks and addresses come from the network too: one with a line end would write a line of its own,
    and half a surrogate pair, which JSON can carry, ends the handler of a file in UTF-8.

    Args:
        name: The module, ``__name__``.
    """
    found = logging.getLogger(name)  # noqa: TID251 - it is the one that all others are told to use
    found.addFilter(_escape)  # once, however often it is asked for
    return found


def _escape(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    if not text.isprintable():
        record.msg, record.args = printable(text), None
    return True

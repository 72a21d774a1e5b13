"""What a forked child has of what its parent has opened: nothing. Each use of it raises the same error.

Maps, tables, locks, sockets and threads are the parent's: what a child wrote would go over newer files, what
it answered would be as things were at the fork, what it took out of an event loop would be out of its
parent's, and a lock that another thread had then is never given back.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from seglog.errors import ClosedError

Owner = TypeVar("Owner")


class Forked:
    """Stands in a child for a part of what is the parent's; anything that is asked of it raises.

    Args:
        what: As for :func:`forked_error`.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, _name: str) -> NoReturn:
        raise forked_error(self._what)


def forked_error(what: str) -> ClosedError:
    """Returns what a forked child gets that uses what its parent has opened.

    Args:
        what: What it is, such as ``the store /data/orders``.
    """
    return ClosedError(
        f"{what} is open in the process that this one was forked from",
        help="open it after the fork, or have the parent serve its broker and connect to that",
    )


def abandon_in_children(owner: Owner, abandon: Callable[[Owner], None]) -> None:
    """Has each forked child give something up, in the order in which it was opened.

    Args:
        owner: What is open, for as long as it is used.
        abandon: Gives it up; it takes no lock and waits for nothing.
    """
    _open[owner] = abandon


def end_child(error: BaseException | None = None) -> NoReturn:
    """Ends a forked child whose one thread is its parent's worker, as the end of a program does.

    What ``atexit`` has is the parent's, and is left to it.

    Args:
        error: What ends it; the status is that of ``SystemExit``, and 1 after another error.
    """
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if not isinstance(error.code, int | None):
            sys.stderr.write(f"{error.code}\n")
    elif error is not None:
        status = 1
        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # it may be missing, or have no reader
            stream.flush()
    os._exit(status & 0xFF)


_open: Final[WeakKeyDictionary[Any, Callable[[Any], None]]] = WeakKeyDictionary()


def _abandon_all() -> None:
    for owner, abandon in list(_open.items()):
        abandon(owner)


os.register_at_fork(after_in_child=_abandon_all)

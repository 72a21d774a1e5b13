"""Objects of a parent in a forked child: they are unusable there, and each use raises the same error.

Maps, tables, locks, sockets and threads belong to the parent. Writes of a child would overwrite newer data,
its answers would show the state at the fork, its event loop would share descriptors with that of the parent,
and a lock that another thread held at the fork would never be released.
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
    """Replaces an object of the parent in a child; every use of it raises an error.

    Args:
        what: As for :func:`forked_error`.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, _name: str) -> NoReturn:
        raise forked_error(self._what)


def forked_error(what: str) -> ClosedError:
    """Returns the error for a forked child that uses an object which its parent has opened.

    Args:
        what: Name of the object, such as ``the store /data/orders``.
    """
    return ClosedError(
        f"{what} is open in the process that this one was forked from",
        help="open it after the fork, or have the parent serve its broker and connect to that",
    )


def abandon_in_children(owner: Owner, abandon: Callable[[Owner], None]) -> None:
    """Makes each forked child give up an object, in the order in which objects were opened.

    Args:
        owner: The object, as long as it is in use.
        abandon: Gives it up; takes no lock and waits for nothing.
    """
    _open[owner] = abandon


def end_child(error: BaseException | None = None) -> NoReturn:
    """Ends a forked child whose only thread is a worker of its parent, in the way a program ends.

    Functions registered with ``atexit`` are not called, because they belong to the parent.

    Args:
        error: The error that ends the child; the status is that of ``SystemExit``, and 1 for any other error.
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
        with suppress(Exception):  # the stream may be missing, or have no reader
            stream.flush()
    os._exit(status & 0xFF)


_open: Final[WeakKeyDictionary[Any, Callable[[Any], None]]] = WeakKeyDictionary()


def _abandon_all() -> None:
    for owner, abandon in list(_open.items()):
        abandon(owner)


os.register_at_fork(after_in_child=_abandon_all)

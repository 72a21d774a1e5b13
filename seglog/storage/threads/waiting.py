"""Whether the calling thread may wait for the disk: the thread of an event loop may not.

An operation that would have to wait raises :class:`WouldWaitError` before it has changed anything; the caller
repeats it in a thread that may wait.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager


class WouldWaitError(Exception):
    """The operation needs a file, space or a sync first, and may not wait for it; nothing was changed."""


class _Here(threading.local):
    may_wait: bool = True


_here = _Here()


def may_wait() -> bool:
    """Returns whether the calling thread may wait now."""
    return _here.may_wait


def check_may_wait() -> None:
    """Passes where the calling thread may wait.

    Raises:
        WouldWaitError: The thread may not wait.
    """
    if not _here.may_wait:
        raise WouldWaitError


class _WithoutWaiting:
    """The block of :func:`without_waiting`, which is entered for each request."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before, _here.may_wait = _here.may_wait, False

    def __exit__(self, *_error: object) -> None:
        _here.may_wait = self._before


def without_waiting() -> AbstractContextManager[None]:
    """Forbids the calling thread to wait, within the block."""
    return _WithoutWaiting()

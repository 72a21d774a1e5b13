"""Whether the calling thread may wait for the disk: an event loop's may not while it answers a request.

What would have to wait then raises :class:`WouldWaitError` before it has changed anything, and is done again
by a thread that may.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class WouldWaitError(Exception):
    """Something needs a file, space or a sync first, and may not wait for the disk; nothing has changed."""


class _Here(threading.local):
    may_wait: bool = True


_here = _Here()


def may_wait() -> bool:
    """Returns whether the calling thread may wait now."""
    return _here.may_wait


def check_may_wait() -> None:
    """Passes where the calling thread may wait.

    Raises:
        WouldWaitError: It may not.
    """
    if not _here.may_wait:
        raise WouldWaitError


@contextmanager
def without_waiting() -> Iterator[None]:
    """Within it, the calling thread may not wait."""
    before, _here.may_wait = _here.may_wait, False
    try:
        yield
    finally:
        _here.may_wait = before

"""The inboxes of event loops, for tasks that wait for what other threads resolve."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from seglog.remoting.later.inbox import Inbox, Task

_lock: Final = threading.Lock()
_inboxes: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Inbox]] = WeakKeyDictionary()


async def until_told(listen: Callable[[Callable[[object], None]], None]) -> None:
    """Returns once a function that another thread was given was called.

    Args:
        listen: Given the function, which any thread may call with anything.
    """
    loop = asyncio.get_running_loop()
    inbox = inbox_of(loop)
    over: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not over.done():
            over.set_result(None)

    listen(lambda _: inbox.post(end))
    await over


def inbox_of(loop: asyncio.AbstractEventLoop) -> Inbox:
    """Returns the inbox of a loop."""
    with _lock:
        inbox = _inboxes.get(loop)
        if inbox is None:
            # The inbox must not keep its loop alive, which is the key of the table.
            inbox = _inboxes[loop] = Inbox(partial(_wake, weakref.ref(loop)))
        return inbox


def _wake(of: weakref.ref[asyncio.AbstractEventLoop], task: Task) -> None:
    loop = of()
    if loop is not None:
        with suppress(RuntimeError):  # it was closed, and no task waits in it any more
            # A byte through the loop's own socket is what a call from another thread costs.
            (loop.call_soon if is_running_here(loop) else loop.call_soon_threadsafe)(task)


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Returns whether the calling thread runs this loop now."""
    return running_loop() is loop


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Returns the loop that the calling thread runs now; None where it runs none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


# A thread that has an inbox made while another one forks would leave the lock taken in the child.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

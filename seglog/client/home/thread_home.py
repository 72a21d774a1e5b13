"""The one thread of all clients of this process without a loop of their own.

The first such client starts it; as a daemon thread it ends with the process. A forked child starts its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Final

from seglog.client.home.loop_home import LoopHome
from seglog.forked import end_child
from seglog.logs import logger

NAME: Final = "seglog-client"

_lock: Final = threading.Lock()
_homes: Final[list[LoopHome]] = []
_log = logger(__name__)


def thread_home() -> LoopHome:
    """Returns the home that is a thread with a loop, the same one for the whole process."""
    with _lock:
        if _homes and _homes[-1].why_over is not None:
            _homes.pop()
        if not _homes:
            loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(loop,), name=NAME, daemon=True).start()
            _homes.append(LoopHome(loop))
        return _homes[-1]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    process_id = os.getpid()
    while not loop.is_closed():  # a task of an application may stop it, but other clients share it
        try:
            loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - asyncio lets these end a loop, and all clients are in this one
            if os.getpid() != process_id:
                end_child(error)
            _log.exception("something that the thread %s ran would end a program: it goes on", NAME)
        if os.getpid() != process_id:  # an async listener forked, and this is the child's only thread
            end_child()


def _begin_in_child() -> None:
    _lock.release()
    for home in _homes:
        home.loop.stop()  # before it polls the sockets again, which the parent has too


# Otherwise a fork during the creation of the home would leave the lock taken in the child.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_in_child)

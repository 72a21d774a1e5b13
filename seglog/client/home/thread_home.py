"""The one thread of all clients of this process that have no loop of their own.

It is made with the first of them and stays; as a daemon it ends with the process. A forked child makes its
own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Final

from seglog.client.home.loop_home import LoopHome
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
    while not loop.is_closed():  # who stops it is a task of an application, which shares it with others
        try:
            loop.run_forever()
        except BaseException:  # noqa: BLE001 - asyncio lets these end a loop, and all clients are in this one
            _log.exception("something that the thread %s ran would end a program: it goes on", NAME)


# A thread that makes the home while another one forks would leave the lock taken in the child.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)

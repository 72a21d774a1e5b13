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
    while not loop.is_closed():  # who stops it is a task of an application, which shares it with others
        try:
            loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - asyncio lets these end a loop, and all clients are in this one
            if os.getpid() != process_id:
                end_child(error)
            _log.exception("something that the thread %s ran would end a program: it goes on", NAME)
        if os.getpid() != process_id:  # an async listener has forked, and this is the one thread of the child
            end_child()


def _begin_in_child() -> None:
    _lock.release()
    for home in _homes:
        home.loop.stop()  # before it looks at sockets again, which are the parent's too


# A thread that makes the home while another one forks would leave the lock taken in the child.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_in_child)

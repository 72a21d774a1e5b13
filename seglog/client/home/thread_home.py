"""The one thread of all clients of this process without a loop of their own.

The first such client starts it; as a daemon thread it ends with the process. A forked child starts its own.

The thread rests in its selector most of the time. Meanwhile a thread of an application may be the home, for
one task: a commit to a broker in this process needs no event loop, and to wake the home and to be woken by it
takes as long as a sync of the disk.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import threading
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from seglog.client.home.loop_home import LoopHome
from seglog.forked import end_child
from seglog.logs import logger

NAME: Final = "seglog-client"

_lock: Final = threading.Lock()
_homes: Final[list[ThreadHome]] = []
_log = logger(__name__)


class _Turns(selectors.DefaultSelector):
    """The selector of the home's loop, whose thread has the turn but while it rests here.

    Attributes:
        turn: Held by the one thread that is the home.
        door: Held by the one thread that has the turn next. Without it the loop, which gives the turn back
            only for a moment while it is busy, would mostly take it again before a waiting thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self.turn = threading.Lock()
        self.door = threading.Lock()

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turn.release()
        try:
            return super().select(timeout)
        finally:
            with self.door:
                self.turn.acquire()


class ThreadHome(LoopHome):
    """The home that is a thread with a loop, and for one task at a time the thread that has the task."""

    def __init__(self) -> None:
        self._turns = _Turns()
        self._guest: int | None = None
        super().__init__(asyncio.SelectorEventLoop(self._turns))

    @override
    def run_now(self, task: Callable[[], object]) -> bool:
        """Runs a task in the calling thread, as soon as the loop's thread rests; returns whether it did.

        It waits no longer than a posted task would.
        """
        if self.is_here() or not self._inbox.is_empty:
            return False
        with self._turns.door, self._turns.turn:  # statements that Ctrl-C cannot leave with a lock taken
            try:
                self._guest = threading.get_ident()
                task()
            finally:
                self._guest = None
        return True

    @override
    def is_here(self) -> bool:
        """Returns whether the calling thread is the home now."""
        return self._guest == threading.get_ident() or super().is_here()

    def run(self) -> None:
        """Runs the loop, as its thread."""
        loop = self.loop
        asyncio.set_event_loop(loop)
        process_id = os.getpid()
        with self._turns.turn:
            while not loop.is_closed():  # a task of an application may stop it, but other clients share it
                try:
                    loop.run_forever()
                except BaseException as error:  # noqa: BLE001 - asyncio lets these end a loop with all clients in it
                    if os.getpid() != process_id:
                        end_child(error)
                    _log.exception("something that the thread %s ran would end a program: it continues", NAME)
                if os.getpid() != process_id:  # an async listener forked, and this is the child's only thread
                    end_child()


def thread_home() -> LoopHome:
    """Returns the home that is a thread with a loop, the same one for the whole process."""
    with _lock:
        if _homes and _homes[-1].why_over is not None:
            _homes.pop()
        if not _homes:
            home = ThreadHome()
            threading.Thread(target=home.run, name=NAME, daemon=True).start()
            _homes.append(home)
        return _homes[-1]


def _begin_in_child() -> None:
    _lock.release()
    for home in _homes:
        home.loop.stop()  # before it polls the sockets again, which the parent has too


# Otherwise a fork during the creation of the home would leave the lock taken in the child.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_in_child)

"""An event loop as the home of clients: the application's own, or the one of this process (``thread_home``).

After a fork the child has the loop's memory, but not its thread, and shares its sockets with the parent. So
in the child the home is over, and the child's copies of the sockets are closed without sending anything: the
broker must see the end of a connection when the parent ends, even if its children continue.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar
from weakref import WeakSet

from typing_extensions import override

from seglog.client.home.home import FORKED
from seglog.clock import Clock, SystemClock
from seglog.remoting.later import inbox_of, is_running_here
from seglog.schedule import AnyTimers, Timers


class LoopHome:
    """A home that is an event loop on real time. Errors of timers and tasks are logged.

    Args:
        loop: Runs until its clients are closed.

    Attributes:
        loop: The event loop.
        clock: The machine's clock.
        timers: The timers of the home.
        is_forked: Whether this is a child of the process that has the loop.
        sockets: Its open sockets; a forked child closes its copies.
    """

    _all: ClassVar[WeakSet[LoopHome]] = WeakSet()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.clock: Clock = SystemClock()
        self.sockets: WeakSet[socket.socket] = WeakSet()
        self._inbox = inbox_of(loop)
        self.timers: AnyTimers = _LoopTimers(self.clock, loop, self._inbox.post)
        self.is_forked = False
        LoopHome._all.add(self)

    @property
    def why_over(self) -> str | None:
        """Why it runs nothing any more; None while it does."""
        if self.is_forked:
            return FORKED
        return "its event loop was closed" if self.loop.is_closed() else None

    def post(self, task: Callable[[], object]) -> None:
        """Runs a task in the loop soon."""
        if self.why_over is None:
            self._inbox.post(task)

    def run_now(self, task: Callable[[], object]) -> bool:
        """Returns False: only the thread of the loop is this home."""
        return False

    def close_sockets(self) -> None:
        """Closes the sockets of a loop that was closed and can no longer close them.

        The other ends see the end at once, and not only at garbage collection. Asyncio's transports then
        warn, correctly, that they were not closed before their loop.
        """
        for each in list(self.sockets):
            with suppress(OSError):  # the other end closed it first
                each.close()

    def is_here(self) -> bool:
        """Returns whether the calling thread runs the loop now."""
        return is_running_here(self.loop)

    @classmethod
    def forked(cls) -> None:
        """Ends all homes: this is a new process."""
        for home in cls._all:
            home.is_forked = True
            for each in home.sockets:
                with suppress(OSError):  # it was closed
                    os.close(each.detach())


class _LoopTimers(Timers):
    """Timers driven by one timer of the loop, for the first that is due."""

    def __init__(
        self, clock: Clock, loop: asyncio.AbstractEventLoop, post: Callable[[Callable[[], None]], None]
    ) -> None:
        super().__init__(clock)
        self._loop = loop
        self._post = post
        self._armed: asyncio.TimerHandle | None = None

    @override
    def wake(self) -> None:
        """Lets the loop compute the next due time again."""
        self._post(self._arm)

    def _arm(self) -> None:
        left_ms = self.left_ms()
        if left_ms is None:
            return
        at_s = self._loop.time() + max(0.0, left_ms) / 1000
        if self._armed is not None:
            if self._armed.when() <= at_s:
                return
            self._armed.cancel()
        self._armed = self._loop.call_at(at_s, self._fire)

    def _fire(self) -> None:
        self._armed = None
        try:
            self.run()
        finally:  # an exception that ends a program may be raised, and the loop may continue
            self._arm()


os.register_at_fork(after_in_child=LoopHome.forked)

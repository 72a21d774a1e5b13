"""An event loop as the home of clients: the user's own, or the one of this process (``thread_home``).

After a fork the child has the loop's memory, but not its thread, and shares its sockets with the parent. So
there the home is over, and the child's copies of the sockets are closed without a word on them: the broker
must see the end of a connection when the parent ends, even where it has children that go on.
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
    """A home that is an event loop on real time. Its timers and tasks may fail: that is logged.

    Args:
        loop: Runs until its clients are closed.

    Attributes:
        loop: The event loop.
        clock: The machine's.
        timers: Those of the home.
        is_forked: Whether this is a child of the process that has the loop.
        sockets: What is open in it; a forked child closes its copies.
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
        """Has a task done by the loop soon."""
        if self.why_over is None:
            self._inbox.post(task)

    def close_sockets(self) -> None:
        """Closes what is open in a loop that was closed, and so closes nothing any more.

        The other ends hear of it at once, and not when the garbage is collected. What asyncio has around the
        sockets warns then that it was not closed before its loop, which is so.
        """
        for each in list(self.sockets):
            with suppress(OSError):  # the other end was first
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
    """Timers that one timer of the loop wakes, for the first that is due."""

    def __init__(
        self, clock: Clock, loop: asyncio.AbstractEventLoop, post: Callable[[Callable[[], None]], None]
    ) -> None:
        super().__init__(clock)
        self._loop = loop
        self._post = post
        self._armed: asyncio.TimerHandle | None = None

    @override
    def wake(self) -> None:
        """Has the loop look when the first is due now."""
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
        finally:  # what ends a program may be raised, and the loop may go on
            self._arm()


os.register_at_fork(after_in_child=LoopHome.forked)

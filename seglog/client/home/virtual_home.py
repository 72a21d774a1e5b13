"""The home of clients on virtual time: the schedule of a broker, which runs only while time is moved.

The thread that moves the time, in ``advance`` or ``run_due``, is the home meanwhile. So the same calls have
the same effects in the same order, without a thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from seglog.client.home.home import FORKED
from seglog.clock import Clock
from seglog.forked import abandon_in_children
from seglog.schedule import AnyTimers, Timer, Timers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class VirtualHome:
    """A home on the timers of a broker in this process.

    Args:
        timers: The broker's; see ``Dispatcher.timers``.
        clock: Their clock; see ``Dispatcher.liveness_clock``.

    Attributes:
        clock: The time of its timers.
        timers: The timers of the home, which runs their functions.
        why_over: None, since time can always be moved on, except in a forked child.
        loop: None: it is not an event loop.
    """

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self.clock = clock
        self._due = timers
        self.timers: AnyTimers = _HomeTimers(timers, self._run)
        self.why_over: str | None = None
        self.loop: AbstractEventLoop | None = None
        self._runner: int | None = None
        self._tasks: deque[Callable[[], object]] = deque()
        self._turn = threading.RLock()  # of threads that move time or wait for due work, one is the home
        abandon_in_children(self, VirtualHome._abandon)

    def _abandon(self) -> None:
        """Runs nothing more in a forked child, where another thread of the parent may hold the lock."""
        self.why_over = FORKED
        self._turn = threading.RLock()

    def post(self, task: Callable[[], object]) -> None:
        """Runs a task when time is moved next, even by 0 ms."""
        # Each turn takes the oldest task: of two threads that move time, the second may be the home first.
        self._tasks.append(task)
        self.timers.after(0, self._do_next)

    def run_now(self, task: Callable[[], object]) -> bool:
        """Returns False: it runs tasks only while time is moved."""
        return False

    def _do_next(self) -> None:
        self._tasks.popleft()()

    def run_due(self) -> None:
        """Does all work that is due now, including work that this makes due at once; no time passes."""
        while (left_ms := self._due.left_ms()) is not None and left_ms <= 0:
            self._due.run()

    def is_here(self) -> bool:
        """Returns whether a task or timer of this home runs the caller."""
        return self._runner == threading.get_ident()

    def _run(self, call: Callable[[], object]) -> None:
        if self.why_over is not None:
            return
        with self._turn:
            before, self._runner = self._runner, threading.get_ident()
            try:
                call()
            finally:
                self._runner = before


class _HomeTimers:
    """The timers of a broker, whose functions run as the home."""

    def __init__(self, timers: AnyTimers, run: Callable[[Callable[[], object]], None]) -> None:
        self._timers = timers
        self._run = run

    def after(self, delay_ms: float, call: Callable[[], object]) -> Timer:
        """Calls a function after a time."""
        return self._timers.after(delay_ms, partial(self._run, call))

    def cancel(self, timer: Timer) -> None:
        """Cancels a timer."""
        self._timers.cancel(timer)

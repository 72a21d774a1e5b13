"""The home of clients on virtual time: the schedule of a broker, which runs only while time is moved.

Who moves the time, in ``advance`` or ``run_due``, is the home for as long. So the same calls have the
same effects in the same order, without a thread.
"""

from __future__ import annotations

import threading
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
        clock: What they go by; see ``Dispatcher.liveness_clock``.

    Attributes:
        clock: The time of its timers.
        timers: Those of the home; what they call is run by it.
        why_over: None, for it can always be moved on, but by a forked child.
        loop: None: it is none.
    """

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self.clock = clock
        self._due = timers
        self.timers: AnyTimers = _HomeTimers(timers, self._run)
        self.why_over: str | None = None
        self.loop: AbstractEventLoop | None = None
        self._runner: int | None = None
        self._turn = threading.RLock()  # two threads may move time, or wait for what is due: one is the home
        abandon_in_children(self, VirtualHome._abandon)

    def _abandon(self) -> None:
        """Runs nothing more, in a forked child, where another thread of the parent may have the lock."""
        self.why_over = FORKED
        self._turn = threading.RLock()

    def post(self, task: Callable[[], object]) -> None:
        """Has a task done as soon as time is moved, be it by 0 ms."""
        self.timers.after(0, task)

    def run_due(self) -> None:
        """Does what is due now, what that makes due at once included; no time passes."""
        while (left_ms := self._due.left_ms()) is not None and left_ms <= 0:
            self._due.run()

    def is_here(self) -> bool:
        """Returns whether a task or timer of this home is what runs the caller."""
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
    """The timers of a broker, with what they call run as the home."""

    def __init__(self, timers: AnyTimers, run: Callable[[Callable[[], object]], None]) -> None:
        self._timers = timers
        self._run = run

    def after(self, delay_ms: float, call: Callable[[], object]) -> Timer:
        """Has a function called once a time has passed."""
        return self._timers.after(delay_ms, partial(self._run, call))

    def cancel(self, timer: Timer) -> None:
        """Has a function not called any more."""
        self._timers.cancel(timer)

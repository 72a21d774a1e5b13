"""The interface of a client's home: the thread or loop that changes its state.

Only the home changes the client's state, so the state needs no lock. Other threads post tasks to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from seglog.clock import Clock
from seglog.schedule import AnyTimers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


FORKED: Final = "the process was forked, and connections are not shared with the child"
"""Why a home is over in a forked child."""


class Home(Protocol):
    """The one thread or loop that may change a client's state. Any thread may call it."""

    @property
    def clock(self) -> Clock:
        """The clock of its timers."""

    @property
    def timers(self) -> AnyTimers:
        """Timers, whose functions the home calls in the order of their times, and then of the calls."""

    @property
    def loop(self) -> AbstractEventLoop | None:
        """Its event loop; None if it is not one."""

    @property
    def why_over(self) -> str | None:
        """Why it runs nothing any more; None while it does. Check this first after a fork."""

    def post(self, task: Callable[[], object]) -> None:
        """Runs a task on the home soon.

        Tasks of one thread run in the order of its calls. All tasks posted before the home looks cost one
        wake-up. The call never waits or raises, and never runs the task itself; if the home is over the task
        is dropped.
        """

    def run_now(self, task: Callable[[], object]) -> bool:
        """Runs a task in the calling thread, as the home, if that is possible; returns whether it did.

        The task must not use the event loop of the home, which belongs to its thread. It is not run if tasks
        that were posted before wait. An exception of the task is raised here.
        """

    def is_here(self) -> bool:
        """Returns whether the home runs the caller, which could then never wait for it."""

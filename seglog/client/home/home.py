"""What a client needs of the thread or loop that is its home.

Only the home changes the client's state, so nothing of that state has a lock. Other threads post tasks to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from seglog.clock import Clock
from seglog.schedule import AnyTimers

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


FORKED: Final = "the process was forked, and connections are not shared with the child"
"""Why a home is over in a child of the process that has it."""


class Home(Protocol):
    """The one thread or loop that may change a client's state. Any thread may call it."""

    @property
    def clock(self) -> Clock:
        """The time by which its timers go."""

    @property
    def timers(self) -> AnyTimers:
        """Functions that the home calls at their time, in the order of their times and then of the calls."""

    @property
    def loop(self) -> AbstractEventLoop | None:
        """The event loop that it is; None where it is none."""

    @property
    def why_over(self) -> str | None:
        """Why it runs nothing any more; None while it does. It is the first thing to ask after a fork."""

    def post(self, task: Callable[[], object]) -> None:
        """Has a task done by the home soon.

        Tasks of one thread are done in the order of its calls. All that is posted until the home looks costs
        one wake-up. It never waits or raises, and never runs the task itself; where the home is over the task
        is dropped.
        """

    def is_here(self) -> bool:
        """Returns whether the home is what runs the caller, so that waiting for it would never end."""

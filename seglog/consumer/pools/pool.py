"""The interface of the pools that call listeners.

The work is always a coroutine; with a plain listener it never awaits.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from seglog.remoting.later import Deferred

R = TypeVar("R")
Work: TypeAlias = Callable[[], Coroutine[Any, Any, R]]
"""Makes the coroutine when its turn has come."""


class ListenerPool(Protocol):
    """Runs calls of an application's listener.

    Attributes:
        LEAVES_ALONE: Whether running work continues by itself after :meth:`close`.
    """

    LEAVES_ALONE: ClassVar[bool]

    def is_here(self) -> bool:
        """Returns whether the pool runs the caller, which could then never wait for the pool's work."""

    def run(self, work: Work[R]) -> Deferred[R]:
        """Runs the work; an exception becomes its result. After :meth:`close` the work is cancelled."""

    def surface(self, error: BaseException) -> None:
        """Takes a listener's exception that would end a program or task, after its message was put back."""

    def close(self) -> bool:
        """Starts nothing more, and cancels work if possible; does not wait for the rest.

        Returns:
            Whether running work was cancelled, so that it ends soon.
        """

"""What a consumer needs of the place where its listener is called.

What is run there is a coroutine, also where the listener is a plain function: then it never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from seglog.remoting.later import Deferred

R = TypeVar("R")
Work: TypeAlias = Callable[[], Coroutine[Any, Any, R]]
"""Makes a coroutine, once it is its turn."""


class ListenerPool(Protocol):
    """Runs what waits for an application.

    Attributes:
        LEAVES_ALONE: Whether what is at work after :meth:`close` goes on, left to itself.
    """

    LEAVES_ALONE: ClassVar[bool]

    def is_here(self) -> bool:
        """Returns whether the caller is run by it, so that to wait for what it runs would never end."""

    def run(self, work: Work[R]) -> Deferred[R]:
        """Has something run; what it raises is its result. After :meth:`close` it is cancelled."""

    def surface(self, error: BaseException) -> None:
        """Takes what a listener raised that would end a program or a task, after its message was put back."""

    def close(self) -> bool:
        """Runs nothing more, and cancels what can be; it does not wait for the rest.

        Returns:
            Whether what is at work was cancelled, so that it ends soon.
        """

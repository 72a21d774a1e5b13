"""Plain listeners on virtual time: called at once by the thread that moves time, in a repeatable order."""

from __future__ import annotations

from typing import ClassVar

from seglog.client.home import Home, run_at_once
from seglog.consumer.pools.pool import R, Work
from seglog.remoting.later import Deferred


class InlinePool:
    """Runs at once, in the calling thread.

    Args:
        home: The home that runs while time is moved.
    """

    LEAVES_ALONE: ClassVar[bool] = False

    def __init__(self, home: Home) -> None:
        self._home = home

    def is_here(self) -> bool:
        """Returns whether the calling thread moves time, and so runs everything that has to end."""
        return self._home.is_here()

    def run(self, work: Work[R]) -> Deferred[R]:
        """Runs it."""
        result: Deferred[R] = Deferred()
        try:
            result.resolve(run_at_once(work()))
        except Exception as error:  # noqa: BLE001 - it becomes the result
            result.fail(error)
        return result

    def surface(self, error: BaseException) -> None:
        """Raises it in the call that moves time, whose thread it would have ended."""
        surface_on(self._home, error)

    def close(self) -> bool:
        """Does nothing."""
        return False


def surface_on(home: Home, error: BaseException) -> None:
    """Raises an error in the call that moves the time of a home."""

    def come() -> None:
        raise error

    home.post(come)

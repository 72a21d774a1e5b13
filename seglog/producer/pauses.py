"""The waits of a send for a broker that is down: different for each face, and none if no time would pass."""

from __future__ import annotations

import threading
from typing import Protocol

from seglog.client.home import Home, VirtualHome, sleep_ms
from seglog.remoting.later import STEPPED


class Pauses(Protocol):
    """The waits of one producer's sends."""

    def can_wait(self) -> bool:
        """Returns whether time passes while the caller waits."""

    async def wait(self, pause_ms: float) -> None:
        """Waits."""

    def end(self) -> None:
        """Ends waits if possible: the producer was closed."""


class ThreadPauses:
    """Blocks the calling thread. On virtual time it does not wait: the thread may be the one that moves it.

    Args:
        home: Of the client.
    """

    def __init__(self, home: Home) -> None:
        self._clock = home.clock
        self._passes = not isinstance(home, VirtualHome)
        self._bell = threading.Condition()
        self._is_over = False

    def can_wait(self) -> bool:
        """Returns whether the home is on real time."""
        return self._passes

    async def wait(self, pause_ms: float) -> None:
        """Waits, at most until the producer is closed."""
        with self._bell:
            if not self._is_over:
                self._clock.wait(self._bell, pause_ms)

    def end(self) -> None:
        """Wakes the threads that wait."""
        with self._bell:
            self._is_over = True
            self._bell.notify_all()


class TaskPauses:
    """Suspends the caller: a task on real time, or a listener on virtual time.

    Args:
        home: Of the client.
    """

    def __init__(self, home: Home) -> None:
        self._passes = not isinstance(home, VirtualHome)

    def can_wait(self) -> bool:
        """Returns whether the caller's time is that of the home."""
        return self._passes != (STEPPED.timers is not None)

    async def wait(self, pause_ms: float) -> None:
        """Waits; a task that is cancelled does not wait on."""
        await sleep_ms(pause_ms)

    def end(self) -> None:
        """Does nothing: a wait is short, and finds the producer closed."""

"""How a send waits for a broker that is away: each face in its own way, and not where no time would pass."""

from __future__ import annotations

import threading
from typing import Protocol

from seglog.client.home import Home, VirtualHome, sleep_ms
from seglog.remoting.later import STEPPED


class Pauses(Protocol):
    """How the sends of one producer wait."""

    def can_wait(self) -> bool:
        """Returns whether time passes while the caller waits."""

    async def wait(self, pause_ms: float) -> None:
        """Waits."""

    def end(self) -> None:
        """Ends the waits that can be ended: the producer was closed."""


class ThreadPauses:
    """Keeps the calling thread. On virtual time that may be what moves the time: nothing is waited for.

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
        """Waits here, until the producer is closed at most."""
        with self._bell:
            if not self._is_over:
                self._clock.wait(self._bell, pause_ms)

    def end(self) -> None:
        """Wakes the threads that wait."""
        with self._bell:
            self._is_over = True
            self._bell.notify_all()


class TaskPauses:
    """Lets others have their turns: in a task by real time, in a listener on virtual time by that.

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

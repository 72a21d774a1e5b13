"""The messages that a listener was given, with times."""

from __future__ import annotations

import threading
import time

from perf.clients.work import LIMIT_S
from perf.figures.sample import SanityError


class Seen:
    """Bodies that listeners were given; any thread may give.

    Args:
        wanted: How many are waited for.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._first_s = 0.0
        self._last_s = 0.0
        self._is_whole = threading.Event()
        self.bodies: list[bytes] = []

    def take(self, body: bytes) -> None:
        """Takes one."""
        if not self.bodies:
            self._first_s = time.perf_counter()
        self.bodies.append(body)
        if len(self.bodies) >= self._wanted:
            self._last_s = time.perf_counter()
            self._is_whole.set()

    def wait(self) -> float:
        """Waits for all, and returns the seconds from the first to the last.

        Raises:
            SanityError: They do not arrive.
        """
        if not self._is_whole.wait(LIMIT_S):
            raise SanityError(f"{len(self.bodies)} of {self._wanted} messages came in {LIMIT_S} s")
        return self._last_s - self._first_s

"""Log lines about repeated events: at most one line a minute of each kind, so that no disk fills."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

EVERY_S: Final = 60.0


class Complaints:
    """Logs errors of clients and of their environment. Any thread may call it.

    Args:
        log: The logger for the lines.
        now_s: A monotonic clock.
    """

    def __init__(self, log: logging.Logger, now_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now_s = now_s
        self._lock = threading.Lock()
        self._told_s: dict[str, float] = {}
        self._untold: dict[str, int] = {}

    def tell(self, kind: str, text: str) -> None:
        """Logs a line, unless one of its kind was logged less than a minute ago.

        Args:
            kind: One of a few fixed words.
            text: The event.
        """
        with self._lock:
            now_s = self._now_s()
            told_s = self._told_s.get(kind)
            if told_s is not None and now_s - told_s < EVERY_S:
                self._untold[kind] = self._untold.get(kind, 0) + 1
                return
            self._told_s[kind] = now_s
            untold = self._untold.pop(kind, 0)
        self._log.warning("%s%s", text, f" ({untold} more of the kind before it)" if untold else "")

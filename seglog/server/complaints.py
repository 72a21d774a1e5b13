"""What a server logs of its clients: one line a minute of each kind, so that none of them fills the disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

EVERY_S: Final = 60.0
_log = logging.getLogger("seglog.server")


class Complaints:
    """Logs what clients do wrong. One thread calls it.

    Args:
        now_s: A monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._told_s: dict[str, float] = {}
        self._untold: dict[str, int] = {}

    def tell(self, kind: str, text: str) -> None:
        """Logs a line, unless one of its kind was logged less than a minute ago.

        Args:
            kind: One of a few fixed words.
            text: What has happened.
        """
        now_s = self._now_s()
        told_s = self._told_s.get(kind)
        if told_s is not None and now_s - told_s < EVERY_S:
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return
        self._told_s[kind] = now_s
        untold = self._untold.pop(kind, 0)
        _log.warning("%s%s", text, f" ({untold} more of the kind before it)" if untold else "")

"""Notices to the clients of a group that its members have changed: the first at once, later ones joined.

When a thousand clients of a group start together, each of them would get a thousand notices, and rebalance
after each. So all changes within :data:`GAP_MS` of a notice are announced by one further notice, at the end
of that time.

Truth: memory only. Source: RocketMQ sends every one of them (``DefaultConsumerIdsChangeListener.java``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from seglog.clock import Clock

GAP_MS: Final = 100
"""Shortest time between two notices of one group."""


class Notices:
    """The recent and the due notices of groups. Any thread may call it.

    Args:
        clock: Its monotonic time.
        send: Notifies the present clients of a group; it takes none of the locks of this object.
    """

    def __init__(self, clock: Clock, send: Callable[[str], None]) -> None:
        self._clock = clock
        self._send = send
        self._lock = threading.Lock()
        self._free_ms: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self.due_earlier: Callable[[], None] | None = None
        """Called when a first notice is put off, to wake the duty that sends them."""

    def tell(self, group: str) -> None:
        """Notifies a group: now, or soon together with later changes."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            free_ms = self._free_ms.get(group, now_ms)
            is_now = free_ms <= now_ms
            if is_now:
                self._free_ms[group] = now_ms + GAP_MS
            is_first = not is_now and not self._due
            if not is_now:
                self._due[group] = free_ms
        if is_now:
            self._send(group)
        elif is_first and self.due_earlier is not None:
            self.due_earlier()

    def forget(self, group: str) -> None:
        """Drops the due notice of a group that has no clients any more."""
        with self._lock:
            self._due.pop(group, None)

    def left_ms(self) -> float | None:
        """Returns the time in ms until :meth:`send_due` has work to do, None if no notice is put off."""
        with self._lock:
            return min(self._due.values()) - self._clock.monotonic_ms() if self._due else None

    def send_due(self) -> None:
        """Sends the notices that are due."""
        now_ms = self._clock.monotonic_ms()
        with self._lock:
            due = [group for group, at_ms in self._due.items() if at_ms <= now_ms]
            for group in due:
                del self._due[group]
                self._free_ms[group] = now_ms + GAP_MS
            if len(self._free_ms) > 2 * len(due) + 64:
                self._free_ms = {group: at_ms for group, at_ms in self._free_ms.items() if at_ms > now_ms}
        for group in due:
            self._send(group)

"""The duty that saves changed tables of a broker, every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from typing_extensions import override

from seglog.clock import Clock
from seglog.schedule import Periodic


class Saving(Periodic):
    """Saves tables that have changed, at most once an interval.

    Args:
        clock: Its monotonic time.
        interval_ms: The time between two saves.
        has_changes: Returns whether a table has changed since the last save.
        save: Saves all changes.
    """

    name: ClassVar[str] = "saving"

    def __init__(
        self, clock: Clock, interval_ms: int, has_changes: Callable[[], bool], save: Callable[[], None]
    ) -> None:
        super().__init__(clock, interval_ms)
        self._has_changes = has_changes
        self._save = save

    @override
    def is_needed(self) -> bool:
        return self._has_changes()

    @override
    def act(self) -> None:
        self._save()

"""Several changes of a table that one thread makes, saved once.

While a thread gathers, its changes are in memory only, and what acknowledges them waits for the end. Changes
of other threads are saved at once, with those gathered so far. If the save at the end fails, what was
gathered is taken back, but for names that others have changed since.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class Gathering(Generic[V]):
    """What one thread has changed in a table and not saved; called under the table's lock."""

    def __init__(self) -> None:
        self.count = 0
        """Changes that were gathered, ever."""
        self._thread: int | None = None
        self._before: dict[str, V | None] = {}
        self._after: dict[str, V | None] = {}

    def begin(self) -> None:
        """Has the calling thread gather until :meth:`end`."""
        self._thread = threading.get_ident()

    def takes(self, old: Mapping[str, V], new: Mapping[str, V]) -> bool:
        """Notes a change if the calling thread gathers; returns whether it does."""
        if threading.get_ident() != self._thread:
            return False
        self.count += 1
        for name in old.keys() | new.keys():
            if old.get(name) is not new.get(name):
                self._before.setdefault(name, old.get(name))
                self._after[name] = new.get(name)
        return True

    def end(self) -> bool:
        """Ends it; returns whether anything was gathered."""
        self._thread = None
        return bool(self._before)

    def taken_back(self, values: Mapping[str, V]) -> dict[str, V]:
        """Returns the table without what was gathered."""
        undone = {
            name: before for name, before in self._before.items() if values.get(name) is self._after[name]
        }
        kept = {name: undone.get(name, value) for name, value in values.items()}
        gone = {name: before for name, before in undone.items() if name not in kept}
        return {name: value for name, value in {**kept, **gone}.items() if value is not None}

    def forget(self) -> None:
        """Forgets what was gathered: it is saved, or taken back."""
        self._before, self._after = {}, {}

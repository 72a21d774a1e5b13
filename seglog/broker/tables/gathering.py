"""Several changes of a table by one thread, saved together.

While a thread gathers, its changes are in memory only, and their acknowledgements wait for the end. Changes
of other threads are saved at once, together with the changes gathered so far. If the save at the end fails,
the gathered changes are taken back, except for names that other threads have changed since.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Generic, TypeVar

V = TypeVar("V")


class Gathering(Generic[V]):
    """The unsaved changes of one thread in a table; called under the table's lock."""

    def __init__(self) -> None:
        self.count = 0
        """Number of changes ever gathered."""
        self._thread: int | None = None
        self._before: dict[str, V | None] = {}
        self._after: dict[str, V | None] = {}

    def begin(self) -> None:
        """Begins to gather the changes of the calling thread, until :meth:`end`."""
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
        """Ends the gathering; returns whether any change was gathered."""
        self._thread = None
        return bool(self._before)

    def taken_back(self, values: Mapping[str, V]) -> dict[str, V]:
        """Returns the table without the gathered changes."""
        undone = {
            name: before for name, before in self._before.items() if values.get(name) is self._after[name]
        }
        kept = {name: undone.get(name, value) for name, value in values.items()}
        gone = {name: before for name, before in undone.items() if name not in kept}
        return {name: value for name, value in {**kept, **gone}.items() if value is not None}

    def forget(self) -> None:
        """Forgets the gathered changes: they are saved, or taken back."""
        self._before, self._after = {}, {}

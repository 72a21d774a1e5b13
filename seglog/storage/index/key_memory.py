"""What the queries by key of one open store keep for the next ones; no answer depends on it being there.

The bytes it comes from do not change: a log below its end, the division of an index file.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.index.index_build import KeyRows
from seglog.storage.index.told_apart import Collisions

MOST_KEYS: Final = 1024
"""So many keys of a stretch of the log are kept: 20 KiB."""


class KeyMemory:
    """Keeps what one store's queries found.

    Attributes:
        geometry: The division of the index file that was looked at last.
        collisions: What was told apart of many keys with one hash.

    Thread rule: any thread; what is kept is replaced as a whole.
    """

    def __init__(self) -> None:
        self.geometry: IndexGeometry | None = None
        self.collisions = Collisions()
        self._behind: tuple[tuple[int, int], KeyRows] | None = None

    def places_behind(self, stretch: tuple[int, int], hashed: int) -> list[int] | None:
        """Returns where in a stretch of the log records are that may have a key, in log order.

        Args:
            stretch: Where it starts and ends.
            hashed: The key's hash.

        Returns:
            None for a stretch that is not known.
        """
        behind = self._behind
        if behind is None or behind[0] != stretch:
            return None
        rows = behind[1]
        return [int(place) for place in rows["phy_offset"][rows["key_hash"] == hashed]]

    def keep_behind(self, stretch: tuple[int, int], rows: KeyRows) -> None:
        """Takes the keys of a stretch of the log, unless they are many."""
        if len(rows) <= MOST_KEYS:
            self._behind = stretch, rows

    def forget(self) -> None:
        """Drops what may change, as a reader does that looks at its store again."""
        self.geometry = self._behind = None

"""A cache of the queries by key of one open store; results never depend on it.

The cached facts do not change: they are about the log below its end, and the geometry of an index file.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.index.index_build import KeyRows
from seglog.storage.index.told_apart import Collisions

MOST_KEYS: Final = 1024
"""The most keys of a stretch of the log that are kept: 20 KiB."""


class KeyMemory:
    """The cache of one store's queries.

    Attributes:
        geometry: Slots and entries of the index file that was read last.
        collisions: The digests of keys that share a hash.

    Thread rule: any thread; cached values are replaced as a whole.
    """

    def __init__(self) -> None:
        self.geometry: IndexGeometry | None = None
        self.collisions = Collisions()
        self._behind: tuple[tuple[int, int], KeyRows] | None = None

    def places_behind(self, stretch: tuple[int, int], hashed: int) -> list[int] | None:
        """Returns the places of records in a stretch of the log that may have a key, in log order.

        Args:
            stretch: Start and end of the stretch.
            hashed: The key's hash.

        Returns:
            None for a stretch that is not in the cache.
        """
        behind = self._behind
        if behind is None or behind[0] != stretch:
            return None
        rows = behind[1]
        return [int(place) for place in rows["phy_offset"][rows["key_hash"] == hashed]]

    def keep_behind(self, stretch: tuple[int, int], rows: KeyRows) -> None:
        """Caches the keys of a stretch of the log, unless they are too many."""
        if len(rows) <= MOST_KEYS:
            self._behind = stretch, rows

    def forget(self) -> None:
        """Drops the facts that may change, when a reader looks at its store again."""
        self.geometry = self._behind = None

"""A cache of the queries by key of one open store; results never depend on it.

The cached facts do not change: they are about the log below its end, and the geometry of an index file.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.index.index import IndexGeometry, IndexHeader
from seglog.storage.format.index.index_build import KeyRows
from seglog.storage.index.told_apart import Collisions

MOST_KEYS: Final = 1024
"""The most keys of a stretch of the log that are kept: 20 KiB."""
_MOST_STRETCHES: Final = 256


class KeyMemory:
    """The cache of one store's queries.

    Attributes:
        geometry: Slots and entries of the index file that was read last.
        collisions: The digests of keys that share a hash.
        whole: Whether index files are undamaged, by name, as their headers were when they were read.

    Thread rule: any thread; cached values are replaced as a whole.
    """

    def __init__(self) -> None:
        self.geometry: IndexGeometry | None = None
        self.collisions = Collisions()
        self._walked: dict[int, tuple[int, KeyRows]] = {}
        self.whole: dict[str, tuple[IndexHeader, bool]] = {}

    def places_in(self, stretch: tuple[int, int], hashed: int) -> list[int] | None:
        """Returns the places of records in a stretch of the log that may have a key, in log order.

        Args:
            stretch: Start and end of the stretch.
            hashed: The key's hash.

        Returns:
            None for a stretch that is not in the cache.
        """
        start, end = stretch
        known = self._walked.get(start)
        if known is None or known[0] != end:
            return None
        rows = known[1]
        return [int(place) for place in rows["phy_offset"][rows["key_hash"] == hashed]]

    def keep(self, stretch: tuple[int, int], rows: KeyRows) -> None:
        """Caches the keys of a stretch of the log, unless they, or the stretches, are too many."""
        start, end = stretch
        if len(rows) <= MOST_KEYS and (start in self._walked or len(self._walked) < _MOST_STRETCHES):
            self._walked = {**self._walked, start: (end, rows)}

    def forget(self) -> None:
        """Drops the facts that may change, when a reader looks at its store again."""
        self.geometry, self._walked = None, {}

"""The digests of keys that share a hash, cached for the next query of that hash.

The index holds 31 bits of a key's hash, so a query for one of many colliding keys must read the records of
all of them. A native kernel computes a 64-bit digest of each key that it reads, with a seed of this store
object; the next query compares digests. Entries of a file and keys of a record do not change. A record that
could not be read may have any key, and is a candidate for each.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.index_files import Entries, Numbers, read_entry
from seglog.storage.format.index.index import INDEX_ENTRY
from seglog.storage.index.index_lookup import EntryScan

MOST_ENTRIES: Final = 1 << 19
"""The most entries of one store that are kept: 18 MiB."""
_SEED_BYTES: Final = 16

Digests: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Some entries, newest first.

    Attributes:
        numbers: Their numbers in the file.
        entries: Their content.
        digests: The digests of their keys; 0 if the key is not known.
    """

    numbers: Numbers
    entries: Entries
    digests: Digests

    def where(self, digest: int) -> Numbers:
        """Returns the indexes of the entries that may be of a key."""
        return np.flatnonzero((self.digests == np.uint64(digest)) | (self.digests == 0))


@dataclass(frozen=True, slots=True, eq=False)
class ToldApart:
    """All entries of a hash in a range of a file.

    Attributes:
        least: Number of the first entry of the range.
        most: Number of the last one.
        told: The entries of the hash.
        unclear: Which of these may be of any key.
        stamp: Identifies the file.
    """

    least: int
    most: int
    told: Told
    unclear: Numbers
    stamp: tuple[object, ...]

    def having(self, digest: int, below: int) -> tuple[Numbers, Entries]:
        """Returns the entries before ``below`` that may be of a key, in the form of a block."""
        at = np.flatnonzero(self.told.digests == np.uint64(digest))
        if len(self.unclear):
            at = np.sort(np.concatenate([at, self.unclear]))
        at = np.append(0, at[self.told.numbers[at] < below])
        return self.told.numbers[at], self.told.entries[at]


class Collisions:
    """The cached digests of one store, bounded; those of the file and hash used last are kept.

    Thread rule: any thread.
    """

    def __init__(self) -> None:
        self.seed = os.urandom(_SEED_BYTES)
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], ToldApart] = {}

    def find(self, scan: EntryScan, end: int) -> ToldApart | None:
        """Returns the cached entries of a file and hash; None if there are none below ``end``."""
        with self._lock:
            known = self._known.get(_name_of(scan))
        if known is None or known.least >= end or known.stamp != _stamp(scan, known.least, known.most):
            return None
        return known

    def keep(self, scan: EntryScan, least: int, most: int, pieces: list[Told]) -> None:
        """Caches up to :data:`MOST_ENTRIES` entries, newest first; drops others to make room."""
        told = Told(
            np.concatenate([piece.numbers for piece in pieces]),
            np.concatenate([piece.entries.view(np.uint8) for piece in pieces]).view(INDEX_ENTRY.dtype),
            np.concatenate([piece.digests for piece in pieces]),
        )
        unclear = np.flatnonzero(told.digests == 0)
        made = ToldApart(least, most, told, unclear, _stamp(scan, least, most))
        with self._lock:
            self._known.pop(_name_of(scan), None)
            self._known[_name_of(scan)] = made
            while sum(len(one.told.numbers) for one in self._known.values()) > MOST_ENTRIES:
                del self._known[next(iter(self._known))]


def _name_of(scan: EntryScan) -> tuple[str, int]:
    return scan.file.path.name, scan.hashed


def _stamp(scan: EntryScan, least: int, most: int) -> tuple[object, ...]:
    status = os.fstat(scan.handle.descriptor) if scan.handle.descriptor >= 0 else None
    identity = (status.st_dev, status.st_ino) if status is not None else None
    return identity, *(bytes(read_entry(scan.handle, scan.file, entry)) for entry in (least, most))

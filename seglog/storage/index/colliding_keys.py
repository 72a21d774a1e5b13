"""Filters out places that the index returns for a key although the records there have other keys.

The index holds 31 bits of a key's hash, and an attacker can choose any number of keys that share them.
Decoding each message to compare its keys takes 20 µs. A native kernel compares the keys in the map of the
log; without it the log between the places is searched for the bytes of the key. The kernel's results are kept
for the next query of the same hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.errors import TruncatedError
from seglog.storage.directory.index_files import Entries
from seglog.storage.directory.log_files import LogReader
from seglog.storage.index.index_lookup import EntryScan
from seglog.storage.index.told_apart import MOST_ENTRIES, Collisions, Digests, Told
from seglog.storage.kernels import index_keys as keys_kernel

_FIRST_COUNT: Final = 64
_MOST_COUNT: Final = 8192
_WINDOW_BYTES: Final = 1 << 20
_MOST_APART_BYTES: Final = 4096
"""Places further apart than this are read one by one: searching the bytes between them takes as long."""

_WORTH_KEEPING: Final = 1024
"""Results for fewer entries are not kept: examining this many again takes a tenth of a millisecond."""
_DENSITY: Final = 64
"""Number of entries with other hashes that are skipped in the time that one entry of the hash takes."""

Places: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]


def iter_holding(
    reader: LogReader, runs: Iterator[tuple[int] | Places], key: bytes, segment_size_bytes: int
) -> Iterator[Places]:
    """Yields the places at which a record may have the key.

    Args:
        reader: Reads the log; closed at the end.
        runs: Physical offsets, newest first, one or many at a time; consumed as they are needed.
        key: The key.
        segment_size_bytes: Length of the log's files.
    """
    count = _FIRST_COUNT
    try:
        while len(places := _take(runs, count)):
            segments = places // segment_size_bytes
            for part in np.split(places, np.flatnonzero(np.diff(segments)) + 1):
                found = part[_may_have(reader, part, key, segment_size_bytes)]
                if len(found):
                    yield found
            count = min(2 * count, _MOST_COUNT)
    finally:
        reader.close()


class KeySorting:
    """Distinguishes the entries of a hash by their keys, for one query.

    Args:
        reader: Reads the log; it is closed at the end of a scan.
        segment_size_bytes: Length of the log's files.
        log: Start and end of the log.
        collisions: The results of earlier queries.
    """

    def __init__(
        self, reader: LogReader, segment_size_bytes: int, log: tuple[int, int], collisions: Collisions
    ) -> None:
        self._reader = reader
        self._segment_size_bytes = segment_size_bytes
        self._log = log
        self._collisions = collisions
        self._digest = 0

    def begin(self, topic: bytes, key: bytes) -> None:
        """Starts the use of the kernel, as many entries are of other keys; does nothing without one."""
        if keys_kernel.native_digest is not None:
            self._digest = keys_kernel.native_digest(topic, key, self._collisions.seed)

    def rest_of(self, scan: EntryScan, end: int) -> Iterator[Places] | None:
        """Returns places of the key's entries below ``end``, newest first; None before :meth:`begin`."""
        return self._iter_rest(scan, end) if self._digest else None

    def _iter_rest(self, scan: EntryScan, end: int) -> Iterator[Places]:
        known, at, is_over, is_joined = self._collisions.find(scan, end), end, False, False
        pieces, total, fresh, least = list[Told](), 0, 0, end
        try:
            while at > 1 and not is_over:
                if known is not None and not is_joined and at <= known.most + 1:
                    found, is_over = scan.in_time(*known.having(self._digest, at))
                    piece, start, is_joined = known.told, known.least, True
                else:
                    start, numbers, entries = scan.block(
                        at, 1 if known is None or is_joined else known.most + 1
                    )
                    piece = Told(numbers[1:], entries[1:], self._digests(scan, entries[1:]))
                    mine = np.append(0, 1 + piece.where(self._digest))
                    found, is_over = scan.in_time(numbers[mine], entries[mine])
                    fresh += len(piece.numbers) + (at - start) // _DENSITY
                total += len(piece.numbers)
                if total <= MOST_ENTRIES:
                    pieces.append(piece)
                    least = start
                at = start
                if len(found):
                    yield found
        finally:
            self._reader.close()
            if fresh >= _WORTH_KEEPING and pieces and (known is None or is_joined):
                self._collisions.keep(scan, least, max(end - 1, known.most if known else 0), pieces)

    def _digests(self, scan: EntryScan, entries: Entries) -> Digests:
        """Returns the digest of each entry's key; 0 if the key is not known."""
        places, digests = entries["phy_offset"].astype(np.int64), np.zeros(len(entries), np.uint64)
        start, end = self._log
        inside = np.flatnonzero((start <= places) & (places < end))
        segments = places[inside] // self._segment_size_bytes
        while len(inside):
            is_same = segments == segments[0]
            at, first = inside[is_same], int(segments[0]) * self._segment_size_bytes
            digests[at] = self._digests_of(places[at], first, scan.hashed)
            inside, segments = inside[~is_same], segments[~is_same]
        return digests

    def _digests_of(self, places: Places, first: int, hashed: int) -> Digests:
        """Returns the digests of the keys of a hash in records of one segment."""
        memory = self._reader.map(first)
        try:
            if memory is not None and keys_kernel.native_digests is not None:
                made = keys_kernel.native_digests(memory, first, places.data, hashed, self._collisions.seed)
                return np.frombuffer(made, np.uint64)
        except TruncatedError:
            pass  # another process cut the file: each record is read by itself
        return np.zeros(len(places), np.uint64)


def _take(runs: Iterator[tuple[int] | Places], count: int) -> Places:
    """Consumes runs until they have ``count`` places, or none are left."""
    taken: list[Places] = [np.empty(0, np.int64)]
    total = 0
    while total < count and (run := next(runs, None)) is not None:
        taken.append(np.asarray(run, np.int64))
        total += len(run)
    return np.concatenate(taken)


def _may_have(reader: LogReader, places: Places, key: bytes, segment_size_bytes: int) -> _Flags:
    """Returns which places of one segment hold a record that may have the key; ``(n,)``."""
    if keys_kernel.native_have is None:
        return _may_hold(reader, places, key)
    start = int(places[0])
    first = start - start % segment_size_bytes
    memory = reader.map(start)
    try:
        if memory is not None:
            return np.frombuffer(keys_kernel.native_have(memory, first, places.data, key), np.bool_)
    except TruncatedError:
        pass  # another process cut the file: each record is read by itself
    return np.ones(len(places), np.bool_)


def _may_hold(reader: LogReader, places: Places, key: bytes) -> _Flags:
    """Returns as :func:`_may_have`, by a search for the bytes of the key between each place and the next."""
    ordered, back = np.unique(places, return_inverse=True)
    held = np.zeros(len(ordered), np.bool_)
    held[-1] = True  # the length of its record is not known here
    at, end = int(ordered[0]), int(ordered[-1])
    if end - at > len(ordered) * _MOST_APART_BYTES:
        return np.ones(len(places), np.bool_)
    while at < end:
        window = bytes(reader.read(at, min(_WINDOW_BYTES, end - at) + len(key)))
        found = window.find(key)
        while found >= 0 and at + found < end:
            number = int(np.searchsorted(ordered, at + found, "right")) - 1
            held[number] = True
            found = window.find(key, int(ordered[number + 1]) - at)
        at += _WINDOW_BYTES
    return held[back]

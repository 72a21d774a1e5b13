"""Sorts out places that the index offers for a key although the records there have other keys.

The index holds 31 bits of a key's hash, and whoever chooses keys can choose as many as he likes that share
them. Decoding each of the messages to compare its keys takes 20 µs; searching the log between them for the
bytes of the key takes less than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.log_files import LogReader

_FIRST_COUNT: Final = 64
_MOST_COUNT: Final = 8192
_WINDOW_BYTES: Final = 1 << 20
_MOST_APART_BYTES: Final = 4096
"""Places that lie further apart are looked at one by one: searching what is between them takes as long."""


def iter_holding(
    reader: LogReader, places: Iterable[int], key: bytes, segment_size_bytes: int
) -> Iterator[int]:
    """Yields those of some places where a record that holds the bytes of a key may be.

    Args:
        reader: Reads the log; it is closed at the end.
        places: By physical offset, newest first; taken some at a time.
        key: Bytes that a record must hold.
        segment_size_bytes: Length of the log's files.
    """
    remaining, count = iter(places), _FIRST_COUNT
    try:
        while some := list(islice(remaining, count)):
            ordered = np.unique(np.array(some, np.int64))
            segments = ordered // segment_size_bytes
            held: set[int] = set()
            for part in np.split(ordered, np.flatnonzero(np.diff(segments)) + 1):
                if part[-1] - part[0] > len(part) * _MOST_APART_BYTES:
                    held.update(part.tolist())
                else:
                    held.update(_iter_found(reader, part, key))
            yield from [place for place in some if place in held]
            count = min(2 * count, _MOST_COUNT)
    finally:
        reader.close()


def _iter_found(reader: LogReader, places: npt.NDArray[np.int64], key: bytes) -> Iterator[int]:
    """Yields places of a segment between which and the next one the key lies; the last one in any case."""
    at, end = int(places[0]), int(places[-1])
    while at < end:
        window = bytes(reader.read(at, min(_WINDOW_BYTES, end - at) + len(key)))
        found = window.find(key)
        while found >= 0 and at + found < end:
            number = int(np.searchsorted(places, at + found, "right")) - 1
            yield int(places[number])
            found = window.find(key, int(places[number + 1]) - at)
        at += _WINDOW_BYTES
    yield end  # nobody knows here how long its record is

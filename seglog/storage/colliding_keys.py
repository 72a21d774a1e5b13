"""Sorts out places that the index offers for a key although the records there have other keys.

The index holds 31 bits of a key's hash, and whoever chooses keys can choose as many as he likes that share
them. Decoding each of the messages to compare its keys takes 20 µs; a native kernel compares them in the map
of the log, and without it the log between them is searched for the bytes of the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.errors import TruncatedError
from seglog.storage.kernels import keys as keys_kernel
from seglog.storage.log_files import LogReader

_FIRST_COUNT: Final = 64
_MOST_COUNT: Final = 8192
_WINDOW_BYTES: Final = 1 << 20
_MOST_APART_BYTES: Final = 4096
"""Places that lie further apart are looked at one by one: searching what is between them takes as long."""

Places: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]


def iter_holding(
    reader: LogReader, runs: Iterator[tuple[int] | Places], key: bytes, segment_size_bytes: int
) -> Iterator[Places]:
    """Yields those of some places where a record that has a key may be.

    Args:
        reader: Reads the log; it is closed at the end.
        runs: Places by physical offset, newest first, one or many at a time; taken as they are needed.
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


def _take(runs: Iterator[tuple[int] | Places], count: int) -> Places:
    """Takes runs until they are so many places, or there are no more."""
    taken: list[Places] = [np.empty(0, np.int64)]
    total = 0
    while total < count and (run := next(runs, None)) is not None:
        taken.append(np.asarray(run, np.int64))
        total += len(run)
    return np.concatenate(taken)


def _may_have(reader: LogReader, places: Places, key: bytes, segment_size_bytes: int) -> _Flags:
    """Returns which of some places of one segment hold a record that may have the key; ``(n,)``."""
    if keys_kernel.native_have is None:
        return _may_hold(reader, places, key)
    start = int(places[0])
    first = start - start % segment_size_bytes
    memory = reader.map(start)
    try:
        if memory is not None:
            return np.frombuffer(keys_kernel.native_have(memory, first, places.data, key), np.bool_)
    except TruncatedError:
        pass  # somebody cut the file: each record is read by itself
    return np.ones(len(places), np.bool_)


def _may_hold(reader: LogReader, places: Places, key: bytes) -> _Flags:
    """As :func:`_may_have`: those between which and the next one the bytes of the key lie."""
    ordered, back = np.unique(places, return_inverse=True)
    held = np.zeros(len(ordered), np.bool_)
    held[-1] = True  # nobody knows here how long its record is
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

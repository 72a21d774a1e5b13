"""Runs of numbers, such as queue offsets, as ranges."""

from __future__ import annotations

from collections.abc import Iterable


def ranges_of(stretches: Iterable[tuple[int, int]]) -> tuple[range, ...]:
    """Returns ranges from first offsets and lengths in order; those that adjoin become one."""
    found: list[range] = []
    for first, count in stretches:
        if found and found[-1].stop == first:
            found[-1] = range(found[-1].start, first + count)
        else:
            found.append(range(first, first + count))
    return tuple(found)

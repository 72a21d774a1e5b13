"""What the files of a sequence say about the length that all of them have; pure.

Files of a sequence have one length, and names that are multiples of it. Damage changes lengths (a copy that
was cut, a file of length 0 after a crash), sometimes of all files at once, so a length alone decides nothing:
it counts with the distances between names and with what is in the files. Where these leave a choice the
length is unknown, which is an answer too: a file of a wrong length is worse than none.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from typing import Final, TypeAlias

PAGE_BYTES: Final = 4096
"""RocketMQ's lengths of log files are multiples of it wherever they were chosen as usual."""

_WITNESSES: Final = 2
"""One file alone may be damaged."""
_Fits: TypeAlias = Callable[[int, AbstractSet[int]], bool]
"""Whether a length can be that of files which begin at places."""


class Certainty(enum.Enum):
    """How much speaks for a length."""

    PROVEN = "proven"
    """Contents, distances or several files agree."""
    WRITTEN = "written"
    """It was written down when the files were made, and nothing contradicts."""
    BY_SIZE = "by-size"
    """One length, that nothing contradicts."""
    NO_FILE = "no-file"
    """There is no file that could have a length."""
    UNKNOWN = "unknown"
    """What there is leaves a choice."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one file says.

    Attributes:
        first_offset: Where it belongs in its sequence: as its contents say, or else its name.
        size_bytes: How long it is.
        is_proven: Whether its contents say where it belongs.
        needed_bytes: The length cannot be less, by its contents.
        exact_bytes: The length, where its contents end with a filler up to the end of the file.
    """

    first_offset: int
    size_bytes: int
    is_proven: bool = False
    needed_bytes: int = 0
    exact_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Inferred:
    """A length that was worked out.

    Attributes:
        size_bytes: The length; None if there is no file, or no certainty.
        certainty: How much speaks for it.
        at_least_bytes: It cannot be less.
        longest_bytes: Length of the longest file.
        is_by_queues: Whether only units of queues say that it must be longer than the file is.
    """

    size_bytes: int | None
    certainty: Certainty
    at_least_bytes: int = 0
    longest_bytes: int = 0
    is_by_queues: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether there are files of unknown length."""
        return self.certainty is Certainty.UNKNOWN


def quick_length(files: Sequence[tuple[int, int]], unit_bytes: int) -> int | None:
    """Returns the length of a sequence of files whose names and lengths agree throughout, else None.

    Args:
        files: ``(first_offset, size_bytes)`` of each file of one sequence, in order.
        unit_bytes: Lengths are multiples of it.
    """
    if len(files) < 2:
        return None
    size = files[0][1]
    if not size or size % unit_bytes or any(length != size or first % size for first, length in files):
        return None
    return size if any(later - first == size for (first, _), (later, _) in pairwise(files)) else None


def infer_length(
    facts: Sequence[FileFacts],
    *,
    unit_bytes: int,
    range_bytes: tuple[int, int],
    known_bytes: int | None = None,
    sole_unit_bytes: int | None = None,
    sequences: Sequence[Sequence[int]] = (),
) -> Inferred:
    """Returns the length that files should have.

    Args:
        facts: What each of them says.
        unit_bytes: Every length is a multiple of it.
        range_bytes: Smallest and largest length there can be.
        known_bytes: What was written down when the files were made; believed unless contents contradict.
        sole_unit_bytes: A length that only one file has must be a multiple of it to count alone;
            ``unit_bytes`` if None.
        sequences: First offsets of the files of each sequence in order, for distances between them; all
            files are one sequence if empty.
    """
    least, most = range_bytes
    proven = {fact.first_offset for fact in facts if fact.is_proven}
    named = {fact.first_offset for fact in facts}
    rows = sequences or [sorted(named)]
    needed = _needed(facts, rows, known_bytes)

    def fits(size: int, places: AbstractSet[int]) -> bool:
        in_range = max(least, needed) <= size <= most and size % unit_bytes == 0
        return in_range and all(first % size == 0 for first in places)

    if not facts:
        return Inferred(known_bytes, Certainty.NO_FILE)
    exact = Counter(fact.exact_bytes for fact in facts if fact.exact_bytes and fits(fact.exact_bytes, proven))
    if exact:
        (size, count), *others = exact.most_common(2)
        if not others or others[0][1] < count:
            return Inferred(size, Certainty.PROVEN, needed)
    if known_bytes is not None and fits(known_bytes, proven):
        return Inferred(known_bytes, Certainty.WRITTEN, needed)
    for places in (proven, named):
        distance = gcd(*places)
        if distance and fits(distance, places) and 2 * needed > distance:
            return Inferred(distance, Certainty.PROVEN, needed)
    return _by_votes(facts, rows, (named, proven), fits, sole_unit_bytes or unit_bytes, needed)


def _gaps(rows: Sequence[Sequence[int]]) -> Counter[int]:
    return Counter(later - first for row in rows for first, later in pairwise(row))


def _needed(facts: Sequence[FileFacts], rows: Sequence[Sequence[int]], known_bytes: int | None) -> int:
    """Returns the length below which contents say that files cannot be.

    A foreign file copied over one of the sequence may be longer than all others, and hold what looks like
    contents up to its end. It says nothing where more files have a length that was written down, or that
    their names have too, or that several have and no name contradicts, than have contents behind that length.
    """
    needs = [fact.needed_bytes for fact in facts if fact.needed_bytes]
    if not needs:
        return 0
    gaps = _gaps(rows)
    for size, count in Counter(fact.size_bytes for fact in facts).most_common():
        is_stated = count >= _WITNESSES and (size == known_bytes or gaps[size])
        is_backed = is_stated or (count > _WITNESSES and size and not gaps)
        if is_backed and count > sum(need > size for need in needs):
            return max((need for need in needs if need <= size), default=0)
    return max(needs)


def _by_votes(
    facts: Sequence[FileFacts],
    rows: Sequence[Sequence[int]],
    choices: Sequence[AbstractSet[int]],
    fits: _Fits,
    sole_unit_bytes: int,
    needed: int,
) -> Inferred:
    """Returns the length for which most lengths of files and distances between them speak."""
    sizes = Counter(fact.size_bytes for fact in facts if fact.size_bytes)
    gaps = _gaps(rows)
    unknown = Inferred(None, Certainty.UNKNOWN, needed, max(sizes, default=0))
    # A foreign file may have a name that no file of the sequence can have.
    for places in choices:
        votes = {size: sizes[size] + gaps[size] for size in {*sizes, *gaps} if fits(size, places)}
        if votes:
            break
    else:
        return unknown
    ranked = sorted(votes, key=lambda size: votes[size], reverse=True)
    best = ranked[0]
    if len(ranked) > 1 and votes[ranked[1]] == votes[best]:
        return unknown
    if gaps[best] and sizes[best]:
        return Inferred(best, Certainty.PROVEN, needed)
    if sizes[best] > 1:
        # Several files of one length, none of which follows another: so long they are, unless all were
        # cut alike, which distances would show.
        is_cut = bool(gaps) and all(gap > best for gap in gaps) and len(sizes) == 1 and len(gaps) == 1
        return unknown if is_cut else Inferred(best, Certainty.PROVEN, needed)
    if gaps[best]:
        longest = max((size for size in sizes if size <= best), default=0)
        is_near = 2 * longest > best and max(sizes, default=0) <= best
        return Inferred(best, Certainty.PROVEN, needed) if is_near else unknown
    if len(sizes) == 1 and best % sole_unit_bytes == 0:
        return Inferred(best, Certainty.BY_SIZE, needed)
    return unknown

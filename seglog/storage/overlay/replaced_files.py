"""Files of the log that were replaced: units of the queues lead into them, to records that are not there.

A file of another store that is copied over one of this log takes its messages away without a hole. The units
of the queues are still there. A unit that leads to no record is not enough evidence: a unit may be damaged, a
queue may be of another store, and RocketMQ leaves old units after the end of a queue when it cuts a log
after a crash. In all three cases the log around the place has records that other units know. The records of a
file of another store are known to no unit. So the rules are:

- a unit that leads to a record, be it of another queue, is a copy, and proves nothing;
- a unit contradicts the log if its place is that of a record to which the unit of that record leads;
- a queue with more than a few such units proves nothing;
- a file was replaced if other units lead into it, and no more than a few units lead, between these, to
  records that are there. Where host or store time of its records shows that the file is of another store,
  these may be more: stores that began alike have some records of the same length at the same place.

The messages of a replaced file are counted if two queues, or a queue that is right elsewhere, prove them: if
a single queue disagrees with the whole log, nothing shows which of the two is of another store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.queue.consume_queue import Units

MOST_CLAIMS: Final = 1 << 20
"""Units that are examined; of more, those with the lowest places."""
_FEW: Final = 16
"""One in so many may be a coincidence."""

CLAIM: Final = np.dtype(
    [
        ("queue", np.int32),
        ("offset", np.int64),
        ("count", np.int32),
        ("index", np.int64),
        ("phy_offset", np.int64),
        ("size_bytes", np.int32),
        ("is_further", np.bool_),
        ("is_other", np.bool_),
        ("is_free", np.bool_),
    ]
)
"""A unit that leads to no record of its queue: number of the queue, queue offset, messages, number of the
unit, place and size of the record; whether the queue is of further messages (LMQ), whether the queue has
another record at that place, and whether the queue has no message at the offset and the place is between
those of its neighbours to which units lead."""

Claims = npt.NDArray[np.void]
Owner = Callable[[int, int], int | None]
_Mask = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReplacedFile:
    """A file of the log that was replaced.

    Attributes:
        phy_offset: Place of the first record that was there, by the units.
        size_bytes: Bytes from there to the end of the last.
        messages: Messages that the units prove.
        counted: ``(n,) CLAIM``, units of messages that are certain, at queue offsets without a message.
        is_sure: Whether the file was replaced for certain, and not perhaps the one queue that disagrees.
        places: Where the records were that the units prove, ascending.
    """

    phy_offset: int
    size_bytes: int
    messages: int
    counted: Claims
    is_sure: bool
    places: _Ints


class ReplacedFiles:
    """The search, in two steps: the right units of all queues are looked at, then the files are named.

    Args:
        claims: ``(n,) CLAIM``, units that lead to no record of their queue.
        segment_size_bytes: Length of a log file.
    """

    def __init__(self, claims: Claims, segment_size_bytes: int) -> None:
        order = np.argsort(claims["phy_offset"], kind="stable")[:MOST_CLAIMS]
        self._claims = claims[order]
        self._segment = segment_size_bytes
        self._starts: _Ints = self._claims["phy_offset"].astype(np.int64)
        self._ends: _Ints = self._starts + self._claims["size_bytes"]
        self._files: _Ints = np.unique(self._starts // segment_size_bytes)
        of_file = np.searchsorted(self._starts // segment_size_bytes, self._files)
        self._from: _Ints = self._starts[of_file]
        self._known = np.zeros(len(self._files), np.int64)
        self._is_wrong: _Mask = np.zeros(len(self._claims), np.bool_)
        self._right_elsewhere: set[int] = set()

    def look_at(self, queue: int, units: Units) -> None:
        """Takes up the units of a queue that are right: those that its files and the log agree about.

        Args:
            queue: Its number.
            units: ``(n,)`` with ``phy_offset`` and ``size_bytes``; the records are the queue's own.
        """
        files = units["phy_offset"] // self._segment
        at = np.searchsorted(self._files, files).clip(max=len(self._files) - 1)
        is_inside = self._files[at] == files
        if not is_inside.all():
            self._right_elsewhere.add(queue)
        places = units["phy_offset"][is_inside].astype(np.int64)
        if not len(places):
            return
        sizes, of_file = units["size_bytes"][is_inside], at[is_inside]
        counted = places >= self._from[of_file]
        self._known += np.bincount(of_file[counted], minlength=len(self._files))
        order = np.argsort(places, kind="stable")
        places, sizes = places[order], sizes[order]
        before = np.searchsorted(places, self._ends) - 1
        last = before.clip(min=0)
        self._is_wrong |= (before >= 0) & (places[last] + sizes[last] > self._starts)

    @property
    def files(self) -> list[int]:
        """Physical offsets of the files into which the units lead."""
        return [int(number) * self._segment for number in self._files]

    def found(self, owner: Owner, odd: Collection[int] = ()) -> Iterator[ReplacedFile]:
        """Yields the files that were replaced, in log order.

        Args:
            owner: Returns the number of the queue of the record of a length at a place, -1 for an unknown
                queue, and None without such a record.
            odd: Physical offsets of files whose own records show that they are of another store.
        """
        queues, wrong = self._claims["queue"], self._is_wrong
        most = int(queues.max(initial=-1)) + 1
        against = np.bincount(queues[wrong], minlength=most)
        for_it = np.bincount(queues[~wrong], minlength=most)
        believed = self._claims[~wrong & (against[queues] * _FEW <= for_it[queues])]
        believed = believed[~self._copies(believed, owner, odd)]
        files = believed["phy_offset"] // self._segment
        for number, known in zip(self._files.tolist(), self._known.tolist(), strict=True):
            here = believed[files == number]
            own = here[~here["is_further"]]
            if not len(own) or (known * _FEW > len(own) and number * self._segment not in odd):
                continue
            with_place = {*own["queue"].tolist()}
            is_sure = len(with_place) > 1 or bool(with_place & self._right_elsewhere)
            ends = here["phy_offset"] + here["size_bytes"].astype(np.int64)
            start = int(here["phy_offset"].min())
            yield ReplacedFile(
                start,
                int(ends.max()) - start,
                int(own["count"].sum()),
                _counted(here) if is_sure else here[:0],
                is_sure,
                np.unique(here["phy_offset"]),
            )

    def _copies(self, claims: Claims, owner: Owner, odd: Collection[int]) -> _Mask:
        """Returns which claims lead to a record of another queue, or to one of theirs at another offset."""
        is_copy = np.zeros(len(claims), np.bool_)
        for at, claim in enumerate(claims[["queue", "phy_offset", "size_bytes", "is_other"]].tolist()):
            queue, place, size, is_other = claim
            of = None if is_other else owner(place, size)
            is_odd = place - place % self._segment in odd
            is_copy[at] = of is not None and (of == queue or not is_odd)
        return is_copy


def _counted(claims: Claims) -> Claims:
    """Returns the claims that are certain: of records that do not overlap, in queues whose places ascend."""
    own = claims[~claims["is_further"]]
    own = own[~_outdone(own)]
    starts = own["phy_offset"].astype(np.int64)  # ascending
    ends = starts + own["size_bytes"]
    before = np.maximum.accumulate(np.concatenate([[-1], ends[:-1]]))
    behind = np.concatenate([starts[1:], [np.iinfo(np.int64).max]])
    own = own[(before <= starts) & (ends <= behind)]
    others = claims[claims["is_further"]]
    place = np.searchsorted(own["phy_offset"], others["phy_offset"]).clip(max=max(len(own) - 1, 0))
    if len(own):
        led = own[place]
        same = (led["phy_offset"] == others["phy_offset"]) & (led["size_bytes"] == others["size_bytes"])
        own = np.concatenate([own, others[same]])
    own = own[own["is_free"]]
    own = own[np.lexsort((own["offset"], own["queue"]))]
    counted: Claims = own[_ascends(own)]
    return counted


def _outdone(claims: Claims) -> _Mask:
    """Returns which claims overlap a claim that has more neighbours: one damaged unit refutes no others.

    Records follow each other without gaps, so the right ones begin and end where others do.

    Args:
        claims: The claims, by ascending place.
    """
    starts = claims["phy_offset"].astype(np.int64)
    ends = starts + claims["size_bytes"]
    neighbours = np.isin(starts, ends).astype(np.int64) + np.isin(ends, starts)
    best = np.zeros(len(claims), np.int64)
    stops = np.searchsorted(starts, ends)
    for at in np.flatnonzero(stops > np.arange(len(claims)) + 1).tolist():
        others = slice(at + 1, int(stops[at]))
        best[at] = max(best[at], neighbours[others].max())
        best[others] = np.maximum(best[others], neighbours[at])
    is_outdone: _Mask = neighbours < best
    return is_outdone


def _ascends(claims: Claims) -> _Mask:
    """Returns which claims, sorted by queue and queue offset, have a place that ascends within the queue."""
    is_right = np.ones(len(claims), np.bool_)
    if len(claims) > 1:
        same = claims["queue"][1:] == claims["queue"][:-1]
        falls = same & (claims["phy_offset"][1:] <= claims["phy_offset"][:-1])
        overlaps = same & (claims["offset"][1:] < claims["offset"][:-1] + claims["count"][:-1])
        for wrong in (falls, overlaps):
            is_right[1:] &= ~wrong
            is_right[:-1] &= ~wrong
    return is_right

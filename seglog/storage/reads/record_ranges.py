"""Stretches of the log that hold the records of queue units, to read many records at once.

In a store open for writing a stretch is a part of one segment's map. In a read-only store, whose files the
owner may cut at any moment, a stretch is a copy of a window of a few MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from seglog.storage.format.queue.consume_queue import Units
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels.gather import Ints
from seglog.storage.overlay.kept_units import is_message
from seglog.storage.reads.open_queues import StoreLog

_WINDOW_BYTES: Final = 8 << 20
_GAP_BYTES: Final = 1 << 20
"""A read-only store reads gaps of records of other queues up to this long, instead of a second read."""


@dataclass(frozen=True, slots=True)
class Place:
    """The ends of queue and log at the moment of a view, read in this order, so the log has every record.

    Attributes:
        min_offset: Queue offset of the first message.
        max_offset: Queue offset behind the last message.
        end_phy_offset: End of the log when the view was created.
        segment_size_bytes: Length of commit-log files.
        is_shared: Whether the memory of log and queues is mapped from the files.
    """

    min_offset: int
    max_offset: int
    end_phy_offset: int
    segment_size_bytes: int
    is_shared: bool


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Records in one stretch of the log: their rows, their positions in it, and the stretch's bytes."""

    rows: Ints
    positions: Ints
    phy_offsets: Ints
    sizes: Ints
    memory: memoryview


def iter_spans(units: Units, log: StoreLog, place: Place) -> Iterator[Span]:
    """Yields the records of units by stretches of the log; leaves out records that cannot be read."""
    segment = place.segment_size_bytes
    phy = units["phy_offset"].astype(np.int64)
    size = units["size_bytes"].astype(np.int64)
    there = is_message(units) & (size >= MIN_RECORD_BYTES) & (phy <= place.end_phy_offset - size)
    there &= ~log.holes.covers_each(phy)
    rows = np.flatnonzero(there)
    if len(rows) < len(phy):
        phy, size = phy[rows], size[rows]
    numbers, positions = _divide(phy, segment)
    within = positions + size <= segment
    within[within] = log.can_serve(phy[within], size[within])
    if not within.all():
        rows, phy, size = rows[within], phy[within], size[within]
        numbers, positions = numbers[within], positions[within]
    if not place.is_shared and segment > _WINDOW_BYTES:
        numbers = numbers * (segment // _WINDOW_BYTES + 1) + positions // _WINDOW_BYTES
    cuts = numbers[1:] != numbers[:-1]
    if not place.is_shared:
        cuts |= phy[1:] - phy[:-1] - size[:-1] > _GAP_BYTES
    edges = [0, *(np.flatnonzero(cuts) + 1).tolist(), len(rows)]
    for first, last in pairwise(edges if len(rows) else ()):
        here = slice(first, last)
        start, end = int(phy[here].min()), int((phy[here] + size[here]).max())
        memory = log.stretch(start, end - start)
        if memory is not None:
            yield Span(rows[here], phy[here] - start, phy[here], size[here], memory)


def _divide(phy_offsets: Ints, segment_size_bytes: int) -> tuple[Ints, Ints]:
    """Returns segment numbers and positions in the segments; needs no slow division for a single segment."""
    if len(phy_offsets):
        first = int(phy_offsets.min()) // segment_size_bytes
        if first == int(phy_offsets.max()) // segment_size_bytes:
            return np.zeros(len(phy_offsets), np.int64), phy_offsets - first * segment_size_bytes
    numbers = phy_offsets // segment_size_bytes
    return numbers, phy_offsets - numbers * segment_size_bytes

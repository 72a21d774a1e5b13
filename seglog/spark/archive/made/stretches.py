"""Numbers of the rows of an archive: stretches of queue offsets, sums, and the last record of each queue.

A task notes the rows that it writes, batch after batch in the order of the log; the driver joins the notes of
all tasks. Both keep a few numbers for each stretch, and nothing for each record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from seglog.spark.archive.columns import LAST_COLUMNS
from seglog.spark.archive.folder import Key
from seglog.spark.archive.made.made_columns import slots_of
from seglog.spark.archive.manifest import Interval, LastRecord
from seglog.storage.kernels.gather import Ints, Mask

_QUEUE_IDS: Final = 1 << 32


class Stretch(NamedTuple):
    """Rows of one queue without a gap.

    Attributes:
        first: Lowest queue offset.
        end: One more than the highest.
        place: Lowest place in the log.
        messages: Number of messages.
        placeholders: Number of placeholders.
        size_bytes: Bytes of their records.
    """

    first: int
    end: int
    place: int
    messages: int
    placeholders: int
    size_bytes: int


@dataclass(slots=True)
class Found:
    """The numbers of the rows of a run.

    Attributes:
        files: The files of the rows, relative to the folder of the run.
        intervals: Queue offsets, sorted.
        last: The last record of each queue.
        messages: Number of messages.
        placeholders: Number of placeholders.
        size_bytes: Bytes of their records.
        places: Lowest place in the log of each interval.
        turned: Queues in which offsets and places in the log do not increase together.
    """

    files: list[str] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    last: dict[Key, LastRecord] = field(default_factory=dict)
    messages: int = 0
    placeholders: int = 0
    size_bytes: int = 0
    places: list[int] = field(default_factory=list)
    turned: set[Key] = field(default_factory=set)


@dataclass(slots=True)
class Noted:
    """The numbers of the rows of one task, as in :class:`Found`; stretches are in the order of the log."""

    files: list[str] = field(default_factory=list)
    stretches: dict[Key, list[Stretch]] = field(default_factory=dict)
    last: dict[Key, LastRecord] = field(default_factory=dict)
    turned: set[Key] = field(default_factory=set)

    def note(self, rows: pa.RecordBatch) -> None:
        """Adds rows that follow the previous ones in the log.

        Args:
            rows: All columns of a file of an archive; at least one row.
        """
        topics = rows.column("topic").dictionary_encode()
        queues = rows.column("queueId").to_numpy().astype(np.int64) & (_QUEUE_IDS - 1)
        queues += topics.indices.to_numpy().astype(np.int64) * _QUEUE_IDS
        order = np.argsort(queues, kind="stable")
        offsets = _numbers(rows, "queueOffset")[order]
        of_queue = _starts(np.diff(queues[order]) != 0)
        bounds = [*of_queue.tolist(), len(rows)]
        tops = [start + int(np.argmax(offsets[start:end])) for start, end in pairwise(bounds)]
        lasts = rows.select(LAST_COLUMNS).take(pa.array(order[tops])).to_pylist()
        keys = [(one["topic"], one["queueId"]) for one in lasts]
        number_of = np.repeat(np.arange(len(keys)), np.diff(bounds))
        is_back = (np.diff(offsets) <= 0) & (np.diff(number_of) == 0)
        self.turned |= {keys[number] for number in np.unique(number_of[1:][is_back]).tolist()}
        at, found = _stretches(rows, order, offsets, number_of)
        begun: set[int] = set()
        for number, one in zip(number_of[at].tolist(), found, strict=True):
            if number not in begun and self._is_behind(keys[number], one.first):
                self.turned.add(keys[number])
            begun.add(number)
            _join(self.stretches.setdefault(keys[number], []), one)
        for key, values in zip(keys, lasts, strict=True):
            known = self.last.get(key)
            if known is None or known.queue_offset <= values["queueOffset"]:
                self.last[key] = LastRecord(*(values[name] for name in LAST_COLUMNS))

    def _is_behind(self, key: Key, first: int) -> bool:
        known = self.last.get(key)
        return known is not None and first <= known.queue_offset


def put_together(tasks: Iterable[Noted]) -> Found:
    """Joins the numbers of all tasks.

    Args:
        tasks: The numbers of the tasks, in the order of the log.
    """
    found = Found()
    by_queue: dict[Key, list[Stretch]] = {}
    for task in tasks:
        found.files += task.files
        found.turned |= task.turned
        for key, stretches in task.stretches.items():
            known, last = found.last.get(key), task.last[key]
            if known is not None and stretches[0].first <= known.queue_offset:
                found.turned.add(key)
            if known is None or known.queue_offset <= last.queue_offset:
                found.last[key] = last
            by_queue.setdefault(key, []).extend(stretches)
    for key in sorted(by_queue):
        joined: list[Stretch] = []
        for one in sorted(by_queue[key]):
            _join(joined, one)
        for one in joined:
            found.intervals.append(Interval(*key, one.first, one.end))
            found.places.append(one.place)
            found.messages += one.messages
            found.placeholders += one.placeholders
            found.size_bytes += one.size_bytes
    return found


def _stretches(
    rows: pa.RecordBatch, order: Ints, offsets: Ints, number_of: Ints
) -> tuple[Ints, list[Stretch]]:
    """Returns the stretches of rows, and the begin of each in ``order``, which sorts the rows by queue."""
    ends = offsets + slots_of(rows)[order]
    at = _starts((offsets[1:] != ends[:-1]) | (np.diff(number_of) != 0))
    is_placeholder = _numbers(rows, "placeholder")[order]
    columns = (
        offsets[at],
        np.maximum.reduceat(ends, at),
        np.minimum.reduceat(_numbers(rows, "physicalOffset")[order], at),
        np.add.reduceat(1 - is_placeholder, at),
        np.add.reduceat(is_placeholder, at),
        np.add.reduceat(_numbers(rows, "size")[order], at),
    )
    return at, [Stretch(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]


def _join(known: list[Stretch], one: Stretch) -> None:
    """Adds a stretch to the previous ones; joins it with the last of them if they are adjacent."""
    if not known or known[-1].end != one.first:
        known.append(one)
        return
    last = known[-1]
    known[-1] = Stretch(
        last.first,
        max(last.end, one.end),
        min(last.place, one.place),
        last.messages + one.messages,
        last.placeholders + one.placeholders,
        last.size_bytes + one.size_bytes,
    )


def _starts(is_other: Mask) -> Ints:
    """Returns the indices of rows of another kind than the row before; the first row is one of them."""
    starts: Ints = np.append(0, np.flatnonzero(is_other) + 1)
    return starts


def _numbers(rows: pa.RecordBatch, name: str) -> Ints:
    numbers: Ints = rows.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers

"""The queues of a store behind its recovery point, after a check of their units below it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from seglog.storage.directory.queue_files import QueueFiles, read_units
from seglog.storage.files.files import Files
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.ours.recovery_point import QueueSum, RecoveryPoint
from seglog.storage.format.ours.seal import checksum
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, Units
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels.queue_rows import stand_in
from seglog.storage.kernels.walk import ROW, Rows
from seglog.storage.overlay.batch_overlay import BatchQueueState
from seglog.storage.overlay.kept_units import LogFacts, are_passed_over, is_message
from seglog.storage.overlay.queue_overlay import QueueState, overlay_queue
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.queue_overlays import Key
from seglog.storage.survey.row_queues import NO_ROWS
from seglog.storage.walk.dispatch import RowsByQueue

_CONTEXT_UNITS: Final = 2


class DoubtError(Exception):
    """The reason why a recovery point is not used; ends only the attempt to use it."""


def demand(holds: bool, otherwise: str) -> None:
    """Refuses a recovery point if a condition does not hold.

    Raises:
        DoubtError: The condition does not hold.
    """
    if not holds:
        raise DoubtError(otherwise)


@dataclass(frozen=True, slots=True)
class KnownQueue:
    """A queue whose units below the point have the right checksums.

    Attributes:
        begin_slot: Queue offset of the first valid unit in the files.
        end_slot: Queue offset behind the last unit that leads below the point.
        min_slot: Queue offset of the first of these units whose record the log still has; ``end_slot`` if
            none.
    """

    begin_slot: int
    end_slot: int
    min_slot: int


def known_queues(store: ListedStore, point: RecoveryPoint, files: Files) -> dict[Key, KnownQueue]:
    """Returns the queues of a point after a check of their checksums.

    Raises:
        DoubtError: The files of a queue do not agree with the point.
    """
    return {(queue.topic, queue.queue_id): _known(store, point, queue, files) for queue in point.queues}


def _known(store: ListedStore, point: RecoveryPoint, queue: QueueSum, files: Files) -> KnownQueue:
    name = f"queue {queue.topic}/{queue.queue_id}"
    log_start = store.log_files[0].first_offset
    size = point.queue_file_bytes
    per_file = size // CQ_UNIT_BYTES
    of_queue = store.queue_files.get((queue.topic, queue.queue_id))
    if of_queue is None or not of_queue.sizes:
        raise DoubtError(f"{name} has no files")
    number_0 = queue.first_slot // per_file
    names = range(number_0 * size, queue.end_slot * CQ_UNIT_BYTES, size)
    demand(0 <= queue.first_slot <= queue.end_slot, f"{name} ends before it begins")
    demand(len(queue.crcs) == len(names), f"{name} has checksums of other files")
    first_there = min(of_queue.sizes)
    demand(first_there in names, f"{name} begins elsewhere")
    gone = (first_there - names[0]) // size
    demand(not gone or queue.last_places[gone - 1] < log_start, f"{name} has lost files")
    demand(all(of_queue.sizes.get(first) == size for first in names[gone:]), f"{name} has lost files")
    begin = max(queue.first_slot, first_there // CQ_UNIT_BYTES)
    head = range(first_there // CQ_UNIT_BYTES, begin)
    if head:
        before = np.frombuffer(_read_unit_bytes(files, of_queue, head, size), CQ_UNIT.dtype)
        is_passed_over = len(before) == len(head) and bool(are_passed_over(before, log_start).all())
        demand(is_passed_over, f"{name} begins with other units")
    min_slot = queue.end_slot
    for number in range(gone, len(queue.crcs)):
        low = max(begin, (number_0 + number) * per_file)
        high = min(queue.end_slot, (number_0 + number + 1) * per_file)
        data = _read_unit_bytes(files, of_queue, range(low, high), size)
        demand(checksum(data) == queue.crcs[number], f"the units of {name} are not as they were")
        if min_slot == queue.end_slot and queue.last_places[number] >= log_start:
            places = np.frombuffer(data, CQ_UNIT.dtype)["phy_offset"]
            min_slot = low + int(np.searchsorted(places.astype(np.int64), log_start))
    return KnownQueue(begin, queue.end_slot, min_slot)


def _read_unit_bytes(files: Files, queue: QueueFiles, slots: range, file_size_bytes: int) -> bytes:
    """Returns the bytes of units of one file."""
    start = slots.start * CQ_UNIT_BYTES
    position = start % file_size_bytes
    with closing(files.open(queue.directory / segment_file_name(start - position), writable=False)) as handle:
        buffer = bytearray(len(slots) * CQ_UNIT_BYTES)
        count = handle.read_into(memoryview(buffer), position)
    return bytes(buffer[:count])


def continued_queue(
    topic: str, queue_id: int, before: Rows, rows: Rows, first_slot: int, stored: Units, facts: LogFacts
) -> QueueState | None:
    """Returns the state as ``overlay_queue``, for rows in two parts that the files hold exactly; else None.

    The rows behind a recovery point are many, the rows before it few: this check needs no copy of both.

    Args:
        topic: Its topic.
        queue_id: Its number.
        before: The first rows.
        rows: The others.
        first_slot: Queue offset of ``stored[0]``.
        stored: Units of the queue's files.
        facts: The log.
    """
    count = len(before)
    is_so = (
        count > 0
        and len(rows) > 0
        and before["queue_offset"][0] == first_slot
        and before["phy_offset"][0] >= facts.min_phy_offset
        and rows["queue_offset"][0] == first_slot + count
        and rows["phy_offset"][0] - before["phy_offset"][-1] >= MIN_RECORD_BYTES
        and stand_in(before, stored[:count])
        and stand_in(rows, stored[count:])
    )
    if not is_so:
        return None
    state = QueueState(topic, queue_id, first_slot, stored, first_slot, [], agrees=True)
    state.behind_slot = state.max_offset
    return state


class PointQueues:
    """The queues of a log: a :class:`~seglog.storage.scan.queue_overlays.SeenQueues`.

    Args:
        known: The queues of the point.
        rows: The rows of each queue behind the point.
        facts: The log, with the records behind the point.
        end_phy_offset: Physical offset of the point.
        files: The file layer of the store.
    """

    def __init__(
        self,
        known: Mapping[Key, KnownQueue],
        rows: RowsByQueue,
        facts: LogFacts,
        end_phy_offset: int,
        files: Files,
    ) -> None:
        self._known = known
        self._rows = rows
        self._facts = facts
        self._end_phy_offset = end_phy_offset
        self._files = files

    @property
    def plain(self) -> Collection[Key]:
        """Queues that have a record behind the point."""
        return self._rows.keys()

    @property
    def batch(self) -> Collection[Key]:
        """Empty: no points are written for stores with batch queues."""
        return ()

    def overlay_batch(self, queue: QueueFiles) -> BatchQueueState:
        """Refuses the point.

        Raises:
            DoubtError: Always.
        """
        raise DoubtError(f"there is a batch queue, {queue.topic}/{queue.queue_id}")

    def overlay(self, queue: QueueFiles) -> QueueState:
        """Returns the right content of a queue, compared with its files.

        Raises:
            DoubtError: The queue does not continue behind the point as it should.
        """
        key = (queue.topic, queue.queue_id)
        known, rows, facts = self._known.get(key), self._rows.get(key, NO_ROWS), self._facts
        name = f"queue {queue.topic}/{queue.queue_id}"
        if known is None:
            first, stored = read_units(self._files, queue, facts.file_size_bytes)
            self._check_beyond(name, stored)
            return overlay_queue(*key, rows, first, stored, facts, has_files=bool(queue.sizes))
        slots = rows["queue_offset"]
        follow = not len(rows) or (slots[0] >= known.end_slot and bool((np.diff(slots) > 0).all()))
        demand(follow, f"{name} continues with other queue offsets")
        first = max(known.begin_slot, known.end_slot - _CONTEXT_UNITS)
        stored = self._stored_from(queue, first)
        context = stored[: known.end_slot - first]
        self._check_beyond(name, stored[len(context) :])
        there = context["phy_offset"] >= facts.min_phy_offset
        before = np.zeros(int(there.sum()), ROW)
        for field in ("phy_offset", "size_bytes", "tags_code"):
            before[field] = context[field][there]
        before["queue_offset"] = first + np.flatnonzero(there)
        state = continued_queue(*key, before, rows, first, stored, facts)
        if state is None:
            state = overlay_queue(*key, np.concatenate([before, rows]), first, stored, facts, has_files=True)
        odd = state.mended or any(finding.code == "record-queue-offset" for finding in state.findings)
        demand(not odd and state.max_offset >= known.end_slot, f"{name} has odd queue offsets")
        if known.min_slot < known.end_slot:
            state.min_offset = known.min_slot
        per_file = facts.file_size_bytes // CQ_UNIT_BYTES
        # Files are removed if retention removed all their messages, except the file of the next unit.
        kept = min(state.min_offset, state.max_offset - 1) // per_file * per_file
        if max(known.begin_slot, kept) < state.first_slot:
            state.held_from = max(known.begin_slot, kept)
        return state

    def _check_beyond(self, name: str, units: Units) -> None:
        below = is_message(units) & (units["phy_offset"] < self._end_phy_offset)
        demand(not below.any(), f"{name} has more units that lead below the point")

    def _stored_from(self, queue: QueueFiles, slot: int) -> Units:
        """Returns the units of a queue's files from a queue offset on."""
        size = self._facts.file_size_bytes
        start = slot * CQ_UNIT_BYTES // size * size
        rest = replace(
            queue, sizes={first: length for first, length in queue.sizes.items() if first >= start}
        )
        first, units = read_units(self._files, rest, size)
        return units[slot - first :]

"""The queues of a log with a row for every record, compared with their files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from seglog.storage.directory.queue_files import QueueFiles, read_units_left
from seglog.storage.files.files import Files
from seglog.storage.kernels.walk import ROW, Rows
from seglog.storage.overlay.batch_overlay import BatchQueueState, overlay_batch_queue, units_of_rows
from seglog.storage.overlay.kept_units import LogFacts
from seglog.storage.overlay.queue_overlay import QueueState, overlay_queue
from seglog.storage.scan.queue_overlays import Key
from seglog.storage.segments.scratch import Room
from seglog.storage.walk.dispatch import Dispatched

NO_ROWS: Final[Rows] = np.empty(0, ROW)


class RowQueues:
    """The queues of a log: a :class:`~seglog.storage.scan.queue_overlays.SeenQueues`.

    Args:
        placed: The rows of each queue.
        ranges: Base queue offset and number of messages of batch records, by physical offset.
        facts: The log.
        batch_file_bytes: Length of a batch-queue file.
        files: The file layer of the store.
        room: Allocates the units.
    """

    def __init__(
        self,
        placed: Dispatched,
        ranges: Mapping[int, tuple[int, int]],
        facts: LogFacts,
        batch_file_bytes: int,
        files: Files,
        room: Room,
    ) -> None:
        self._placed = placed
        self._ranges = ranges
        self._facts = facts
        self._batch_facts = replace(facts, file_size_bytes=batch_file_bytes)
        self._files = files
        self._room = room

    @property
    def plain(self) -> Collection[Key]:
        """Plain queues for which the log has a record with a queue offset."""
        return self._placed.plain.keys()

    @property
    def batch(self) -> Collection[Key]:
        """Batch queues for which the log has a record."""
        return self._placed.batch.keys()

    def overlay(self, queue: QueueFiles) -> QueueState:
        """Returns the right content of a plain queue, compared with its files."""
        key, size = (queue.topic, queue.queue_id), self._facts.file_size_bytes
        first_slot, stored = read_units_left(self._files, queue, size, self._room)
        rows = self._placed.plain.get(key, NO_ROWS)
        has_files = bool(queue.sizes)
        return overlay_queue(
            *key, rows, first_slot, stored, self._facts, has_files=has_files, room=self._room
        )

    def overlay_batch(self, queue: QueueFiles) -> BatchQueueState:
        """Returns the right content of a batch queue, compared with its files."""
        key, facts = (queue.topic, queue.queue_id), self._batch_facts
        first_index, stored = read_units_left(self._files, queue, facts.file_size_bytes)
        units = units_of_rows(self._placed.batch.get(key, NO_ROWS), self._ranges)
        return overlay_batch_queue(*key, units, first_index, stored, facts, has_files=bool(queue.sizes))

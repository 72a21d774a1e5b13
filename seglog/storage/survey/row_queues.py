"""The queues of a log of which every record has a row, held against their files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from seglog.storage.directory.queue_files import QueueFiles, read_units_left
from seglog.storage.files.files import Files
from seglog.storage.kernels.walk import ROW, Rows
from seglog.storage.overlay.batch_overlay import BatchQueueState, overlay_batch_queue, units_of_rows
from seglog.storage.overlay.queue_overlay import LogFacts, QueueState, overlay_queue
from seglog.storage.scan.queue_overlays import Key
from seglog.storage.segments.scratch import Room
from seglog.storage.walk.dispatch import Dispatched

NO_ROWS: Final[Rows] = np.empty(0, ROW)


class RowQueues:
    """The queues of a log: a :class:`~seglog.storage.scan.queue_overlays.SeenQueues`.

    Args:
        placed: The rows of each queue.
        ranges: How many messages records of batches hold, by place.
        facts: The log.
        batch_file_bytes: Length of a batch-queue file.
        files: Where the store is.
        room: Where units go.
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
        """Plain queues of which the log has a record with a place in them."""
        return self._placed.plain.keys()

    @property
    def batch(self) -> Collection[Key]:
        """Batch queues of which the log has a record."""
        return self._placed.batch.keys()

    def overlay(self, queue: QueueFiles) -> QueueState:
        """Returns what a plain queue must hold, held against its files."""
        key, size = (queue.topic, queue.queue_id), self._facts.file_size_bytes
        first_slot, stored = read_units_left(self._files, queue, size, self._room)
        rows = self._placed.plain.get(key, NO_ROWS)
        has_files = bool(queue.sizes)
        return overlay_queue(
            *key, rows, first_slot, stored, self._facts, has_files=has_files, room=self._room
        )

    def overlay_batch(self, queue: QueueFiles) -> BatchQueueState:
        """Returns what a batch queue must hold, held against its files."""
        key, facts = (queue.topic, queue.queue_id), self._batch_facts
        first_index, stored = read_units_left(self._files, queue, facts.file_size_bytes)
        units = units_of_rows(self._placed.batch.get(key, NO_ROWS), self._ranges)
        return overlay_batch_queue(*key, units, first_index, stored, facts, has_files=bool(queue.sizes))

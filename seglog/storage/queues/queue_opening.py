"""Opens the queues of a store for writing: the queues that recovery found, and new ones."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from seglog.storage.directory import StoreGeometry, queue_directory
from seglog.storage.files.files import Files
from seglog.storage.files.folder_names import FolderNames
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONSUME_QUEUE
from seglog.storage.format.queue import BATCH_UNIT_BYTES, CQ_UNIT_BYTES
from seglog.storage.kernels.calls.tails import QueueTail
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.queues.batch_queue import BatchQueue
from seglog.storage.queues.consume_queue import ConsumeQueue, SegmentsOpening
from seglog.storage.segments.mapped_file import MapPool
from seglog.storage.segments.segments import Segments

QUEUE_STEP_BYTES = 4 << 10
"""Space is reserved in these steps. Of many queues most are short: 10,000 take a page each, not 640 MB."""


class QueueOpening:
    """Opens queues.

    Args:
        files: The file layer of the store.
        root: Its directory.
        geometry: Lengths of its files.
        pool: Counts their maps.
        are_units_synced: Whether the units that recovery found are known to be on the disk.
        topics: The topics whose queues recovery found.

    Attributes:
        folders: Creates the folders of queues, and syncs their names.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        geometry: StoreGeometry,
        pool: MapPool,
        *,
        are_units_synced: bool,
        topics: Iterable[str] = (),
    ) -> None:
        self._files = files
        self._root = root
        self._geometry = geometry
        self._pool = pool
        self._are_units_synced = are_units_synced
        unsynced = [] if are_units_synced else list(_folders_of_queues(root, topics))
        self.folders = FolderNames(files, unsynced)
        self._opening = SegmentsOpening(threading.Lock(), self._segments)

    def queue(self, state: QueueState) -> ConsumeQueue:
        """Returns a plain queue in the state that recovery found; opens no file yet."""
        return ConsumeQueue(
            state.topic,
            state.queue_id,
            self._opening,
            QueueTail(state.min_offset, state.max_offset, state.max_phy_offset),
            file_offset=state.file_slot,
            synced_offset=state.max_offset if self._are_units_synced else state.first_slot,
        )

    def _segments(self, topic: str, queue_id: int, file_offset: int, end_offset: int) -> Segments:
        """Returns the files of a plain queue that hold the units between two queue offsets."""
        size = self._geometry.queue_file_size_bytes
        start, end = file_offset * CQ_UNIT_BYTES, end_offset * CQ_UNIT_BYTES
        return Segments(
            self._files,
            self._root / queue_directory(topic, queue_id),
            size,
            self._pool,
            step_bytes=min(QUEUE_STEP_BYTES, size),
            first_offsets=range(start - start % size, end, size) if start < end else (),
            are_names_synced=self._are_units_synced,
            folders=self.folders,
        )

    def batch_queue(self, state: BatchQueueState) -> BatchQueue:
        """Returns a batch queue in the state that recovery found; opens no file yet."""
        size = self._geometry.batch_file_size_bytes
        start = state.first_index * BATCH_UNIT_BYTES
        segments = Segments(
            self._files,
            self._root / queue_directory(state.topic, state.queue_id, BATCH_CONSUME_QUEUE),
            size,
            self._pool,
            step_bytes=min(QUEUE_STEP_BYTES, size),
            first_offsets=range(start, start + len(state.units) * BATCH_UNIT_BYTES, size),
            are_names_synced=self._are_units_synced,
            folders=self.folders,
        )
        synced = state.first_index + len(state.units) if self._are_units_synced else state.first_index
        return BatchQueue(state, segments, synced)


def _folders_of_queues(root: Path, topics: Iterable[str]) -> Iterator[Path]:
    """Yields every folder that holds names of the queue folders of some topics."""
    yield root
    for kind in (CONSUME_QUEUE, BATCH_CONSUME_QUEUE):
        yield root / kind
        for topic in topics:
            yield root / kind / topic

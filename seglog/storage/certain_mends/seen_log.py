"""The interface of a log and its queues for mends of readable records: of a whole log, or of an excerpt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from seglog.storage.directory import QueueFiles, StoreGeometry
from seglog.storage.kernels.walk import QueueTable, Rows
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.scan.queue_overlays import Key


class SeenLog(Protocol):
    """A walked log and its queues, such as a survey."""

    @property
    def root(self) -> Path:
        """The store directory."""

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of its files."""

    @property
    def queue_files(self) -> Mapping[Key, QueueFiles]:
        """The files of each queue that has a directory."""

    @property
    def queues(self) -> Mapping[Key, QueueState]:
        """The right content of each plain queue."""

    @property
    def batch_files(self) -> Mapping[Key, QueueFiles]:
        """The files of each batch queue that has a directory."""

    @property
    def batch_queues(self) -> Mapping[Key, BatchQueueState]:
        """The right content of each batch queue."""

    @property
    def rows(self) -> Rows:
        """``(n,) ROW``, its records in log order; at least those to which units of other queues lead."""

    @property
    def numbers(self) -> QueueTable:
        """The queues by the numbers that rows have for them."""

    @property
    def min_phy_offset(self) -> int:
        """Physical offset of its first byte."""

    @property
    def max_phy_offset(self) -> int:
        """Its end."""

    @property
    def walked_from(self) -> int:
        """Physical offset from which on there are rows."""

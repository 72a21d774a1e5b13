"""The log and queues of a store as mends of readable records look at them: whole, or an excerpt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from seglog.storage.directory import QueueFiles, StoreGeometry
from seglog.storage.kernels.walk import QueueTable, Rows
from seglog.storage.overlay import QueueState
from seglog.storage.scan.queue_overlays import Key


class SeenLog(Protocol):
    """A log that was walked, and its queues; a survey is one."""

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
        """What each plain queue must hold."""

    @property
    def rows(self) -> Rows:
        """``(n,) ROW``, its records in log order; at least those that units of other queues lead to."""

    @property
    def numbers(self) -> QueueTable:
        """The queues that rows name."""

    @property
    def min_phy_offset(self) -> int:
        """Where it starts."""

    @property
    def max_phy_offset(self) -> int:
        """Where it ends."""

    @property
    def walked_from(self) -> int:
        """Where the rows begin."""

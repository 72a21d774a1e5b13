"""One side of an open store, as :class:`~seglog.storage.store.MessageStore` sees it.

A writer has the store's lock and files in maps; a reader has a snapshot that can follow the writer. The store
calls either in the same way, and never asks which it has. What only a writer can do, a reader refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.directory.known_topics import TopicKinds
from seglog.storage.findings.findings import Finding
from seglog.storage.overlay.lost_messages import LostMessages
from seglog.storage.queues.queue_table import QueueKey
from seglog.storage.reads.queue_reader import ReadCore
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.writes.log_trimmer import Trimmed


class StoreCore(ReadCore, Protocol):
    """A writer or a reader.

    Thread rule: any thread.
    """

    @property
    def read_only(self) -> bool:
        """Whether it refuses everything that changes the store."""

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of the store's files."""

    @property
    def holes(self) -> Sequence[Hole]:
        """Unreadable stretches of the log."""

    @property
    def later_findings(self) -> tuple[Finding, ...]:
        """What reads found since the open."""

    def lost_in_gaps(self) -> Iterable[LostMessages]:
        """Returns messages that no file of the store tells of, and that the log has others in place of."""

    def indexed(self) -> tuple[int, int] | None:
        """Brings the key index to the end of the log and returns its position; None if it is not ours."""

    def on_change(self, forget: Callable[[], None]) -> None:
        """Has ``forget`` called when queues may have become others, or have got other minimums."""

    def wait_for_any(self, queues: Mapping[QueueKey, int], timeout_ms: float) -> bool:
        """Waits until a queue goes beyond its offset; returns whether one does, and the store is open."""

    async def wait_for_any_async(self, queues: Mapping[QueueKey, int], timeout_ms: float) -> bool:
        """Waits as :meth:`wait_for_any` does, for a task."""

    def listen(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Has ``wake`` called after every put to a queue."""

    def unlisten(self, topic: str, queue_id: int, wake: Callable[[], None]) -> None:
        """Ends what :meth:`listen` began."""

    def add_kinds(self, configured: TopicKinds) -> None:
        """Takes up the kinds of new topics."""

    def refresh(self) -> int:
        """Looks for what another process wrote; returns how many records that were."""

    def flush(self) -> None:
        """Returns once everything written before is on the disk."""

    def trim(self, phy_offset: int) -> Trimmed:
        """Deletes the files of the log that end at or below a place."""

    def drop_topic(self, topic: str) -> int:
        """Deletes the queues of a topic; returns how many there were."""

    def close(self) -> None:
        """Closes it; a second call does nothing."""

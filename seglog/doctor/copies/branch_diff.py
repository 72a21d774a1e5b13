"""Changes in a branch and in its store since the branch: new messages, retries, dead letters, offsets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seglog.doctor.copies.branch import BranchPoint, QueueKey, existing_branch, read_point
from seglog.doctor.tables.offset_table import OffsetTable, by_queue
from seglog.storage.files import Files
from seglog.storage.format.names import DLQ_PREFIX, RETRY_PREFIX
from seglog.storage.store import MessageStore


@dataclass(frozen=True, slots=True)
class QueueChange:
    """A queue that got messages.

    Attributes:
        kind: ``new``, ``retry`` or ``dead``: the purpose of its topic.
        at_branch: The queue's next offset when the branch was made.
        in_store: Number of messages that the store got since.
        in_branch: Number of messages that the branch got since.
    """

    kind: str
    topic: str
    queue_id: int
    at_branch: int
    in_store: int
    in_branch: int


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A group whose offset changed; None for a side in which it has no offset."""

    group: str
    topic: str
    queue_id: int
    at_branch: int | None
    in_store: int | None
    in_branch: int | None


@dataclass(frozen=True, slots=True)
class BranchDiff:
    """The differences from the time when the branch was made."""

    point: BranchPoint
    queues: tuple[QueueChange, ...]
    offsets: tuple[OffsetChange, ...]


def diff_branch(files: Files, root: Path, name: str) -> BranchDiff:
    """Compares a branch and its store with the state when the branch was made.

    Raises:
        NotFoundError: There is no such branch.
        ConfigError: A table, or the description of that state, cannot be read.
    """
    point = read_point(files, root, name)
    path = existing_branch(files, root, name)
    store, branch = _ends(files, root), _ends(None, path)
    queues = [
        QueueChange(
            _kind(topic),
            topic,
            queue_id,
            (base := point.queues.get((topic, queue_id), 0)),
            store.get((topic, queue_id), base) - base,
            branch.get((topic, queue_id), base) - base,
        )
        for topic, queue_id in sorted({*store, *branch, *point.queues})
    ]
    before = by_queue(point.offsets)
    in_store, in_branch = by_queue(OffsetTable(files, root).all()), by_queue(OffsetTable(files, path).all())
    offsets = [
        OffsetChange(*key, before.get(key), in_store.get(key), in_branch.get(key))
        for key in sorted({*before, *in_store, *in_branch})
    ]
    return BranchDiff(
        point,
        tuple(one for one in queues if one.in_store or one.in_branch),
        tuple(one for one in offsets if not one.at_branch == one.in_store == one.in_branch),
    )


def _ends(files: Files | None, path: Path) -> dict[QueueKey, int]:
    """Returns the next queue offset of each queue; None for files of its own, which a branch needs."""
    with MessageStore.open(path, create=False, read_only=True, files=files) as store:
        return {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}


def _kind(topic: str) -> str:
    if topic.startswith(DLQ_PREFIX):
        return "dead"
    return "retry" if topic.startswith(RETRY_PREFIX) else "new"

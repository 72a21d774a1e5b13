"""What an audit looks at: the files of a store, listed, and its log cut into the splits that tasks read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seglog.storage.directory import NOTHING_KNOWN, FileSizes, configured_kinds
from seglog.storage.files.files import Files
from seglog.storage.scan.listed import ListedStore, list_whole
from seglog.storage.scan.queue_overlays import batch_topics
from seglog.storage.splits.splits import DEFAULT_SPLIT_BYTES, plan_splits
from seglog.storage.walk.segment_walk import Split


@dataclass(slots=True)
class AuditPlan(ListedStore):
    """A store before its records are read; its root is absolute, for tasks have folders of their own.

    Attributes:
        batch_topics: Topics with batch queues, as far as directories and attributes say.
        splits: What the tasks read.
        verify: Whether to compute checksums.
    """

    batch_topics: frozenset[str]
    splits: list[Split]
    verify: bool


def plan_audit(
    root: Path,
    files: Files,
    *,
    split_bytes: int = DEFAULT_SPLIT_BYTES,
    verify: bool = True,
    given: FileSizes = NOTHING_KNOWN,
) -> AuditPlan:
    """Lists the files of a store and cuts its log into splits.

    Args:
        root: The store directory.
        files: Where it is.
        split_bytes: How long a split is.
        verify: Whether to compute checksums.
        given: Lengths of files that the caller knows.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: ``split_bytes`` is too small, or files prove another length than is given.
    """
    store = list_whole(files, root, given)
    return AuditPlan(
        root.absolute(),
        store.lengths,
        store.geometry,
        store.mode,
        store.checkpoint,
        store.log_files,
        store.queue_files,
        store.batch_files,
        store.rocksdb,
        store.findings,
        batch_topics(configured_kinds(files, root).batch, store.queue_files, store.batch_files),
        plan_splits(store.log_files, store.geometry.segment_size_bytes, split_bytes),
        verify,
    )

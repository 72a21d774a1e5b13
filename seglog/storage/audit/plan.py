"""What an audit looks at: the files of a store, listed, and its log cut into the splits that tasks read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seglog.errors import NotFoundError
from seglog.storage.audit.splits import DEFAULT_SPLIT_BYTES, Split, plan_splits
from seglog.storage.checkpoint_file import read_checkpoint
from seglog.storage.derived_findings import config_findings
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format import names
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.geometry import NOTHING_KNOWN, FileSizes, StoreGeometry
from seglog.storage.known_topics import configured_kinds
from seglog.storage.listing import list_store
from seglog.storage.log_files import LogFile
from seglog.storage.queue_files import QueueFiles
from seglog.storage.survey import batch_topics, check_is_store


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What is known of a store before its records are read.

    Attributes:
        root: The store directory, absolute: tasks have folders of their own.
        geometry: Lengths of its files.
        mode: ``normal`` or ``abnormal``.
        log_files: Commit-log files in order.
        queue_files: The files of each queue that has a directory.
        batch_files: The files of each batch queue that has one.
        batch_topics: Topics with batch queues, as far as directories and attributes tell.
        splits: What the tasks read.
        verify: Whether to compute checksums.
        findings: What the listing already shows.
        checkpoint: What it says before the log is walked: a writer may be at work.
    """

    root: Path
    geometry: StoreGeometry
    mode: str
    log_files: list[LogFile]
    queue_files: dict[tuple[str, int], QueueFiles]
    batch_files: dict[tuple[str, int], QueueFiles]
    batch_topics: frozenset[str]
    splits: list[Split]
    verify: bool
    findings: list[Finding]
    checkpoint: Checkpoint


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
    if not check_is_store(files, root):
        raise NotFoundError(f"there is no store at {root}")
    listing = list_store(files, root, given)
    return AuditPlan(
        root.absolute(),
        listing.geometry,
        "abnormal" if files.exists(root / names.ABORT_FILE) else "normal",
        listing.log_files,
        listing.queue_files,
        listing.batch_files,
        batch_topics(configured_kinds(files, root).batch, listing.queue_files, listing.batch_files),
        plan_splits(listing.log_files, listing.geometry.segment_size_bytes, split_bytes),
        verify,
        listing.findings + config_findings(files, root),
        read_checkpoint(files, root),
    )

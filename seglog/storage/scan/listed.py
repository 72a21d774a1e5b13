"""The listing of a store's folders, before the walk over its log: the first step of a survey and an audit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seglog.storage.directory.directory_listing import demand_store, list_store
from seglog.storage.directory.geometry import NOTHING_KNOWN, FileSizes, StoreGeometry
from seglog.storage.directory.index_files import index_division
from seglog.storage.directory.lengths import Lengths
from seglog.storage.directory.log_files import LogFile, log_start
from seglog.storage.directory.queue_files import QueueFiles
from seglog.storage.directory.rocksdb_parts import RocksKind, RocksPart, find_rocksdb
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.names import ABORT_FILE
from seglog.storage.small_files.checkpoint_file import read_checkpoint


@dataclass(slots=True)
class ListedStore:
    """A store before its records are read.

    Attributes:
        root: The store directory.
        lengths: The known lengths of its files, with their evidence.
        geometry: The lengths to use.
        mode: ``normal`` after a clean stop, ``abnormal`` with an ``abort`` file (a crash, or a live writer).
        checkpoint: Its content before the log files were listed, because a writer may change it meanwhile.
        log_files: Commit-log files in order.
        queue_files: The files of each queue that has a directory.
        batch_files: The files of each batch queue that has a directory.
        rocksdb: The parts that are in RocksDB.
        findings: The findings; at first those of the listing.
    """

    root: Path
    lengths: Lengths
    geometry: StoreGeometry
    mode: str
    checkpoint: Checkpoint
    log_files: list[LogFile]
    queue_files: dict[tuple[str, int], QueueFiles]
    batch_files: dict[tuple[str, int], QueueFiles]
    rocksdb: tuple[RocksPart, ...]
    findings: list[Finding]

    @property
    def is_rescan_due(self) -> bool:
        """Whether RocketMQ walks the whole log when it starts, and makes the missing queues and indexes."""
        log_ms, queues_ms = self.checkpoint.physic_timestamp_ms, self.checkpoint.logics_timestamp_ms
        return self.mode == "abnormal" and log_ms == 0 == queues_ms

    def index_division(self, files: Files) -> IndexGeometry | None:
        """Returns the division of its key-index files; None if nothing shows it."""
        written, segment = self.lengths.written.index, self.geometry.segment_size_bytes
        return index_division(files, self.root, written, segment)

    @property
    def has_queue_files(self) -> bool:
        """Whether any queue has a file."""
        return any(queue.sizes for queue in (*self.queue_files.values(), *self.batch_files.values()))

    @property
    def rocksdb_queues(self) -> list[RocksPart]:
        """The parts in RocksDB that hold queues."""
        return [part for part in self.rocksdb if part.kind is RocksKind.QUEUES]

    def log_start(self, end_phy_offset: int) -> int:
        """Returns the start of the log, given its end; -1 without any segment, as in RocketMQ."""
        return log_start(self.log_files, end_phy_offset)


def list_whole(
    files: Files, root: Path, given: FileSizes = NOTHING_KNOWN, *, asks_queues: bool = True
) -> ListedStore:
    """Lists a store.

    Args:
        files: Where it is.
        root: The store directory.
        given: Lengths of files that the caller knows.
        asks_queues: As :func:`~seglog.storage.directory.lengths.find_lengths` takes it.

    Raises:
        NotFoundError: There is nothing at ``root``.
        NotAStoreError: Something else is there.
        UnsupportedStoreError: The store is of another kind.
        InvalidArgumentError: Its files prove another length than is given.
    """
    demand_store(files, root)
    # Before the files are listed: a writer that begins a file in between does not put it ahead of them.
    checkpoint = read_checkpoint(files, root)
    listing = list_store(files, root, given, asks_queues=asks_queues)
    return ListedStore(
        root,
        listing.lengths,
        listing.geometry,
        mode_of(files, root),
        checkpoint,
        listing.log_files,
        listing.queue_files,
        listing.batch_files,
        find_rocksdb(files, root),
        listing.findings,
    )


def mode_of(files: Files, root: Path) -> str:
    """Returns ``normal`` or ``abnormal``, as :attr:`ListedStore.mode`."""
    return "abnormal" if files.exists(root / ABORT_FILE) else "normal"

"""How long the files of a store are, as values: what both engines can work with, and what a caller knows.

RocketMQ states it nowhere in a store; :mod:`seglog.storage.directory.lengths` works it out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.storage.directory.file_facts import FileFacts, infer_length
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.compaction import CompactionSizes, compaction_sizes
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES, DEFAULT_QUEUE_FILE_BYTES

DEFAULT_SEGMENT_BYTES: Final = 1 << 30
MIN_SEGMENT_BYTES: Final = 4096
MAX_SEGMENT_BYTES: Final = (1 << 31) - 1
"""Java maps a file with a 32-bit length."""


@dataclass(frozen=True, slots=True)
class StoreGeometry:
    """Lengths of the files of a store.

    Attributes:
        segment_size_bytes: Of a commit-log file (``mappedFileSizeCommitLog``).
        queue_file_size_bytes: Of a consume-queue file (``mappedFileSizeConsumeQueue``), a multiple of 20.
        found_batch_file_bytes: Of the batch-queue files that are there (``mapperFileSizeBatchConsumeQueue``),
            a multiple of 46; None without any.
        is_segment_known: Whether the length of log files is certain enough to write any.
        is_queue_file_known: Whether that of queue files is.
        is_assumed: Whether nothing but the length of the only file says how long the files of the log, or
            of queues, are, and it is not RocketMQ's default: a file that was cut has such a length too.
    """

    segment_size_bytes: int = DEFAULT_SEGMENT_BYTES
    queue_file_size_bytes: int = DEFAULT_QUEUE_FILE_BYTES
    found_batch_file_bytes: int | None = None
    is_segment_known: bool = True
    is_queue_file_known: bool = True
    is_assumed: bool = field(default=False, compare=False)

    @property
    def units_per_file(self) -> int:
        """Units in a consume-queue file."""
        return self.queue_file_size_bytes // CQ_UNIT_BYTES

    @property
    def batch_file_size_bytes(self) -> int:
        """Length of a batch-queue file; where there is none yet, as many units as other queue files have."""
        return self.found_batch_file_bytes or self.units_per_file * BATCH_UNIT_BYTES


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Lengths that a store is configured with, as far as they are known from elsewhere than its files.

    A broker does not start with log or queue files of another length, and misreads index files of another
    division.

    Attributes:
        queue_file_bytes: Of a queue file (``mappedFileSizeConsumeQueue``).
        index: Division of an index file (``maxHashSlotNum``, ``maxIndexNum``).
        segment_bytes: Of a commit-log file (``mappedFileSizeCommitLog``).
        batch_file_bytes: Of a batch-queue file (``mapperFileSizeBatchConsumeQueue``).
        compaction: Of the files of compaction topics (``compactionMappedFileSize``,
            ``compactionCqMappedFileSize``).
        timer_log_bytes: Of a file of the timer log (``mappedFileSizeTimerLog``).
        not_said: RocketMQ's names of those that a configuration leaves out, so that they are its defaults.
    """

    queue_file_bytes: int | None = None
    index: IndexGeometry | None = None
    segment_bytes: int | None = None
    batch_file_bytes: int | None = None
    compaction: CompactionSizes | None = None
    timer_log_bytes: int | None = None
    not_said: frozenset[str] = field(default=frozenset(), compare=False)

    def over(self, other: FileSizes) -> FileSizes:
        """Returns these lengths, and those of ``other`` where these say nothing."""
        return FileSizes(
            self.queue_file_bytes if self.queue_file_bytes is not None else other.queue_file_bytes,
            self.index or other.index,
            self.segment_bytes if self.segment_bytes is not None else other.segment_bytes,
            self.batch_file_bytes if self.batch_file_bytes is not None else other.batch_file_bytes,
            self.compaction or other.compaction,
            self.timer_log_bytes if self.timer_log_bytes is not None else other.timer_log_bytes,
            other.not_said,
        )


NOTHING_KNOWN: Final = FileSizes()
SMALL_FILES: Final = FileSizes(
    queue_file_bytes=6_000 * CQ_UNIT_BYTES,
    index=IndexGeometry(50_000, 200_000),
    segment_bytes=16 << 20,
    compaction=compaction_sizes(16 << 20, 1 << 20),
)
"""For tests and desktops: no file is longer than 16 MiB, and a body of ``maxMessageSize`` still fits."""


def check_geometry(geometry: StoreGeometry) -> StoreGeometry:
    """Returns ``geometry`` if both engines can work with it.

    Raises:
        InvalidArgumentError: A length is out of range.
    """
    if not MIN_SEGMENT_BYTES <= geometry.segment_size_bytes <= MAX_SEGMENT_BYTES:
        raise InvalidArgumentError(
            f"segment_size_bytes={geometry.segment_size_bytes} is outside"
            f" {MIN_SEGMENT_BYTES}..{MAX_SEGMENT_BYTES}"
        )
    size = geometry.queue_file_size_bytes
    if size % CQ_UNIT_BYTES or not CQ_UNIT_BYTES <= size <= MAX_SEGMENT_BYTES:
        raise InvalidArgumentError(
            f"queue_file_size_bytes={size} is no multiple of {CQ_UNIT_BYTES} up to {MAX_SEGMENT_BYTES}"
        )
    return geometry


def infer_file_size(files: Iterable[tuple[int, int]], default_bytes: int, *, multiple_of: int = 1) -> int:
    """Returns the length that the files of a sequence have, by their names and lengths only.

    For kinds of files that are rebuilt from the log if they are wrong: the log and its queues have more
    evidence, and :mod:`seglog.storage.directory.lengths` looks at it.

    Args:
        files: ``(first_offset, size_bytes)`` of each file, of one or of many sequences.
        default_bytes: For a store without such files, and where nothing shows it.
        multiple_of: Lengths that are no multiple of this are damage.
    """
    facts = [FileFacts(first, size) for first, size in files]
    found = infer_length(facts, unit_bytes=multiple_of, range_bytes=(multiple_of, 1 << 62))
    if found.size_bytes is not None:
        return found.size_bytes
    sizes = [fact.size_bytes for fact in facts if fact.size_bytes and fact.size_bytes % multiple_of == 0]
    return max(sizes, key=lambda size: (sizes.count(size), size), default=default_bytes)

"""How long the files of a store are: RocketMQ states it nowhere, so it is read off the files.

All files of one kind have the same length; names are multiples of it. Damage (a file cut short, a
zero-length file after a crash) must not mislead, so the length that most files have wins, and for a
single file its length if names allow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.storage.format.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.consume_queue import CQ_UNIT_BYTES, DEFAULT_QUEUE_FILE_BYTES

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
    """

    segment_size_bytes: int = DEFAULT_SEGMENT_BYTES
    queue_file_size_bytes: int = DEFAULT_QUEUE_FILE_BYTES
    found_batch_file_bytes: int | None = None

    @property
    def units_per_file(self) -> int:
        """Units in a consume-queue file."""
        return self.queue_file_size_bytes // CQ_UNIT_BYTES

    @property
    def batch_file_size_bytes(self) -> int:
        """Length of a batch-queue file; where there is none yet, as many units as other queue files have."""
        return self.found_batch_file_bytes or self.units_per_file * BATCH_UNIT_BYTES


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
    """Returns the length that the files of a sequence have.

    Args:
        files: ``(first_offset, size_bytes)`` of each file, of one or of many sequences.
        default_bytes: For a store without such files.
        multiple_of: Lengths that are no multiple of this are damage.
    """
    known = list(files)
    sizes = Counter(size for _first, size in known if size > 0 and size % multiple_of == 0)
    fitting = {
        size: count for size, count in sizes.items() if all(first % size == 0 for first, _size in known)
    }
    candidates = fitting or sizes
    if not candidates:
        return default_bytes
    return max(candidates, key=lambda size: (candidates[size], size))

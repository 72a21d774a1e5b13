"""``seglog/lengths.conf`` against the files of its store: the files are right.

A checksum says that the file is whole, not that it is true: it may come from another store, or be forged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from seglog.storage.directory.broker_conf import (
    BATCH_FILE,
    INDEX_ENTRIES,
    INDEX_SLOTS,
    LENGTHS_FILE,
    QUEUE_FILE,
    SEGMENT,
    read_lengths,
)
from seglog.storage.directory.geometry import FileSizes, StoreGeometry
from seglog.storage.directory.index_files import list_index_files
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.index.index import IndexGeometry


def disproved_lengths(files: Files, root: Path, geometry: StoreGeometry) -> tuple[FileSizes, list[Finding]]:
    """Returns what a store should say of its lengths, and a finding for each that it says wrongly.

    Args:
        files: Where the store is.
        root: The store directory.
        geometry: The lengths of its files, from all evidence in the store.
    """
    written = read_lengths(files, root)
    right = replace(
        written,
        segment_bytes=_right(
            written.segment_bytes, geometry.segment_size_bytes, is_known=geometry.is_segment_known
        ),
        queue_file_bytes=_right(
            written.queue_file_bytes, geometry.queue_file_size_bytes, is_known=geometry.is_queue_file_known
        ),
        batch_file_bytes=geometry.found_batch_file_bytes or written.batch_file_bytes,
    )
    if written.index is not None:
        known, _damaged = list_index_files(files, root)
        right = replace(right, index=known[-1].geometry if known else written.index)
    return right, [
        Finding("own-damaged", LENGTHS_FILE, expected=f"{name}={is_right}", found=str(said))
        for (name, said), (_name, is_right) in zip(_values(written), _values(right), strict=True)
        if said is not None and said != is_right
    ]


def _right(written: int | None, known: int, *, is_known: bool) -> int | None:
    return known if is_known and written is not None else written


def _values(sizes: FileSizes) -> Iterator[tuple[str, int | None]]:
    index = sizes.index or IndexGeometry(0, 0)
    yield SEGMENT, sizes.segment_bytes
    yield QUEUE_FILE, sizes.queue_file_bytes
    yield BATCH_FILE, sizes.batch_file_bytes
    yield INDEX_SLOTS, index.slot_count
    yield INDEX_ENTRIES, index.entry_count

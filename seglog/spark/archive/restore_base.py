"""The base of a restored log: nothing, or a copy of a store with its queues and its key index.

The copy is made beside the store. The copy of a store that was closed is used unchanged. Otherwise the copy
is opened once, before anything is restored, so that the engine's recovery completes its log and its queues.
This is the work of any opening, and does not grow with the number of restored messages.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from seglog.doctor.copies import make_backup
from seglog.errors import InvalidArgumentError, LengthUnknownError
from seglog.storage.directory import (
    DEFAULT_SEGMENT_BYTES,
    FileSizes,
    IndexFile,
    StoreGeometry,
    check_geometry,
    configured_kinds,
    index_division,
    list_index_files,
    list_store,
    read_lengths,
)
from seglog.storage.files import StoreRoot
from seglog.storage.findings import repair_with_length
from seglog.storage.format.index import DEFAULT_INDEX_GEOMETRY, IndexGeometry
from seglog.storage.format.names import ABORT_FILE, COMMIT_LOG, INDEX, LMQ_PREFIX, segment_file_name
from seglog.storage.format.record import FILLER, MAGIC_BLANK
from seglog.storage.recovery import indexes_tags
from seglog.storage.small_files import read_checkpoint
from seglog.storage.store import MessageStore

BEGUN: Final = ".begun"
"""A folder in the new store for the index file that is continued; removed before the store is complete."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths of the files of a new store; None for RocketMQ's defaults.

    Attributes:
        segment_bytes: Length of a commit-log file.
        queue_file_bytes: Length of a queue file.
        index: Number of slots and entries of an index file.
    """

    segment_bytes: int | None = None
    queue_file_bytes: int | None = None
    index: IndexGeometry | None = None


class RestoreBase(NamedTuple):
    """The base of a restored log.

    Attributes:
        first: Physical offset of the first new segment.
        segment_bytes: Length of segments.
        queue_file_bytes: Length of queue files.
        lengths: The lengths that the store records of its files.
        before: The copy of the store whose queues continue; None for a new store.
        newest: The index file that is continued; None without any.
        tags: Whether tags are keys of the index.
        has_others: Whether there are queues of other kinds than the plain one.
        index_full_ms: End time of the last index file that is followed by another, for the checkpoint:
            without it RocketMQ drops the whole index after a crash.
    """

    first: int
    segment_bytes: int
    queue_file_bytes: int
    lengths: FileSizes
    before: Path | None = None
    newest: IndexFile | None = None
    tags: bool = True
    has_others: bool = False
    index_full_ms: int = 0


def check_sizes(files: StoreRoot, root: Path, sizes: Sizes) -> None:
    """Checks that a store has files of the given lengths, or no files yet.

    Raises:
        InvalidArgumentError: It has files of other lengths.
        LengthUnknownError: Nothing shows the length of its queue files.
    """
    listing = list_store(files, root)
    geometry = listing.geometry
    if listing.log_files and not geometry.is_queue_file_known and listing.queue_files:
        raise LengthUnknownError(
            f"nothing in {root} says how long its queue files must be",
            help=f"nothing was changed; run {repair_with_length('--queue-file-bytes', root)}",
        )
    pairs = [("log files", "--segment-size", sizes.segment_bytes, geometry.segment_size_bytes)]
    if geometry.is_queue_file_known or not listing.queue_files:
        length = geometry.queue_file_size_bytes
        pairs.append(("queue files", "--queue-file-size", sizes.queue_file_bytes, length))
    for what, option, asked, found in pairs if listing.log_files else ():
        if asked is not None and asked != found:
            raise InvalidArgumentError(
                f"{root} has {what} of {found} bytes, and {option} asks for {asked}:"
                " a store keeps their length",
                help=f"leave {option} out, or restore into a new store; nothing was changed",
            )


def new_base(sizes: Sizes, *, begins_at_0: bool) -> RestoreBase:
    """Returns the base of a new store.

    Args:
        sizes: Lengths of its files.
        begins_at_0: Whether all of its queues begin at 0.

    Raises:
        InvalidArgumentError: A length is out of range.
    """
    segment_bytes = DEFAULT_SEGMENT_BYTES if sizes.segment_bytes is None else sizes.segment_bytes
    queue_file_bytes = (
        StoreGeometry().queue_file_size_bytes if sizes.queue_file_bytes is None else sizes.queue_file_bytes
    )
    check_geometry(StoreGeometry(segment_bytes, queue_file_bytes))
    # In a log that begins at 0 RocketMQ reads slots before a queue's first message as messages.
    first = 0 if begins_at_0 else segment_bytes
    lengths = FileSizes(queue_file_bytes, sizes.index or DEFAULT_INDEX_GEOMETRY, segment_bytes)
    return RestoreBase(first, segment_bytes, queue_file_bytes, lengths)


def copied_base(
    files: StoreRoot, root: Path, staged: Path, sizes: Sizes, *, begins_at_0: bool
) -> RestoreBase:
    """Copies a store whose lock this process holds, and fills its last segment.

    Args:
        files: Access to both stores.
        root: The store directory.
        staged: Path of the copy.
        sizes: Lengths of its files, for files that it does not have.
        begins_at_0: Whether all of its queues begin at 0, for a store without a log.
    """
    end = make_backup(files, root, staged, others=files).end_phy_offset
    if files.exists(root / ABORT_FILE):
        with MessageStore.open(staged, create=False, recovery_step_bytes=0, files=files) as store:
            end = store.max_phy_offset
    listing = list_store(files, staged)
    if not listing.log_files:
        return new_base(sizes, begins_at_0=begins_at_0)._replace(before=staged)
    geometry = listing.geometry
    segment_bytes = geometry.segment_size_bytes
    first = _end_segment(files, staged, end, segment_bytes)
    newest = _take_newest(files, staged)
    tags = newest is None or indexes_tags(
        files, staged, segment_bytes, (listing.log_files[0].first_offset, end), newest
    )
    kinds = configured_kinds(files, staged)
    is_lmq = any(topic.startswith(LMQ_PREFIX) for topic, _queue_id in listing.queue_files)
    written = read_lengths(files, staged)
    index = index_division(files, staged, written.index, segment_bytes)
    lengths = FileSizes(
        geometry.queue_file_size_bytes,
        index if newest is None else newest.geometry,
        segment_bytes,
        geometry.found_batch_file_bytes,
    )
    return RestoreBase(
        first,
        segment_bytes,
        geometry.queue_file_size_bytes,
        lengths,
        staged,
        newest,
        tags,
        bool(kinds.special or listing.batch_files or is_lmq),
        read_checkpoint(files, root).index_timestamp_ms,
    )


def _end_segment(files: StoreRoot, staged: Path, end: int, segment_bytes: int) -> int:
    """Fills the rest of the last segment with a filler; returns the start of the next segment."""
    position = end % segment_bytes
    if not position:
        return end
    with closing(files.open(staged / COMMIT_LOG / segment_file_name(end - position), writable=True)) as file:
        file.set_size(segment_bytes)
        file.write_at(FILLER.struct.pack(segment_bytes - position, MAGIC_BLANK), position)
        file.sync()
    return end - position + segment_bytes


def _take_newest(files: StoreRoot, staged: Path) -> IndexFile | None:
    """Moves the last file of the index aside, so that each attempt to continue it finds it unchanged."""
    known, _damaged = list_index_files(files, staged)
    if not known:
        return None
    files.make_dirs(staged / BEGUN)
    target = staged / BEGUN / known[-1].path.name
    files.rename(known[-1].path, target)
    return IndexFile(target, known[-1].header, known[-1].geometry)


def put_back_newest(files: StoreRoot, staged: Path, newest: IndexFile | None) -> None:
    """Moves the file back if no attempt continued it."""
    if newest is not None and not files.exists(staged / INDEX / newest.path.name):
        files.rename(newest.path, staged / INDEX / newest.path.name)

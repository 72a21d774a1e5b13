"""Repairs names and lengths of files with which RocketMQ would refuse to start, before any file is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from seglog.doctor.plans.actions import Action, move_away
from seglog.errors import ConfigError, CorruptError
from seglog.storage.directory import (
    LENGTHS_FILE,
    disproved_lengths,
    find_misnamed,
    list_store,
    load_lengths,
    write_lengths,
)
from seglog.storage.files import Files, resize
from seglog.storage.findings import Finding
from seglog.storage.format.checkpoint import CHECKPOINT_FILE_BYTES
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    CHECKPOINT_FILE,
    COMMIT_LOG,
    CONSUME_QUEUE,
    OURS,
    segment_file_name,
)
from seglog.storage.scan import HOLES_FILE, parse_holes
from seglog.storage.small_files import (
    RECOVERY_POINT_FILE_NAME,
    ConfigFile,
    read_recovery_point,
    remove_recovery_point,
)


def mend_files(files: Files, root: Path) -> Iterator[Action]:
    """Moves foreign files away and cuts files that are too long; yields the actions.

    Files that are too short are extended by recovery.
    """
    listing = list_store(files, root)
    queues = [*listing.queue_files.values(), *listing.batch_files.values()]
    strays = [finding.file for finding in listing.findings if finding.code == "log-file-stray"]
    misnamed = find_misnamed(files, root)
    strays += [f"{COMMIT_LOG}/{name}" for name in misnamed.copies]
    strays += [f"{queue.name}/{name}" for queue in queues for name in queue.strays]
    for name in strays:
        yield move_away(files, root, name)
    for name in misnamed.written_over:
        # An empty file is a hole that recovery fills; without a file the log would seem trimmed by retention.
        segment = listing.geometry.segment_size_bytes
        files.create(root / COMMIT_LOG / name, segment).close()
    if strays:
        listing = list_store(files, root)  # lengths are derived from the files that are left
    segment = listing.geometry.segment_size_bytes
    for file in listing.log_files:
        if file.size_bytes > segment:
            name = f"{COMMIT_LOG}/{segment_file_name(file.first_offset)}"
            yield _cut(files, root, name, file.size_bytes, segment)
    sizes = {CONSUME_QUEUE: listing.geometry.queue_file_size_bytes}
    sizes[BATCH_CONSUME_QUEUE] = listing.geometry.batch_file_size_bytes
    for queue in queues:
        for first, has in sorted(queue.sizes.items()):
            if has > sizes[queue.folder]:
                yield _cut(files, root, f"{queue.name}/{segment_file_name(first)}", has, sizes[queue.folder])
    for entry in files.list_dir(root):
        if entry.name == CHECKPOINT_FILE and entry.size_bytes > CHECKPOINT_FILE_BYTES:
            yield _cut(files, root, CHECKPOINT_FILE, entry.size_bytes, CHECKPOINT_FILE_BYTES)


def mend_strays(files: Files, root: Path, findings: Iterable[Finding]) -> Iterator[Action]:
    """Moves the files of queues of another store away; yields the actions.

    Args:
        files: Access to the store.
        root: The store directory.
        findings: The findings about the store.
    """
    for finding in findings:
        if finding.code == "queue-stray":
            for entry in files.list_dir(root / finding.file):
                yield move_away(files, root, f"{finding.file}/{entry.name}")


def lengthen_log(files: Files, root: Path, segment_size_bytes: int) -> Iterator[Action]:
    """Extends log files that are too short to their full length; yields the actions.

    Recovery does the same if other files of the log show the length.
    """
    for file in list_store(files, root).log_files:
        if file.size_bytes < segment_size_bytes:
            name = f"{COMMIT_LOG}/{segment_file_name(file.first_offset)}"
            resize(files, root / name, segment_size_bytes)
            yield Action("length", name, detail=f"from {file.size_bytes} to {segment_size_bytes} bytes")


def mend_own(files: Files, root: Path) -> Iterator[Action]:
    """Removes unreadable files of seglog's own that are created again on demand; yields the actions."""
    try:
        read_recovery_point(files, root)
    except CorruptError:
        remove_recovery_point(files, root)
        yield Action("own", RECOVERY_POINT_FILE_NAME, detail="the next open walks the whole log instead")
    try:
        load_lengths(files, root)
    except CorruptError:
        files.remove(root / LENGTHS_FILE)
        yield Action("own", LENGTHS_FILE, detail="the files themselves tell how long they are")
    else:
        right, wrong = disproved_lengths(files, root, list_store(files, root).geometry)
        if wrong:
            write_lengths(files, root, right)
            detail = ", ".join(f"{finding.expected} instead of {finding.found}" for finding in wrong)
            yield Action("own", LENGTHS_FILE, detail=detail)
    holes = f"{OURS}/{HOLES_FILE}"
    try:
        ConfigFile(files, root / holes).load(parse_holes)
    except ConfigError:
        for name in (holes, f"{holes}.bak"):
            if files.exists(root / name):
                files.remove(root / name)
        yield Action("own", holes, detail="the tombstones in the log tell what was lost")


def _cut(files: Files, root: Path, name: str, has_bytes: int, size_bytes: int) -> Action:
    resize(files, root / name, size_bytes)
    return Action(
        "length", name, size_bytes, has_bytes - size_bytes, f"cut from {has_bytes} to {size_bytes} bytes"
    )

"""What a store keeps in ``seglog/`` of its own, and what of it stays true of a log that is written anew.

It stays true of queue offsets, which a compaction keeps, and of the past; not of bytes of the old log.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.errors import UnsupportedStoreError
from seglog.spark.source.write.journal import WRITES, Journal
from seglog.storage.files import Files, RestoringFiles, copy_tree
from seglog.storage.format.names import OURS

_STAY_TRUE: Final = (
    "erased",  # certificates, and places of the old log, which no record will have again
    "evidence",  # tables of the broker as they were once
    "kvConfig.json",  # what clients keep with the name server
    "kvConfig.json.bak",
    "locks.json",  # queues, and who holds them
    "offsets",  # where groups stood, by queue offset
    "parked",  # messages that a group has still to read, and that retention took: they are nowhere else
    "receipts",  # what was sent again, so that it is not sent twice
    WRITES,  # jobs that are done, so that a job that is run again adds nothing
)
"""Not ``attic``, ``holes``, ``seals``, ``stray`` and ``undo``: they are about bytes of the old log, and stay
with it until it is discarded. Nor ``recovery-point``, which sums up the old log's files: the first who opens
the new store for writing walks it and leaves one. ``lengths.conf``, ``log-origin.json`` and ``compacted`` are
written anew. A store that has ``branches``, or is one, is not compacted."""


def copy_own_files(files: RestoringFiles, root: Path, staged: Path) -> None:
    """Copies what stays true.

    Args:
        files: Where both stores are.
        root: The old store.
        staged: The new one.
    """
    if not files.exists(root / OURS):
        return
    for entry in files.list_dir(root / OURS):
        if entry.name in _STAY_TRUE:
            files.make_dirs(staged / OURS)
            copy_tree(files, root / OURS / entry.name, staged / OURS / entry.name, is_dir=entry.is_dir)


def check_writes_done(files: Files, root: Path) -> None:
    """Does nothing if no job was interrupted that writes to a store.

    Raises:
        UnsupportedStoreError: One was; it says from which place of the log on its messages are.
        ConfigError: A note of a job cannot be read.
    """
    folder = root / OURS / WRITES
    for entry in files.list_dir(folder) if files.exists(folder) else ():
        begun = Journal(files, folder / entry.name, folder).load() if entry.name.endswith(".json") else None
        if begun is not None and not begun.is_done:
            raise UnsupportedStoreError(
                f"{folder / entry.name} is of a job that was interrupted while it wrote to the store",
                help="run that job again first, or move the file away: then it would write all again",
            )

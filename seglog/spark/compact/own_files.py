"""The files in ``seglog/`` of a store that stay valid when its log is rewritten.

Files about queue offsets, which a compaction keeps, and about the past stay valid; files about bytes of the
old log do not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.errors import UnsupportedStoreError
from seglog.spark.source.write.journal import WRITES, Journal
from seglog.storage.files import Files, RestoringFiles, copy_tree
from seglog.storage.format.names import OURS

_STAY_TRUE: Final = (
    "erased",  # certificates, and places of the old log, which no new record has
    "evidence",  # former tables of the broker
    "kvConfig.json",  # key-value config that clients store in the name server
    "kvConfig.json.bak",
    "locks.json",  # queues, and the holders of their locks
    "offsets",  # former positions of groups, as queue offsets
    "parked",  # messages for a group that retention may have removed from the log: there is no other copy
    "receipts",  # records of messages that were sent again, so that none is sent twice
    WRITES,  # jobs that are complete, so that a job that runs again appends nothing
)
"""Files that are copied to the new store.

``attic``, ``holes``, ``seals``, ``stray`` and ``undo`` are not copied: they are about bytes of the old log,
and are kept with it until it is discarded. Nor is ``recovery-point``, which describes the old log's files:
the first opening of the new store for writing walks the log and writes one. ``lengths.conf``,
``log-origin.json`` and ``compacted`` are rewritten. A store that has ``branches``, or is one, is not
compacted.
"""


def copy_own_files(files: RestoringFiles, root: Path, staged: Path) -> None:
    """Copies the files that stay valid.

    Args:
        files: Access to both stores.
        root: The old store.
        staged: The new store.
    """
    if not files.exists(root / OURS):
        return
    for entry in files.list_dir(root / OURS):
        if entry.name in _STAY_TRUE:
            files.make_dirs(staged / OURS)
            copy_tree(files, root / OURS / entry.name, staged / OURS / entry.name, is_dir=entry.is_dir)


def check_writes_done(files: Files, root: Path) -> None:
    """Checks that no job that writes to the store was interrupted.

    Raises:
        UnsupportedStoreError: A job was; the error names the place of the log from which on its messages are.
        ConfigError: The note of a job cannot be read.
    """
    folder = root / OURS / WRITES
    for entry in files.list_dir(folder) if files.exists(folder) else ():
        begun = Journal(files, folder / entry.name, folder).load() if entry.name.endswith(".json") else None
        if begun is not None and not begun.is_done:
            raise UnsupportedStoreError(
                f"{folder / entry.name} is of a job that was interrupted while it wrote to the store",
                help="run that job again first, or move the file away: then it would write all again",
            )

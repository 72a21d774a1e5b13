"""Folders that are made without waiting for the disk, and whose names are synced together.

Queues are many and short, and each has a folder of its own. Nothing in them is truth: after a power loss a
queue whose names never reached the disk is rebuilt from the log, which holds every message that was
acknowledged. Only what claims that queues are on the disk must wait for the names: the checkpoint, recovery
points, a clean stop. Each of them comes behind a flush, and a flush syncs every folder that got a name once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from seglog.storage.files.files import Files


class FolderNames:
    """Makes folders, and knows which of their parents have names that are not on the disk yet.

    Args:
        files: Where they are.
        unsynced: Folders that may have such names from before.

    Thread rule: any thread.
    """

    def __init__(self, files: Files, unsynced: Iterable[Path] = ()) -> None:
        self._files = files
        self._unsynced = set(unsynced)
        self._lock = threading.Lock()

    def make(self, path: Path) -> None:
        """Creates a folder and its parents where they are missing; :meth:`sync` makes the names durable.

        Raises:
            FullError: The file system is full.
        """
        parents: list[Path] = []
        missing = path
        while not self._files.is_dir(missing):
            missing = missing.parent
            parents.append(missing)
        with self._lock:  # first: a folder may be there although making the next one failed
            self._unsynced.update(parents)
        self._files.make_dirs(path, sync=False)

    def sync(self) -> None:
        """Returns once the names of all folders made before the call are on the disk."""
        with self._lock:
            due, self._unsynced = self._unsynced, set()
        try:
            for path in sorted(due):
                if self._files.is_dir(path):  # else it was deleted with its topic
                    self._files.sync_dir(path)
        except BaseException:
            with self._lock:
                self._unsynced |= due
            raise

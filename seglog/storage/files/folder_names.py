"""Creates folders without waiting for the disk, and syncs their names together later.

Queues are many and short, and each has a folder of its own. Queues are not the truth: after a power failure a
queue whose names never reached the disk is rebuilt from the log, which holds every acknowledged message. Only
statements that queues are on the disk must wait for the names: the checkpoint, recovery points, a clean stop.
Each of them is written after a flush, and a flush syncs every folder that got a name, once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from seglog.storage.files.files import Files


class FolderNames:
    """Creates folders, and keeps the set of their parents with names that are not on the disk yet.

    Args:
        files: The file layer of the store.
        unsynced: Folders that may have such names already.

    Thread rule: any thread.
    """

    def __init__(self, files: Files, unsynced: Iterable[Path] = ()) -> None:
        self._files = files
        self._unsynced = set(unsynced)
        self._lock = threading.Lock()

    def make(self, path: Path) -> None:
        """Creates a folder and its missing parents; :meth:`sync` makes the names durable.

        Raises:
            FullError: The file system is full.
        """
        parents: list[Path] = []
        missing = path
        while not self._files.is_dir(missing):
            missing = missing.parent
            parents.append(missing)
        with self._lock:  # before the creation, which may fail after it has created some of the folders
            self._unsynced.update(parents)
        self._files.make_dirs(path, sync=False)

    def sync(self) -> None:
        """Returns once the names of all folders made before the call are on the disk."""
        with self._lock:
            due, self._unsynced = self._unsynced, set()
        try:
            for path in sorted(due):
                if self._files.is_dir(path):  # otherwise it was deleted with its topic
                    self._files.sync_dir(path)
        except BaseException:
            with self._lock:
                self._unsynced |= due
            raise

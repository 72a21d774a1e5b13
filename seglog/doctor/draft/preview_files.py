"""A draft for looking at what a change would do: the change runs on it, and nothing of the store is written.

The ``lock`` file stays as it is too: a draft takes no lock, it only refuses a store that another process has.
"""

from __future__ import annotations

from pathlib import Path

from typing_extensions import override

from seglog.doctor.draft.draft_files import DraftFiles
from seglog.errors import StoreLockedError
from seglog.storage.files import HeldLock, StoreRoot


class PreviewFiles(DraftFiles):
    """The files of one store, whose changes stay with this process.

    Args:
        files: The real ones, which are only read.

    One thread at a time.
    """

    def __init__(self, files: StoreRoot) -> None:
        super().__init__(files)
        self._root = files

    @override
    def lock(self, root: Path) -> HeldLock:
        """Takes nothing, as nothing is written.

        Raises:
            StoreLockedError: A process has the store open for writing.
        """
        refuse_open(self._root)
        return _NoLock()


class _NoLock:
    """Stands where a store's lock is held."""

    def is_marked(self) -> bool:
        """No RocketMQ starts on a draft."""
        return True

    def mark(self) -> None:
        """Leaves no mark."""

    def release(self) -> None:
        """Holds nothing."""


def refuse_open(files: StoreRoot) -> None:
    """Refuses a store that a process has open for writing.

    Raises:
        StoreLockedError: One has.
    """
    holder = files.lock_holder()
    if holder is not None:
        who = f"process {holder}" if holder > 0 else "another process"
        raise StoreLockedError(
            f"{who} has {files.path} open for writing", help="stop it, then run this again"
        )

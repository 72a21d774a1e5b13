"""A draft for previews: a change runs on it, and nothing of the store is written.

The ``lock`` file is unchanged too: a preview takes no lock, it only refuses a store that another process has
open.
"""

from __future__ import annotations

from pathlib import Path

from typing_extensions import override

from seglog.doctor.draft.draft_files import DraftFiles
from seglog.errors import StoreLockedError
from seglog.storage.files import HeldLock, StoreRoot


class PreviewFiles(DraftFiles):
    """The files of one store; changes exist in this process only.

    Args:
        files: The real files, which are only read.

    One thread at a time.
    """

    def __init__(self, files: StoreRoot) -> None:
        super().__init__(files)
        self._root = files

    @override
    def lock(self, root: Path) -> HeldLock:
        """Takes no lock, because nothing is written.

        Raises:
            StoreLockedError: A process has the store open for writing.
        """
        refuse_open(self._root)
        return _NoLock()


class _NoLock:
    """Takes the place of a store's lock."""

    def is_marked(self) -> bool:
        """Always false: RocketMQ cannot start on a draft."""
        return True

    def mark(self) -> None:
        """Does nothing."""

    def release(self) -> None:
        """Does nothing."""


def refuse_open(files: StoreRoot) -> None:
    """Refuses a store that a process has open for writing.

    Raises:
        StoreLockedError: A process has it open.
    """
    holder = files.lock_holder()
    if holder is not None:
        who = f"process {holder}" if holder > 0 else "another process"
        raise StoreLockedError(
            f"{who} has {files.path} open for writing", help="stop it, then run this again"
        )

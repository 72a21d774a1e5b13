"""Cleans up a store that tasks made: removes files of killed attempts, and syncs the rest to the disk."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from seglog.spark.making.spills import ATTEMPT
from seglog.storage.files import RestoringFiles, remove_tree
from seglog.storage.format.names import COMMIT_LOG


def remove_attempts(files: RestoringFiles, staged: Path) -> None:
    """Removes the files of tasks that were killed."""
    for folder in (staged, staged / COMMIT_LOG):
        for entry in files.list_dir(folder):
            if ATTEMPT in entry.name:
                if entry.is_dir:
                    remove_tree(files, folder / entry.name)
                else:
                    files.remove(folder / entry.name)


def sync_tree(files: RestoringFiles, folder: Path) -> None:
    """Syncs all of a new store to the disk, before it is marked as complete."""
    for entry in files.list_dir(folder):
        if entry.is_dir:
            sync_tree(files, folder / entry.name)
            continue
        with closing(files.open(folder / entry.name, writable=False)) as handle:
            handle.sync()
    files.sync_dir(folder)

"""Changes by the places where files are: a draft shows a log in several folders as one.

An undo pack names each file as its folder has it, so that an undo needs no configuration that states the
folders. What a pack names is what a rename, a new file or a write of the repair reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from seglog.doctor.draft.changes import CREATED, MADE, Change
from seglog.storage.directory import LogRoot
from seglog.storage.files import Files
from seglog.storage.format.names import COMMIT_LOG


def real_changes(files: Files, root: Path, changes: Sequence[Change]) -> list[tuple[Change, Path]]:
    """Returns each change with the path of its file in the store, and with that in the draft.

    Folders that new files need are among the changes, before these.

    Args:
        files: Access to the store, as the draft was made over it.
        root: The store directory.
        changes: The changes, by the names that the draft shows.
    """
    if not isinstance(files, LogRoot) or not files.places.is_spread:
        return [(change, change.path) for change in changes]
    log = root / COMMIT_LOG
    sources = {files.real_path(change.path) for change in changes if change.target is not None}
    taken: set[Path] = set()
    made: set[Path] = set()
    found: list[tuple[Change, Path]] = []
    for change in changes:
        path = files.real_path(change.path)
        if change.kind == CREATED and path.parent == log:
            path = root / files.places.new_folder(path.name, change.new_bytes) / path.name
            for new in _missing(files, root, path):
                if new not in made:
                    made.add(new)
                    found.append((Change(MADE, new), new))
        target = change.target
        if target is not None and target.parent == log:
            folder = path.parent.relative_to(root).as_posix()
            target = next(
                place
                for one in files.places.renamed_folders(folder, target.name)
                if (place := root / one / target.name) not in taken
                and (place in sources or not files.as_it_is.exists(place))
            )
            taken.add(target)
        found.append((replace(change, path=path, target=target), change.path))
    return found


def log_folders_after(files: Files, root: Path, placed: Sequence[tuple[Change, Path]]) -> set[str]:
    """Returns the folders of the log beside ``commitlog``, those that changes make among them.

    Args:
        files: Access to the store.
        root: The store directory.
        placed: What :func:`real_changes` returned.
    """
    if not isinstance(files, LogRoot):
        return set()
    log = root / COMMIT_LOG
    new = {change.path.parent for change, shown in placed if shown.parent == log != change.path.parent}
    return {*files.log_folders, *(folder.relative_to(root).as_posix() for folder in new)}


def _missing(files: LogRoot, root: Path, path: Path) -> Iterator[Path]:
    """Yields the folders of a file that are not there yet, the outer ones first."""
    for folder in reversed(path.parents):
        if folder.is_relative_to(root) and not files.as_it_is.is_dir(folder):
            yield folder

"""Log files under another file's name: renamed before anything else is looked at, with their own undo pack.

A rename touches no byte. What else is wrong with such a store shows only afterwards, so it is repaired, and
can be undone, by itself.
"""

from __future__ import annotations

from pathlib import Path

from seglog.clock import Clock
from seglog.doctor.actions import Action
from seglog.doctor.apply import apply_changes
from seglog.doctor.changes import RENAMED, Change
from seglog.doctor.draft_files import DraftFiles
from seglog.doctor.undo_pack import UndoPack
from seglog.storage.files import Files, RestoringFiles
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.misnamed import find_misnamed

_ASIDE = ".renamed"


def name_actions(files: Files, root: Path) -> list[Action]:
    """Returns what renaming the files of a log would do."""
    moves = find_misnamed(files, root).moves
    return [
        Action("name", f"{COMMIT_LOG}/{segment_file_name(first)}", detail=f"to {segment_file_name(place)}")
        for first, place in sorted(moves.items())
    ]


def rename_draft(files: Files, root: Path) -> None:
    """Gives the files of a draft's log their names."""
    folder = root / COMMIT_LOG
    moves = find_misnamed(files, root).moves
    for first in moves:
        name = segment_file_name(first)
        files.rename(folder / name, folder / f"{name}{_ASIDE}")
    for first, place in moves.items():
        files.rename(folder / f"{segment_file_name(first)}{_ASIDE}", folder / segment_file_name(place))


def rename_log_files(files: RestoringFiles, root: Path, clock: Clock, *, had_lock: bool) -> UndoPack | None:
    """Gives the files of a log their names, durably; returns the pack that undoes it, None if all have them.

    Args:
        files: Where the store is, of which this process holds the lock.
        root: The store directory.
        clock: The time.
        had_lock: Whether there was a ``lock`` file before this process took the lock.
    """
    folder = root / COMMIT_LOG
    changes = [
        Change(RENAMED, folder / segment_file_name(first), target=folder / segment_file_name(place))
        for first, place in sorted(find_misnamed(files, root).moves.items())
    ]
    if not changes:
        return None
    return apply_changes(DraftFiles(files), files, root, changes, clock.now_ms(), had_lock=had_lock)

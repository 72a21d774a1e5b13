"""Log files under another name than their own: renamed first of all, with their own undo pack.

A rename touches no byte. What else is wrong with such a store shows only afterwards, so it is repaired, and
can be undone, by itself.
"""

from __future__ import annotations

from pathlib import Path

from seglog.clock import Clock
from seglog.doctor.draft.changes import RENAMED, Change
from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.plans.actions import Action
from seglog.doctor.plans.apply import apply_changes
from seglog.doctor.undo.undo_pack import UndoPack
from seglog.storage.directory import find_misnamed
from seglog.storage.files import Files, RestoringFiles
from seglog.storage.format.names import COMMIT_LOG

_ASIDE = ".renamed"


def name_actions(files: Files, root: Path) -> list[Action]:
    """Returns what renaming the files of a log would do."""
    moves = find_misnamed(files, root).moves
    return [
        Action("name", f"{COMMIT_LOG}/{name}", detail=f"to {target}")
        for name, target in sorted(moves.items())
    ]


def rename_draft(files: Files, root: Path) -> None:
    """Gives the files of a draft's log their names."""
    folder = root / COMMIT_LOG
    moves = find_misnamed(files, root).moves
    held: list[tuple[Path, str]] = []
    for number, (name, target) in enumerate(moves.items()):
        aside = folder / f"{number}{_ASIDE}"
        while files.exists(aside):
            aside = aside.with_name(f"{aside.name}{_ASIDE}")
        files.rename(folder / name, aside)
        held.append((aside, target))
    for aside, target in held:
        files.rename(aside, folder / target)


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
        Change(RENAMED, folder / name, target=folder / target)
        for name, target in sorted(find_misnamed(files, root).moves.items())
    ]
    if not changes:
        return None
    return apply_changes(DraftFiles(files), files, root, changes, clock.now_ms(), had_lock=had_lock)

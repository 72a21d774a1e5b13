"""Log files with a wrong name: renamed before all other repairs, with an undo pack of their own.

A rename changes no byte. Other faults of such a store can be seen only afterwards, so the rename is applied,
and can be undone, separately.
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
    """Returns the actions of renaming the files of a log."""
    moves = find_misnamed(files, root).moves
    return [
        Action("name", f"{COMMIT_LOG}/{name}", detail=f"to {target}")
        for name, target in sorted(moves.items())
    ]


def rename_draft(files: Files, root: Path) -> None:
    """Gives the log files of a draft their right names."""
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
    """Gives the log files their right names, durably; returns the undo pack, None if all names are right.

    Args:
        files: Access to the store; this process holds its lock.
        root: The store directory.
        clock: The time.
        had_lock: Whether the ``lock`` file existed before this process took the lock.
    """
    folder = root / COMMIT_LOG
    changes = [
        Change(RENAMED, folder / name, target=folder / target)
        for name, target in sorted(find_misnamed(files, root).moves.items())
    ]
    if not changes:
        return None
    return apply_changes(DraftFiles(files), files, root, changes, clock.now_ms(), had_lock=had_lock)

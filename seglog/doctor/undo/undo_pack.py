"""Undo packs: ``<store>/seglog/undo/NUMBER/``, all data that is needed to undo one repair.

``journal`` describes the former state of the store and holds every byte that the repair overwrites. ``kept/``
holds the files that the repair removes. ``after`` describes the repaired store and exists once the repair is
complete. ``undoing`` exists while the pack is undone. Each file gets its name only when it is complete and on
the disk. A pack without ``journal`` belongs to a repair that has changed nothing yet, or that is undone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.doctor.undo.store_fingerprint import FileState
from seglog.storage.files import PACK_NAME, Files, Stamp
from seglog.storage.small_files import JOURNAL, UNDO, pack_numbers

KEPT: Final = "kept"
MAX_NUMBER: Final = 10**9 - 1


@dataclass(frozen=True, slots=True)
class OldBytes:
    """A stretch of a file before the repair: bytes that the journal holds, followed by zeros.

    Attributes:
        position_bytes: Position in the file.
        size_bytes: Length; only the length of the file limits this claim of the journal.
        data_bytes: Number of its bytes that the journal holds.
        entry_at: Position of its entry in the journal.
    """

    position_bytes: int
    size_bytes: int
    data_bytes: int
    entry_at: int

    @property
    def data_end(self) -> int:
        """Position in the file at which its bytes end and its zeros begin."""
        return self.position_bytes + self.data_bytes

    @property
    def end(self) -> int:
        """Position in the file at which it ends."""
        return self.position_bytes + self.size_bytes


@dataclass(frozen=True, slots=True)
class Renamed:
    """The other name of a file, and its temporary place in the pack."""

    target: str
    through: Path


@dataclass(slots=True)
class UndoPack:
    """The contents of a pack.

    Attributes:
        root: The store directory.
        number: Name of its folder.
        begun_ms: Time at which the repair began, ms since 1970 UTC.
        before: The state of every file before the repair.
        stamps: Rights and time of each file.
        folders: The folders before the repair.
        kept: Files that the repair removed, and their names in ``kept/``.
        moved: Files that the repair moved, and their new names.
        renamed: Files that the repair renamed, with names that may be old names of other files among them.
        created: Files that the repair created.
        made: Folders that the repair created.
        log_folders: Those folders, old and new, that hold files of the log beside ``commitlog``.
        old: The overwritten bytes of each file.
        after: The state of every file after the repair; None if the repair is not complete.
        is_undoing: Whether an undo was begun.
    """

    root: Path
    number: int
    begun_ms: int = 0
    before: dict[str, FileState] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    kept: dict[str, Path] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, Renamed] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    log_folders: set[str] = field(default_factory=set)
    old: dict[str, list[OldBytes]] = field(default_factory=dict)
    after: dict[str, FileState] | None = None
    is_undoing: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the pack."""
        return pack_folder(self.root, self.number)


def list_packs(files: Files, root: Path) -> list[int]:
    """Returns the numbers of the packs of a store that have a journal, sound or not, oldest first."""
    return [
        number for number in pack_numbers(files, root) if files.exists(pack_folder(root, number) / JOURNAL)
    ]


def pack_folder(root: Path, number: int) -> Path:
    """Returns the folder of a pack."""
    return root / UNDO / str(number)


def next_number(files: Files, root: Path) -> int:
    """Returns the number of the next pack: one more than the highest name that is a number."""
    numbers = (int(entry.name) for entry in files.list_dir(root / UNDO) if PACK_NAME.fullmatch(entry.name))
    return max(numbers, default=0) + 1


def other_names(files: Files, root: Path) -> list[str]:
    """Returns the names in the store's pack folder that are no packs."""
    return [
        f"{UNDO}/{entry.name}"
        for entry in files.list_dir(root / UNDO)
        if not (entry.is_dir and PACK_NAME.fullmatch(entry.name))
    ]

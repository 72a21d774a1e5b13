"""Undo packs: ``<store>/seglog/undo/NUMBER/``, all that is needed to take one repair back.

``journal`` says what the store was like and holds every byte that the repair writes over; ``kept/`` holds
the files that it takes away; ``after`` says what it left, and is there once it came to its end; ``undoing``
is there while the pack is undone. Each appears whole, by its name, and only when it is on the disk. Without
``journal`` nothing was changed yet, or everything is undone.
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
    """A stretch of a file as it was: bytes that the journal has, and zeros behind them.

    Attributes:
        position_bytes: Where in the file.
        size_bytes: How long; a claim that only the file's own length bounds.
        data_bytes: How much of it the journal has.
        entry_at: Where its entry is in the journal.
    """

    position_bytes: int
    size_bytes: int
    data_bytes: int
    entry_at: int

    @property
    def data_end(self) -> int:
        """Where in the file its bytes end and its zeros begin."""
        return self.position_bytes + self.data_bytes

    @property
    def end(self) -> int:
        """Where in the file it ends."""
        return self.position_bytes + self.size_bytes


@dataclass(frozen=True, slots=True)
class Renamed:
    """Another name of a file, and where in the pack it is on its way."""

    target: str
    through: Path


@dataclass(slots=True)
class UndoPack:
    """What a pack says.

    Attributes:
        root: The store directory.
        number: Its name.
        begun_ms: When the repair began.
        before: Every file as it was.
        stamps: Rights and time of each.
        folders: The folders that there were.
        kept: Files that went, and their names in ``kept/``.
        moved: Files that got another name, and which.
        renamed: Files that got names which may be those of others among them.
        created: Files that came.
        made: Folders that came.
        old: What was written over, by file.
        after: Every file as the repair left it; None if it did not come to its end.
        is_undoing: Whether undoing it was begun.
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
    old: dict[str, list[OldBytes]] = field(default_factory=dict)
    after: dict[str, FileState] | None = None
    is_undoing: bool = False

    @property
    def folder(self) -> Path:
        """Where it is."""
        return pack_folder(self.root, self.number)


def list_packs(files: Files, root: Path) -> list[int]:
    """Returns the numbers of the packs of a store that have a journal, sound or not, oldest first."""
    return [
        number for number in pack_numbers(files, root) if files.exists(pack_folder(root, number) / JOURNAL)
    ]


def pack_folder(root: Path, number: int) -> Path:
    """Returns where a pack is."""
    return root / UNDO / str(number)


def next_number(files: Files, root: Path) -> int:
    """Returns the number of the next pack: one more than the highest name that is a number."""
    numbers = (int(entry.name) for entry in files.list_dir(root / UNDO) if PACK_NAME.fullmatch(entry.name))
    return max(numbers, default=0) + 1


def other_names(files: Files, root: Path) -> list[str]:
    """Returns what is among the packs of a store and is none, by its name in the store."""
    return [
        f"{UNDO}/{entry.name}"
        for entry in files.list_dir(root / UNDO)
        if not (entry.is_dir and PACK_NAME.fullmatch(entry.name))
    ]

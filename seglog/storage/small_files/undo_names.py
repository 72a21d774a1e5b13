"""The names in ``seglog/undo``, and whether one of its packs is of a repair that was stopped half-way.

A pack has a file ``journal`` from before the first change of its repair on, ``after`` once the repair is
complete, and ``undoing`` while it is undone. This module uses names only, and reads no file of a pack.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.storage.files import PACK_NAME, Files
from seglog.storage.format.names import OURS

UNDO: Final = f"{OURS}/undo"
"""Folder of the undo packs; its files are not part of a store's state."""
JOURNAL: Final = "journal"
AFTER: Final = "after"
UNDOING: Final = "undoing"


def pack_numbers(files: Files, root: Path) -> list[int]:
    """Returns the numbers of the folders of packs, in order; ignores other names in the folder."""
    return sorted(
        int(entry.name)
        for entry in files.list_dir(root / UNDO)
        if entry.is_dir and PACK_NAME.fullmatch(entry.name)
    )


def stopped_repair(files: Files, root: Path) -> int:
    """Returns the number of the newest pack whose repair or undo is not complete; 0 if there is none."""
    for number in reversed(pack_numbers(files, root)):
        names = {entry.name for entry in files.list_dir(root / UNDO / str(number))}
        if JOURNAL in names and (AFTER not in names or UNDOING in names):
            return number
    return 0

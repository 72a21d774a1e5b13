"""The names in ``seglog/undo``, and whether one of its packs is of a repair that was stopped half-way.

A pack has ``journal`` from before the first change of its repair on, ``after`` once the repair came to its
end, and ``undoing`` while it is undone. Names alone decide here: nothing in a pack is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.storage.files import PACK_NAME, Files
from seglog.storage.format.names import OURS

UNDO: Final = f"{OURS}/undo"
"""Folder of the undo packs; what is in it is no part of a store's state."""
JOURNAL: Final = "journal"
AFTER: Final = "after"
UNDOING: Final = "undoing"


def pack_numbers(files: Files, root: Path) -> list[int]:
    """Returns the numbers of the folders of packs, in order; other names in the folder are none of ours."""
    return sorted(
        int(entry.name)
        for entry in files.list_dir(root / UNDO)
        if entry.is_dir and PACK_NAME.fullmatch(entry.name)
    )


def stopped_repair(files: Files, root: Path) -> int:
    """Returns the number of the newest pack whose repair, or the undo of it, did not end; 0 without any."""
    for number in reversed(pack_numbers(files, root)):
        names = {entry.name for entry in files.list_dir(root / UNDO / str(number))}
        if JOURNAL in names and (AFTER not in names or UNDOING in names):
            return number
    return 0

"""Files and folders of another store in a store, as a wrong copy, move or mount leaves them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Final

from seglog.storage.format.names import COMMIT_LOG, LOCK_FILE
from tests.support.machine.shared import copy_tree

MINGLING: Final = ("file in place", "file beside", "folder")
"""A file of another store instead of one of this one's, or beside it, and a folder of another store."""


def mingle(root: Path, other: Path, kind: str, chance: random.Random) -> str:
    """Puts a file or a folder of another store into a store, and returns what it did.

    Args:
        root: The store.
        other: The other one, which is not changed.
        kind: One of :data:`MINGLING`.
        chance: Decides which, and where.
    """
    if kind == "folder":
        return _folder(root, other, chance)
    source = _file(other, chance)
    part = source.relative_to(other).parts[0]
    target = root / source.relative_to(other)
    here = sorted(path for path in (root / part).rglob("*") if path.is_file())
    if (root / part).is_file():
        target = root / part
    elif here:
        model = chance.choice(here)
        target = model if kind == "file in place" else model.with_name(source.name)
    if target.is_dir() or not _can_have(target):
        return "nothing: there is no place for it"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return f"{kind}: {source.relative_to(other)} of {other.name} as {target.relative_to(root)}"


def _file(other: Path, chance: random.Random) -> Path:
    """Returns a file of a store: each of its parts comes as often as any other."""
    files = [path for path in other.rglob("*") if path.is_file() and path.name != LOCK_FILE]
    part = chance.choice(sorted({path.relative_to(other).parts[0] for path in files}))
    return chance.choice(sorted(path for path in files if path.relative_to(other).parts[0] == part))


def _folder(root: Path, other: Path, chance: random.Random) -> str:
    folders = sorted(path for path in other.rglob("*") if path.is_dir() and path.name != COMMIT_LOG)
    part = chance.choice(sorted({path.relative_to(other).parts[0] for path in folders}))
    source = chance.choice([path for path in folders if path.relative_to(other).parts[0] == part])
    name = source.relative_to(other)
    alike = [
        path.relative_to(root)
        for path in sorted((root / part).rglob("*"))
        if path.is_dir() and len(path.relative_to(root).parts) == len(name.parts)
    ]
    target = root / chance.choice([name, *alike])
    if not _can_have(target) or target.is_file():
        return "nothing: there is no place for it"
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    copy_tree(source, target)
    return f"folder {name} of {other.name} as {target.relative_to(root)}"


def _can_have(target: Path) -> bool:
    """Returns whether no file stands where a folder has to be."""
    return not any(parent.is_file() for parent in target.parents)

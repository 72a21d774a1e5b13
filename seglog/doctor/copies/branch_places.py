"""The paths of a store's branches, and the rules for their names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from seglog.errors import InvalidNameError
from seglog.storage.files import Files
from seglog.storage.format.names import BRANCHES

DROPPED: Final = ".dropped"
UNFINISHED: Final = ".unfinished"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def branch_path(root: Path, name: str) -> Path:
    """Returns the directory of a branch.

    Raises:
        InvalidNameError: The branch's name is not valid.
    """
    if not _is_name(name):
        raise InvalidNameError(
            f"no branch can be called {name[:80]!r}",
            help="use letters, digits, dots, - and _; up to 100, a letter or digit first",
        )
    return root / BRANCHES / name


def branch_names(files: Files, root: Path) -> list[str]:
    """Returns the branches of a store; remains of killed commands are left out."""
    return [entry.name for entry in files.list_dir(root / BRANCHES) if entry.is_dir and _is_name(entry.name)]


def stores_of(files: Files, root: Path) -> list[str]:
    """Returns a store and its branches, as paths relative to it; the store itself is the empty text."""
    return ["", *(f"{BRANCHES}/{name}" for name in branch_names(files, root))]


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not name.endswith((UNFINISHED, DROPPED))

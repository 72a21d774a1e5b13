"""Names below a store directory: the one check between a path and the files of a store.

A store is untrusted, and so may every name in it. :func:`parts_of` splits a path of ours into
the names below the root; :func:`untrusted` makes such a path of a name read from a store (undo packs,
``seglog/erasing``, holes, attic, branches, resume files, archives). Neither looks at a file: that no name on
the way is a link is checked where files are opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from seglog.errors import UnsafePathError
from seglog.storage.format.names import LOCK_FILE, OURS

MAX_NAME_BYTES: Final = 255
"""Longest name of a file on the usual file systems (``NAME_MAX``)."""
_MAX_PARTS: Final = 16
"""No file of RocketMQ's or ours is deeper than half of it."""
_UNDO: Final = (OURS, "undo")


def parts_of(root: Path, path: Path) -> tuple[str, ...]:
    """Returns the names that lead from the root to a path below it; none for the root itself.

    Args:
        root: The store directory.
        path: A path below it, absolute as the root is or relative as it is.

    Raises:
        UnsafePathError: It is not below the root, or a name on the way is ``..``, holds NUL or is too long.
    """
    above, parts = root.parts, path.parts
    if parts[: len(above)] != above:
        raise UnsafePathError(f"{str(path)!r} is not below {root}")
    below = parts[len(above) :]
    for name in below:
        _check_name(name, str(path), root)
    return below


def untrusted(root: Path, name: bytes | str) -> Path:
    """Returns the path of a file that a store names itself.

    Args:
        root: The store directory.
        name: Names from the root down, separated by ``/``, as it was read.

    Raises:
        UnsafePathError: The name is empty, absolute, too long, has NUL, ``.``, ``..`` or an empty name in it,
            or names the ``lock`` file or the undo packs, which no journal has to do with.
    """
    text = name if isinstance(name, str) else os.fsdecode(name)
    parts = text.split("/")
    if len(parts) > _MAX_PARTS:
        raise UnsafePathError(f"{text[:80]!r} has {len(parts)} names; at most {_MAX_PARTS} lead to a file")
    for part in parts:
        _check_name(part, text, root)
    if parts == [LOCK_FILE] or tuple(parts[: len(_UNDO)]) == _UNDO:
        raise UnsafePathError(f"{text!r} is not for a journal to name: {root}")
    return root.joinpath(*parts)


def _check_name(name: str, whole: str, root: Path) -> None:
    if name in {"", ".", ".."}:
        raise UnsafePathError(f"{whole!r} may lead out of {root}: it is no plain path below it")
    if "\0" in name or "/" in name:
        raise UnsafePathError(f"{whole!r} is no path below {root}: it holds NUL or a separator")
    try:
        size_bytes = len(os.fsencode(name))
    except UnicodeEncodeError as error:
        raise UnsafePathError(f"{whole!r} is no path below {root}: it cannot be a file's name") from error
    if size_bytes > MAX_NAME_BYTES:
        raise UnsafePathError(
            f"a name of {size_bytes} bytes below {root}; at most {MAX_NAME_BYTES} are taken"
        )

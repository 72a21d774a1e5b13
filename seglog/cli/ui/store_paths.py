"""Finds the store that a path is in: a user may name a folder or file of a store instead of the store.

Only names that RocketMQ gives count, and only if no link is between the store and the path. A path that leads
out of the store is left as it is, and so is every path below ``seglog/``, because branches there are stores
of their own. Nothing is opened here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from seglog.cli.ui import render
from seglog.text import shell_text


def store_of(path: Path) -> Path:
    """Returns the store that a path is in, and prints a note on stderr; the path itself if it is in no store.

    Args:
        path: The path that the user gave; it may be a store or not.
    """
    above = _store_above(path)
    if above is None:
        return path
    render.say(f"note: {shell_text(path)} is in the store {shell_text(above)}, which is taken", err=True)
    return above


def _store_above(path: Path) -> Path | None:
    if not os.path.lexists(path) or _is_store(path):
        return None
    whole = path.absolute()
    for above in whole.parents:
        if _is_store(above):
            inside = whole.relative_to(above)
            if not _is_name_of_store(inside.parts[0]) or not _is_straight(above, inside):
                return None
            depth = len(inside.parts)
            return Path(*path.parts[:-depth]) if len(path.parts) >= depth else above
    return None


def _is_store(folder: Path) -> bool:
    """Returns whether a folder looks like a store: it has a log with files, or queues or a checkpoint."""
    from seglog.storage.format import names  # the engine; no help text needs it

    telling = (names.CONSUME_QUEUE, names.BATCH_CONSUME_QUEUE, names.CHECKPOINT_FILE, names.ABORT_FILE)
    if any(os.path.lexists(folder / name) for name in telling):
        return True
    with suppress(OSError), os.scandir(folder / names.COMMIT_LOG) as entries:
        return any(names.parse_segment_file_name(entry.name) is not None for entry in entries)
    return False


def _is_name_of_store(name: str) -> bool:
    """Returns whether a file or folder of that name, directly in a store, belongs to RocketMQ."""
    from seglog.storage.format import names

    return name in {
        names.COMMIT_LOG,
        names.CONSUME_QUEUE,
        names.CONSUME_QUEUE_EXT,
        names.BATCH_CONSUME_QUEUE,
        names.INDEX,
        names.CONFIG,
        names.CHECKPOINT_FILE,
        names.ABORT_FILE,
        names.LOCK_FILE,
        "timerlog",
        "timerwheel",
    }


def _is_straight(above: Path, inside: Path) -> bool:
    """Returns whether a path leads from a store to a name in it without a link and without ``..``."""
    return os.path.realpath(above / inside) == str(Path(os.path.realpath(above)) / inside)

"""The store that a path is in: where a folder or file of a store is named, the store above it is meant.

Only names that RocketMQ gives are such, and no link may be on the way from the store to them: a path that
leads out of the store is left as it is, and so are all below ``seglog/``, where branches are stores of their
own. Nothing is opened here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from seglog.cli.ui import render
from seglog.text import shell_text


def store_of(path: Path) -> Path:
    """Returns the store that a path is in, and says so on stderr; the path itself where it is in none.

    Args:
        path: What the user gave, a store or not.
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
    """Returns whether a folder has what only a store has: a log with files, or queues or a checkpoint."""
    from seglog.storage.format import names  # the engine; no help text needs it

    telling = (names.CONSUME_QUEUE, names.BATCH_CONSUME_QUEUE, names.CHECKPOINT_FILE, names.ABORT_FILE)
    if any(os.path.lexists(folder / name) for name in telling):
        return True
    with suppress(OSError), os.scandir(folder / names.COMMIT_LOG) as entries:
        return any(names.parse_segment_file_name(entry.name) is not None for entry in entries)
    return False


def _is_name_of_store(name: str) -> bool:
    """Returns whether a file or folder of that name, directly in a store, is RocketMQ's."""
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
    """Returns whether neither a link nor ``..`` is on the way from a store to what is in it."""
    return os.path.realpath(above / inside) == str(Path(os.path.realpath(above)) / inside)

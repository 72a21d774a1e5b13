"""The kinds of directory entries in a store: a file, a folder, or a kind that no store has.

A store has only files and folders. A link leads elsewhere, a pipe may block the process that opens it, and
opening a device may have effects.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from typing import Final

from seglog.errors import FileKindError
from seglog.storage.format import names

FILE: Final = "a file"
FOLDER: Final = "a folder"
LINK: Final = "a link"
PIPE: Final = "a pipe"
SOCKET: Final = "a socket"
DEVICE: Final = "a device"

_KINDS: Final = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: FOLDER,
    stat.S_IFLNK: LINK,
    stat.S_IFIFO: PIPE,
    stat.S_IFSOCK: SOCKET,
}

_ROOT_FILES: Final = frozenset(
    {names.CHECKPOINT_FILE, names.ABORT_FILE, names.LOCK_FILE, names.EPOCH_FILE, "brokerIdentity"}
)
_ROWS: Final = (names.COMMIT_LOG, names.INDEX, "timerlog")
_QUEUES: Final = (names.CONSUME_QUEUE, names.BATCH_CONSUME_QUEUE, names.CONSUME_QUEUE_EXT)
_FOLDERS: Final = frozenset({*_ROWS, *_QUEUES, names.CONFIG, names.OURS, "compaction"})
STORE_FOLDERS: Final = _FOLDERS | {"rocksdbstore", "rocksdb"}
"""Folders directly in a store with a name of RocketMQ's or ours."""
NAMES_OF_A_STORE: Final = STORE_FOLDERS | _ROOT_FILES
_NUMBER: Final = re.compile(r"[0-9]{17,20}")
UNDO_FOLDER: Final = (names.OURS, "undo")
"""Only folders in it with the name of a pack are used; everything else is ignored."""
PACK_NAME: Final = re.compile(r"[1-9][0-9]{0,8}")
_TABLE: Final = re.compile(r".+\.json(\.bak|\.tmp)?")
_QUEUE_DEPTH: Final = 3
"""Folder, topic, queue id."""


def kind_of(mode: int) -> str:
    """Returns the kind of a directory entry, by its mode from ``lstat``."""
    return _KINDS.get(stat.S_IFMT(mode), DEVICE)


def wanted_kind(folder: Sequence[str], name: str, kind: str) -> str:
    """Returns the kind that a name must have if it has another one; empty if nothing is wrong.

    Args:
        folder: Names of its folder, from the store down.
        name: The name.
        kind: The kind that it has.
    """
    if tuple(folder) == UNDO_FOLDER and kind != FOLDER:
        return FOLDER if kind != FILE or PACK_NAME.fullmatch(name) else ""
    if kind == FOLDER:
        return FILE if _is_file_name(folder, name) else ""
    if not folder and name in _FOLDERS:
        return FOLDER
    return "" if kind == FILE else FILE


def may_hold_numbers(folder: Sequence[str]) -> bool:
    """Returns whether a folder with the name of a file would be wrong there.

    Args:
        folder: Names of its folder, from the store down.
    """
    if len(folder) == 1:
        return folder[0] == names.CONFIG or folder[0] in _ROWS
    return not folder or (len(folder) == _QUEUE_DEPTH and folder[0] in _QUEUES)


def _is_file_name(folder: Sequence[str], name: str) -> bool:
    """Returns whether RocketMQ or this engine use this name for a file there, and never for a folder."""
    if not folder:
        return name in _ROOT_FILES
    if len(folder) == 1 and folder[0] == names.CONFIG:
        return _TABLE.fullmatch(name) is not None
    has_rows = folder[0] in _ROWS and len(folder) == 1
    has_units = folder[0] in _QUEUES and len(folder) == _QUEUE_DEPTH
    return (has_rows or has_units) and _NUMBER.fullmatch(name) is not None


def kind_error(name: str, found: str, expected: str) -> FileKindError:
    """Returns the error for a directory entry of the wrong kind.

    Args:
        name: Its path, relative to the store.
        found: Its kind.
        expected: The right kind.
    """
    return FileKindError(
        f"{name} is {found}, where {expected} belongs", file=name, found=found, help=kind_help(name, found)
    )


def kind_help(name: str, found: str) -> str | None:
    """Returns the advice for a directory entry of the wrong kind; None for the general advice."""
    if found != LINK or "/" in name:
        return None
    return (
        f"if {name} is a folder of this store that is elsewhere, name it: `--follow {name}`"
        f' (`follow=("{name}",)` in Python); otherwise replace the link by what belongs there'
    )

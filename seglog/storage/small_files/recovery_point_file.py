"""The file ``<store>/seglog/recovery-point``: appears whole or not at all, and is removed in case of doubt.

An opening for writing that does not start at the point removes it before anything is changed, because
recovery may cut the log below it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.storage.files.files import Files
from seglog.storage.format.names import OURS
from seglog.storage.format.ours.recovery_point import (
    RecoveryPoint,
    decode_recovery_point,
    encode_recovery_point,
)

RECOVERY_POINT_FILE_NAME: Final = f"{OURS}/recovery-point"
_UNFINISHED: Final = ".tmp"


def read_recovery_point(files: Files, root: Path) -> RecoveryPoint | None:
    """Returns the recovery point of a store, None without one.

    Raises:
        CorruptError: The file is not whole.
    """
    path = root / RECOVERY_POINT_FILE_NAME
    return decode_recovery_point(files.read_file(path)) if files.exists(path) else None


def write_recovery_point(files: Files, root: Path, point: RecoveryPoint) -> int:
    """Replaces the recovery point, durably; returns the size of the file.

    Raises:
        FullError: There is no space; the old point stays.
    """
    path = root / RECOVERY_POINT_FILE_NAME
    if not files.exists(path.parent):
        files.make_dirs(path.parent)
    data = encode_recovery_point(point)
    unfinished = path.with_name(path.name + _UNFINISHED)
    files.write_file(unfinished, data, sync=True)
    files.rename(unfinished, path)
    files.sync_dir(path.parent)
    return len(data)


def remove_recovery_point(files: Files, root: Path) -> None:
    """Removes the recovery point, durably; does nothing without one."""
    path = root / RECOVERY_POINT_FILE_NAME
    if files.exists(path):
        files.remove(path)
        files.sync_dir(path.parent)

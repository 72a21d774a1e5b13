"""Sees every file outside of a store that is opened, read or changed, by Linux's inotify."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_HEAD: Final = struct.Struct("iIII")
_NONBLOCK: Final = os.O_NONBLOCK
EVENTS: Final = {
    0x001: "read", 0x002: "written", 0x004: "rights changed", 0x020: "opened", 0x040: "moved away",
    0x080: "moved to", 0x100: "made", 0x200: "removed",
}  # fmt: skip
_IS_DIR: Final = 0x40000000


class Watch:
    """Watches folders, and all that is in them, until it is closed.

    Args:
        folders: Which; folders in them are not looked into.

    Raises:
        OSError: The system has no more watches to give.
    """

    def __init__(self, *folders: Path) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = library.inotify_init1(_NONBLOCK)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._names: dict[int, Path] = {}
        for folder in folders:
            number = library.inotify_add_watch(self._descriptor, os.fsencode(folder), sum(EVENTS))
            if number < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", str(folder))
            self._names[number] = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def seen(self) -> list[str]:
        """Returns what happened since the last call, such as ``opened outside/canary``."""
        found: dict[str, None] = {}
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return list(found)
            at = 0
            while at < len(data):
                number, mask, _cookie, length = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
                at += _HEAD.size + length
                what = ", ".join(text for bit, text in EVENTS.items() if mask & bit)
                where = self._names.get(number, Path("?")) / os.fsdecode(name)
                found[f"{what or hex(mask)} {where}"] = None

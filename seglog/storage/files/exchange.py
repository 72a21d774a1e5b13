"""Exchanges two names at once, for which Python has no call: Linux's ``renameat2``."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

from seglog.storage.files.hardlinks import Place

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
"""From Linux's ``fcntl.h`` and ``fs.h``."""
_CANNOT: Final = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(first: Place, second: Place) -> bool:
    """Exchanges two names atomically; returns False, and does nothing, if the system cannot do it."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    folders = [_AT_FDCWD if folder is None else folder for folder, _name in (first, second)]
    names = [os.fsencode(name) for _folder, name in (first, second)]
    if library.renameat2(folders[0], names[0], folders[1], names[1], _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), first[1])

"""Opens a file that the user names: only a regular file, and only up to a given size."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from seglog.errors import InvalidArgumentError


def open_regular(path: Path, max_bytes: int, *, advice: str) -> BinaryIO:
    """Opens a file for reading; never waits for the other end of a pipe.

    Args:
        path: The file.
        max_bytes: Its largest permitted size.
        advice: Advice of the error if it is refused.

    Raises:
        InvalidArgumentError: It is no regular file, or larger.
        OSError: It cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgumentError(f"{path} is no regular file", help=advice)
        if status.st_size > max_bytes:
            raise InvalidArgumentError(f"{path} has more than {max_bytes} bytes", help=advice)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")

"""Files that tasks write beside a new store, for other tasks to read.

A file consists of items of one dtype, and other tasks read their stretch of it. A task may run twice, also at
the same time: each attempt writes under a name of its own, and any one may win, because all write the same.
"""

from __future__ import annotations

import uuid
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.files import Files, RestoringFiles
from seglog.storage.kernels.gather import Ints

Key = tuple[str, int]
"""Topic and queue id."""
Table = npt.NDArray[np.void]
"""``(n,)`` of any dtype of named fields."""
ATTEMPT: Final = ".attempt"
"""Part of temporary names in a new store; such files are removed before the store is complete."""


def save_bytes(files: RestoringFiles, path: Path, data: bytes) -> None:
    """Writes a temporary file; if several attempts write it, any one may win: all write the same."""
    attempt = path.with_name(f"{path.name}{ATTEMPT}-{uuid.uuid4().hex}")
    files.write_file(attempt, data, sync=False)
    files.rename(attempt, path)


def load_part(
    files: Files, path: Path, dtype: np.dtype[np.void], start: int, count: int
) -> npt.NDArray[np.void]:
    """Returns some items of a file that consists of items."""
    found = np.empty(count, dtype)
    with closing(files.open(path, writable=False)) as file:
        done = file.read_into(found.data.cast("B"), start * dtype.itemsize)
    return found[: done // dtype.itemsize]


def divided(rows: Table, taker: Ints, takers: int) -> tuple[Table, list[int]]:
    """Returns rows in the order of their takers, and the start of each taker's rows and the end of the last.

    Args:
        rows: Rows of any dtype.
        taker: ``(n,)``, the number of the taker of each row.
        takers: Number of takers.
    """
    # Numbers of 16 bits are sorted by radix, in a fifth of the time.
    order = np.argsort(taker.astype(np.uint16) if takers <= 1 << 16 else taker, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(taker, minlength=takers))])
    return rows.take(order), starts.tolist()  # ten times as fast as indexing

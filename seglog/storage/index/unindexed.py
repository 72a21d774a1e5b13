"""Stores whose writer was killed before it wrote the first index file: no damage, the next writer writes it.

The index is behind the log, by some MiB while messages keep coming. So a store of ours that was never closed,
with a short log that still begins at its first file, may have no index yet. RocketMQ indexes at once: if
RocketMQ wrote last, or if there was an index before, a missing one is damage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.storage.directory.broker_conf import LENGTHS_FILE
from seglog.storage.directory.index_files import is_begun
from seglog.storage.files.files import Files
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.names import INDEX

_MOST_BEHIND_BYTES: Final = 256 << 20
"""The index may be behind by 16 MiB, and by the messages that are written while it catches up."""


def is_not_indexed_yet(
    files: Files, root: Path, mode: str, checkpoint: Checkpoint, min_phy_offset: int, end_phy_offset: int
) -> bool:
    """Returns whether a kill explains that a store has no index file.

    Args:
        files: The file layer of the store.
        root: The store directory.
        mode: ``normal`` if it was closed.
        checkpoint: Its checkpoint.
        min_phy_offset: Physical offset of the log's first byte.
        end_phy_offset: End of the log.
    """
    return (
        mode != "normal"
        and min_phy_offset == 0
        and end_phy_offset <= _MOST_BEHIND_BYTES
        and checkpoint.index_timestamp_ms == 0
        and files.exists(root / LENGTHS_FILE)
        and all(is_begun(files, root / INDEX / entry.name) for entry in files.list_dir(root / INDEX))
    )

"""Stores of which the writer was killed before it wrote the first index file: no damage, the next one does.

The index trails the log, by some MiB while messages keep coming. So a store of ours that was never closed,
with a short log that still begins where it began, may have no index yet. RocketMQ indexes at once: where it
wrote last, or where there was an index once, a missing one is damage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.storage.directory.broker_conf import LENGTHS_FILE
from seglog.storage.files.files import Files
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.names import INDEX

_MOST_BEHIND_BYTES: Final = 256 << 20
"""The index falls behind by 16 MiB, and by what is written while it is brought on."""


def is_not_indexed_yet(
    files: Files, root: Path, mode: str, checkpoint: Checkpoint, min_phy_offset: int, end_phy_offset: int
) -> bool:
    """Returns whether a kill explains that a store has no index file.

    Args:
        files: Where the store is.
        root: The store directory.
        mode: ``normal`` if it was closed.
        checkpoint: Its checkpoint.
        min_phy_offset: Where its log starts.
        end_phy_offset: Where that ends.
    """
    return (
        mode != "normal"
        and min_phy_offset == 0
        and end_phy_offset <= _MOST_BEHIND_BYTES
        and checkpoint.index_timestamp_ms == 0
        and files.exists(root / LENGTHS_FILE)
        and not files.list_dir(root / INDEX)
    )

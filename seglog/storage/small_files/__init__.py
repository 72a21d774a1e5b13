"""Files that are read and written whole: configuration, checkpoint, recovery point, attic.

Each of them is at every moment the old one or the new one, or has a backup beside it that is.

Called by everything above; a broker keeps its tables through ``config_file``.
Truth: none of these is trusted over the log.
"""

from __future__ import annotations

from seglog.storage.small_files.attic import ATTIC, Attic, iter_kept
from seglog.storage.small_files.checkpoint_file import write_checkpoint
from seglog.storage.small_files.config_file import ConfigFile, is_config_table
from seglog.storage.small_files.erased_places import ErasedPlace, note_erased
from seglog.storage.small_files.named_file import open_regular
from seglog.storage.small_files.recovery_point_file import (
    RECOVERY_POINT_FILE_NAME,
    read_recovery_point,
    remove_recovery_point,
)

__all__ = [
    "ATTIC",
    "RECOVERY_POINT_FILE_NAME",
    "Attic",
    "ConfigFile",
    "ErasedPlace",
    "is_config_table",
    "iter_kept",
    "note_erased",
    "open_regular",
    "read_recovery_point",
    "remove_recovery_point",
    "write_checkpoint",
]

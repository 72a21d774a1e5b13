"""Files that are read and written whole: configuration, checkpoint, recovery point, attic.

Each of them has at every moment its old or its new content, or a backup beside it has.

Called by all rooms above; a broker saves its tables with ``config_file``.
Truth: none of these is trusted over the log.
"""

from seglog.storage.small_files.attic import ATTIC as ATTIC
from seglog.storage.small_files.attic import Attic as Attic
from seglog.storage.small_files.attic import iter_kept as iter_kept
from seglog.storage.small_files.checkpoint_file import leave_to_rescan as leave_to_rescan
from seglog.storage.small_files.checkpoint_file import read_checkpoint as read_checkpoint
from seglog.storage.small_files.checkpoint_file import write_checkpoint as write_checkpoint
from seglog.storage.small_files.compacted_file import dropped_offsets as dropped_offsets
from seglog.storage.small_files.compacted_file import note_dropped as note_dropped
from seglog.storage.small_files.config_file import ConfigFile as ConfigFile
from seglog.storage.small_files.config_file import is_config_table as is_config_table
from seglog.storage.small_files.erased_places import ErasedPlace as ErasedPlace
from seglog.storage.small_files.erased_places import note_erased as note_erased
from seglog.storage.small_files.log_origin import LogOrigin as LogOrigin
from seglog.storage.small_files.log_origin import read_log_origin as read_log_origin
from seglog.storage.small_files.log_origin import write_log_origin as write_log_origin
from seglog.storage.small_files.named_file import open_regular as open_regular
from seglog.storage.small_files.recovery_point_file import (
    RECOVERY_POINT_FILE_NAME as RECOVERY_POINT_FILE_NAME,
)
from seglog.storage.small_files.recovery_point_file import read_recovery_point as read_recovery_point
from seglog.storage.small_files.recovery_point_file import remove_recovery_point as remove_recovery_point
from seglog.storage.small_files.undo_names import AFTER as AFTER
from seglog.storage.small_files.undo_names import JOURNAL as JOURNAL
from seglog.storage.small_files.undo_names import UNDO as UNDO
from seglog.storage.small_files.undo_names import UNDOING as UNDOING
from seglog.storage.small_files.undo_names import pack_numbers as pack_numbers
from seglog.storage.small_files.undo_names import stopped_repair as stopped_repair

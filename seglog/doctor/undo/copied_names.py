"""Which files of a store a backup and a branch take; an undo pack in a copy is compared with these only.

No repair changes any of the others, so whether they are there says nothing about what a repair did.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from seglog.storage.directory import CONF_FILE
from seglog.storage.format import names
from seglog.storage.format.queue import COMPACTION

FIRST_FOLDERS: Final = (names.CONFIG, "timerwheel", "timerlog", names.OURS, names.INDEX)
QUEUE_FOLDERS: Final = (names.CONSUME_QUEUE_EXT, COMPACTION, names.CONSUME_QUEUE, names.BATCH_CONSUME_QUEUE)
COPIED_FOLDERS: Final = frozenset((*FIRST_FOLDERS, *QUEUE_FOLDERS, names.COMMIT_LOG))
OF_ONE_STORE: Final = frozenset(("recovery-point", "branches", "branch"))
"""Names in ``seglog/``: one describes the queue files of a store, the others its branches or its origin."""
NOT_COPIED_FILES: Final = frozenset((names.LOCK_FILE, "abort.bak"))
TEMPORARY: Final = (".tmp", ".new", ".own", ".part")


def is_copied(name: str, log_folders: Collection[str] = ()) -> bool:
    """Returns whether a copy of a store that is closed has a file.

    Args:
        name: Of the file, relative to the store.
        log_folders: Folders of the log beside ``commitlog``, relative to the store.
    """
    folder, _slash, last = name.rpartition("/")
    if folder in log_folders:
        return names.parse_segment_file_name(last) is not None
    first, *further = name.split("/")
    if not further:
        # A broker.conf is copied, but it is no part of the store's state: it may be put there for an undo.
        return first not in NOT_COPIED_FILES and first != CONF_FILE
    if first == names.OURS and further[0] in OF_ONE_STORE:
        return False
    return first in COPIED_FOLDERS and not name.endswith(TEMPORARY)

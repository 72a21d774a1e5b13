"""The locks of a store that is open for writing, and the order in which a thread may take them.

A thread that holds one of them takes only such as follow it in :class:`LockRank`, so that no two threads can
wait for each other. The test of the order gives every writer locks that look at it.
"""

from __future__ import annotations

import enum
import threading
from contextlib import AbstractContextManager


class LockRank(enum.IntEnum):
    """What a lock guards, the outermost lock first."""

    TRIM = 1
    """One deletion of the log's front at a time."""
    FLUSH = 2
    """One sync of the queues and one write of the checkpoint at a time; the disk is waited for."""
    GROW = 3
    """Creating, extending and removing files of queues and compaction logs; the disk is waited for."""
    LOG = 4
    """Creating, extending and removing files of the log; the disk is waited for."""
    APPEND = 5
    """Where log and queues end and which queues exist; its holder never waits for a disk."""


Lock = AbstractContextManager[bool]
"""What a writer needs of a lock."""


def new_lock(_rank: LockRank) -> Lock:
    """Returns a lock of a rank."""
    return threading.Lock()

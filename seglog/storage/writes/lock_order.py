"""The locks of a store that is open for writing, and the order in which a thread may take them.

A thread that holds one of them takes only locks that follow it in :class:`LockRank`, so that no two threads
can wait for each other. The test of the order gives every writer locks that check it.
"""

from __future__ import annotations

import enum
import threading
from contextlib import AbstractContextManager


class LockRank(enum.IntEnum):
    """The locks by what they guard, the outermost lock first."""

    TRIM = 1
    """One deletion of the log's front at a time."""
    FLUSH = 2
    """One sync of the queues and one write of the checkpoint at a time; its holder may wait for the disk."""
    GROW = 3
    """Creating, extending, removing files of queues and compaction logs; its holder may wait for the disk."""
    LOG = 4
    """Creating, extending and removing files of the log; its holder may wait for the disk."""
    APPEND = 5
    """The ends of log and queues, and the set of queues; its holder never waits for a disk."""


Lock = AbstractContextManager[bool]
"""A lock, as a writer uses it."""


def new_lock(_rank: LockRank) -> Lock:
    """Returns a lock of a rank."""
    return threading.Lock()

"""Compaction topics: a log of their own for each queue, which keeps the last message of each key.

Holds the files of such a log as they are on disk, their units in memory, their queue files rebuilt from their
records, and the comparison of each record with the one of the commit log that it is a copy of.

Called by surveys, recovery, reads and writes.
Truth: the commit log, as far as it still has the record; after that, the compaction log.
"""

from __future__ import annotations

from seglog.storage.compaction.copies import CommitRecords
from seglog.storage.compaction.files import (
    CompactionState,
    Key,
    compacted_queues,
    infer_compaction_sizes,
    known_offsets,
    list_compaction_files,
    load_state,
    queue_ids,
)
from seglog.storage.compaction.queue import CompactionQueue
from seglog.storage.compaction.rebuild import sound_record
from seglog.storage.compaction.units import CompactionUnits

__all__ = [
    "CommitRecords",
    "CompactionQueue",
    "CompactionState",
    "CompactionUnits",
    "Key",
    "compacted_queues",
    "infer_compaction_sizes",
    "known_offsets",
    "list_compaction_files",
    "load_state",
    "queue_ids",
    "sound_record",
]

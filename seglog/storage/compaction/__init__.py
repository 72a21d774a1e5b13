"""Compaction topics: a log of their own for each queue, which keeps the last message of each key.

Holds the files of such a log as they are on disk, their units in memory, their queue files rebuilt from their
records, and the comparison of each record with the one of the commit log that it is a copy of.

Called by surveys, recovery, reads and writes.
Truth: the commit log, as far as it still has the record; after that, the compaction log.
"""

from seglog.storage.compaction.copies import CommitRecords as CommitRecords
from seglog.storage.compaction.files import CompactionState as CompactionState
from seglog.storage.compaction.files import Key as Key
from seglog.storage.compaction.files import compacted_queues as compacted_queues
from seglog.storage.compaction.files import infer_compaction_sizes as infer_compaction_sizes
from seglog.storage.compaction.files import known_offsets as known_offsets
from seglog.storage.compaction.files import list_compaction_files as list_compaction_files
from seglog.storage.compaction.files import load_state as load_state
from seglog.storage.compaction.files import queue_ids as queue_ids
from seglog.storage.compaction.queue import CompactionQueue as CompactionQueue
from seglog.storage.compaction.rebuild import sound_record as sound_record
from seglog.storage.compaction.units import CompactionUnits as CompactionUnits

"""The types of log and queues of an open store: those of a writer, and the snapshots of a reader."""

from __future__ import annotations

from typing import TypeAlias

from seglog.storage.compaction.queue import CompactionQueue
from seglog.storage.compaction.units import CompactionUnits
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.queues.batch_queue import BatchQueue
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.queues.queue_table import QueueTable
from seglog.storage.reads.snapshot_batch_queue import SnapshotBatchQueue
from seglog.storage.reads.snapshot_compaction import SnapshotCompactionQueue
from seglog.storage.reads.snapshot_log import SnapshotLog
from seglog.storage.reads.snapshot_queue import SnapshotQueue

StoreLog: TypeAlias = CommitLog | SnapshotLog
CompactionLog: TypeAlias = CompactionQueue | SnapshotCompactionQueue
"""The log of a queue of a compaction topic."""
OpenPlainQueue: TypeAlias = ConsumeQueue | SnapshotQueue
"""A queue of 20-byte units."""
OpenBatchQueue: TypeAlias = BatchQueue | SnapshotBatchQueue
"""A queue of 46-byte units."""
BatchUnitSource: TypeAlias = OpenBatchQueue | CompactionUnits
"""A sequence of 46-byte units: a batch queue, or the log of a compaction queue."""
OpenQueue: TypeAlias = OpenPlainQueue | OpenBatchQueue
SnapshotTable: TypeAlias = QueueTable[SnapshotQueue, SnapshotBatchQueue, SnapshotCompactionQueue]
OpenQueues: TypeAlias = QueueTable[ConsumeQueue, BatchQueue, CompactionQueue] | SnapshotTable

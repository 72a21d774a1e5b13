"""Appends: from the arguments of a put to bytes in the log, units in queues and an acknowledgement.

``calls`` declares the calls that append. A call tries the ``fast_path`` first, then ``appender``, the usual
way. The writer of an open store has three parts: ``append_core`` (the one critical section), ``growth``
(creates files and space ahead of the appends) and ``writer`` (durability, background threads, close).
``lock_order`` ranks their locks; ``flush`` syncs the log for many puts at once.

Called by ``store`` and ``opening``; other top rooms import the plain values of a put from here.
Truth: the tail of the log in memory, under the append lock. Consumers can read a record when its put returns.
"""

from seglog.storage.writes.compaction_writer import CompactionWriter as CompactionWriter
from seglog.storage.writes.flush import Durability as Durability
from seglog.storage.writes.unsynced_appends import UnsyncedAppends as UnsyncedAppends
from seglog.storage.writes.values import BatchResult as BatchResult
from seglog.storage.writes.values import NewMessage as NewMessage
from seglog.storage.writes.values import PutResult as PutResult
from seglog.storage.writes.values import QueueInfo as QueueInfo
from seglog.storage.writes.values import RawMessage as RawMessage

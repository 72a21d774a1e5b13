"""Appends: from the arguments of a put to bytes in the log, units in queues and an acknowledgement.

``calls`` states the calls that append, once; ``fast_path`` is tried first, ``appender`` is the ordinary way.
The writer of an open store is three: ``append_core`` (the one critical section), ``growth`` (files and space,
made ahead) and ``writer`` (durability, background, close). ``lock_order`` ranks their locks; ``flush`` brings
the log to the disk for many puts at once.

Called by ``store`` and ``opening``; other top rooms take the plain values of a put from here.
Truth: the tail of the log in memory, under the append lock. A record is consumable when its put returns.
"""

from seglog.storage.writes.compaction_writer import CompactionWriter as CompactionWriter
from seglog.storage.writes.flush import Durability as Durability
from seglog.storage.writes.unsynced_appends import UnsyncedAppends as UnsyncedAppends
from seglog.storage.writes.values import BatchResult as BatchResult
from seglog.storage.writes.values import NewMessage as NewMessage
from seglog.storage.writes.values import PutResult as PutResult
from seglog.storage.writes.values import QueueInfo as QueueInfo
from seglog.storage.writes.values import RawMessage as RawMessage

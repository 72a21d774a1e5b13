"""The result of an append before its durability, and the settings of appends.

Appending and waiting for the disk are two steps: an append returns an :class:`Appended`. A thread then waits
with :meth:`Appender.ensured`, a task as in :mod:`seglog.storage.writes.async_appends`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from seglog.storage.format.record.host import Host
from seglog.storage.writes.flush import Durability

R = TypeVar("R")


class Appended(NamedTuple, Generic[R]):
    """An append that was written to memory.

    Attributes:
        result: The result for the caller.
        until: Physical offset below which the log must be on the disk before the caller gets the result; None
            if the call does not wait for the disk.
    """

    result: R
    until: int | None


@dataclass(frozen=True, slots=True)
class PutSettings:
    """The defaults of appends, for calls that give no other value.

    Attributes:
        record_crc: Whether new records carry ``__CRC32#``; None: as the records in the store do.
        store_host: Address written into records that name no other.
        durability: The durability that calls wait for.
        max_message_size_bytes: Longest body.
        flush_interval_ms: The interval in which ASYNC puts are synced.
    """

    record_crc: bool | None
    store_host: Host
    durability: Durability
    max_message_size_bytes: int
    flush_interval_ms: int

"""What the calls of a store that append are made of, and what appending gives them.

Appending and waiting for the disk are two steps: what appends returns an :class:`Appended`, and threads wait
for it with :meth:`Appender.ensured`, tasks as :mod:`seglog.storage.writes.async_appends` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from seglog.storage.format.record.host import Host
from seglog.storage.writes.flush import Durability

R = TypeVar("R")


class Appended(NamedTuple, Generic[R]):
    """An append that was made.

    Attributes:
        result: What the caller gets.
        until: Physical offset below which the log must be on the disk before; None for a caller who does
            not wait.
    """

    result: R
    until: int | None


@dataclass(frozen=True, slots=True)
class PutSettings:
    """What appends do unless a call says otherwise.

    Attributes:
        record_crc: Whether new records carry ``__CRC32#``; None for what the store's own do.
        store_host: Address written into records that name no other.
        durability: What calls wait for.
        max_message_size_bytes: Longest body.
        flush_interval_ms: How often ASYNC puts are brought to the disk.
    """

    record_crc: bool | None
    store_host: Host
    durability: Durability
    max_message_size_bytes: int
    flush_interval_ms: int

"""What the calls of a store that append are made of, and what appending gives them.

Appending and waiting for the disk are two steps: what appends returns an :class:`Appended`, and threads wait
for it with :meth:`Appends.ensured`, tasks as :mod:`seglog.storage.writes.async_appends` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from seglog.storage.format.record.host import Host
from seglog.storage.kernels.pending_record import PendingRecord
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage

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


class Appends(Protocol):
    """What the calls of a store that append are made of; a reader refuses them all."""

    def put(
        self,
        topic: str,
        body: bytes | memoryview,
        queue_id: int,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        durability: Durability | None,
        may_wait: bool = True,
    ) -> Appended[PutResult]:
        """Appends one message, see :meth:`MessageStore.put`."""

    def append(
        self,
        topic: str,
        queue_id: int,
        body: bytes | memoryview,
        properties: bytes,
        tags_code: int,
        sys_flag: int,
        flag: int,
        born_timestamp_ms: int | None,
        born_host: Host | None,
        store_host: Host | None,
        reconsume_times: int,
        prepared_transaction_offset: int,
        durability: Durability | None,
        delay_ms: int | None,
        may_wait: bool = True,
    ) -> Appended[PutResult]:
        """Appends one message of any kind, see :meth:`MessageStore.append`."""

    def new_drafts(
        self, topic: str, queue_id: int, messages: Sequence[NewMessage | bytes]
    ) -> list[PendingRecord]:
        """Returns the records of messages as applications have them."""

    def raw_drafts(
        self,
        topic: str,
        queue_id: int,
        messages: Sequence[RawMessage],
        sys_flag: int,
        born_timestamp_ms: int | None,
        born_host: Host | None,
        reconsume_times: int,
    ) -> list[PendingRecord]:
        """Returns the records of messages as brokers have them."""

    def put_drafts(
        self,
        topic: str,
        queue_id: int,
        drafts: Sequence[PendingRecord],
        durability: Durability | None,
        *,
        may_wait: bool = True,
    ) -> Appended[BatchResult]:
        """Appends records of one queue, all or none."""

    def ensured(self, appended: Appended[R]) -> R:
        """Returns the result of an append once it is durable."""

    def ensure(self, phy_offset: int, /) -> None:
        """Returns once the log below ``phy_offset`` is on the disk."""

    def durable(self, phy_offset: int, /) -> asyncio.Future[None] | None:
        """Returns what a task awaits until the log below ``phy_offset`` is on the disk; None if it is."""

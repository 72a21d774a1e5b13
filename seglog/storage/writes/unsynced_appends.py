"""Appends that do not wait for the disk, for callers that answer after the log was synced.

The records are written at once and in the order of the calls, as by the calls of a store. ``until`` is the
physical offset below which the log must be on the disk before any of them is acknowledged. An append that
must create a file first raises :class:`~seglog.storage.threads.waiting.WouldWaitError` if the calling thread
may not wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from seglog.storage.format.record.host import Host
from seglog.storage.threads.waiting import may_wait
from seglog.storage.writes.appender import Appends
from seglog.storage.writes.fast_path import FastPath
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, PutResult, RawMessage


class UnsyncedAppends:
    """The appends of one request.

    Args:
        appends: The ordinary way.
        fast_path: The fast path, tried first.

    Attributes:
        until: Physical offset below which the log must be on the disk before they are acknowledged; 0 if
            none of them has to wait for the disk.
    """

    __slots__ = ("_appends", "_fast_path", "until")

    def __init__(self, appends: Appends, fast_path: FastPath) -> None:
        self._appends = appends
        self._fast_path = fast_path
        self.until = 0

    def append(
        self,
        topic: str,
        queue_id: int,
        body: bytes | bytearray | memoryview,
        properties: bytes,
        tags_code: int,
        *,
        sys_flag: int = 0,
        flag: int = 0,
        born_timestamp_ms: int | None = None,
        born_host: Host | None = None,
        store_host: Host | None = None,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        durability: Durability | None = None,
        delay_ms: int | None = None,
    ) -> PutResult:
        """Appends one message as :meth:`MessageStore.append` does."""
        if delay_ms is None:  # the fast path knows no delay of its own
            quick = self._fast_path.try_append(
                topic,
                queue_id,
                body,
                properties,
                tags_code,
                sys_flag,
                flag,
                born_timestamp_ms,
                born_host,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                durability,
            )
            if quick is not None:
                self._note(quick)
                return quick
        made, until = self._appends.append(
            topic,
            queue_id,
            body,
            properties,
            tags_code,
            sys_flag,
            flag,
            born_timestamp_ms,
            born_host,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            durability,
            delay_ms,
            may_wait(),
        )
        self.until = max(self.until, until or 0)
        return made

    def append_batch(
        self,
        topic: str,
        queue_id: int,
        messages: Sequence[RawMessage],
        *,
        sys_flag: int = 0,
        born_timestamp_ms: int | None = None,
        born_host: Host | None = None,
        reconsume_times: int = 0,
        durability: Durability | None = None,
    ) -> BatchResult:
        """Appends messages as :meth:`MessageStore.append_batch` does."""
        quick = self._fast_path.try_append_batch(
            topic, queue_id, messages, sys_flag, born_timestamp_ms, born_host, reconsume_times, durability
        )
        if quick is not None:
            self._note(quick)
            return quick
        appends = self._appends
        records = appends.raw_records(
            topic, queue_id, messages, sys_flag, born_timestamp_ms, born_host, reconsume_times
        )
        made, until = appends.put_records(topic, queue_id, records, durability, may_wait=may_wait())
        self.until = max(self.until, until or 0)
        return made

    def _note(self, made: PutResult | BatchResult) -> None:
        """Raises ``until`` to the end of an append by the fast path, if the append is SYNC."""
        if made.durability is Durability.SYNC:
            self.until = max(self.until, made.phy_offset + made.size_bytes)

"""Appends that do not wait for the disk, for callers that answer once it has followed.

They are made as those of a store are, at once and in the order of the calls; ``until`` says how far the log
must be on the disk before anything of them is acknowledged. What has to make a file first raises
:class:`~seglog.storage.threads.waiting.WouldWaitError` where the calling thread may not wait.
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
        appends: Where they go.
        fast_path: What they are tried with first.

    Attributes:
        until: Physical offset below which the log must be on the disk before they are acknowledged; 0 if
            none of them is to wait for it.
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
        body: bytes | memoryview,
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
        if delay_ms is None:
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
        """Notes how far the log must be on the disk before what was appended is acknowledged."""
        if made.durability is Durability.SYNC:
            self.until = max(self.until, made.phy_offset + made.size_bytes)

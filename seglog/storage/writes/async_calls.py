"""The calls of a store for asyncio: the same as those without ``_async``, and awaited.

    results = await asyncio.gather(*(store.put_async("orders", body) for body in bodies))

Hundreds of puts in flight share one sync. The append itself happens on the loop's thread, in the order of
the calls; only where a file must be made it goes to a thread. See :mod:`seglog.storage.writes.async_appends`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from seglog.arguments import as_int, as_text
from seglog.storage.format.names import MAX_QUEUE_ID
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.put_properties import encode_all_properties
from seglog.storage.writes.appender import Appender
from seglog.storage.writes.async_appends import AsyncAppends
from seglog.storage.writes.deferred_records import INNER
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage


class AsyncCalls(ABC):
    """What a :class:`~seglog.storage.store.MessageStore` offers to tasks.

    Cancelling a task takes nothing back: its message is stored, or will be. ``get`` needs no other form.
    """

    async def put_async(
        self,
        topic: str,
        body: bytes | memoryview,
        *,
        queue_id: int = 0,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        durability: Durability | None = None,
    ) -> PutResult:
        """Appends one message as :meth:`MessageStore.put` does."""
        appends, appender = self._appends_async(), self._appends()
        try_put = appends.try_put
        if try_put is not None:
            made = try_put(
                topic,
                body,
                queue_id=queue_id,
                tags=tags,
                keys=keys,
                properties=properties,
                flag=flag,
                durability=durability,
            )
            if made is not None:
                if made.durability is Durability.SYNC:
                    durable = appends.durable(made.phy_offset + made.size_bytes)
                    if durable is not None:
                        await durable
                return made
        raw, code = encode_all_properties(tags, keys, properties)
        if properties and INNER in raw:
            return await self.append_async(topic, queue_id, body, raw, code, flag=flag, durability=durability)
        result = await appends.run(
            lambda may_wait: appender.put(topic, queue_id, body, raw, code, flag, durability, may_wait)
        )
        appends.grant(topic, queue_id)
        return result

    async def append_async(
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
        appends, appender = self._appends_async(), self._appends()
        return await appends.run(
            lambda may_wait: appender.append(
                topic,
                queue_id,
                body,
                properties,
                tags_code,
                sys_flag=sys_flag,
                flag=flag,
                born_timestamp_ms=born_timestamp_ms,
                born_host=born_host,
                store_host=store_host,
                reconsume_times=reconsume_times,
                prepared_transaction_offset=prepared_transaction_offset,
                durability=durability,
                delay_ms=delay_ms,
                may_wait=may_wait,
            )
        )

    async def put_batch_async(
        self,
        topic: str,
        messages: Sequence[NewMessage | bytes],
        *,
        queue_id: int = 0,
        durability: Durability | None = None,
    ) -> BatchResult:
        """Appends messages to one queue as :meth:`MessageStore.put_batch` does."""
        appends, appender = self._appends_async(), self._appends()
        drafts = appender.new_drafts(topic, queue_id, messages)
        return await appends.run(
            lambda may_wait: appender.put_drafts(topic, queue_id, drafts, durability, may_wait=may_wait)
        )

    async def append_batch_async(
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
        appends, appender = self._appends_async(), self._appends()
        drafts = appender.raw_drafts(
            topic, queue_id, messages, sys_flag, born_timestamp_ms, born_host, reconsume_times
        )
        return await appends.run(
            lambda may_wait: appender.put_drafts(topic, queue_id, drafts, durability, may_wait=may_wait)
        )

    async def flush_async(self) -> None:
        """Returns once everything put before is on the disk, as :meth:`MessageStore.flush` does."""
        await asyncio.to_thread(self.flush)

    async def wait_for_async(self, topic: str, queue_id: int, queue_offset: int, timeout_ms: float) -> bool:
        """Waits until the queue has a message at ``queue_offset``; returns whether it has."""
        queue = as_text("topic", topic), as_int("queue_id", queue_id, useful_to=MAX_QUEUE_ID)
        return await self.wait_for_any_async({queue: queue_offset}, timeout_ms)

    @abstractmethod
    async def wait_for_any_async(self, queues: Mapping[tuple[str, int], int], timeout_ms: float) -> bool:
        """Waits until one of many queues has a message at its offset; returns whether one has."""

    @abstractmethod
    def flush(self) -> None:
        """Brings everything to the disk."""

    @abstractmethod
    def _appends(self) -> Appender: ...

    @abstractmethod
    def _appends_async(self) -> AsyncAppends: ...

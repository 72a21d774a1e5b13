"""The calls of a store for asyncio: they do the same as those without ``_async``, and are awaited.

    results = await asyncio.gather(*(store.put_async("orders", body) for body in bodies))

Hundreds of puts in flight share one append and one sync. The loop's thread appends them in the order of the
calls; only if a file must be created does another thread append them. See
:mod:`seglog.storage.writes.async_appends`.
"""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from seglog.arguments import as_bytes, as_int, refusal
from seglog.errors import InvalidArgumentError, StoreFailedError
from seglog.storage.format.record.host import Host
from seglog.storage.kernels.sends import SendRules, new_sends
from seglog.storage.writes.appender import Appends
from seglog.storage.writes.async_appends import AsyncAppends, no_memory
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.unsynced_appends import UnsyncedAppends
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage

Q = TypeVar("Q")
P = TypeVar("P")
A = TypeVar("A")
T = TypeVar("T")

_NO_LIST: Final = (str, tuple, bytes, bytearray, memoryview)
"""Keys that no caller can change, and what is refused as keys."""


class AsyncCalls:
    """The calls of a :class:`~seglog.storage.store.MessageStore` for tasks.

    Cancelling a task takes nothing back: its message is stored, or will be. Tasks may call ``get``, which
    does not wait for messages; ``get_async`` and ``follow`` of the store do.
    """

    _appends: Appends
    _tasks: AsyncAppends

    async def put_async(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        *,
        queue_id: int = 0,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        durability: Durability | None = None,
    ) -> PutResult:
        """Appends one message as :meth:`MessageStore.put` does.

        What the caller can change, such as a ``bytearray``, is read in the first turn of the task.
        """
        tasks, appends = self._tasks, self._appends
        if (
            (tasks.usual if durability is None else durability) is tasks.gathers
            and type(body) is bytes
            and (keys is None or type(keys) is str)
            and (properties is None or type(properties) is dict)
        ):
            # A copy: the caller may change its dict before the message is stored at the end of the turn.
            own = None if properties is None else dict(properties)
            loop = get_running_loop()
            stored: Future[PutResult | None] = Future(loop=loop)
            tasks.gathered.append((topic, body, queue_id, tags, keys, own, flag, durability, stored))
            if loop not in tasks.due:
                tasks.drain_soon(loop)
            return await stored or no_memory()
        made = None
        if not tasks.aside:
            made = tasks.fast_path.try_put(topic, body, queue_id, tags, keys, properties, flag, durability)
        if made is None:
            # The call continues later, and may try twice: until then the caller may change what it gave, and
            # an iterator gives its keys once.
            body = _own_bytes(body)
            keys = [*keys] if isinstance(keys, Iterable) and not isinstance(keys, _NO_LIST) else keys
            properties = dict(properties) if isinstance(properties, Mapping) else properties
            # partial instead of a closure: the cells of a closure would slow down the way above as well.
            return await tasks.run(
                partial(appends.put, topic, body, queue_id, tags, keys, properties, flag, durability)
            )
        if made.durability is Durability.SYNC:
            durable = tasks.durable(made.phy_offset + made.size_bytes)
            if durable is not None:
                await durable
        return made

    async def append_async(
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
        appends = self._appends
        own = _own_bytes(body)
        return await self._tasks.run(
            lambda may_wait: appends.append(
                topic,
                queue_id,
                own,
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
                may_wait,
            )
        )

    def unsynced(self) -> UnsyncedAppends:
        """Returns the appends of one request, which do not wait for the disk; see :meth:`when_durable`."""
        return UnsyncedAppends(self._appends, self._tasks.fast_path)

    def sends(self, rules: SendRules[Q, P, A, T]) -> Callable[[Q, P], A | None]:
        """Returns the fast way for the sends of a broker; see :mod:`seglog.storage.kernels.sends`."""
        return new_sends(self._tasks.fast_path, rules)

    def when_durable(self, phy_offset: int, told: Callable[[StoreFailedError | None], None]) -> bool:
        """Calls a function once the log below ``phy_offset`` is on the disk.

        No sync starts for it before :meth:`sync_soon`, which the caller calls once for many functions.

        Args:
            phy_offset: The offset, from ``until`` of the :meth:`unsynced` appends.
            told: Called once, by any thread, with the error if the disk failed; must neither wait nor raise.

        Returns:
            Whether the function will be called: False if the log is on the disk up to there already.

        Raises:
            StoreFailedError: The disk failed earlier.
            ReadOnlyError: The store was opened for reading.
        """
        if not callable(told):
            raise refusal("told", told, "a function")
        return self._appends.notify(as_int("phy_offset", phy_offset, 0), told)

    def sync_soon(self) -> None:
        """Requests a sync, by a thread of the store, of all messages put until now; returns at once.

        Raises:
            ReadOnlyError: The store was opened for reading.
        """
        self._appends.ask()

    async def put_batch_async(
        self,
        topic: str,
        messages: Sequence[NewMessage | bytes],
        *,
        queue_id: int = 0,
        durability: Durability | None = None,
    ) -> BatchResult:
        """Appends messages to one queue as :meth:`MessageStore.put_batch` does."""
        appends = self._appends
        records = appends.new_records(topic, queue_id, messages)
        return await self._tasks.run(
            lambda may_wait: appends.put_records(topic, queue_id, records, durability, may_wait=may_wait)
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
        appends = self._appends
        records = appends.raw_records(
            topic, queue_id, messages, sys_flag, born_timestamp_ms, born_host, reconsume_times
        )
        return await self._tasks.run(
            lambda may_wait: appends.put_records(topic, queue_id, records, durability, may_wait=may_wait)
        )


def _own_bytes(given: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
    """Returns bytes that the caller cannot change; what is no buffer is left to the call, to refuse it."""
    try:
        return as_bytes("body", given)
    except InvalidArgumentError:
        return given

"""The ordinary way of a put: checks the arguments, encodes records, appends them, and returns the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from seglog.arguments import (
    MAX_I32,
    MAX_I64,
    MIN_I32,
    MIN_I64,
    as_body,
    as_bytes,
    as_enum,
    as_int,
    as_kind,
    refusal,
)
from seglog.clock import Clock
from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.storage.format.names import SCHEDULE_TOPIC, check_queue_id, check_topic
from seglog.storage.format.record import INNER_BATCH, Host, encode_all_properties
from seglog.storage.format.record.tombstone import would_be_lost
from seglog.storage.kernels.pending_record import PendingRecord
from seglog.storage.writes.append_core import AppendCore, Written
from seglog.storage.writes.appends import Appended, PutSettings
from seglog.storage.writes.deferred_records import INNER, Order, check_unordered, make_order
from seglog.storage.writes.flush import Durability, GroupCommit
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage

if TYPE_CHECKING:
    from seglog.storage.reads.reader import Reader

R = TypeVar("R")
M = TypeVar("M")


class Appender:
    """Appends to a store that is open for writing.

    Attributes:
        record_crc: Whether new records carry ``__CRC32#``.
        store_host: Address written into records that name no other.
        durability: What calls wait for unless they say otherwise.
        max_message_size_bytes: Longest body.
        clock: Stamps the messages.
        ensure: Returns once the log below an offset is on the disk; see :meth:`GroupCommit.ensure`.
        durable: Returns the future of that for a task, None if it is on the disk; :meth:`GroupCommit.future`.
        notify: Calls a function then, and returns whether it will; :meth:`GroupCommit.notify`.
        ask: Requests one sync for all those functions; :meth:`GroupCommit.ask`.
        settle: Gives futures their results then; :meth:`GroupCommit.settle`.
        waiters: Threads and tasks that wait for queues to grow.
        put_batch_again: Tries the fast path again with room that it lacked; returns its result, or None.
        drain_with: Sets the function that appends gathered puts before any later append.
    """

    def __init__(self, core: AppendCore, commit: GroupCommit, clock: Clock, settings: PutSettings) -> None:
        self.record_crc = bool(settings.record_crc)
        self.store_host = settings.store_host
        self.durability = settings.durability
        self.max_message_size_bytes = settings.max_message_size_bytes
        self.clock = clock
        self._core = core
        self.durable = commit.future
        self.ensure = commit.ensure
        self.notify = commit.notify
        self.ask = commit.ask
        self.settle = commit.settle
        self.waiters = core.waiters
        self.drain_with = core.drain_with
        self.put_batch_again = core.put_batch_again

    def put(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        queue_id: int,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        durability: Durability | None,
        may_wait: bool = True,
    ) -> Appended[PutResult]:
        """Appends one message."""
        raw, code = encode_all_properties(tags, keys, properties)
        if properties and INNER in raw:  # they may hold queue offsets, which only append() can fill in
            return self.append(
                topic, queue_id, body, raw, code, 0, flag, None, None, None, 0, 0, durability, None, may_wait
            )
        durability = self._reached(durability)
        queue_id = check_queue_id(queue_id)
        record = self.new_record(topic, queue_id, body, raw, code, flag)
        written = self._core.append(topic, queue_id, (record,), may_wait)
        return self._finish(topic, queue_id, record, written, self.store_host, durability)

    def append(
        self,
        topic: str,
        queue_id: int,
        body: bytes | bytearray | memoryview,
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
        """Appends one message of any kind."""
        durability = self._reached(durability)
        queue_id = check_queue_id(queue_id)
        if type(properties) is not bytes:
            properties = as_bytes("properties", properties)
        if type(sys_flag) is not int:
            sys_flag = as_int("sys_flag", sys_flag, MIN_I32, MAX_I32)
        code = _checked_tags_code(tags_code)
        if born_host is not None:
            as_kind("born_host", Host, born_host)
        if store_host is None:
            store_host = self.store_host
        elif would_be_lost(flag, as_kind("store_host", Host, store_host).port, as_body("body", body)):
            raise refusal("store_host", store_host, "a port that is not 0, which marks tombstones")
        if delay_ms is not None:
            as_int("delay_ms", delay_ms)

        def with_properties(finished: bytes) -> PendingRecord:
            made = self.new_record(
                topic,
                queue_id,
                body,
                finished,
                code,
                flag,
                sys_flag,
                born_timestamp_ms,
                born_host or store_host,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
            )
            if delay_ms is not None and topic == SCHEDULE_TOPIC:
                made.delay_ms = delay_ms
            return made

        if sys_flag & INNER_BATCH or INNER in properties:
            is_batch_topic = self._core.is_batch_topic(topic)
            order = make_order(
                topic, body, properties, sys_flag, with_properties, is_batch_topic=is_batch_topic
            )
            if order is not None:
                made, written = self._append_order(topic, queue_id, order, may_wait)
                return self._finish(topic, queue_id, made, written, store_host, durability)
        made = with_properties(properties)
        written = self._core.append(topic, queue_id, (made,), may_wait)
        return self._finish(topic, queue_id, made, written, store_host, durability)

    def ensured(self, appended: Appended[R]) -> R:
        """Returns the result of an append once it is durable.

        Raises:
            StoreFailedError: The disk failed, now or earlier.
        """
        if appended.until is not None:
            self.ensure(appended.until)
        return appended.result

    def put_records(
        self,
        topic: str,
        queue_id: int,
        records: Sequence[PendingRecord],
        durability: Durability | None,
        *,
        may_wait: bool = True,
    ) -> Appended[BatchResult]:
        """Appends records of one queue, all or none."""
        if not records:
            raise refusal("messages", [], "at least one message")
        for record in records:
            if INNER in record.properties:
                check_unordered(record.properties)
        durability = self._reached(durability)
        written = self._core.append(topic, check_queue_id(queue_id), records, may_wait)
        result = BatchResult(
            topic,
            queue_id,
            written.queue_offset,
            written.phy_offsets,
            sum([record.size_bytes for record in records]),
            written.store_timestamp_ms,
            self.store_host,
            durability,
        )
        return Appended(result, written.end_phy_offset if durability is Durability.SYNC else None)

    def new_records(
        self, topic: str, queue_id: int, messages: Sequence[NewMessage | bytes]
    ) -> list[PendingRecord]:
        """Returns the records of messages with properties as an application gives them.

        Raises:
            InvalidArgumentError: They are no sequence, or a message fits no record; the error has its index.
        """
        records: list[PendingRecord] = []
        for item in _checked_messages(messages):
            message = item if isinstance(item, NewMessage) else NewMessage(item)
            try:
                raw, code = encode_all_properties(message.tags, message.keys, message.properties)
                records.append(self.new_record(topic, queue_id, message.body, raw, code, message.flag))
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"messages[{len(records)}]: {error}", help=error.help) from error
        return records

    def raw_records(
        self,
        topic: str,
        queue_id: int,
        messages: Sequence[RawMessage],
        sys_flag: int,
        born_timestamp_ms: int | None,
        born_host: Host | None,
        reconsume_times: int,
    ) -> list[PendingRecord]:
        """Returns the records of messages with encoded properties, as brokers have them.

        Raises:
            MessageIllegalError: They are an inner batch, which is one message.
            InvalidArgumentError: A value has no place in a record.
        """
        if type(sys_flag) is not int:
            sys_flag = as_int("sys_flag", sys_flag, MIN_I32, MAX_I32)
        if born_host is not None:
            as_kind("born_host", Host, born_host)
        if sys_flag & INNER_BATCH:
            raise MessageIllegalError("an inner batch is one message", help="use append")
        raw = [
            as_kind(f"messages[{at}]", RawMessage, it) for at, it in enumerate(_checked_messages(messages))
        ]
        return [
            self.new_record(
                topic,
                queue_id,
                message.body,
                message.properties,
                _checked_tags_code(message.tags_code),
                message.flag,
                sys_flag,
                born_timestamp_ms,
                born_host,
                None,
                reconsume_times,
            )
            for message in raw
        ]

    def new_record(
        self,
        topic: str,
        queue_id: int,
        body: bytes | bytearray | memoryview,
        properties: bytes,
        code: int,
        flag: int,
        sys_flag: int = 0,
        born_timestamp_ms: int | None = None,
        born_host: Host | None = None,
        store_host: Host | None = None,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> PendingRecord:
        """Returns a record to append; the defaults are the store's own host and the time of the clock.

        Raises:
            InvalidNameError: The name of the topic or the number of the queue is not valid.
            MessageIllegalError: Body or properties are too large.
        """
        encoded_topic = _encode_topic(topic) if type(topic) is str else check_topic(topic).encode()
        check_queue_id(queue_id)
        size = len(body) if type(body) is bytes else memoryview(as_body("body", body)).nbytes
        if size > self.max_message_size_bytes:
            raise MessageIllegalError(
                f"the body has {size} bytes, at most {self.max_message_size_bytes}",
                help="send it in pieces, or open the store with a larger max_message_size_bytes",
            )
        return PendingRecord(
            encoded_topic,
            queue_id,
            body,
            properties,
            code,
            sys_flag,
            flag,
            self.clock.now_ms() if born_timestamp_ms is None else born_timestamp_ms,
            born_host or self.store_host,
            store_host or self.store_host,
            reconsume_times,
            prepared_transaction_offset,
            self.record_crc,
        )

    def _reached(self, durability: Durability | None) -> Durability:
        """Returns the durability that an append must reach; checked before the append changes anything."""
        if durability is None:
            return self.durability
        return durability if type(durability) is Durability else as_enum("durability", Durability, durability)

    def _append_order(
        self, topic: str, queue_id: int, order: Order, may_wait: bool
    ) -> tuple[PendingRecord, Written]:
        made: list[PendingRecord] = []

        def make(first: int, further: Sequence[int]) -> Sequence[PendingRecord]:
            made[:] = order.make(first, further)  # called again if another append took these offsets first
            return made

        written = self._core.append_order(topic, queue_id, replace(order, make=make), may_wait)
        return made[0], written

    def _finish(
        self,
        topic: str,
        queue_id: int,
        record: PendingRecord,
        written: Written,
        store_host: Host,
        durability: Durability,
    ) -> Appended[PutResult]:
        result = PutResult(
            topic,
            queue_id,
            written.queue_offset if record.takes_queue_offset else 0,
            written.phy_offsets[0],
            record.size_bytes,
            written.store_timestamp_ms,
            store_host,
            durability,
        )
        return Appended(result, written.end_phy_offset if durability is Durability.SYNC else None)


def _checked_tags_code(code: int) -> int:
    return code if type(code) is int and MIN_I64 <= code <= MAX_I64 else as_int("tags_code", code)


def _checked_messages(messages: Sequence[M]) -> Sequence[M]:
    """Returns messages; refuses a single body that was given instead of a sequence of messages."""
    if isinstance(messages, str | bytes | bytearray | memoryview) or not isinstance(messages, Iterable):
        raise refusal("messages", messages, "a sequence of messages", "put several in a list")
    return messages


@lru_cache(maxsize=4096)
def _encode_topic(topic: str) -> bytes:
    return check_topic(topic).encode()


Appends: TypeAlias = "Appender | Reader"
"""The appending side of a store; a reader refuses every append."""

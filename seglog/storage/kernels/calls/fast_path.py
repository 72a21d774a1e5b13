"""The fast path: puts of plain messages to queues that have room, with as few steps as possible.

A fast path has the ends of log and queues, and write windows of their files: memory up to the end of the
reserved space. It leaves a message that does not fit, is special or is wrong to the ordinary way, which
raises the right error, makes the room, and grants new windows. Both ways write the same bytes.

No process may cut the files of a locked store, but a process that ignores the lock can, and a write to a page
of a map behind the end of its file ends this process with SIGBUS. The ordinary way checks the lengths before
every write. A fast path checks them once in a millisecond, and before every SYNC put.
"""

from __future__ import annotations

import struct
import zlib
from asyncio import Future
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from seglog.clock import Clock
from seglog.storage.format.layout import I16, I32
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES
from seglog.storage.format.record import Host, encode_all_properties
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import CRC_MASK, HEADS, HOST_BITS, INNER_NAMES, MAGIC_V1
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.calls.bare_batch import encode_bare, encode_bare_units, publish_sizes
from seglog.storage.kernels.calls.tails import PythonLogTail, PythonQueueTail

R = TypeVar("R", bound=tuple[Any, ...])
B = TypeVar("B")
D = TypeVar("D")

Gathered: TypeAlias = tuple[
    str,
    bytes,
    int,
    str | None,
    str | None,
    dict[str, str] | None,
    int,
    Any,
    "Future[R | None]",
]
"""A gathered put, which is written together with others: the arguments of ``try_put``, and its future."""
Made: TypeAlias = "tuple[list[Future[R | None]], list[R | None]]"
"""The futures of puts that were written, and their results: None if memory for the result was short."""

_PACK_SIZE: Final = I32.pack
_PACK_UNIT_INTO: Final = CQ_UNIT.struct.pack_into
_CRC32: Final = zlib.crc32
_SEQUENCES: Final = (list, tuple)
_BARE: Final = {bytes}
_NEW_TUPLE: Final = tuple.__new__


@dataclass(frozen=True)
class FastPathOwner(Generic[R, B, D]):
    """The parts of a store that a fast path uses.

    Attributes:
        notify: Wakes the waiters of a topic and queue.
        ensure: Waits until the log below an offset is on the disk.
        waiting: The waiters; empty while no call waits.
        put_result: Class of the results of puts, a tuple of eight fields.
        batch_result: Class of the results of batches; takes eight arguments.
        new_message: Class of messages of :meth:`MessageStore.put_batch` that have more than a body.
        raw_message: Class of messages of :meth:`MessageStore.append_batch`, a tuple of four fields.
        store_host: The broker's address in records.
        record_crc: Whether records carry ``__CRC32#``.
        max_body_bytes: Longest body.
        durability: The durability of calls that give none.
        sync: The durability that waits for the disk.
        clock: Stamps the messages.
        has_system_clock: Whether ``clock`` is the machine's clock, which the kernel may read itself.
        lock: The append lock.
        gathered: Puts that are written together later, in the order of the calls. While there is one, no
            other call may append before it: each call is left to the ordinary way, which first calls
            :meth:`PythonFastPath.try_puts`.
    """

    notify: Callable[[str, int], None]
    ensure: Callable[[int], None]
    waiting: Mapping[tuple[str, int], object]
    put_result: type[R]
    batch_result: Callable[[str, int, int, list[int], int, int, Host, D], B]
    new_message: type
    raw_message: type
    store_host: Host
    record_crc: bool
    max_body_bytes: int
    durability: D
    sync: D
    clock: Clock
    has_system_clock: bool
    lock: AbstractContextManager[bool]
    gathered: list[Gathered[R]]


class _Queue:
    """A queue of a fast path, with the bytes that the records of all its messages share."""

    __slots__ = ("bare_bytes", "ending", "tail", "topic_field")

    def __init__(self, topic: str, tail: PythonQueueTail, head_bytes: int, crc_bytes: int) -> None:
        self.tail = tail
        name = topic.encode()
        self.topic_field = bytes((len(name),)) + name
        self.ending = self.topic_field + I16.pack(crc_bytes)
        self.bare_bytes = head_bytes + len(self.ending) + crc_bytes


class PythonFastPath(Generic[R, B, D]):
    """Puts messages.

    Attributes:
        lacks_window: Whether an append was left to the ordinary way for lack of a window; the code that
            grants windows sets it to False.
        gathered: The gathered puts of the owner.

    Thread rule: any thread.
    """

    def __init__(self, tail: PythonLogTail, owner: FastPathOwner[R, B, D], /) -> None:
        self._tail = tail
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._is_closed = False
        self.lacks_window = False
        self._lock = owner.lock
        self.gathered = owner.gathered
        self._now_ms = owner.clock.now_ms
        self._notify = owner.notify
        self._waiting = owner.waiting
        self._result = owner.put_result
        self._batch_result = owner.batch_result
        self._usual_durability = owner.durability
        self._sync = owner.sync
        self._durability_type = type(owner.sync)
        self._max_body_bytes = owner.max_body_bytes
        self._record_crc = owner.record_crc
        self._crc_bytes = props.CRC_PROPERTY_BYTES if owner.record_crc else 0
        self._host = owner.store_host
        self._address, self._port = owner.store_host.address, owner.store_host.port
        self._sys_flag = HOST_BITS if owner.store_host.is_ipv6 else 0
        head = self._head = HEADS[self._sys_flag]
        self._head_bytes = head.size_bytes
        self._pack_head = head.part("magic", "body_bytes").pack

    def add(self, topic: str, queue_id: int, tail: PythonQueueTail, /) -> None:
        """Serves a queue from now on, while its windows are granted; only for topics without own rules."""
        self._queues[topic, queue_id] = _Queue(topic, tail, self._head_bytes, self._crc_bytes)

    def forget(self) -> None:
        """Stops serving all queues until they are added again."""
        self._queues.clear()

    def close(self) -> None:
        """Leaves everything to the ordinary way from now on."""
        self._is_closed = True
        self._queues.clear()

    def try_put(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        queue_id: int,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        durability: D | None,
        /,
    ) -> R | None:
        """Appends one message as :meth:`MessageStore.put` does, but waits for nothing.

        Returns:
            None if the ordinary way must do it; nothing was done.
        """
        return (
            None
            if self.gathered
            else self._try_put(topic, body, queue_id, tags, keys, properties, flag, durability)
        )

    def try_puts(self, made: list[Made[R]], /) -> bool:
        """Writes as many gathered puts as it can, in their order, and removes them from ``gathered``.

        The puts wait for nothing; the caller must sync them together.

        Args:
            made: Gets their futures and results as its last element.

        Returns:
            Whether it wrote any; otherwise the ordinary way must write the first one.
        """
        futures: list[Future[R | None]] = []
        results: list[R | None] = []
        try:
            for put in self.gathered:
                result = self._try_put(*put[:8])
                if result is None:
                    break
                futures.append(put[8])
                results.append(result)
        finally:  # after an interrupt too: a put that was written must not be written again
            del self.gathered[: len(results)]
            if results:
                made.append((futures, results))
        return bool(results)

    def _try_put(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        queue_id: int,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        durability: D | None,
    ) -> R | None:
        try:
            queue = self._queues.get((topic, queue_id))
        except TypeError:  # a topic that cannot be hashed; the ordinary way raises the right error
            return None
        reached = self._usual_durability if durability is None else durability
        if (
            queue is None
            or type(body) is not bytes
            or len(body) > self._max_body_bytes
            or type(queue_id) is not int
            or type(flag) is not int
            or type(reached) is not self._durability_type
        ):
            self.lacks_window |= queue is None
            return None
        size, ending, code = queue.bare_bytes + len(body), queue.ending, 0
        if not (tags is keys is properties is None):
            raw, code = encode_all_properties(tags, keys, properties)
            if not self._are_usual(raw):
                return None
            size += len(raw)
            ending = queue.topic_field + I16.pack(len(raw) + self._crc_bytes) + raw
        is_sync = reached is self._sync
        body_crc = _CRC32(body) & CRC_MASK  # before the lock: it does not depend on the place
        tail, log, is_made = queue.tail, self._tail, False
        with self._lock:
            now_ms = self._now_ms()
            at, queue_offset = log.end_phy_offset, tail.max_offset
            records, units = log.window, tail.window
            end, unit_at = at + size, queue_offset * CQ_UNIT_BYTES
            # Room in both windows, no file to create ahead, the store open, and both files not cut: checked
            # in this millisecond already, or now.
            if (
                end <= records.end
                and unit_at + CQ_UNIT_BYTES <= units.end
                and at < log.wake_allocator_at
                and not self._is_closed
                and (
                    (records.checked_ms == units.checked_ms == now_ms and not is_sync)
                    or (records.is_whole(now_ms) and units.is_whole(now_ms))
                )
            ):
                try:
                    head = self._pack_head(
                        MAGIC_V1,
                        body_crc,
                        queue_id,
                        flag,
                        queue_offset,
                        at,
                        self._sys_flag,
                        now_ms,
                        self._address,
                        self._port,
                        now_ms,
                        self._address,
                        self._port,
                        0,
                        0,
                        len(body),
                    )
                    record = b"".join((head, body, ending))
                    if self._record_crc:
                        record += props.crc_property(_CRC32(record, _CRC32(_PACK_SIZE(size))) & CRC_MASK)
                    # The size last, and the unit after the record: readers see nothing or a whole message.
                    records.write(at, record, _PACK_SIZE(size), via_pwrite=is_sync)
                    _PACK_UNIT_INTO(units.memory, unit_at - units.first, at, size, code)
                    # The tails last, the queue's before the log's: readers take them without the lock.
                    is_made = True
                    self._move_whole(tail, queue_offset + 1, at, end, now_ms, ending is not queue.ending)
                except (struct.error, OSError):
                    if is_made:
                        raise
                    # No tail has moved: the ordinary way writes over these bytes, or raises the error.
        if not is_made:
            self.lacks_window = True
            return None
        if self._waiting:
            self._notify(topic, queue_id)
        return _NEW_TUPLE(
            self._result, (topic, queue_id, queue_offset, at, size, now_ms, self._host, reached)
        )

    def try_put_batch(
        self, topic: str, messages: Sequence[Any], queue_id: int, durability: D | None, /
    ) -> B | None:
        """Appends bare messages as :meth:`MessageStore.put_batch` does, but waits for nothing.

        Returns:
            None if the ordinary way must do it; nothing was done.
        """
        if self.gathered:
            return None
        try:
            queue = self._queues.get((topic, queue_id))
        except TypeError:
            return None
        reached = self._usual_durability if durability is None else durability
        if queue is None:
            self.lacks_window = True
            return None
        if (
            type(reached) is not self._durability_type
            or self._record_crc
            or type(queue_id) is not int
            or type(messages) not in _SEQUENCES
            or set(map(type, messages)) != _BARE
            or max(map(len, messages)) > self._max_body_bytes
        ):
            return None
        made = self._append_bare(queue, queue_id, messages, is_sync=reached is self._sync)
        if made is None:
            self.lacks_window = True
            return None
        queue_offset, bounds, now_ms = made
        if self._waiting:
            self._notify(topic, queue_id)
        size_bytes = bounds[-1] - bounds[0]
        return self._batch_result(
            topic, queue_id, queue_offset, bounds[:-1], size_bytes, now_ms, self._host, reached
        )

    def try_append(self, *_arguments: object) -> R | None:
        """Appends one message as :meth:`MessageStore.append` does, but waits for nothing; natively only.

        Returns:
            None: in Python this would cost as much as the ordinary way.
        """
        return None

    def try_append_batch(self, *_arguments: object) -> B | None:
        """Appends messages as :meth:`MessageStore.append_batch` does; as :meth:`try_append`."""
        return None

    def _append_bare(
        self, queue: _Queue, queue_id: int, bodies: Sequence[bytes], *, is_sync: bool
    ) -> tuple[int, list[int], int] | None:
        """Appends bodies without properties if there is room for all of them.

        Returns:
            The first queue offset, the start of each record and the end of the last one, and the store time;
            None if the ordinary way must do it.
        """
        size = len(bodies) * queue.bare_bytes + sum(map(len, bodies))
        tail, log = queue.tail, self._tail
        with self._lock:
            now_ms = self._now_ms()
            at, queue_offset = log.end_phy_offset, tail.max_offset
            records, units = log.window, tail.window
            unit_at, unit_end = queue_offset * CQ_UNIT_BYTES, (queue_offset + len(bodies)) * CQ_UNIT_BYTES
            if not (
                at + size <= records.end
                and unit_end <= units.end
                and at < log.wake_allocator_at
                and not self._is_closed
                and (
                    (records.checked_ms == units.checked_ms == now_ms and not is_sync)
                    or (records.is_whole(now_ms) and units.is_whole(now_ms))
                )
            ):
                return None
            encoded, bounds, sizes = encode_bare(
                self._head, self._bare_head(queue_id, now_ms), queue.ending, bodies, at, queue_offset
            )
            # The sizes last, in order: a kill in between leaves whole records and zeros behind them.
            memory = records.memory[at - records.first : at - records.first + size]
            memory[:] = encoded
            publish_sizes(memory, sizes)
            units.memory[unit_at - units.first : unit_end - units.first] = encode_bare_units(bounds, sizes)
            places: list[int] = bounds.tolist()
            self._move_whole(tail, queue_offset + len(bodies), places[-2], places[-1], now_ms, False)
        return queue_offset, places, now_ms

    def _move_whole(
        self, tail: PythonQueueTail, max_offset: int, last: int, end: int, now_ms: int, has_keys: bool
    ) -> None:
        """Moves the tails of a queue and of the log, both or none, also if an interrupt comes between."""
        try:
            self._move(tail, max_offset, last, end, now_ms, has_keys)
        except BaseException:
            self._move(tail, max_offset, last, end, now_ms, has_keys)
            raise

    def _move(
        self, tail: PythonQueueTail, max_offset: int, last: int, end: int, now_ms: int, has_keys: bool
    ) -> None:
        log = self._tail
        tail.max_phy_offset = end
        tail.max_offset = max_offset
        if has_keys:
            log.keyed_end = end
        log.last_phy_offset = last
        log.last_store_ms = now_ms
        if log.newest_store_ms < now_ms:  # noqa: PLR1730 - a call of max takes three times as long
            log.newest_store_ms = now_ms
        log.end_phy_offset = end

    def _bare_head(self, queue_id: int, now_ms: int) -> bytes:
        stamp = now_ms, self._address, self._port
        return self._head.struct.pack(
            0, MAGIC_V1, 0, queue_id, 0, 0, 0, self._sys_flag, *stamp, *stamp, 0, 0, 0
        )

    def _are_usual(self, properties: bytes) -> bool:
        """Returns whether properties are stored unchanged, and need no queue offsets."""
        return (
            len(properties) + self._crc_bytes <= props.MAX_PROPERTIES_BYTES
            and properties.find(INNER_NAMES) < 0
            and properties.find(props.CRC_NAME) < 0
            and (self._record_crc or not props.look_torn(properties))
        )


FastPath: TypeAlias = PythonFastPath
if KERNELS == NATIVE and not TYPE_CHECKING:
    from seglog.storage.kernels import _native

    FastPath = _native.FastPath

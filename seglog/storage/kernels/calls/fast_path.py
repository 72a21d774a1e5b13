"""The fast path: puts of plain messages to queues that have room, with no step more than they need.

A fast path knows where log and queues end, and has write windows of their files granted: memory up to where
there is space. What does not fit, and what is special or wrong, it leaves to the ordinary way, which raises
what is right, makes the room, and grants the windows anew. One behaviour, two speeds.

No process may cut the files of a store that is locked, but one that does not know of the lock can, and
a write to a page of a map after the end of its file ends the process with SIGBUS. The ordinary
way asks for the lengths before every write; a fast path does once in a millisecond, and before every write
that is to be on the disk when it is acknowledged.
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
"""A put that waits for others to be made with it: the arguments of ``try_put``, and its result to come."""
Made: TypeAlias = "tuple[list[Future[R | None]], list[R | None]]"
"""The futures of puts that were made, and what each is to have: None where memory was short for it."""

_PACK_SIZE: Final = I32.pack
_PACK_UNIT_INTO: Final = CQ_UNIT.struct.pack_into
_CRC32: Final = zlib.crc32
_SEQUENCES: Final = (list, tuple)
_BARE: Final = {bytes}
_NEW_TUPLE: Final = tuple.__new__


@dataclass(frozen=True)
class FastPathOwner(Generic[R, B, D]):
    """What a fast path works for.

    Attributes:
        notify: Wakes who waits for a topic and queue.
        ensure: Waits until the log below an offset is on the disk.
        waiting: Empty while no call waits.
        put_result: What puts return, a tuple of eight fields.
        batch_result: What batches return; takes eight arguments.
        new_message: A message of :meth:`MessageStore.put_batch` that is more than a body.
        raw_message: A message of :meth:`MessageStore.append_batch`, a tuple of four fields.
        store_host: What records name as their broker.
        record_crc: Whether records carry ``__CRC32#``.
        max_body_bytes: Longest body.
        durability: What is reached unless the call says otherwise.
        sync: The durability that is waited for.
        clock: Stamps the messages.
        has_system_clock: Whether that is the machine's clock, which may be read in other ways.
        lock: The append lock.
        gathered: Puts that wait to be made together, in the order of the calls; who holds back takes none
            out. While there is one, no other call appends before it: each is left to the ordinary way,
            which has :meth:`PythonFastPath.try_puts` called first.
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
    """A queue of a fast path: what the records of all its messages share."""

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
        lacks_window: Whether an append was left to the ordinary way that a window would have spared it; who
            grants windows says False.
        gathered: That of the owner.

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
        """Serves a queue from now on, whenever its windows are granted; of no topic with rules of its own."""
        self._queues[topic, queue_id] = _Queue(topic, tail, self._head_bytes, self._crc_bytes)

    def forget(self) -> None:
        """Serves no queue any more until it is added again."""
        self._queues.clear()

    def close(self) -> None:
        """Leaves everything to the ordinary way from now on."""
        self._is_closed = True
        self._queues.clear()

    def try_put(
        self,
        topic: str,
        body: bytes | memoryview,
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
        """Makes puts that were gathered, in their order, as many as it can in one go, and takes them out.

        They wait for nothing, and are to be brought to the disk together.

        Args:
            made: Gets their futures and results as its last element.

        Returns:
            Whether there was any; otherwise the ordinary way must make the first one.
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
        finally:
            del self.gathered[: len(results)]
            if results:
                made.append((futures, results))
        return bool(results)

    def _try_put(
        self,
        topic: str,
        body: bytes | memoryview,
        queue_id: int,
        tags: str | None,
        keys: str | Iterable[str] | None,
        properties: Mapping[str, str] | None,
        flag: int,
        durability: D | None,
    ) -> R | None:
        try:
            queue = self._queues.get((topic, queue_id))
        except TypeError:  # a topic of another type; the ordinary way names it
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
        body_crc = _CRC32(body) & CRC_MASK
        tail, log, is_made = queue.tail, self._tail, False
        with self._lock:
            now_ms = self._now_ms()
            at, queue_offset = log.end_phy_offset, tail.max_offset
            records, units = log.window, tail.window
            end, unit_at = at + size, queue_offset * CQ_UNIT_BYTES
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
                    # The size last, and the unit behind the record: readers see nothing or all of it.
                    records.write(at, record, _PACK_SIZE(size), via_pwrite=is_sync)
                    _PACK_UNIT_INTO(units.memory, unit_at - units.first, at, size, code)
                    tail.max_phy_offset = end
                    tail.max_offset = queue_offset + 1
                    if ending is not queue.ending:
                        log.keyed_end = end
                    log.last_phy_offset = at
                    log.last_store_ms = now_ms
                    if log.newest_store_ms < now_ms:  # noqa: PLR1730 - a call of max takes three times as long
                        log.newest_store_ms = now_ms
                    log.end_phy_offset = end
                    is_made = True
                except (struct.error, OSError):
                    pass
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
            None: what brokers have costs as much here as in the ordinary way.
        """
        return None

    def try_append_batch(self, *_arguments: object) -> B | None:
        """Appends messages as :meth:`MessageStore.append_batch` does; as :meth:`try_append`."""
        return None

    def _append_bare(
        self, queue: _Queue, queue_id: int, bodies: Sequence[bytes], *, is_sync: bool
    ) -> tuple[int, list[int], int] | None:
        """Appends bodies without properties if there is room for all; returns where and when.

        Returns:
            The first queue offset, where each record begins and the last one ends, and the store time; None
            if the ordinary way must do it.
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
            # The sizes last, in order: a kill meanwhile leaves whole records and nothing behind them.
            memory = records.memory[at - records.first : at - records.first + size]
            memory[:] = encoded
            publish_sizes(memory, sizes)
            units.memory[unit_at - units.first : unit_end - units.first] = encode_bare_units(bounds, sizes)
            places: list[int] = bounds.tolist()
            tail.max_phy_offset = places[-1]
            tail.max_offset = queue_offset + len(bodies)
            log.last_phy_offset = places[-2]
            log.last_store_ms = now_ms
            log.newest_store_ms = max(log.newest_store_ms, now_ms)
            log.end_phy_offset = places[-1]
        return queue_offset, places, now_ms

    def _bare_head(self, queue_id: int, now_ms: int) -> bytes:
        stamp = now_ms, self._address, self._port
        return self._head.struct.pack(
            0, MAGIC_V1, 0, queue_id, 0, 0, 0, self._sys_flag, *stamp, *stamp, 0, 0, 0
        )

    def _are_usual(self, properties: bytes) -> bool:
        """Returns whether properties are stored as they are, and need no offsets."""
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

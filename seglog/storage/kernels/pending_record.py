"""Encodes new records.

All bytes that do not depend on the place in the log are encoded before the append lock is taken, so a
:class:`PendingRecord` has its size. Under the lock :meth:`PendingRecord.write` writes queue offset, physical
offset and store time, and then the record CRC, because it covers them.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog.arguments import MAX_I32, MAX_I64, MIN_I32, MIN_I64, as_body, as_bytes, as_int
from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.storage.format.layout import I16, I64
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record import IPV4_BYTES, Host
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.record.record import (
    CRC_MASK,
    FILLER,
    HEAD_V4,
    HEADS,
    HOST_BITS,
    MAGIC_BLANK,
    as_i64,
    topic_field,
    unit_tags_code,
)
from seglog.storage.kernels import KERNELS, NATIVE

_PLACE: Final = HEAD_V4.part("queue_offset", "phy_offset")
"""Queue offset and physical offset, which are side by side."""
_PLACE_AT: Final = HEAD_V4.offsets["queue_offset"]
_FORMS: Final = {
    bits | transaction: (
        layout.struct,
        layout.offsets["store_timestamp_ms"],
        layout.size_bytes,
        flags.takes_queue_offset(transaction),
    )
    for bits, layout in HEADS.items()
    for transaction in range(0, flags.TRANSACTION_MASK + 1, flags.TRANSACTION_PREPARED)
}
_FORM_BITS: Final = HOST_BITS | flags.TRANSACTION_MASK
_SCHEDULE_TOPIC: Final = SCHEDULE_TOPIC.encode()


class _Topic(NamedTuple):
    """The bytes that all records of a topic share.

    Attributes:
        field: The length of the topic, and the topic.
        is_delay: Whether the store time decides the codes of its queue units.
    """

    magic: int
    field: bytes
    is_delay: bool


@lru_cache(maxsize=4096)
def _encode_topic(topic: bytes) -> _Topic:
    return _Topic(*topic_field(topic), topic == _SCHEDULE_TOPIC)


class PythonPendingRecord:
    """A record without its place and time.

    Attributes:
        size_bytes: Size of the finished record.
        properties: Its stored properties, without the record CRC.
        takes_queue_offset: False for PREPARED and ROLLBACK records.
        delay_ms: Its wait in the delay topic, if its level does not have it.
    """

    __slots__ = (
        "_crc",
        "_is_delay",
        "_record",
        "_store_time_at",
        "_tags_code",
        "delay_ms",
        "properties",
        "size_bytes",
        "takes_queue_offset",
    )

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        body: bytes | bytearray | memoryview,
        properties: bytes,
        tags_code: int,
        sys_flag: int,
        flag: int,
        born_timestamp_ms: int,
        born_host: Host,
        store_host: Host,
        reconsume_times: int,
        prepared_transaction_offset: int,
        record_crc: bool,
    ) -> None:
        """Encodes all fields that do not depend on the place in the log; copies the body.

        Raises:
            MessageIllegalError: The properties, with the record CRC, are longer than 32767 bytes, or would
                look like damage.
            InvalidArgumentError: A number does not fit its field.
        """
        if type(body) is not bytes:
            body = _as_bytes(as_body("body", body))
        if not (
            type(queue_id) is int
            and type(flag) is int
            and type(sys_flag) is int
            and type(tags_code) is int
            and type(born_timestamp_ms) is int
            and type(reconsume_times) is int
            and type(prepared_transaction_offset) is int
        ):
            queue_id = as_int("queue_id", queue_id, MIN_I32, MAX_I32)
            flag = as_int("flag", flag, MIN_I32, MAX_I32)
            sys_flag = as_int("sys_flag", sys_flag, MIN_I32, MAX_I32)
            tags_code = as_int("tags_code", tags_code)
            born_timestamp_ms = as_int("born_timestamp_ms", born_timestamp_ms)
            reconsume_times = as_int("reconsume_times", reconsume_times, MIN_I32, MAX_I32)
            prepared_transaction_offset = as_int("prepared_transaction_offset", prepared_transaction_offset)
        if type(properties) is not bytes:
            properties = as_bytes("properties", properties)
        if properties:
            properties = _own_properties(properties, record_crc=record_crc)
        crc_bytes = props.CRC_PROPERTY_BYTES if record_crc else 0
        properties_size = len(properties) + crc_bytes
        if properties_size > props.MAX_PROPERTIES_BYTES:
            raise MessageIllegalError(
                f"properties take {properties_size} bytes"
                f"{f' with the {crc_bytes} of __CRC32#' if crc_bytes else ''},"
                f" at most {props.MAX_PROPERTIES_BYTES}",
                help="move large values into the body",
            )
        sys_flag &= ~HOST_BITS
        if len(born_host.address) != IPV4_BYTES:
            sys_flag |= flags.BORN_HOST_V6
        if len(store_host.address) != IPV4_BYTES:
            sys_flag |= flags.STORE_HOST_V6
        head, self._store_time_at, head_size, self.takes_queue_offset = _FORMS[sys_flag & _FORM_BITS]
        magic, topic_field, self._is_delay = _encode_topic(topic)
        tail = topic_field + I16.pack(properties_size) + properties
        body_size = len(body)
        self.size_bytes = head_size + body_size + len(tail) + crc_bytes
        try:
            packed = head.pack(
                self.size_bytes,
                magic,
                zlib.crc32(body) & CRC_MASK,
                queue_id,
                flag,
                0,
                0,
                sys_flag,
                born_timestamp_ms,
                born_host.address,
                born_host.port,
                0,
                store_host.address,
                store_host.port,
                reconsume_times,
                prepared_transaction_offset,
                body_size,
            )
        except struct.error as error:
            for name, number, low, high in (
                ("flag", flag, MIN_I32, MAX_I32),
                ("sys_flag", sys_flag, MIN_I32, MAX_I32),
                ("born_timestamp_ms", born_timestamp_ms, MIN_I64, MAX_I64),
                ("reconsume_times", reconsume_times, MIN_I32, MAX_I32),
                ("prepared_transaction_offset", prepared_transaction_offset, MIN_I64, MAX_I64),
            ):
                as_int(name, number, low, high)
            raise InvalidArgumentError(f"a number of the message does not fit its field: {error}") from error
        self._record = bytearray().join((packed, body, tail))
        self._crc = record_crc
        self._tags_code = tags_code
        self.delay_ms: int | None = None
        self.properties = properties

    def unit_tags_code(self, store_timestamp_ms: int) -> int:
        """Returns the tags code for the queue unit; in the delay topic it depends on the store time."""
        if self.delay_ms is not None:
            return as_i64(store_timestamp_ms + self.delay_ms)
        if self._is_delay:
            return unit_tags_code(_SCHEDULE_TOPIC, self.properties, store_timestamp_ms)
        return self._tags_code

    def write(
        self, buffer: memoryview, at: int, queue_offset: int, phy_offset: int, store_timestamp_ms: int
    ) -> None:
        """Writes the finished record to ``buffer[at : at + size_bytes]``.

        The size field is written last: a reader that follows the log in memory sees either no record or a
        whole one.
        """
        record = self._record
        _PLACE.pack_into(record, _PLACE_AT, queue_offset, phy_offset)
        I64.pack_into(record, self._store_time_at, store_timestamp_ms)
        end = at + len(record)
        if self._crc:
            buffer[end : at + self.size_bytes] = props.crc_property(zlib.crc32(record) & CRC_MASK)
        buffer[at + 4 : end] = record[4:]
        buffer[at : at + 4] = record[:4]


def _own_properties(properties: bytes, *, record_crc: bool) -> bytes:
    """Returns the properties to store, without a record CRC, which only this module may write."""
    properties = props.without_crc_property(properties)
    if record_crc:
        return properties if properties.endswith(b"\x02") or not properties else properties + b"\x02"
    if props.look_torn(properties) or props.ends_with_record_crc(properties):
        raise MessageIllegalError(
            "properties must not hold 8 NUL bytes in a row, nor end with one, nor with a name in __CRC32# and"
            " ten bytes: without a record CRC damage looks like that",
            help="encode binary values, for example as base64, or open the store with record_crc=True",
        )
    return properties


def _as_bytes(body: bytes | bytearray | memoryview) -> bytes | memoryview:
    """Returns the body as a run of single bytes, for a view of items of any size."""
    if isinstance(body, bytes):
        return body
    view = memoryview(body)
    return view.cast("B") if view.c_contiguous else view.tobytes()


def filler(rest_bytes: int) -> bytes:
    """Returns the 8 bytes that end a segment file whose last ``rest_bytes`` hold no record."""
    return FILLER.struct.pack(rest_bytes, MAGIC_BLANK)


PendingRecord: TypeAlias = PythonPendingRecord
"""The class in use. The native one has the same positional parameters and leaves unusual values to Python."""
if KERNELS == NATIVE and not TYPE_CHECKING:
    from seglog.storage.kernels import _native

    PendingRecord = _native.PendingRecord

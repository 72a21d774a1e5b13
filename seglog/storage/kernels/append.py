"""Makes the bytes of new records.

What does not depend on the place in the log is computed before the append lock is taken: a
:class:`Draft` knows its size. Inside the lock :meth:`Draft.write` fills in queue offset, physical offset
and store time, and the record CRC last, because it covers them.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.storage.format import properties as props
from seglog.storage.format import sys_flag as flags
from seglog.storage.format.host import Host
from seglog.storage.format.layout import Field, Layout
from seglog.storage.format.names import MAX_TOPIC_BYTES
from seglog.storage.format.record import (
    CRC_MASK,
    FILLER,
    HEAD_V4,
    HEADS,
    HOST_BITS,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    TORN_NULS,
    unit_tags_code,
)

_I16: Final = Layout("", "", (Field("n", "i16", "", ""),)).struct
_I64: Final = Layout("", "", (Field("n", "i64", "", ""),)).struct
_PLACE: Final = Layout("", "", HEAD_V4.fields[5:7]).struct
"""Queue offset and physical offset, which lie side by side."""
_PLACE_AT: Final = HEAD_V4.offsets["queue_offset"]
_STORE_TIME_AT: Final = {bits: layout.offsets["store_timestamp_ms"] for bits, layout in HEADS.items()}


class Draft:
    """A record that still lacks its place and time.

    Attributes:
        size_bytes: Of the finished record.
        properties: As they are stored, without the record CRC.
        takes_queue_offset: False for PREPARED and ROLLBACK records.
    """

    __slots__ = (
        "_body",
        "_crc",
        "_head",
        "_store_time_at",
        "_tail",
        "_topic",
        "properties",
        "queue_id",
        "size_bytes",
        "takes_queue_offset",
    )

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        body: bytes | memoryview,
        properties: bytes,
        *,
        sys_flag: int,
        flag: int,
        born_timestamp_ms: int,
        born_host: Host,
        store_host: Host,
        reconsume_times: int,
        prepared_transaction_offset: int,
        record_crc: bool,
    ) -> None:
        """Prepares everything that the place in the log does not change.

        Raises:
            MessageIllegalError: The properties are longer than 32767 bytes with what the CRC needs, or would
                look like those of a torn write.
            InvalidArgumentError: A number does not fit its field.
        """
        body = _as_bytes(body)
        properties = props.without_crc_property(properties)
        if record_crc and properties and properties[-1] != props.ENTRY_END:
            properties += b"\x02"
        if not record_crc and TORN_NULS in properties:
            raise MessageIllegalError(
                f"properties must not hold {len(TORN_NULS)} NUL bytes in a row: without __CRC32# a torn write"
                " looks like that",
                help="encode binary values, for example as base64, or open the store with record_crc=True",
            )
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
        if born_host.is_ipv6:
            sys_flag |= flags.BORN_HOST_V6
        if store_host.is_ipv6:
            sys_flag |= flags.STORE_HOST_V6
        head = HEADS[sys_flag & HOST_BITS]
        long_topic = len(topic) > MAX_TOPIC_BYTES
        topic_size = _I16.pack(len(topic)) if long_topic else bytes((len(topic),))
        self._tail = topic_size + topic + _I16.pack(properties_size) + properties
        self._topic = topic
        self.properties = properties
        self._body = body
        self._crc = record_crc
        self._store_time_at = _STORE_TIME_AT[sys_flag & HOST_BITS]
        self.queue_id = queue_id
        self.takes_queue_offset = flags.takes_queue_offset(sys_flag)
        self.size_bytes = head.size_bytes + len(body) + len(self._tail) + crc_bytes
        try:
            packed = head.struct.pack(
                self.size_bytes,
                MAGIC_V2 if long_topic else MAGIC_V1,
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
                len(body),
            )
        except struct.error as error:
            raise InvalidArgumentError(f"a number of the message does not fit its field: {error}") from error
        self._head = bytearray(packed)

    def unit_tags_code(self, store_timestamp_ms: int) -> int:
        """Returns the code for the queue unit, worked out from topic and properties."""
        return unit_tags_code(self._topic, self.properties, store_timestamp_ms)

    def write(
        self, buffer: memoryview, at: int, queue_offset: int, phy_offset: int, store_timestamp_ms: int
    ) -> None:
        """Writes the finished record to ``buffer[at : at + size_bytes]``.

        The size field goes in last: a reader that follows the log in memory sees either no record or a
        whole one.
        """
        head = self._head
        _PLACE.pack_into(head, _PLACE_AT, queue_offset, phy_offset)
        _I64.pack_into(head, self._store_time_at, store_timestamp_ms)
        body = self._body
        body_at = at + len(head)
        tail_at = body_at + len(body)
        tail_end = tail_at + len(self._tail)
        buffer[body_at:tail_at] = body
        buffer[tail_at:tail_end] = self._tail
        if self._crc:
            crc = zlib.crc32(head)
            crc = zlib.crc32(buffer[body_at:tail_end], crc) & CRC_MASK
            buffer[tail_end : at + self.size_bytes] = props.CRC_NAME + props.crc_digits(crc) + b"\x02"
        buffer[at + 4 : body_at] = head[4:]
        buffer[at : at + 4] = head[:4]


def _as_bytes(body: bytes | memoryview) -> bytes | memoryview:
    """Returns the body as a run of single bytes, whatever items a view of it has."""
    if not isinstance(body, memoryview):
        return body
    return body.cast("B") if body.c_contiguous else body.tobytes()


def filler(rest_bytes: int) -> bytes:
    """Returns the 8 bytes that end a segment file whose last ``rest_bytes`` hold no record."""
    return FILLER.struct.pack(rest_bytes, MAGIC_BLANK)

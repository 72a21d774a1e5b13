"""Makes the bytes of new records.

What does not depend on the place in the log is computed before the append lock is taken: a
:class:`Draft` knows its size. Inside the lock :meth:`Draft.write` fills in queue offset, physical offset
and store time, and the record CRC last, because it covers them.
"""

from __future__ import annotations

import zlib
from typing import Final

from seglog.errors import MessageIllegalError
from seglog.storage.format import properties as props
from seglog.storage.format import sys_flag as flags
from seglog.storage.format.host import Host
from seglog.storage.format.layout import Field, Layout
from seglog.storage.format.names import MAX_TOPIC_BYTES
from seglog.storage.format.record import (
    CRC_MASK,
    FILLER,
    HEADS,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    unit_tags_code,
)

_I16: Final = Layout("", "", (Field("n", "i16", "", ""),)).struct


class Draft:
    """A record that still lacks its place and time.

    Attributes:
        size_bytes: Of the finished record.
        properties: As they are stored, without the record CRC.
        takes_queue_offset: False for PREPARED and ROLLBACK records.
    """

    __slots__ = (
        "_body",
        "_body_crc",
        "_born",
        "_crc",
        "_flag",
        "_head",
        "_magic",
        "_prepared_transaction_offset",
        "_reconsume_times",
        "_store_host",
        "_sys_flag",
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
            MessageIllegalError: The properties are longer than 32767 bytes with what the CRC needs.
        """
        if record_crc:
            properties = props.without_crc_property(properties)
            if properties and properties[-1] != props.ENTRY_END:
                properties += b"\x02"
        crc_bytes = props.CRC_PROPERTY_BYTES if record_crc else 0
        properties_size = len(properties) + crc_bytes
        if properties_size > props.MAX_PROPERTIES_BYTES:
            raise MessageIllegalError(
                f"properties take {properties_size} bytes"
                f"{f' with the {crc_bytes} of __CRC32#' if crc_bytes else ''},"
                f" at most {props.MAX_PROPERTIES_BYTES}",
                help="move large values into the body",
            )
        sys_flag &= ~flags.BORN_HOST_V6 & ~flags.STORE_HOST_V6
        if born_host.is_ipv6:
            sys_flag |= flags.BORN_HOST_V6
        if store_host.is_ipv6:
            sys_flag |= flags.STORE_HOST_V6
        head = HEADS[sys_flag & (flags.BORN_HOST_V6 | flags.STORE_HOST_V6)]
        long_topic = len(topic) > MAX_TOPIC_BYTES
        topic_size = _I16.pack(len(topic)) if long_topic else bytes((len(topic),))
        self._head = head.struct
        self._magic = MAGIC_V2 if long_topic else MAGIC_V1
        self._tail = topic_size + topic + _I16.pack(properties_size) + properties
        self._topic = topic
        self.properties = properties
        self._body = body
        self._body_crc = zlib.crc32(body) & CRC_MASK if body else 0
        self._born = (born_timestamp_ms, born_host.address, born_host.port)
        self._store_host = store_host
        self._flag = flag
        self._sys_flag = sys_flag
        self._reconsume_times = reconsume_times
        self._prepared_transaction_offset = prepared_transaction_offset
        self._crc = record_crc
        self.queue_id = queue_id
        self.takes_queue_offset = flags.takes_queue_offset(sys_flag)
        self.size_bytes = head.size_bytes + len(body) + len(self._tail) + crc_bytes

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
        born_timestamp, born_address, born_port = self._born
        body = self._body
        head_size = self._head.size
        body_at = at + head_size
        tail_at = body_at + len(body)
        tail_end = tail_at + len(self._tail)
        head = self._head.pack(
            self.size_bytes,
            self._magic,
            self._body_crc,
            self.queue_id,
            self._flag,
            queue_offset,
            phy_offset,
            self._sys_flag,
            born_timestamp,
            born_address,
            born_port,
            store_timestamp_ms,
            self._store_host.address,
            self._store_host.port,
            self._reconsume_times,
            self._prepared_transaction_offset,
            len(body),
        )
        buffer[body_at:tail_at] = body
        buffer[tail_at:tail_end] = self._tail
        if self._crc:
            crc = zlib.crc32(head)
            crc = zlib.crc32(buffer[body_at:tail_end], crc) & CRC_MASK
            buffer[tail_end : at + self.size_bytes] = props.CRC_NAME + props.crc_digits(crc) + b"\x02"
        buffer[at + 4 : body_at] = head[4:]
        buffer[at : at + 4] = head[:4]


def filler(rest_bytes: int) -> bytes:
    """Returns the 8 bytes that end a segment file whose last ``rest_bytes`` hold no record."""
    return FILLER.struct.pack(rest_bytes, MAGIC_BLANK)

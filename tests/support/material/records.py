"""Commit-log records packed by hand from the format document, as a second opinion on the codecs.

Nothing here uses the layouts of ``seglog``: a table that is wrong there must not be wrong here too.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace

from hypothesis import strategies as st

V1, V2, BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
BORN_V6, STORE_V6 = 0x10, 0x20

I31 = st.integers(0, 2**31 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
I63 = st.integers(0, 2**63 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Record:
    """Values of one record; addresses of 16 bytes make the field an IPv6 one."""

    topic: bytes = b"TopicA"
    queue_id: int = 0
    queue_offset: int = 0
    phy_offset: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp_ms: int = 1_700_000_000_000
    born_address: bytes = b"\x0a\x01\x02\x03"
    born_port: int = 40000
    store_timestamp_ms: int = 1_700_000_000_001
    store_address: bytes = b"\x7f\x00\x00\x01"
    store_port: int = 10911
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    body: bytes = b"body"
    properties: bytes = b""
    record_crc: bool = False

    @property
    def stored_sys_flag(self) -> int:
        v6 = BORN_V6 * (len(self.born_address) == 16) | STORE_V6 * (len(self.store_address) == 16)
        return self.sys_flag & ~(BORN_V6 | STORE_V6) | v6

    @property
    def stored_properties(self) -> bytes:
        """The properties with the room for the record CRC, its digits not yet known."""
        if not self.record_crc:
            return self.properties
        separator = b"\x02" if self.properties and not self.properties.endswith(b"\x02") else b""
        return self.properties + separator + b"__CRC32#\x01" + bytes(10) + b"\x02"

    def pack(self) -> bytes:
        """Returns the bytes of the record."""
        properties = self.stored_properties
        long_topic = len(self.topic) > 127
        tail = struct.pack(">i", len(self.body)) + self.body
        tail += struct.pack(">h" if long_topic else ">B", len(self.topic)) + self.topic
        tail += struct.pack(">h", len(properties)) + properties
        head = struct.pack(
            ">IIiiqqiq",
            V2 if long_topic else V1,
            zlib.crc32(self.body) & 0x7FFFFFFF,
            self.queue_id,
            self.flag,
            self.queue_offset,
            self.phy_offset,
            self.stored_sys_flag,
            self.born_timestamp_ms,
        )
        head += self.born_address + struct.pack(">iq", self.born_port, self.store_timestamp_ms)
        head += self.store_address + struct.pack(">i", self.store_port)
        head += struct.pack(">iq", self.reconsume_times, self.prepared_transaction_offset)
        record = struct.pack(">i", 4 + len(head) + len(tail)) + head + tail
        if self.record_crc:
            crc = zlib.crc32(record[:-20]) & 0x7FFFFFFF
            record = record[:-11] + f"{crc:010d}"[::-1].encode() + b"\x02"
        return record


def pack_log(records: list[Record], *, start: int = 0, segment_size_bytes: int | None = None) -> bytes:
    """Returns records one after another, each with its own place; a filler where one does not fit."""
    log = bytearray()
    for record in records:
        if segment_size_bytes is not None:
            rest = segment_size_bytes - len(log) % segment_size_bytes
            if len(record.pack()) + 8 > rest:
                log += struct.pack(">iI", rest, BLANK).ljust(rest, b"\0")
        log += replace(record, phy_offset=start + len(log)).pack()
    return bytes(log)


def _addresses() -> st.SearchStrategy[bytes]:
    return st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)


def property_text() -> st.SearchStrategy[str]:
    """Names and values that survive storing: any characters but the separators and halves of pairs."""
    return st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)


def stored_properties() -> st.SearchStrategy[bytes]:
    """Properties as writers store them, without the run of NULs that only torn writes leave."""
    table = st.dictionaries(property_text(), property_text(), max_size=4)
    joined = table.map(lambda found: "".join(f"{k}\x01{v}\x02" for k, v in found.items()).encode())
    return joined.filter(lambda raw: bytes(8) not in raw and b"__CRC32#" not in raw)


def records(**fixed: object) -> st.SearchStrategy[Record]:
    """Any record that RocketMQ can write; ``fixed`` fields have that value."""
    fields: dict[str, st.SearchStrategy[object]] = {
        "topic": st.binary(max_size=12) | st.sampled_from([b"t" * 127, b"t" * 128, b"t" * 255]),
        "queue_id": I31,
        "queue_offset": I63,
        "phy_offset": I63,
        "flag": I32,
        "sys_flag": I32,
        "born_timestamp_ms": I64,
        "born_address": _addresses(),
        "born_port": I32,
        "store_timestamp_ms": I64,
        "store_address": _addresses(),
        "store_port": I32,
        "reconsume_times": I32,
        "prepared_transaction_offset": I64,
        "body": st.binary(max_size=64),
        "properties": stored_properties(),
        "record_crc": st.booleans(),
    }
    chosen = {name: st.just(fixed[name]) if name in fixed else strategy for name, strategy in fields.items()}
    return st.builds(Record, **chosen)

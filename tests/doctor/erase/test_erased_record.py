"""An erased record has the size, place and identity of the message, and nothing of its body."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.doctor.erase.erased_record import erase_record
from seglog.errors import CorruptError
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import Damage, examine
from tests.support.material.records import Record

MARK_BYTES = len("SEGLOG_ERASED\x011\x02")
NAMES = (
    "topic",
    "queue_id",
    "queue_offset",
    "phy_offset",
    "size_bytes",
    "flag",
    "born_timestamp_ms",
    "born_host",
)
MORE_NAMES = ("store_timestamp_ms", "store_host", "reconsume_times", "prepared_transaction_offset")


@given(
    body=st.binary(max_size=300),
    properties=st.sampled_from([b"", b"TAGS\x01a\x02", b"TAGS\x01a", b"KEYS\x01k 1\x02UNIQ_KEY\x01u\x02"]),
    topic=st.sampled_from([b"T", b"x" * 127, b"x" * 128]),
    sys_flag=st.sampled_from([0, 1, 0x301, 0x101, 0x8, 0xC0, 0x1 | 0x8]),
    address=st.sampled_from([bytes(4), bytes(16)]),
    record_crc=st.booleans(),
)
def test_all_but_the_body_stays(body, properties, topic, sys_flag, address, record_crc):
    record = bytes(
        Record(
            body=body,
            properties=properties,
            topic=topic,
            sys_flag=sys_flag,
            record_crc=record_crc,
            born_address=address,
        ).pack()
    )
    before = decode_message(record, verify=True)
    made = erase_record(record, before.phy_offset)
    after = decode_message(made.data, verify=True)
    assert not isinstance(examine(memoryview(made.data), 0, before.phy_offset), Damage)
    assert len(made.data) == len(record)
    assert not any(after.body)
    for name in (*NAMES, *MORE_NAMES):
        assert getattr(after, name) == getattr(before, name)
    kept = {
        name: value for name, value in after.properties.items() if name not in ("SEGLOG_ERASED", props.CRC32)
    }
    assert kept == {name: value for name, value in before.properties.items() if name != props.CRC32}
    assert after.properties_raw.endswith(b"\x02") or not made.is_marked
    assert (props.CRC32 in after.properties) == (props.CRC32 in before.properties)
    assert after.sys_flag == before.sys_flag & ~(
        flags.COMPRESSED | flags.COMPRESSION_MASK | flags.NEED_UNWRAP
    )
    assert after.compression is None
    assert made.is_marked == (after.properties.get("SEGLOG_ERASED") == "1")
    if len(body) > MARK_BYTES:
        assert made.is_marked
    assert erase_record(made.data, before.phy_offset) == made


def test_a_body_too_short_for_the_mark_is_erased_all_the_same():
    record = Record(body=b"x" * (MARK_BYTES - 1)).pack()
    made = erase_record(record, decode_message(record).phy_offset)
    assert not made.is_marked
    assert decode_message(made.data, verify=True).body == bytes(MARK_BYTES - 1)


def test_no_mark_where_properties_are_full():
    full = b"p\x01" + b"v" * (props.MAX_PROPERTIES_BYTES - 3) + b"\x02"
    record = Record(body=b"secret" * 10, properties=full).pack()
    made = erase_record(record, decode_message(record).phy_offset)
    assert not made.is_marked
    assert decode_message(made.data, verify=True).properties_raw == full


def test_damage_is_not_erased():
    record = bytearray(Record(body=b"a secret that was damaged").pack())
    at = bytes(record).find(b"secret")
    record[at] ^= 1
    with pytest.raises(CorruptError):
        erase_record(bytes(record), decode_message(record).phy_offset)
    assert zlib.crc32(record)

"""A record is valid if it is where it says, its lengths add up and its checksums agree."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.record.record import (
    DELAY_LEVELS_S,
    MIN_RECORD_BYTES,
    Damage,
    RecordRow,
    delay_level,
    examine,
    unit_tags_code,
)
from seglog.storage.format.record.tags import tags_code
from tests.support.material.records import Record, records
from tests.support.rows import every_row

PLAIN = Record(properties=b"TAGS\x01TagA\x02", phy_offset=4096, queue_offset=7, queue_id=2)
WITH_CRC = replace(PLAIN, record_crc=True)


def look(data: bytes, phy_offset: int = 4096, **options: bool) -> RecordRow | Damage:
    return examine(memoryview(data), 0, phy_offset, **options)


@given(records())
def test_every_record_that_a_writer_makes_is_valid_and_read_right(record):
    data = record.pack()
    row = look(data, record.phy_offset)
    assert isinstance(row, RecordRow)
    assert row.size_bytes == len(data)
    assert (row.queue_id, row.queue_offset, row.topic) == (record.queue_id, record.queue_offset, record.topic)
    assert (row.sys_flag, row.store_timestamp_ms) == (record.stored_sys_flag, record.store_timestamp_ms)
    assert data[row.body_at : row.body_at + row.body_bytes] == record.body
    kept = len(record.properties)
    assert data[row.properties_at : row.properties_at + row.properties_bytes][:kept] == record.properties


@given(records(), st.integers(0, 40), st.binary(max_size=40))
def test_what_lies_around_a_record_does_not_matter(record, before, after):
    data = bytes(before) + record.pack() + after
    row = examine(memoryview(data), before, record.phy_offset)
    assert isinstance(row, RecordRow)
    assert row.size_bytes == len(data) - before - len(after)


def _put(at: int, form: str, value: int):
    return lambda data: data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


def _flip(at: int):
    return lambda data: (
        data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if at >= 0 else _flip(len(data) + at)(data)
    )


# name: damage, the word for it without and with the record CRC
DAMAGES = {
    "no bytes": (lambda _data: b"", "short", "short"),
    "90 bytes": (lambda data: data[:90], "short", "short"),
    "cut by one byte": (lambda data: data[:-1], "size", "size"),
    "zeros": (lambda data: bytes(len(data)), "magic", "magic"),
    "other magic": (_flip(7), "magic", "magic"),
    "size zero": (_put(0, ">i", 0), "size", "size"),
    "size negative": (_put(0, ">i", -1), "size", "size"),
    "size below the smallest": (_put(0, ">i", MIN_RECORD_BYTES - 1), "size", "size"),
    "size one too small": (lambda data: _put(0, ">i", len(data) - 1)(data), "lengths", "lengths"),
    "size one too large": (lambda data: _put(0, ">i", len(data) + 1)(data) + b"x", "lengths", "lengths"),
    "is elsewhere": (_put(28, ">q", 4097), "phy-offset", "phy-offset"),
    "queue id negative": (_put(12, ">i", -1), "negative", "negative"),
    "queue offset negative": (_put(20, ">q", -1), "negative", "negative"),
    "body length negative": (_put(84, ">i", -1), "lengths", "lengths"),
    "body length huge": (_put(84, ">i", 2**31 - 1), "lengths", "lengths"),
    "body length one more": (_put(84, ">i", 5), "lengths", "lengths"),
    "topic length one more": (_flip(92), "lengths", "lengths"),
    "properties length one more": (_flip(92 + 8), "lengths", "lengths"),
    "body": (_flip(88), "body-crc", "record-crc"),
    "body crc": (_flip(11), "body-crc", "record-crc"),
    "born host said to be IPv6": (_put(36, ">i", 0x10), "lengths", "lengths"),
    "flag": (_flip(19), None, "record-crc"),
    "topic": (_flip(93), None, "record-crc"),
    "property": (_flip(92 + 9 + 6), None, "record-crc"),
    "store time": (_flip(63), None, "record-crc"),
    "last digit": (_flip(-2), None, "record-crc"),
    "end of the last entry": (_flip(-1), None, "record-crc"),
}


def test_damage_is_named():
    with every_row() as row:
        for name, (damage, kind, _kind_with_crc) in DAMAGES.items():
            with row(name):
                found = look(damage(PLAIN.pack()))
                assert (found.kind if isinstance(found, Damage) else None) == kind


def test_damage_is_named_with_a_record_crc():
    with every_row() as row:
        for name, (damage, _kind, kind) in DAMAGES.items():
            with row(name):
                found = look(damage(WITH_CRC.pack()))
                assert isinstance(found, Damage)
                assert found.kind == kind


def test_a_wrong_record_crc_is_told_as_numbers_that_can_be_compared():
    packed = WITH_CRC.pack()
    right = zlib.crc32(packed[:-20]) & 0x7FFFFFFF
    found = look(_flip(19)(packed))
    other = zlib.crc32(_flip(19)(packed)[:-20]) & 0x7FFFFFFF
    assert found == Damage("record-crc", f"record CRC {right:#x}", f"{other:#x}")
    spoiled = look(packed[:-5] + b"xy" + packed[-3:])
    assert isinstance(spoiled, Damage)
    assert spoiled.expected == f"__CRC32# of {right:#x} at the end"
    assert str(spoiled.found).startswith("__CRC32#\x01")


@given(records(record_crc=True), st.data())
def test_no_single_bit_flip_passes_the_record_crc(record, data):
    packed = bytearray(record.pack())
    bit = data.draw(st.integers(0, 8 * len(packed) - 1))
    packed[bit // 8] ^= 1 << bit % 8
    assert isinstance(look(bytes(packed), record.phy_offset), Damage)


def test_every_single_bit_flip_of_one_record_with_crc_is_seen():
    packed = WITH_CRC.pack()
    for bit in range(8 * len(packed)):
        flipped = bytearray(packed)
        flipped[bit // 8] ^= 1 << bit % 8
        assert isinstance(look(bytes(flipped)), Damage), f"bit {bit} of {len(packed)} bytes"


def test_checksums_are_left_alone_when_not_wanted_and_lengths_are_not():
    packed = WITH_CRC.pack()
    assert isinstance(look(_flip(88)(packed), verify=False), RecordRow)
    assert isinstance(look(_put(84, ">i", 5)(packed), verify=False), Damage)


def test_body_crc_of_zero_is_a_checksum_like_any_other():
    body = bytes.fromhex("9d0ad96d")  # CRC-32 is 0
    assert isinstance(look(replace(PLAIN, body=body).pack()), RecordRow)


def test_empty_record_is_as_small_as_records_get():
    packed = Record(topic=b"", body=b"", phy_offset=4096).pack()
    assert len(packed) == MIN_RECORD_BYTES == 91
    assert isinstance(look(packed), RecordRow)


@pytest.mark.parametrize(("length", "extra_bytes"), [(127, 0), (128, 1), (255, 1), (32767, 1)])
def test_long_topics_make_version_2_records(length, extra_bytes):
    packed = Record(topic=b"t" * length, phy_offset=4096).pack()
    row = look(packed)
    assert isinstance(row, RecordRow)
    assert row.topic == b"t" * length
    assert row.size_bytes == 91 + 4 + length + extra_bytes


@pytest.mark.parametrize("properties", [b"a\x01" + bytes(8) + b"\x02", b"a\x01b\x00"])
def test_properties_that_a_torn_write_left_full_of_nul_are_damage(properties):
    record = replace(PLAIN, properties=properties)
    torn = look(record.pack())
    assert isinstance(torn, Damage)
    assert torn.kind == "torn-properties"
    assert isinstance(look(replace(record, record_crc=True).pack()), RecordRow)


@given(records(phy_offset=4096, record_crc=True), st.lists(records(record_crc=True), max_size=3), st.data())
def test_no_record_passes_that_has_part_of_another_with_its_record_crc(record, others, data):
    packed = record.pack()
    elsewhere = b"".join(other.pack() for other in others) + bytes(len(packed))
    kept = data.draw(st.integers(len(packed) - len(record.stored_properties), len(packed)))
    at = data.draw(st.integers(0, len(elsewhere) - len(packed)))
    mixed = packed[:kept] + elsewhere[at : at + len(packed) - kept]
    if mixed != packed and b"__CRC32#\x01" in mixed[-len(record.stored_properties) :]:
        assert isinstance(look(mixed), Damage)


CODES = (
    (b"T", b"", 0),
    (b"T", b"TAGS\x01TagA\x02", 2598919),
    (b"T", b"TAGS\x01TagA", 2598919),
    (b"T", b"TAGS\x01\x02", 0),
    (b"T", b"XTAGS\x01TagA\x02", 0),
    (b"T", b"a\x01TAGS\x01TagA\x02", 0),
    (b"T", b"TAGS\x01TagA\x02TAGS\x01Aa\x02", 2112),
    (b"T", b"DELAY\x013\x02TAGS\x01Aa\x02", 2112),
    (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x013\x02TAGS\x01Aa\x02", 1_000_000 + 10_000),
    (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x0118\x02", 1_000_000 + 7_200_000),
    (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x0199\x02", 1_000_000 + 7_200_000),
    (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x010\x02TAGS\x01Aa\x02", 2112),
    (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x01-1\x02TAGS\x01Aa\x02", 2112),
    (b"SCHEDULE_TOPIC_XXXX", b"TAGS\x01Aa\x02", 2112),
)


def test_tags_code_of_a_unit_follows_topic_and_properties():
    with every_row() as each:
        for topic, properties, code in CODES:
            with each(topic, properties, code):
                assert unit_tags_code(topic, properties, 1_000_000) == code
                row = look(
                    Record(
                        topic=topic, properties=properties, phy_offset=4096, store_timestamp_ms=1_000_000
                    ).pack()
                )
                assert isinstance(row, RecordRow)
                assert row.tags_code == code


@given(st.text(min_size=1).filter(lambda tag: "\x02" not in tag))
def test_tags_code_survives_storing(tag):
    try:
        raw = f"TAGS\x01{tag}\x02".encode()
    except UnicodeEncodeError:
        return
    assert unit_tags_code(b"T", raw, 0) == tags_code(tag)


NO_LEVELS = (b"", b"x", b"1x", b" 1", b"1.5", "٣".encode(), b"9" * 5000, b"0" * 5000)


def test_text_that_is_no_delay_level_is_none():
    with every_row() as row:
        for value in NO_LEVELS:
            with row(value):
                assert delay_level(value) in {0, len(DELAY_LEVELS_S)}

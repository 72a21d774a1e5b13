"""Drafts become, byte for byte, the records that the format document describes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import decode_message
from seglog.storage.kernels import pending_record as append
from seglog.storage.kernels.pending_record import PendingRecord, filler
from tests.support.material.records import Record, records
from tests.support.rows import every_row

pytestmark = pytest.mark.usefixtures("kernels")


def draft(record: Record, **other: object) -> PendingRecord:
    values: dict[str, Any] = {
        "tags_code": 0,
        "sys_flag": record.sys_flag,
        "flag": record.flag,
        "born_timestamp_ms": record.born_timestamp_ms,
        "born_host": Host(record.born_address, record.born_port),
        "store_host": Host(record.store_address, record.store_port),
        "reconsume_times": record.reconsume_times,
        "prepared_transaction_offset": record.prepared_transaction_offset,
        "record_crc": record.record_crc,
    }
    return append.PendingRecord(
        record.topic, record.queue_id, record.body, record.properties, *(values | other).values()
    )


def written(record: Record, made: PendingRecord, at: int = 0) -> bytes:
    buffer = bytearray(b"\xee" * (at + made.size_bytes + 5))
    made.write(memoryview(buffer), at, record.queue_offset, record.phy_offset, record.store_timestamp_ms)
    assert buffer[:at] + buffer[at + made.size_bytes :] == b"\xee" * (at + 5)
    return bytes(buffer[at : at + made.size_bytes])


@given(records(), st.integers(0, 30))
def test_draft_writes_the_reference_bytes_and_nothing_around_them(record, at):
    assert written(record, draft(record), at) == record.pack()


@given(records())
def test_draft_says_what_it_is(record):
    made = draft(record, tags_code=record.queue_offset)
    assert made.size_bytes == len(record.pack())
    assert made.takes_queue_offset is (record.sys_flag & 0xC in (0, 8))
    assert made.unit_tags_code(record.store_timestamp_ms) == record.queue_offset
    assert made.properties == record.stored_properties.removesuffix(b"__CRC32#\x01" + bytes(10) + b"\x02")


@given(records(), records())
def test_draft_may_be_written_again_to_another_place(record, other):
    made = draft(record)
    written(other, made)
    assert written(record, made) == record.pack()


@given(records(properties=b"a\x01b"))
def test_missing_end_of_the_last_entry_is_added_only_before_a_crc(record):
    stored = decode_message(written(record, draft(record))).properties_raw
    assert stored.startswith(b"a\x01b\x02__CRC32#\x01" if record.record_crc else b"a\x01b")


@pytest.mark.parametrize("record_crc", [True, False])
def test_record_crc_that_a_client_sent_is_not_stored(record_crc):
    record = Record(properties=b"a\x01b\x02__CRC32#\x011234567890\x02", record_crc=record_crc)
    data = written(record, draft(record))
    assert data == replace(record, properties=b"a\x01b\x02").pack()
    assert decode_message(data, verify=True).properties.get("__CRC32#") != "1234567890"


LIKE_A_CRC = [b"a\x01__CRC32#\x010123456789\x02", b"my__CRC32#\x010123456789\x02"]
UNLIKE_IT = [b"a\x01__CRC32#\x01", b"a\x01__CRC32#\x01123\x02", b"a\x01__CRC32#\x010123456789\x02b\x01c\x02"]


@pytest.mark.parametrize("properties", LIKE_A_CRC)
def test_properties_whose_end_looks_like_the_crc_of_another_record_are_refused(properties):
    with pytest.raises(MessageIllegalError, match="__CRC32#"):
        draft(Record(properties=properties))


WITH_A_CRC = (
    *((each, True) for each in LIKE_A_CRC),
    *((each, crc) for each in UNLIKE_IT for crc in (False, True)),
)


def test_a_crc_within_a_value_is_stored_as_it_is():
    with every_row() as row:
        for properties, record_crc in WITH_A_CRC:
            with row(properties, record_crc):
                made = written(Record(), draft(Record(properties=properties, record_crc=record_crc)))
                assert decode_message(made, verify=True).properties_raw.startswith(properties)


@pytest.mark.parametrize(("record_crc", "room"), [(False, 32767), (True, 32747)])
def test_properties_fill_their_length_field_and_no_more(record_crc, room):
    fitting = Record(properties=b"a\x01".ljust(room - 1, b"v") + b"\x02", record_crc=record_crc)
    assert written(fitting, draft(fitting)) == fitting.pack()
    with pytest.raises(MessageIllegalError, match="32768 bytes"):
        draft(replace(fitting, properties=b"a\x01".ljust(room, b"v") + b"\x02"))


NO_NUMBERS = (
    {"flag": 2**31},
    {"flag": -(2**31) - 1},
    {"sys_flag": 2**31},
    {"born_timestamp_ms": 2**63},
    {"reconsume_times": 2**31},
    {"prepared_transaction_offset": -(2**63) - 1},
    {"flag": True},
    {"born_timestamp_ms": 1.0},
)


def test_number_that_no_record_can_hold_is_refused_before_anything_is_written():
    with every_row() as row:
        for wrong in NO_NUMBERS:
            with row(wrong), pytest.raises(InvalidArgumentError):
                draft(Record(), **wrong)


@pytest.mark.parametrize("properties", [b"a\x01" + bytes(8) + b"\x02", b"a\x01b\x00"])
def test_properties_that_would_look_torn_are_refused_without_a_record_crc(properties):
    record = Record(properties=properties)
    with pytest.raises(MessageIllegalError, match="NUL"):
        draft(record)
    with_crc = replace(record, properties=properties.rstrip(b"\x02") + b"\x02", record_crc=True)
    assert written(with_crc, draft(replace(record, record_crc=True))) == with_crc.pack()


BODIES = (b"abc", bytearray(b"abc"), memoryview(b"abc"), memoryview(b"xabcx")[1:4], memoryview(b"a.b.c")[::2])


def test_body_may_be_any_bytes():
    with every_row() as row:
        for body in BODIES:
            with row(body):
                record = Record()
                made = append.PendingRecord(record.topic, 0, body, b"", *_plain(record).values())
                assert decode_message(written(record, made)).body == b"abc"


def test_body_of_wider_items_is_taken_as_its_bytes():
    record = Record()
    made = append.PendingRecord(
        record.topic, 0, memoryview(b"abcdefgh").cast("H"), b"", *_plain(record).values()
    )
    assert decode_message(written(record, made)).body == b"abcdefgh"


def _plain(record: Record) -> dict[str, Any]:
    return {
        "tags_code": 0,
        "sys_flag": 0,
        "flag": 0,
        "born_timestamp_ms": record.born_timestamp_ms,
        "born_host": Host(record.born_address, record.born_port),
        "store_host": Host(record.store_address, record.store_port),
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "record_crc": True,
    }


SYS_FLAGS = ((0, True), (0x4, False), (0x8, True), (0xC, False), (0x5, False), (0x3F3, True))


def test_prepared_and_rollback_take_no_queue_offset():
    with every_row() as row:
        for sys_flag, takes in SYS_FLAGS:
            with row(sys_flag, takes):
                assert draft(Record(sys_flag=sys_flag)).takes_queue_offset is takes


def test_filler_is_what_is_left_and_its_magic():
    assert filler(4096) == bytes.fromhex("00001000cbd43194")

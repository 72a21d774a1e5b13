"""A record becomes the message that was put, for any mix of versions, address families and checksums."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.record.compression import MAX_INFLATED_BYTES, inflate
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.properties import decode_properties
from tests.support.material.records import Record, records
from tests.support.narrow import not_none
from tests.support.rows import every_row


@given(records())
def test_decoding_gives_back_every_value_that_was_packed(record):
    data = record.pack()
    message = decode_message(data, verify=True)
    assert message.topic == record.topic.decode("utf-8", "replace")
    assert (message.queue_id, message.queue_offset) == (record.queue_id, record.queue_offset)
    assert (message.phy_offset, message.size_bytes) == (record.phy_offset, len(data))
    assert (message.flag, message.sys_flag) == (record.flag, record.stored_sys_flag)
    assert message.body_crc == zlib.crc32(record.body) & 0x7FFFFFFF
    assert message.born_timestamp_ms == record.born_timestamp_ms
    assert message.store_timestamp_ms == record.store_timestamp_ms
    assert message.born_host == Host(record.born_address, record.born_port)
    assert message.store_host == Host(record.store_address, record.store_port)
    assert message.reconsume_times == record.reconsume_times
    assert message.prepared_transaction_offset == record.prepared_transaction_offset
    assert message.body == record.body
    table = dict(message.properties)
    assert table.pop("__CRC32#", None) == (data[-11:-1].decode() if record.record_crc else None)
    assert table == decode_properties(record.properties)


@given(records(), st.binary(max_size=9))
def test_bytes_behind_the_record_are_not_looked_at(record, rest):
    assert decode_message(record.pack() + rest) == decode_message(record.pack())


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_message_outlives_the_buffer_it_was_read_from(kind):
    source = bytearray(Record(body=b"kept").pack())
    message = decode_message(kind(source))
    source[:] = bytes(len(source))
    assert message.body == b"kept"


@given(records(), st.data())
def test_every_cut_is_a_clear_error(record, data):
    packed = record.pack()
    size = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(TruncatedError):
        decode_message(packed[:size])


@pytest.mark.parametrize(
    ("address", "message_id"),
    [
        (bytes([127, 0, 0, 1]), "7F000001" + "00002A9F" + "0000000000001000"),
        (bytes(15) + b"\x01", "00" * 15 + "01" + "00002A9F" + "0000000000001000"),
    ],
)
def test_message_id_is_store_host_and_place(address, message_id):
    assert decode_message(Record(store_address=address, phy_offset=4096).pack()).message_id == message_id


def test_well_known_properties_have_names_of_their_own():
    raw = b"TAGS\x01TagA\x02KEYS\x01k1 k2  k3\x02UNIQ_KEY\x01U\x02"
    message = decode_message(Record(properties=raw).pack())
    assert (message.tags, message.keys, message.unique_key) == ("TagA", ["k1", "k2", "k3"], "U")


def test_message_without_properties_has_none():
    message = decode_message(Record().pack())
    assert (message.tags, message.keys, message.unique_key, message.properties) == (None, [], None, {})


COMPRESSIONS = ((0, None), (0x100, None), (0x1, "zlib"), (0x301, "zlib"), (0x101, "lz4"), (0x201, "zstd"))


def test_compression_is_read_off_the_flags():
    with every_row() as row:
        for sys_flag, name in COMPRESSIONS:
            with row(sys_flag, name):
                assert decode_message(Record(sys_flag=sys_flag).pack()).compression == name


def test_zlib_body_is_inflated():
    with every_row() as row:
        for sys_flag in (0x1, 0x301):
            for body in (b"", b"x", b"payload" * 1000):
                with row(sys_flag, body):
                    assert (
                        decode_message(Record(sys_flag=sys_flag, body=zlib.compress(body)).pack()).payload()
                        == body
                    )


@pytest.mark.parametrize("sys_flag", [0, 0x101, 0x201])
def test_other_bodies_are_given_as_stored(sys_flag):
    message = decode_message(Record(sys_flag=sys_flag, body=b"as it is").pack())
    assert message.payload() == b"as it is"
    assert (message.body_error is None) == (sys_flag == 0)


BAD_BODIES = {
    "empty": b"",
    "not zlib": b"plain text",
    "cut": zlib.compress(b"payload" * 1000)[:-5],
    "cut to its head": zlib.compress(b"payload")[:2],
    "wrong check": zlib.compress(b"payload")[:-1] + b"\xff",
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
def test_body_that_does_not_inflate_is_given_as_stored_and_says_why(body):
    message = decode_message(Record(topic=b"T", queue_id=3, queue_offset=17, sys_flag=1, body=body).pack())
    assert message.payload() == message.body == body
    place = f"T/3 @17, record at {message.phy_offset}"
    assert not_none(message.body_error).startswith(f"{place}: the zlib body does not inflate: ")
    with pytest.raises(CorruptError, match="inflate"):
        inflate(body)


@pytest.mark.parametrize("size_bytes", [MAX_INFLATED_BYTES + 1, 2 * MAX_INFLATED_BYTES])
def test_bomb_is_not_inflated_beyond_the_limit(size_bytes):
    bomb = zlib.compress(bytes(size_bytes), 1)
    message = decode_message(Record(sys_flag=1, body=bomb).pack())
    assert message.payload() == bomb
    assert f"expected at most {MAX_INFLATED_BYTES} bytes" in not_none(message.body_error)


def test_body_that_inflates_to_just_the_limit_is_given():
    body = zlib.compress(bytes(MAX_INFLATED_BYTES), 1)
    message = decode_message(Record(sys_flag=1, body=body).pack())
    assert (len(message.payload()), message.body_error) == (MAX_INFLATED_BYTES, None)


def test_error_of_a_bad_record_says_what_is_wrong():
    packed = bytearray(Record(body=b"abc").pack())
    struct.pack_into(">i", packed, 84, 4)
    with pytest.raises(CorruptError, match="lengths"):
        decode_message(packed)


def test_checksums_are_only_looked_at_when_wanted():
    packed = bytearray(Record(body=b"abc").pack())
    packed[88] ^= 1
    assert decode_message(packed).body == b"`bc"
    with pytest.raises(CorruptError, match="body-crc"):
        decode_message(packed, verify=True)

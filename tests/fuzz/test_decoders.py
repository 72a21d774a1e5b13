"""Decoders take any bytes: they give a value or an error of ours, soon, and never write."""

from __future__ import annotations

import contextlib
import time
from dataclasses import astuple, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.errors import SeglogError
from seglog.storage.format.checkpoint import decode_checkpoint
from seglog.storage.format.config.config_json import decode_config, encode_config
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.properties import decode_properties, find_property, without_crc_property
from seglog.storage.format.record.record import Damage, examine
from seglog.storage.kernels.walk import QueueTable, Stop, iter_resync, walk
from tests.support.damage.damage import damaged_bytes
from tests.support.material.records import Record, pack_log, records
from tests.support.scale import scaled

MANY = settings(max_examples=scaled(200, 20_000))
RECORD = Record(
    body=b"some body", properties=b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02", record_crc=True, queue_offset=7
)
LOG = pack_log([replace(RECORD, queue_offset=offset) for offset in range(5)])
hostile = (
    st.binary(max_size=400)
    | damaged_bytes(RECORD.pack())
    | damaged_bytes(replace(RECORD, topic=b"t" * 130, record_crc=False).pack())
    | damaged_bytes(LOG)
    | records().flatmap(lambda record: damaged_bytes(record.pack()))
)


@MANY
@given(hostile, st.booleans())
def test_decode_message_gives_a_message_or_our_error(data, verify):
    try:
        message = decode_message(data, verify=verify)
    except SeglogError:
        return
    assert message.size_bytes <= len(data)
    assert len(message.body) + len(message.properties_raw) < message.size_bytes
    # All that was decoded can be looked at too.
    assert str(message.born_host)
    assert message.message_id
    assert isinstance(message.keys, list)
    assert message.tags != ""
    with contextlib.suppress(SeglogError):
        message.payload()


@MANY
@given(hostile, st.integers(0, 500), st.integers(-(2**63), 2**63 - 1))
def test_examine_gives_a_row_or_damage(data, at, phy_offset):
    found = examine(memoryview(data), min(at, len(data)), phy_offset)
    if isinstance(found, Damage):
        assert found.kind
    else:
        assert min(at, len(data)) + found.size_bytes <= len(data)


@MANY
@given(hostile, st.integers(0, 2**40), st.integers(0, 1000))
def test_walk_stops_within_the_buffer_and_says_why(data, phy_offset, more):
    result = walk(memoryview(data), phy_offset, phy_offset + len(data) + more, QueueTable())
    assert 0 <= result.position <= len(data)
    assert int(result.rows["size_bytes"].sum()) == result.position
    assert (result.damage is not None) == (result.stop is Stop.DAMAGE)


@MANY
@given(hostile)
def test_resync_finds_only_places_where_a_record_proves_itself(data):
    found = list(iter_resync(memoryview(data), 0, 0))
    assert found == sorted(set(found))
    assert all(not isinstance(examine(memoryview(data), at, at), Damage) for at in found)


@MANY
@given(damaged_bytes(LOG, ("flip", "cut")))
def test_a_record_found_in_a_damaged_log_is_one_that_was_written(data):
    written = {LOG[at : at + len(RECORD.pack())] for at in range(0, len(LOG), len(RECORD.pack()))}
    for at in iter_resync(memoryview(data), 0, 0):
        row = examine(memoryview(data), at, at)
        assert not isinstance(row, Damage)
        assert data[at : at + row.size_bytes] in written


@MANY
@given(st.binary(max_size=300))
def test_properties_of_any_bytes_are_text(data):
    table = decode_properties(data)
    for name in (b"TAGS", b"a", b"\x02", b""):
        find_property(data, name)
    assert "__CRC32#" not in decode_properties(without_crc_property(data))
    assert all(isinstance(value, str) for value in table.values())


@given(st.binary(max_size=5000))
def test_checkpoint_of_any_bytes_is_numbers(data):
    assert all(isinstance(number, int) for number in astuple(decode_checkpoint(data)))


CONFIG = encode_config({"dataVersion": {"counter": 3}, "offsetTable": {"T@g": {0: 12, 1: 5}}, "l": [1, 2.5]})


@MANY
@given(
    st.binary(max_size=80)
    | st.text(st.characters(), max_size=80)
    | st.text('{}[]",:0123456789-.eEtrufalsn\\ \n', max_size=60)
    | damaged_bytes(CONFIG.encode())
)
def test_config_of_any_text_is_a_value_or_our_error(text):
    try:
        value = decode_config(text)
    except SeglogError:
        return
    assert decode_config(encode_config(value)) == value


BIG = 1 << 20
# name: (decoder, what takes it longest)
SLOW = {
    "message of zeros": (decode_message, bytes(BIG)),
    "resync in magic bytes": (
        lambda d: list(iter_resync(memoryview(d), 0, 0)), b"\xda\xa3\x20\xa7" * (BIG // 4),
    ),
    "resync in records of elsewhere": (
        lambda d: list(iter_resync(memoryview(d), 1, 0)), Record().pack() * (BIG // 101),
    ),
    "walk over the smallest records": (
        lambda d: walk(memoryview(d), 0, BIG, QueueTable()),
        pack_log([Record(topic=b"", body=b"")] * (BIG // 400)),
    ),
    "properties of separators": (decode_properties, b"\x01\x02" * (BIG // 2)),
    "properties of one name": (lambda d: find_property(d, b"TAGS"), b"TAGS\x01" * (BIG // 5)),
    "properties of empty values": (lambda d: find_property(d, b"TAGS"), b"TAGS\x01\x02" * (BIG // 6)),
    "config of opening brackets": (decode_config, "[" * BIG),
    "config of opening braces": (decode_config, '{"a":' * (BIG // 5)),
    "config of digits": (decode_config, "1" * BIG),
    "config of white space": (decode_config, " " * BIG),
    "config of one string": (decode_config, '"' + "a" * BIG),
    "config of escapes": (decode_config, '"' + "\\u0041" * (BIG // 6)),
    "config of object keys": (decode_config, "{" * BIG),
}  # fmt: skip


@pytest.mark.parametrize(("decode", "data"), SLOW.values(), ids=SLOW)
def test_a_megabyte_of_malice_takes_no_more_than_seconds(decode, data):
    begun = time.process_time()
    with contextlib.suppress(SeglogError):
        decode(data)
    assert time.process_time() - begun < 5

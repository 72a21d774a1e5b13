"""Properties are parsed as leniently as RocketMQ parses them, and written as 5.x writes them."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.storage.format.record.properties import (
    CRC_NAME,
    crc_property,
    decode_properties,
    encode_properties,
    find_property,
    split_keys,
    without_crc_property,
)
from seglog.storage.format.record.put_properties import all_properties
from tests.support.material.records import property_text
from tests.support.rows import every_row

PARSED = {
    "nothing": (b"", {}),
    "one": (b"a\x01b\x02", {"a": "b"}),
    "two": (b"a\x01b\x02c\x01d\x02", {"a": "b", "c": "d"}),
    "last end missing, as 4.x writes": (b"a\x01b\x02c\x01d", {"a": "b", "c": "d"}),
    "empty value vanishes": (b"a\x01\x02c\x01d\x02", {"c": "d"}),
    "empty value at the end vanishes": (b"c\x01d\x02a\x01", {"c": "d"}),
    "empty name vanishes": (b"\x01b\x02c\x01d\x02", {"c": "d"}),
    "piece without separator vanishes": (b"abc\x02c\x01d\x02", {"c": "d"}),
    "empty pieces vanish": (b"\x02\x02c\x01d\x02\x02", {"c": "d"}),
    "later duplicate wins": (b"a\x01x\x02a\x01y\x02", {"a": "y"}),
    "empty duplicate does not win": (b"a\x01x\x02a\x01\x02", {"a": "x"}),
    "second separator belongs to the value": (b"a\x01b\x01c\x02", {"a": "b\x01c"}),
    "value that is only a separator": (b"a\x01\x01\x02", {"a": "\x01"}),
    "shortest piece": (b"a\x01b", {"a": "b"}),
    "bytes that are no UTF-8": (b"a\x01\xff\x02", {"a": "\ufffd"}),
    "astral characters": ("k\x01𝄞\x02".encode(), {"k": "𝄞"}),
}


def test_properties_are_parsed_leniently():
    with every_row() as row:
        for name, (raw, table) in PARSED.items():
            with row(name):
                assert decode_properties(raw) == table


@given(st.dictionaries(property_text(), property_text()))
def test_properties_round_trip(table):
    raw = encode_properties(table)
    assert decode_properties(raw) == table
    assert raw.count(b"\x02") == len(table)
    assert raw == b"" or raw.endswith(b"\x02")


def test_empty_value_is_written_although_no_reader_sees_it():
    assert encode_properties({"a": ""}) == b"a\x01\x02"


def test_value_may_hold_the_name_separator():
    assert decode_properties(encode_properties({"a": "x\x01y"})) == {"a": "x\x01y"}


NOT_STORED = {
    "empty name": {"": "v"},
    "0x01 in name": {"a\x01b": "v"},
    "0x02 in name": {"a\x02b": "v"},
    "0x02 in value": {"a": "v\x02w"},
    "half pair": {"a": "\ud800"},
    "half pair in name": {"\udfff": "v"},
}


def test_entry_that_would_not_come_back_is_refused():
    with every_row() as row:
        for name, table in NOT_STORED.items():
            with row(name), pytest.raises(MessageIllegalError):
                encode_properties(table)


_BITS = st.sampled_from([b"a", b"TAGS", b"\x01", b"\x02", b"x", b"TAGS\x01", b"\xff", b"\x02TAGS\x01"])


@given(st.lists(_BITS).map(b"".join), st.sampled_from(["a", "TAGS", "x", "ax"]))
def test_one_property_is_found_exactly_where_the_whole_table_has_it(raw, name):
    found = find_property(raw, name.encode())
    assert (None if found is None else found.decode("utf-8", "replace")) == decode_properties(raw).get(name)


@given(st.binary(max_size=300))
def test_any_bytes_parse_to_text(raw):
    for name, value in decode_properties(raw).items():
        assert name
        assert value
        assert "\x02" not in name + value


@given(st.lists(_BITS | st.just(b"\x02__CRC32#\x010000000000\x02")).map(b"".join))
def test_crc_property_is_taken_out_and_nothing_else(raw):
    table = decode_properties(raw)
    table.pop("__CRC32#", None)
    assert decode_properties(without_crc_property(raw)) == table


def test_properties_without_crc_are_not_touched():
    raw = b"\x02\x02a\x01__CRC32#\x02"
    assert without_crc_property(raw) is raw


@pytest.mark.parametrize(
    ("crc", "digits"),
    [(0, b"0000000000"), (7, b"7000000000"), (1234567890, b"0987654321"), (2**31 - 1, b"7463847412")],
)
def test_crc_digits_are_least_significant_first(crc, digits):
    assert crc_property(crc)[len(CRC_NAME) : -1] == digits


@given(st.binary())
def test_crc_digits_read_back(data):
    crc = zlib.crc32(data) & 0x7FFFFFFF
    assert len(crc_property(crc)[len(CRC_NAME) : -1]) == 10
    assert int(crc_property(crc)[len(CRC_NAME) : -1][::-1]) == crc


def test_an_application_gives_no_value_with_a_separator():
    with pytest.raises(MessageIllegalError, match="property 'a'="):
        encode_properties({"a": "x\x01y"}, is_new=True)


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ("", []),
        (" ", []),
        ("a  b ", ["a", "b"]),
        ("a\tb", ["a\tb"]),
        ("订单\u3000号 k\u00a01", ["订单\u3000号", "k\u00a01"]),
    ],
)
def test_only_blanks_part_keys_as_in_the_index(value, keys):
    assert split_keys(value) == keys


@pytest.mark.parametrize("keys", [[""], ["a", ""], ["", "a"], ("a", "", "b")])
def test_an_empty_key_among_several_is_refused(keys):
    with pytest.raises(InvalidArgumentError, match="a key that is not empty"):
        all_properties(None, keys, None)


@pytest.mark.parametrize(("keys", "stored"), [(["a", "b"], "a b"), ([], ""), ("a  b", "a  b")])
def test_other_keys_are_stored_as_rocketmq_joins_them(keys, stored):
    assert all_properties(None, keys, None) == {"KEYS": stored}

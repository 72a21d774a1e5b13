"""Columns filled in one pass are what the format reads of each record, and never out of bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.properties import decode_properties
from seglog.storage.kernels import NATIVE, PYTHON
from seglog.storage.kernels.message_columns import FILLED, NUMBERS, message_columns
from seglog.storage.kernels.walk import QueueTable, walk
from tests.storage.kernels.test_gather import PIECES
from tests.support.machine.kernels import native, running
from tests.support.material.records import Record
from tests.support.rows import every_row

FIRST = 1 << 40
V4, V6 = b"\x0a\xff\x00\x09", bytes(range(16))
I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
MANY = b"".join(b"name%d\x01v\x02" % number for number in range(65))
IDS = [b"", b"UNIQ_KEY\x01id\x02", b"UNIQ_KEY\x01\x02", b"UNIQ_KEY\x01older\x02UNIQ_KEY\x01new\x02"]
properties = st.tuples(
    st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), st.sampled_from(IDS)
).map(b"\x02".join)
records = st.builds(
    Record,
    topic=st.sampled_from([b"T", b"L" * 200, b""]),
    flag=I32,
    born_timestamp_ms=I64,
    born_address=st.sampled_from([V4, V4, V6]),
    born_port=I32,
    store_address=st.sampled_from([V4, V4, V6]),
    store_port=I32,
    reconsume_times=I32,
    prepared_transaction_offset=I64,
    body=st.binary(max_size=20),
    properties=st.one_of(properties, st.just(MANY)),
    record_crc=st.booleans(),
)


def laid_out(values):
    """Returns a log of records, its rows, and the records as the format decodes them."""
    log, placed = b"", []
    for value in values:
        placed.append(replace(value, phy_offset=FIRST + len(log)).pack())
        log += placed[-1]
    rows = walk(memoryview(log), FIRST, FIRST + (1 << 30), QueueTable(), verify=False).rows
    assert len(rows) == len(placed)
    return memoryview(log), rows, [decode_message(one) for one in placed]


def split(texts):
    raw, ends = texts.data.tobytes(), texts.offsets.tolist()
    return [raw[first:last] for first, last in pairwise(ends)]


def offset_id(message):
    host = message.store_host
    place = message.phy_offset.to_bytes(8, "big")
    return (host.address + host.port.to_bytes(4, "big", signed=True) + place).hex().upper().encode()


@given(values=st.lists(records, min_size=1, max_size=6))
def test_columns_hold_what_the_format_reads(values):
    window, rows, messages = laid_out(values)
    with running(NATIVE):
        found = message_columns(window, FIRST, rows, FILLED)
    assert {name: column.tolist() for name, column in found.numbers.items()} == {
        "flag": [one.flag for one in messages],
        "reconsumeTimes": [one.reconsume_times for one in messages],
        "bodyCrc": [one.body_crc for one in messages],
        "preparedTransactionOffset": [one.prepared_transaction_offset for one in messages],
        "bornTimestamp": [one.born_timestamp_ms for one in messages],
    }
    assert split(found.texts["body"]) == [one.body for one in messages]
    assert split(found.texts["offsetMsgId"]) == [offset_id(one) for one in messages]
    sizes = [len(value.stored_properties) for value in values]
    ends = [one.phy_offset + one.size_bytes - FIRST for one in messages]
    entries = [last_entries(bytes(window[end - size : end])) for end, size in zip(ends, sizes, strict=True)]
    assert split(found.texts["msgId"]) == [
        one.get(b"UNIQ_KEY") or offset_id(message) for one, message in zip(entries, messages, strict=True)
    ]
    for column, name in (("keys", b"KEYS"), ("tags", b"TAGS")):
        assert split(found.texts[column]) == [one.get(name, b"") for one in entries]
        there = found.texts[column].are_there
        assert there is not None
        assert there.tolist() == [int(name in one) for one in entries]
    for column, kind in (("bornHost", "born_host"), ("storeHost", "store_host")):
        hosts = [getattr(one, kind) for one in messages]
        if any(len(host.address) == 16 for host in hosts):
            assert column not in found.texts
        else:
            assert split(found.texts[column]) == [str(host).encode() for host in hosts]
    if any(len(one) > 64 for one in entries):
        assert found.properties is None
        return
    assert found.properties is not None
    names, texts = split(found.properties.names), split(found.properties.values)
    at = found.properties.row_offsets.tolist()
    for number, (first, last) in enumerate(pairwise(at)):
        assert dict(zip(names[first:last], texts[first:last], strict=True)) == entries[number]
        assert last - first == len(entries[number])


def last_entries(stored):
    """Returns names and values as the format reads them, but as bytes: Latin-1 has a character for each."""
    text = stored.decode("latin-1").encode()
    # What is UTF-8 for the format are the same bytes, each as a character.
    return {
        name.encode("latin-1"): value.encode("latin-1") for name, value in decode_properties(text).items()
    }


def test_only_what_is_asked_for_is_filled():
    window, rows, _messages = laid_out([Record()])
    with running(NATIVE):
        found = message_columns(window, FIRST, rows, {"body", "flag", "topic"})
    assert (set(found.numbers), set(found.texts), found.properties) == ({"flag"}, {"body"}, None)


def test_without_native_kernels_nothing_is_filled():
    window, rows, _messages = laid_out([Record()])
    with running(PYTHON):
        found = message_columns(window, FIRST, rows, FILLED)
    assert (found.numbers, found.texts, found.properties) == ({}, {}, None)


def test_64_properties_are_filled():
    stored = MANY[: MANY.rindex(b"name64")]
    window, rows, _messages = laid_out([Record(properties=stored)])
    with running(NATIVE):
        assert message_columns(window, FIRST, rows, {"properties"}).properties is not None


def test_a_record_that_is_none_is_left_out_whole():
    with every_row() as row:
        for place in (0, 1, 4, 84, 88, -1):
            for value in (0x00, 0x7F, 0xFF):
                with row(place, value):
                    window, rows, _messages = laid_out([Record(properties=b"a\x01b\x02"), Record(body=b"")])
                    broken = bytearray(window)
                    at = int(rows["phy_offset"][1]) - FIRST
                    for where in (
                        {at, at + 1, at + 4, at + 84, at + 88, len(broken) - 1} if place < 0 else {at + place}
                    ):
                        broken[where] = value
                    changed = bytes(broken) != bytes(window)
                    with running(NATIVE):
                        found = message_columns(memoryview(broken), FIRST, rows, FILLED)
                    assert bool(found.texts) is not changed


OUTSIDE = ([FIRST - 1], [FIRST + 1], [1 << 62], [-1], [-(1 << 63)], [(1 << 63) - 1])


def test_rows_outside_of_the_window_are_refused():
    with every_row() as row:
        for places in OUTSIDE:
            with row(places):
                window, rows, _messages = laid_out([Record()])
                rows = rows.copy()
                rows["phy_offset"] = places
                with running(NATIVE):
                    assert not message_columns(window, FIRST, rows, FILLED).texts


def memory(**rooms):
    """Returns memory for each column, less where it is said."""
    text_names = ("body", "keys", "tags", "msg_id", "offset_id", "born", "store")
    parts = ("row_ends", "name_ends", "names", "value_ends", "values")
    sizes = dict.fromkeys(NUMBERS, 16) | dict.fromkeys(parts, 64) | rooms
    numbers = [np.empty(sizes[name], np.uint8).data for name in NUMBERS]
    texts = [
        np.empty(rooms.get(f"{name}_{part}", room), np.uint8).data
        for name in text_names
        for part, room in (("ends", 8), ("data", 200), ("there", 2))
    ]
    return (*numbers, *texts, *(np.empty(sizes[name], np.uint8).data for name in parts))


TWO = [Record(properties=b"KEYS\x01k\x02TAGS\x01t\x02")] * 2


ROOMS = (
    ({}, 0),
    ({"body_data": 7}, 1),
    ({"keys_data": 1}, 1),
    ({"msg_id_data": 63}, 1),
    ({"offset_id_data": 63}, 1),
    ({"name_ends": 12}, 2),
    ({"names": 12}, 2),
    ({"value_ends": 12}, 2),
    ({"values": 3}, 2),
    ({"born_data": 20}, 4),
    ({"store_data": 20}, 8),
)


def test_where_strings_have_no_room_the_column_is_left():
    with every_row() as row:
        for room, left in ROOMS:
            with row(room, left):
                window, rows, _messages = laid_out(TWO)
                found, _entries = native().message_columns(
                    window, rows.view(np.uint8).data, FIRST, memory(**room)
                )
                assert found == left


@pytest.mark.parametrize("name", ["flag", "body_ends", "tags_there", "row_ends"])
def test_less_than_one_item_for_each_record_is_refused(name):
    window, rows, _messages = laid_out(TWO)
    with pytest.raises(ValueError, match="no room"):
        native().message_columns(window, rows.view(np.uint8).data, FIRST, memory(**{name: 1}))


def test_memory_of_too_few_columns_or_that_cannot_be_written_is_refused():
    window, rows, _messages = laid_out(TWO)
    packed = rows.view(np.uint8).data
    with pytest.raises(ValueError, match="for each column"):
        native().message_columns(window, packed, FIRST, memory()[1:])
    with pytest.raises(ValueError, match="for each column"):
        native().message_columns(window, packed, -1, memory())
    with pytest.raises((BufferError, TypeError)):
        native().message_columns(window, packed, FIRST, (bytes(16), *memory()[1:]))

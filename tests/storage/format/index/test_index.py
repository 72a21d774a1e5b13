"""Index files are written as RocketMQ's putKey writes them, and searched for any bytes."""

from __future__ import annotations

import contextlib
import struct
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.index.index import (
    DEFAULT_INDEX_GEOMETRY,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
    encode_index_header,
    index_file_name,
    is_index_file_name,
    key_hash,
)
from seglog.storage.format.index.index_build import KEY_ROW, begin_index_file, put_keys
from seglog.storage.format.index.index_geometry import index_damage, infer_index_geometry
from seglog.storage.format.index.index_keys import IndexedRecord, record_keys
from seglog.storage.format.index.index_rows import key_rows
from seglog.storage.format.index.index_view import IndexView
from seglog.storage.format.index.string_hash import slice_hashes
from seglog.storage.format.record.properties import encode_properties
from seglog.storage.format.record.sys_flag import TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from seglog.storage.format.record.tags import java_string_hash
from tests.support.material.index_files import build_index_files, select_from_files
from tests.support.narrow import not_none
from tests.support.rows import every_row

I64 = st.integers(-(2**63), 2**63 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(st.characters(exclude_categories=[]), max_size=12)
GEOMETRIES = st.builds(IndexGeometry, st.integers(1, 12), st.integers(2, 30))


@st.composite
def rows_in_log_order(draw, max_size=60):
    """Returns KEY_ROW arrays as a log gives them: offsets grow, times mostly do."""
    steps = draw(
        st.lists(
            st.tuples(st.integers(0, 40), st.integers(0, 500), st.integers(-2000, 5000)), max_size=max_size
        )
    )
    phy_offset, time_ms, rows = draw(st.integers(0, 9)), draw(st.sampled_from([0, 1, 1_700_000_000_000])), []
    for hashed, step, ms in steps:
        rows.append((hashed, phy_offset, max(0, time_ms)))
        phy_offset += step
        time_ms += ms
    return np.array(rows, KEY_ROW)


def put_as_java_does(rows, geometry):
    """Returns the files that IndexFile.putKey makes, entry by entry."""
    files: list[tuple[bytearray, dict[str, Any]]] = []
    end = (0, 0)
    slots_at, entries_at = 40, geometry.entries_at
    for hashed, phy_offset, time_ms in rows.tolist():
        if not files or files[-1][1]["count"] >= geometry.entry_count:
            files.append(
                (
                    bytearray(geometry.file_size_bytes),
                    {"begin": end, "end": end, "slots": 0, "count": 1},
                )
            )
        data, head = files[-1]
        count = head["count"]
        slot_at = slots_at + 4 * (hashed % geometry.slot_count)
        (previous,) = struct.unpack_from(">i", data, slot_at)
        if previous <= 0 or previous > count:
            previous = 0
        begin_ms = head["begin"][1]
        diff_s = 0 if begin_ms <= 0 else min(max(int((time_ms - begin_ms) / 1000), 0), 2**31 - 1)
        struct.pack_into(">iqii", data, entries_at + 20 * count, hashed, phy_offset, diff_s, previous)
        struct.pack_into(">i", data, slot_at, count)
        if count <= 1:
            head["begin"] = (phy_offset, time_ms)
        head["slots"] += previous == 0
        head["count"] += 1
        head["end"] = end = (phy_offset, time_ms)
        struct.pack_into(
            ">qqqqii",
            data,
            0,
            head["begin"][1],
            head["end"][1],
            head["begin"][0],
            head["end"][0],
            head["slots"],
            head["count"],
        )
    return [data for data, _head in files]


@given(rows_in_log_order(), GEOMETRIES)
def test_files_equal_those_of_putting_one_key_after_the_other(rows, geometry):
    assert list(build_index_files(rows, geometry)) == put_as_java_does(rows, geometry)


@given(rows_in_log_order(), st.lists(st.integers(0, 60), max_size=4))
def test_it_does_not_matter_where_batches_are_cut(rows, cuts):
    geometry = IndexGeometry(7, 80)
    whole, pieces = bytearray(geometry.file_size_bytes), bytearray(geometry.file_size_bytes)
    for buffer in (whole, pieces):
        begin_index_file(buffer)
    assert put_keys(whole, geometry, rows) == len(rows)
    for part in np.split(rows, sorted(cuts)):
        assert put_keys(pieces, geometry, part) == len(part)
    assert whole == pieces


def test_a_full_file_takes_no_more():
    geometry = IndexGeometry(2, 3)
    (buffer,) = build_index_files(np.array([(1, 0, 5), (2, 9, 6)], KEY_ROW), geometry)
    assert put_keys(buffer, geometry, np.array([(3, 20, 7)], KEY_ROW)) == 0
    assert IndexView(buffer, geometry).is_full


def test_a_slot_that_names_a_later_entry_counts_as_empty():
    geometry = IndexGeometry(1, 9)
    buffer = bytearray(geometry.file_size_bytes)
    begin_index_file(buffer)
    buffer[40:44] = (5).to_bytes(4, "big")  # rot, or a file whose header was not written in time
    put_keys(buffer, geometry, np.array([(3, 20, 7)], KEY_ROW))
    assert IndexView(buffer, geometry).entries_in_use["previous_entry"].tolist() == [0]


@given(rows_in_log_order(), GEOMETRIES, st.integers(0, 40))
def test_a_key_is_found_where_it_was_put(rows, geometry, hashed):
    views = [IndexView(buffer, geometry) for buffer in build_index_files(rows, geometry)]
    wanted = rows["phy_offset"][rows["key_hash"] == hashed].tolist()
    assert select_from_files(reversed(views), hashed, limit=1000) == sorted(wanted)
    newest = [at for view in reversed(views) for at in view.select(hashed)]
    assert newest == wanted[::-1]
    assert select_from_files(reversed(views), hashed, limit=2) == sorted(newest[:2])


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4000)), max_size=60),
    GEOMETRIES,
    st.integers(-5000, 120_000),
    st.integers(0, 30_000),
)
def test_all_records_of_a_time_are_found_and_none_a_second_away(steps, geometry, after_ms, length_ms):
    times = 1_700_000_000_000 + np.cumsum([0] + [ms for _hashed, ms in steps])[:-1]
    rows = np.array(
        [(hashed, 100 * at, ms) for at, ((hashed, _), ms) in enumerate(zip(steps, times, strict=True))],
        KEY_ROW,
    )
    begin_ms = 1_700_000_000_000 + after_ms
    end_ms = begin_ms + length_ms
    views = [IndexView(buffer, geometry) for buffer in build_index_files(rows, geometry)]
    found = set(select_from_files(reversed(views), 3, begin_ms=begin_ms, end_ms=end_ms, limit=1000))
    mine = rows[rows["key_hash"] == 3]
    times = mine["store_timestamp_ms"]
    assert set(mine["phy_offset"][(times >= begin_ms) & (times <= end_ms)].tolist()) <= found
    near = (times >= begin_ms - 1000) & (times <= end_ms + 1000)
    assert found <= set(mine["phy_offset"][near].tolist())


@given(rows_in_log_order(), GEOMETRIES)
def test_the_division_is_found_out_and_the_chains_are_whole(rows, geometry):
    assume(len(rows) > 3)
    rows["key_hash"] = rows["key_hash"] * 7919 + 13
    rows["phy_offset"] += 1  # zeros before the entries would be an entry of record 0
    for buffer in build_index_files(rows, geometry):
        assert index_damage(IndexView(buffer, geometry)) is None
        assert infer_index_geometry(buffer, likely=geometry) == geometry
        found = infer_index_geometry(buffer)
        assert index_damage(IndexView(buffer, found)) is None
        if decode_index_header(buffer).index_count > 8:
            assert found == geometry


def test_rocketmqs_default_is_recognized_without_a_look_at_the_rest():
    buffer = bytearray(DEFAULT_INDEX_GEOMETRY.file_size_bytes)
    assert len(buffer) == 420_000_040
    begin_index_file(buffer)
    assert infer_index_geometry(buffer) == DEFAULT_INDEX_GEOMETRY
    put_keys(buffer, DEFAULT_INDEX_GEOMETRY, np.array([(77, 0, 5), (77, 300, 6)], KEY_ROW))
    assert infer_index_geometry(buffer) == DEFAULT_INDEX_GEOMETRY
    assert IndexView(buffer, DEFAULT_INDEX_GEOMETRY).select(77) == [300, 0]


def test_a_file_without_entries_says_nothing_about_its_division():
    geometry = IndexGeometry(9, 10)
    buffer = bytearray(geometry.file_size_bytes)
    begin_index_file(buffer)
    with pytest.raises(CorruptError, match="index-geometry"):
        infer_index_geometry(buffer)
    assert infer_index_geometry(buffer, likely=geometry) == geometry


@pytest.mark.parametrize(
    ("at", "value"),
    [
        pytest.param(36, 31, id="more entries than there is room for"),
        pytest.param(36, 2**31 - 1, id="more entries than any file holds"),
        pytest.param(40 + 4 * 6 + 20 * 7 + 16, 7, id="ends that fit, and an entry behind itself"),
    ],
)
def test_no_division_explains_a_damaged_file(at, value):
    geometry = IndexGeometry(6, 30)
    rows = np.array([(7, 100 * number + 1, 5) for number in range(9)], KEY_ROW)
    (buffer,) = build_index_files(rows, geometry)
    assert infer_index_geometry(buffer) == geometry
    struct.pack_into(">i", buffer, at, value)
    with pytest.raises(CorruptError, match="index-geometry"):
        infer_index_geometry(buffer)
    if at == 36:
        with pytest.raises(CorruptError, match="index-geometry"):
            infer_index_geometry(buffer, likely=geometry)


def test_lengths_that_no_division_has_are_refused():
    with every_row() as row:
        for length in (41, 42, 43, 44, 123, 125):
            with row(length):
                head = encode_index_header(IndexHeader(index_count=2))
                with pytest.raises(CorruptError, match="index-geometry"):
                    infer_index_geometry(head.ljust(length, b"\0"), likely=IndexGeometry(9, 10))


def test_a_negative_time_difference_ends_a_chain():
    geometry = IndexGeometry(1, 9)
    (buffer,) = build_index_files(np.array([(7, 10, 5), (7, 20, 5), (7, 30, 5)], KEY_ROW), geometry)
    struct.pack_into(">i", buffer, geometry.entries_at + 20 * 2 + 12, -1)
    assert IndexView(buffer, geometry).select(7) == [30]


@pytest.mark.parametrize(
    ("at", "value", "kind"),
    [
        pytest.param(36, 31, "index-count", id="more entries than there is room for"),
        pytest.param(32, 9, "index-slot-count", id="used slots miscounted"),
        pytest.param(40 + 4 * 5 + 20 * 2, -1, "index-hash", id="negative hash"),
        pytest.param(40 + 4 * 5 + 20 * 7 + 16, 7, "index-chain", id="an entry behind itself"),
        pytest.param(40 + 4 * (7 % 5), 2, "index-slot", id="a slot that misses the newest"),
    ],
)
def test_damage_to_chains_is_named(at, value, kind):
    geometry = IndexGeometry(5, 30)
    rows = np.array([(7, 100 * number, 5) for number in range(9)], KEY_ROW)
    (buffer,) = build_index_files(rows, geometry)
    struct.pack_into(">i", buffer, at, value)
    assert not_none(index_damage(IndexView(buffer, geometry))).kind == kind


@given(st.binary(min_size=200, max_size=400), st.integers(0, 2**31 - 1), I64, I64)
def test_arbitrary_bytes_are_searched_to_an_end(data, hashed, begin_ms, end_ms):
    slot_count = (len(data) - 40) % 5 + 5
    entry_count = (len(data) - 40 - 4 * slot_count) // 20
    geometry = IndexGeometry(slot_count, entry_count)
    whole = data[: geometry.file_size_bytes]
    full = encode_index_header(IndexHeader(index_count=entry_count)) + whole[40:]
    for view in (IndexView(whole, geometry), IndexView(full, geometry)):
        view.select(hashed)
        select_from_files([view, view], hashed, begin_ms=begin_ms, end_ms=end_ms)
        index_damage(view)


def test_chains_in_circles_are_left():
    geometry = IndexGeometry(1, 9)
    (buffer,) = build_index_files(np.array([(7, 10, 5), (7, 20, 5), (7, 30, 5)], KEY_ROW), geometry)
    struct.pack_into(">i", buffer, geometry.entries_at + 20 + 16, 3)  # the oldest leads to the newest
    view = IndexView(buffer, geometry)
    assert view.select(7) == [30, 20, 10]


@given(st.binary(max_size=500))
def test_a_division_is_found_or_refused_for_arbitrary_bytes(data):
    with contextlib.suppress(CorruptError):
        assert infer_index_geometry(data).file_size_bytes == len(data)


@given(st.builds(IndexHeader, I64, I64, I64, I64, I32, st.integers(1, 2**31 - 1)))
def test_a_header_reads_back_as_it_was_written(header):
    assert decode_index_header(encode_index_header(header) + b"rest") == header


def test_a_header_that_was_never_written_counts_from_1():
    assert decode_index_header(bytes(40)) == IndexHeader()
    with pytest.raises(TruncatedError):
        decode_index_header(bytes(39))


def test_a_file_of_another_length_is_refused():
    with pytest.raises(CorruptError, match="index-size"):
        IndexView(bytes(100), IndexGeometry(3, 3))


@given(st.lists(st.text(st.characters(max_codepoint=127), max_size=12), max_size=12))
def test_slices_are_hashed_as_strings_are(texts):
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], np.int64)
    hashes = slice_hashes("".join(texts).encode(), starts, ends).view(np.int32)
    assert hashes.tolist() == [java_string_hash(text) for text in texts]


def test_the_hash_without_magnitude_counts_as_0():
    assert java_string_hash("polygenelubricants") == -(2**31)
    assert key_hash("polygenelubricants") == 0
    assert key_hash("T#k") == abs(java_string_hash("T#k"))
    record = IndexedRecord(0, 1, 0, "polygenelubricants", b"")
    assert len(key_rows([record], tags=True)) == 0


NAMES = st.sampled_from([b"UNIQ_KEY", b"KEYS", b"TAGS", b"xKEYS", b""])
VALUES = (
    st.binary(max_size=9)
    | st.sampled_from([b"", b" ", b"a b", b" a  b "])
    | st.text("aé杭😀 ", max_size=6).map(str.encode)
)
PIECES = st.binary(max_size=12) | st.builds(lambda name, value: name + b"\x01" + value, NAMES, VALUES)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["T", "Other", "杭州", ""]), st.integers(0, 15), st.lists(PIECES, max_size=6)
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_rows_hold_the_hash_of_every_key_of_every_record(values, tags):
    records = [
        IndexedRecord(10 * number, number, sys_flag, topic, b"\x02".join(pieces))
        for number, (topic, sys_flag, pieces) in enumerate(values)
    ]
    wanted = [
        (key_hash(key), record.phy_offset, record.store_timestamp_ms)
        for record in records
        for key in record_keys(record.topic, record.properties, record.sys_flag, tags=tags)
    ]
    assert key_rows(records, tags=tags).tolist() == wanted


def test_keys_come_in_rocketmqs_order():
    raw = encode_properties({"TAGS": "t", "KEYS": " b  a b", "UNIQ_KEY": "u"})
    assert record_keys("T", raw, 0, tags=True) == ["T#u", "T#b", "T#a", "T#b", "T#T#t"]
    assert record_keys("T", raw, TRANSACTION_PREPARED, tags=False) == ["T#u", "T#b", "T#a", "T#b"]
    assert record_keys("T", raw, TRANSACTION_ROLLBACK, tags=True) == []
    assert record_keys("T", b"", 0, tags=True) == []


def test_files_are_named_by_the_time_they_were_made():
    assert index_file_name(datetime(2026, 11, 21, 7, 46, 17, 707_999)) == "20261121074617707"  # noqa: DTZ001
    assert is_index_file_name("20261121074617707")
    assert not is_index_file_name("20261121074617707.tmp")
    assert not is_index_file_name("²" * 17)

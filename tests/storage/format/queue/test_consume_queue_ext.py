"""Ext units are walked, read and written as RocketMQ does, for any bytes."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError, InvalidArgumentError, StoreError, TruncatedError
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.queue.consume_queue_ext import (
    EXT_HEAD_BYTES,
    MAX_EXT_ADDRESS,
    MAX_EXT_UNIT_BYTES,
    ExtUnit,
    decode_ext_unit,
    ext_position,
    is_ext_address,
)
from tests.support.material.ext_units import (
    END_RESERVE_BYTES,
    encode_ext_unit,
    ext_address,
    ext_positions,
    pack_ext_files,
)
from tests.support.material.golden import config_names, shared
from tests.support.material.log_records import iter_log

I64 = st.integers(-(2**63), 2**63 - 1)
UNITS = st.builds(ExtUnit, I64, I64, st.binary(max_size=60))


@pytest.fixture(scope="module", params=config_names())
def store(request):
    return shared(request.param)


def ext_folders(store):
    return sorted(folder for folder in (store / "consumequeue_ext").glob("*/*") if any(folder.iterdir()))


def test_real_files_parse_completely_and_are_written_again_byte_for_byte(store):
    folders = ext_folders(store)
    assert len(folders) == 6
    for folder in folders:
        files = [path.read_bytes() for path in sorted(folder.iterdir())]
        units, places = [], []
        for number, data in enumerate(files):
            *starts, end = ext_positions(data)
            units += [decode_ext_unit(data, at) for at in starts]
            places += [number * len(data) + at for at in starts]
            assert data[end:] == b"\xff\xff".ljust(len(data) - end, b"\0") or not any(data[end:])
        packed, addresses = pack_ext_files(units, len(files[0]))
        assert packed == files
        assert [ext_position(address) for address in addresses] == places


def test_queue_units_of_real_stores_lead_to_the_tags_and_time_of_their_record(store):
    by_place = {record.phy_offset: record.row for record in iter_log(store)}
    checked = 0
    for folder in ext_folders(store):
        data = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
        queue = store / "consumequeue" / folder.parent.name / folder.name
        cq = np.frombuffer(b"".join(path.read_bytes() for path in sorted(queue.iterdir())), CQ_UNIT.dtype)
        cq = cq[cq["tags_code"] <= MAX_EXT_ADDRESS]
        positions = np.array([ext_position(code) for code in cq["tags_code"].tolist()])
        units = [decode_ext_unit(data, at) for at in positions.tolist()]
        rows = [by_place[at] for at in cq["phy_offset"].tolist()]
        assert [unit.tags_code for unit in units] == [row.tags_code for row in rows]
        assert [unit.store_timestamp_ms for unit in units] == [row.store_timestamp_ms for row in rows]
        checked += len(rows)
    assert checked > 100


@given(UNITS)
def test_a_unit_reads_back_as_it_was_written(unit):
    encoded = encode_ext_unit(unit)
    assert len(encoded) == unit.size_bytes
    assert decode_ext_unit(b"xy" + encoded + b"z", 2) == unit


@given(st.lists(UNITS, max_size=30), st.integers(EXT_HEAD_BYTES + 60 + END_RESERVE_BYTES, 300))
def test_packed_files_hold_all_units_where_their_addresses_say(units, file_size_bytes):
    files, addresses = pack_ext_files(units, file_size_bytes)
    assert all(len(file) == file_size_bytes for file in files)
    whole = b"".join(files)
    assert [decode_ext_unit(whole, ext_position(address)) for address in addresses] == units
    walked = [
        number * file_size_bytes + at for number, file in enumerate(files) for at in ext_positions(file)[:-1]
    ]
    assert walked == [ext_position(address) for address in addresses]


@given(st.lists(st.sampled_from([20, 20, 20, 34, 50]), max_size=200), st.binary(max_size=3))
def test_runs_of_any_lengths_are_walked_one_by_one(sizes, rest):
    data = b"".join(encode_ext_unit(ExtUnit(1, 2, bytes(size - EXT_HEAD_BYTES))) for size in sizes) + rest
    assert ext_positions(data) == [sum(sizes[:count]) for count in range(len(sizes) + 1)]


@given(st.binary(max_size=200), st.integers(-3, 210))
def test_arbitrary_bytes_raise_nothing_but_our_errors(data, at):
    assert (np.diff(ext_positions(data)) >= EXT_HEAD_BYTES).all()
    with contextlib.suppress(StoreError):
        decode_ext_unit(data, at)


def test_a_bitmap_that_does_not_fit_is_refused():
    with pytest.raises(InvalidArgumentError, match="shorten the bitmap"):
        encode_ext_unit(ExtUnit(0, 0, bytes(MAX_EXT_UNIT_BYTES - EXT_HEAD_BYTES + 1)))
    with pytest.raises(InvalidArgumentError, match="does not fit a file"):
        pack_ext_files([ExtUnit(0, 0, bytes(14))], 34 + END_RESERVE_BYTES - 1)


def test_damage_says_what_is_wrong():
    whole = bytearray(encode_ext_unit(ExtUnit(5, 6, b"abc")))
    with pytest.raises(TruncatedError, match="23 bytes"):
        decode_ext_unit(whole[:-1])
    whole[1] = 22
    with pytest.raises(CorruptError, match=r"20 \+ 3 bytes"):
        decode_ext_unit(whole)


def test_addresses_and_hashes_do_not_overlap():
    assert is_ext_address(ext_address(0))
    assert ext_address(0) == -(2**63)
    assert is_ext_address(ext_address(2**63 - 2**31 - 1))
    assert not is_ext_address(-(2**31))
    assert ext_position(ext_address(1234)) == 1234
    with pytest.raises(InvalidArgumentError):
        ext_address(2**63 - 2**31)
    with pytest.raises(InvalidArgumentError):
        ext_address(-1)
    with pytest.raises(InvalidArgumentError):
        ext_position(-(2**31))

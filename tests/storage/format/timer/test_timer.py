"""The timer's files are read completely, written again byte for byte, and walked for any bytes."""

from __future__ import annotations

import contextlib
import mmap
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import StoreError
from seglog.storage.format.record.properties import decode_properties
from seglog.storage.format.record.tags import java_string_hash
from seglog.storage.format.timer.timer import (
    DEFAULT_SLOT_COUNT,
    TIMER_DELETE,
    TIMER_SLOT,
    TIMER_UNIT,
    TIMER_UNIT_BYTES,
    TIMER_WHEEL_FILE_BYTES,
    TimerUnit,
    encode_timer_end,
    encode_timer_unit,
    occupied_slots,
    read_timer_log,
    view_timer_slots,
)
from seglog.storage.format.timer.timer_checkpoint import (
    TimerCheckpoint,
    decode_timer_checkpoint,
    encode_timer_checkpoint,
)
from tests.support.material.golden import config_names, shared
from tests.support.material.log_records import iter_log
from tests.support.material.timer_units import decode_timer_unit, iter_timer_chain, timer_log_rolls
from tests.support.narrow import not_none

I64 = st.integers(-(2**63), 2**63 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
UNITS = st.builds(TimerUnit, I64, st.integers(0, 15), I64, I32, I64, I32, I32, I64)


@pytest.fixture(scope="module", params=[*config_names(), "broker-store"])
def store(request):
    return shared(request.param)


@pytest.fixture(scope="module")
def log_files(store):
    files = {}
    for path in sorted((store / "timerlog").iterdir()):
        with path.open("rb") as file:
            files[int(path.name)] = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return files


@pytest.fixture(scope="module")
def slots(store):
    return view_timer_slots((store / "timerwheel").read_bytes())


def all_units(log_files):
    return {
        first + at: decode_timer_unit(data, at)
        for first, data in log_files.items()
        for at in range(0, read_timer_log(data).end_bytes, TIMER_UNIT_BYTES)
    }


def test_the_layouts_have_rocketmqs_sizes(store, slots):
    assert (store / "timerwheel").stat().st_size == TIMER_WHEEL_FILE_BYTES == 38_707_200
    assert len(slots) == DEFAULT_SLOT_COUNT
    assert TIMER_UNIT.size_bytes == TIMER_UNIT.dtype.itemsize == 52


def test_real_logs_parse_completely_and_are_written_again_byte_for_byte(log_files):
    last = max(log_files)
    for first, data in log_files.items():
        parsed = read_timer_log(data)
        assert parsed.is_closed == (first != last)
        encoded = b"".join(
            encode_timer_unit(not_none(decode_timer_unit(data, at)))
            for at in range(0, parsed.end_bytes, TIMER_UNIT_BYTES)
        )
        assert encoded == parsed.units.tobytes()
        if parsed.is_closed:
            assert timer_log_rolls(parsed.end_bytes, len(data))
            encoded += encode_timer_end(len(data) - parsed.end_bytes)
        else:
            assert not timer_log_rolls(parsed.end_bytes, len(data))
        # The largest file is 100 MiB of hole; what was written is at its start.
        head = max(len(encoded), 1 << 20)
        assert bytes(data[:head]) == encoded.ljust(min(head, len(data)), b"\0")


def test_real_units_lead_to_records_of_the_timer_topic(store, log_files):
    by_place = {record.phy_offset: record for record in iter_log(store)}
    units = all_units(log_files)
    assert len(units) > 80
    for unit in units.values():
        record = by_place[unit.phy_offset]
        assert record.topic == "rmq_sys_wheel_timer"
        assert record.row.size_bytes == unit.record_bytes
        properties = decode_properties(record.properties)
        assert java_string_hash(properties["REAL_TOPIC"]) == unit.topic_hash
        assert unit.fire_timestamp_ms % 1000 == 0


def test_real_slots_lie_at_their_time_and_lead_to_all_their_units(log_files, slots):
    units = all_units(log_files)
    numbers = occupied_slots(slots)
    assert len(numbers) > 5
    assert np.count_nonzero(slots["slot_time"]) == len(numbers)
    seen = set()
    for number, slot in zip(numbers.tolist(), slots[numbers], strict=True):
        assert int(slot["slot_time"]) % len(slots) == number
        chain = list(iter_timer_chain(units.get, int(slot["last_position"])))
        # A chain goes on into units of an earlier lap of the wheel or an older life of the slot.
        mine = [at for at, unit in chain if unit.fire_timestamp_ms == int(slot["slot_time"]) * 1000]
        assert mine[-1] == slot["first_position"]
        weights = [-1 if units[at].magic & TIMER_DELETE else 1 for at in mine]
        assert sum(weights) == slot["message_count"]
        seen.update(mine)
    assert seen == set(units)


def test_the_real_checkpoint_is_written_again_byte_for_byte(store, log_files):
    data = (store / "config" / "timercheck").read_bytes()
    checkpoint = decode_timer_checkpoint(data)
    assert encode_timer_checkpoint(checkpoint) == data
    last = max(log_files)
    assert checkpoint.last_flushed_position == last + read_timer_log(log_files[last]).end_bytes


@given(UNITS)
def test_a_unit_reads_back_as_it_was_written(unit):
    encoded = encode_timer_unit(unit)
    assert decode_timer_unit(b"ab" + encoded, 2) == unit
    assert read_timer_log(encoded).units.tolist() == [(52, *astuple(unit))]


@given(st.builds(TimerCheckpoint, *[I64] * 7))
def test_a_checkpoint_reads_back_as_it_was_written(checkpoint):
    assert decode_timer_checkpoint(encode_timer_checkpoint(checkpoint)) == checkpoint


def test_a_short_checkpoint_counts_as_none():
    assert decode_timer_checkpoint(bytes(55)) == TimerCheckpoint()


@given(st.lists(st.tuples(I64, I64, I64, I32, I32), max_size=5))
def test_slots_read_back_what_struct_packed(rows):
    assert view_timer_slots(b"".join(TIMER_SLOT.struct.pack(*row) for row in rows)).tolist() == rows


@given(st.lists(UNITS, max_size=4), st.binary(max_size=120), st.integers(-2, 200))
def test_arbitrary_bytes_end_a_log_and_raise_nothing_but_our_errors(units, rest, at):
    data = b"".join(map(encode_timer_unit, units)) + rest
    parsed = read_timer_log(data)
    assert len(parsed.units) >= len(units)
    assert parsed.end_bytes == TIMER_UNIT_BYTES * len(parsed.units)
    occupied_slots(view_timer_slots(data))
    with contextlib.suppress(StoreError):
        decode_timer_unit(data, at)


@pytest.mark.parametrize(
    ("tail", "is_closed"),
    [
        pytest.param(encode_timer_end(40), True, id="end mark"),
        pytest.param(encode_timer_end(52).ljust(52, b"\0"), True, id="end mark with the size of a unit"),
        pytest.param(bytes(52), False, id="zeros"),
        pytest.param(encode_timer_end(40)[:-1], False, id="cut end mark"),
        pytest.param(b"", False, id="full"),
    ],
)
def test_what_follows_the_units_tells_whether_the_log_goes_on(tail, is_closed):
    unit = encode_timer_unit(TimerUnit(-1, 1, 0, 0, 0, 0, 0))
    parsed = read_timer_log(2 * unit + tail)
    assert (parsed.end_bytes, parsed.is_closed) == (104, is_closed)


@pytest.mark.parametrize(
    "previous",
    [pytest.param(52, id="itself"), pytest.param(104, id="forwards"), pytest.param(7, id="nowhere")],
)
def test_a_damaged_chain_ends(previous):
    unit = TimerUnit(previous, 1, 0, 0, 0, 0, 0)
    assert list(iter_timer_chain({52: unit, 104: unit}.get, 52)) == [(52, unit)]


def test_a_slot_without_units_has_no_chain():
    assert list(iter_timer_chain(lambda _place: None, -1)) == []

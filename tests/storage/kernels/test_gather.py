"""What is taken out of many records at once is what decoding each of them gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels import gather
from seglog.storage.kernels.gather import copied, iter_parts
from tests.support.machine.kernels import BOTH, native, running
from tests.support.material.records import Record, pack_log, records
from tests.support.rows import every_row

FIELDS = ("magic", "sys_flag", "body_bytes", "store_timestamp_ms", "born_timestamp_ms", "flag", "body_crc")


def placed(log: list[Record]):
    """Returns the bytes of a log and where its records lie."""
    raw = pack_log(log)
    sizes = [len(replace(record, phy_offset=0).pack()) for record in log]
    positions = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
    return np.frombuffer(raw, np.uint8), positions, np.array(sizes, np.int64)


@given(st.lists(records(), min_size=1, max_size=6))
def test_columns_bodies_and_properties_equal_decoded_messages(log):
    buffer, positions, sizes = placed(log)
    valid, heads = gather.read_heads(buffer, positions, positions, sizes, FIELDS)
    assert valid.all()
    found = [
        decode_message(buffer[at : at + size].tobytes())
        for at, size in zip(positions.tolist(), sizes.tolist(), strict=True)
    ]
    for name in ("sys_flag", "store_timestamp_ms", "born_timestamp_ms", "flag", "body_crc"):
        assert heads[name].tolist() == [getattr(message, name) for message in found]
    for ranges, attribute in (
        (gather.body_ranges(positions, sizes, heads), "body"),
        (gather.properties_ranges(buffer, positions, sizes, heads), "properties_raw"),
    ):
        ok, starts, lengths = ranges
        assert ok.all()
        taken = [buffer[a : a + n].tobytes() for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
        assert taken == [getattr(message, attribute) for message in found]


@given(st.lists(records(), min_size=1, max_size=4), st.integers(0, 2**31), st.integers(1, 255), st.booleans())
def test_damage_never_leads_out_of_the_record(log, at, mask, far):
    whole, positions, sizes = placed(log)
    buffer = whole.copy()
    buffer[at % (len(buffer) if far else MIN_RECORD_BYTES)] ^= mask
    valid, heads = gather.read_heads(buffer, positions, positions, sizes, FIELDS)
    kept = {name: values[valid] for name, values in heads.items()}
    starts_at, ends_at = positions[valid], (positions + sizes)[valid]
    for ok, starts, lengths in (
        gather.body_ranges(starts_at, sizes[valid], kept),
        gather.properties_ranges(buffer, starts_at, sizes[valid], kept),
    ):
        assert (starts[ok] >= starts_at[ok]).all()
        assert (lengths[ok] >= 0).all()
        assert (starts[ok] + lengths[ok] <= ends_at[ok]).all()


@given(st.binary(min_size=MIN_RECORD_BYTES, max_size=400), st.data())
def test_random_bytes_are_no_records_and_no_error(raw, data):
    buffer = np.frombuffer(raw, np.uint8)
    last = len(raw) - MIN_RECORD_BYTES
    positions = np.array(data.draw(st.lists(st.integers(0, last), min_size=1, max_size=5)), np.int64)
    sizes = np.full(len(positions), MIN_RECORD_BYTES, np.int64)
    valid, heads = gather.read_heads(buffer, positions, positions, sizes, FIELDS)
    assert not valid.any() or set(heads) == set(FIELDS)


def test_a_record_that_claims_to_be_ipv6_but_is_too_short_for_it_is_none():
    record = bytearray(Record(body=b"", topic=b"").pack())
    record[36 + 3] |= 0x30  # both host bits of sys_flag
    one = np.zeros(1, np.int64)
    buffer = np.frombuffer(bytes(record), np.uint8)
    valid, _heads = gather.read_heads(buffer, one, one, np.array([len(record)]), ("body_bytes",))
    assert not valid.any()


@given(st.lists(st.integers(0, 70), max_size=40), st.integers(0, 9))
def test_copied_ranges_are_the_ranges(sizes, gap):
    source = np.random.default_rng(len(sizes)).integers(0, 256, sum(sizes) + gap * len(sizes) + 9, np.uint8)
    lengths = np.array(sizes, np.int64)
    starts = np.cumsum(lengths + gap) - lengths
    places = np.cumsum(lengths) - lengths
    target = np.zeros(int(lengths.sum()), np.uint8)
    gather.copy_ranges(source, starts, lengths, target, places)
    pieces = [source[a : a + n].tobytes() for a, n in zip(starts.tolist(), sizes, strict=True)]
    assert target.tobytes() == b"".join(pieces)


PIECES = [
    b"KEYS", b"TAGS", b"a", b"b", b"", b"\x01", b"\x02", b"\x01x", b"KEYS\x01k\x02", b"a\x01\x02", b"\xff",
    b"a\x01v\x02", b"a\x01w\x02", b"\x02\x02", b"XKEYS\x01no\x02", "né\x01é\x02".encode(), b"b\x01c\x01d\x02",
]  # fmt: skip
stored = st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), max_size=6)


def laid_out(values):
    """Returns a buffer that ends with the last value, and where each is."""
    data = np.frombuffer(b"--" + b"|".join(values), np.uint8).copy()
    sizes = np.array([len(value) for value in values], np.int64)
    starts = 2 + np.cumsum(sizes + 1) - sizes - 1
    return data, starts.astype(np.int64), sizes


@pytest.mark.parametrize("kernels", BOTH)
@given(values=st.lists(st.binary(max_size=70), max_size=30))
def test_strings_are_copied_behind_each_other(kernels: str, values):
    with running(kernels):
        assert copied(*laid_out(values)).tobytes() == b"".join(values)


OUTSIDE = (([11], [0]), ([0], [11]), ([5], [6]), ([-1], [1]), ([0], [-1]), ([2**62], [2**62]), ([0, 1], [1]))


def test_strings_outside_of_the_buffer_are_refused():
    with every_row() as row:
        for starts, sizes in OUTSIDE:
            with row(starts, sizes):
                module, buffer = native(), memoryview(bytes(10))
                at, lengths = (np.array(values, np.int64).data for values in (starts, sizes))
                with pytest.raises(ValueError, match="within the buffer"):
                    module.copy_strings(buffer, at, lengths, np.empty(64, np.uint8).data)


@pytest.mark.parametrize("kernels", BOTH)
@given(
    groups=st.lists(st.lists(st.binary(max_size=9), min_size=1, max_size=1200), max_size=4), data=st.data()
)
def test_parts_of_several_buffers_come_in_any_order(kernels: str, groups, data):
    """Some of them are more than are made at a time."""
    laid = [laid_out(values) for values in groups]
    expected = [value for values in groups for value in values]
    numbers = np.repeat(np.arange(len(groups), dtype=np.int32), [len(values) for values in groups])
    starts, sizes = (
        np.concatenate([np.empty(0, np.int64), *(one[at] for one in laid)]).astype(np.int64) for at in (1, 2)
    )
    order = np.array(data.draw(st.permutations(range(min(9, len(expected))))), np.int64)
    order = np.concatenate([order, np.arange(len(order), len(expected))])
    with running(kernels):
        parts = list(iter_parts([one[0] for one in laid], numbers[order], starts[order], sizes[order]))
    assert parts == [expected[place] for place in order]
    assert all(isinstance(part, memoryview) for part in parts)


NO_PARTS = (
    *(
        ([0], [start], [size], ValueError)
        for start, size in ((11, 0), (0, 11), (5, 6), (-1, 1), (0, -1), (2**62, 2**62))
    ),
    ([1], [0], [1], IndexError),
    ([-1], [0], [1], IndexError),
    ([0, 0], [0], [1, 1], ValueError),
    ([0], [0], [], ValueError),
)


def test_parts_that_are_not_there_are_refused_and_nothing_is_held():
    with every_row() as row:
        for numbers, starts, sizes, error in NO_PARTS:
            with row(numbers, starts, sizes, error):
                data = bytearray(10)
                where = (
                    np.array(numbers, np.int32).data,
                    np.array(starts, np.int64).data,
                    np.array(sizes, np.int64).data,
                )
                with pytest.raises(error):
                    native().parts_of([memoryview(data)], *where)
                data.append(0)


def test_too_little_room_is_refused():
    module = native()
    data, starts, sizes = laid_out([b"a\x01v\x02", b"b\x01w\x02"])
    where = data.data, starts.data, sizes.data
    with pytest.raises(ValueError, match="no room"):
        module.copy_strings(*where, np.empty(7, np.uint8).data)

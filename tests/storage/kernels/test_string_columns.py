"""Strings are copied, and properties taken apart, natively as the format does it, and never out of bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.record.properties import decode_properties, find_property
from seglog.storage.kernels import NATIVE
from seglog.storage.kernels import string_columns as strings
from tests.support.machine.kernels import BOTH, native, running
from tests.support.narrow import not_none

PIECES = [
    b"KEYS", b"TAGS", b"a", b"b", b"", b"\x01", b"\x02", b"\x01x", b"KEYS\x01k\x02", b"a\x01\x02", b"\xff",
    b"a\x01v\x02", b"a\x01w\x02", b"\x02\x02", b"XKEYS\x01no\x02", "né\x01é\x02".encode(), b"b\x01c\x01d\x02",
]  # fmt: skip
stored = st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), max_size=6)


def laid_out(values):
    """Returns a buffer that ends with the last value, and where each lies."""
    data = np.frombuffer(b"--" + b"|".join(values), np.uint8).copy()
    sizes = np.array([len(value) for value in values], np.int64)
    starts = 2 + np.cumsum(sizes + 1) - sizes - 1
    return data, starts.astype(np.int64), sizes


def split(offsets, data):
    raw = data.tobytes()
    return [raw[first:last] for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


@pytest.mark.parametrize("kernels", BOTH)
@given(values=st.lists(st.binary(max_size=70), max_size=30))
def test_strings_are_copied_behind_each_other(kernels: str, values):
    with running(kernels):
        assert strings.copied(*laid_out(values)).tobytes() == b"".join(values)


@given(values=stored)
def test_maps_hold_what_the_format_reads(values):
    with running(NATIVE):
        found = strings.property_map(*laid_out(values))
    assert found is not None
    names, texts = split(found.name_offsets, found.names), split(found.value_offsets, found.values)
    for number, value in enumerate(values):
        rows = slice(int(found.row_offsets[number]), int(found.row_offsets[number + 1]))
        pairs = [
            (name.decode("utf-8", "replace"), text.decode("utf-8", "replace"))
            for name, text in zip(names[rows], texts[rows], strict=True)
        ]
        assert dict(pairs) == decode_properties(value)
        assert len(pairs) == len(set(names[rows]))


@pytest.mark.parametrize("name", ["KEYS", "a", "b"])
@given(values=stored)
def test_values_are_those_that_the_format_finds(name, values):
    data, starts, sizes = laid_out(values)
    with running(NATIVE):
        at, lengths = not_none(strings.property_values(data, starts, sizes, name))
    found = [
        data[first : first + size].tobytes()
        for first, size in zip(at.tolist(), lengths.tolist(), strict=True)
    ]
    assert found == [find_property(value, name.encode()) or b"" for value in values]


def test_records_with_very_many_entries_are_left_to_numpy():
    value = b"".join(b"name%d\x01v\x02" % number for number in range(65))
    with running(NATIVE):
        assert strings.property_map(*laid_out([value])) is None
        assert strings.property_map(*laid_out([value[: value.rindex(b"name64")]])) is not None


@pytest.mark.parametrize(
    ("starts", "sizes"),
    [([11], [0]), ([0], [11]), ([5], [6]), ([-1], [1]), ([0], [-1]), ([2**62], [2**62]), ([0, 1], [1])],
)
def test_strings_outside_of_the_buffer_are_refused(starts, sizes):
    module, buffer = native(), memoryview(bytes(10))
    at, lengths = (np.array(values, np.int64).data for values in (starts, sizes))
    room = [np.empty(64, np.int32).data for _ in range(2)]
    data = [np.empty(64, np.uint8).data for _ in range(2)]
    calls = [
        lambda: module.copy_strings(buffer, at, lengths, data[0]),
        lambda: module.property_map(
            buffer, at, lengths, np.empty(len(starts), np.int32).data, room[0], data[0], room[1], data[1]
        ),
        lambda: module.property_values(buffer, at, lengths, b"a\x01", at.cast("B"), lengths.cast("B")),
    ]
    for call in calls:
        with pytest.raises((ValueError, TypeError)):
            call()


def test_too_little_room_is_refused():
    module = native()
    data, starts, sizes = laid_out([b"a\x01v\x02", b"b\x01w\x02"])
    where = data.data, starts.data, sizes.data
    with pytest.raises(ValueError, match="no room"):
        module.copy_strings(*where, np.empty(7, np.uint8).data)
    ends, texts = np.empty(8, np.int32), np.empty(8, np.uint8)
    with pytest.raises(ValueError, match="no room"):
        module.property_map(*where, ends[:1].data, ends.data, texts.data, ends.copy().data, texts.copy().data)
    for entries, names, values in ((1, 8, 8), (8, 1, 8), (8, 8, 1)):
        room = np.empty(entries, np.int32).data, np.empty(names, np.uint8).data
        more = np.empty(entries, np.int32).data, np.empty(values, np.uint8).data
        assert module.property_map(*where, ends[:2].data, *room, *more) == -1
    with pytest.raises(ValueError, match="no room"):
        module.property_values(*where, b"", starts.copy().data, sizes.copy().data)

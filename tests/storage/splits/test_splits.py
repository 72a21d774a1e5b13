"""Every place of the log has one owner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import InvalidArgumentError
from seglog.storage.directory.log_files import LogFile
from seglog.storage.splits.splits import MIN_SPLIT_BYTES, owner, plan_splits

SEGMENT_BYTES = 65536


@given(
    st.dictionaries(st.integers(0, 20), st.integers(0, 2 * SEGMENT_BYTES), max_size=6),
    st.integers(MIN_SPLIT_BYTES, 2 * SEGMENT_BYTES),
)
def test_splits_of_a_file_follow_each_other_from_its_start_to_where_it_should_end(sizes, split_bytes):
    files = [LogFile(number * SEGMENT_BYTES, sizes[number]) for number in sorted(sizes)]
    splits = plan_splits(files, SEGMENT_BYTES, split_bytes)
    assert [split.number for split in splits] == list(range(len(splits)))
    for file in files:
        mine = [split for split in splits if split.segment_end == file.first_offset + SEGMENT_BYTES]
        assert [file.first_offset, *(split.end for split in mine)] == [
            *(split.start for split in mine),
            file.first_offset + SEGMENT_BYTES,
        ]


@given(st.sets(st.integers(0, 9)), st.integers(0, 10 * SEGMENT_BYTES), st.sampled_from([1024, 5000, 65536]))
def test_owner_is_the_split_around_a_place(numbers, place, split_bytes):
    files = [LogFile(number * SEGMENT_BYTES, SEGMENT_BYTES) for number in sorted(numbers)]
    found = owner(plan_splits(files, SEGMENT_BYTES, split_bytes), place)
    if place // SEGMENT_BYTES in numbers:
        assert found is not None
        assert found.start <= place < found.end
    else:
        assert found is None


def test_file_that_starts_where_no_segment_can_has_no_splits():
    assert plan_splits([LogFile(100, SEGMENT_BYTES)], SEGMENT_BYTES, 1024) == []


def test_splits_smaller_than_any_use_are_refused():
    with pytest.raises(InvalidArgumentError, match="split_bytes=1023"):
        plan_splits([], SEGMENT_BYTES, 1023)

"""Lengths of files are read off the files; damage does not mislead where the others outvote it."""

from __future__ import annotations

import pytest

from seglog.errors import InvalidArgumentError
from seglog.storage.directory.geometry import StoreGeometry, check_geometry, infer_file_size

K64 = 64 << 10


@pytest.mark.parametrize(
    ("files", "size"),
    [
        pytest.param([], 777, id="no file: the default"),
        pytest.param([(0, K64)], K64, id="one file"),
        pytest.param([(7 * K64, K64)], K64, id="one file after retention"),
        pytest.param([(0, K64), (K64, K64), (2 * K64, 0)], K64, id="empty last file after a crash"),
        pytest.param([(0, K64), (K64, 4096)], K64, id="cut last file does not fit the names"),
        pytest.param([(0, 4096), (K64, K64)], K64, id="cut first file: both fit, the longer wins"),
        pytest.param([(0, K64), (K64, 100), (2 * K64, K64)], K64, id="cut middle file"),
        pytest.param([(0, K64), (K64, 3 * K64), (2 * K64, K64)], K64, id="grown middle file"),
        pytest.param([(0, 0)], 777, id="only an empty file: the default"),
    ],
)
def test_length_of_files_is_inferred(files, size):
    assert infer_file_size(files, 777) == size


def test_length_that_cuts_a_unit_in_two_is_damage():
    assert infer_file_size([(0, 1999)], 6_000_000, multiple_of=20) == 6_000_000


@pytest.mark.parametrize("segment", [4096, 65536, 1 << 30, 2**31 - 1])
def test_lengths_that_both_engines_can_map_pass(segment):
    assert check_geometry(StoreGeometry(segment, 20)).segment_size_bytes == segment


@pytest.mark.parametrize("segment", [-1, 0, 1, 4095, 2**31, 10**12])
def test_segment_length_out_of_range_is_refused(segment):
    with pytest.raises(InvalidArgumentError, match="segment_size_bytes"):
        check_geometry(StoreGeometry(segment))


@pytest.mark.parametrize("size", [-20, 0, 19, 21, 2**31 + 20])
def test_queue_file_length_must_hold_whole_units(size):
    with pytest.raises(InvalidArgumentError, match="queue_file_size_bytes"):
        check_geometry(StoreGeometry(queue_file_size_bytes=size))


def test_units_per_file_follow_from_the_length():
    assert StoreGeometry().units_per_file == 300_000

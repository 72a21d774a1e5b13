"""Lengths of files are read off the files; damage does not mislead where the others outvote it."""

from __future__ import annotations

import pytest

from seglog.errors import InvalidArgumentError
from seglog.storage.directory.geometry import StoreGeometry, check_geometry, infer_file_size
from tests.support.rows import every_row

K64 = 64 << 10


FILES = {
    "no file: the default": ([], 777),
    "one file": ([(0, K64)], K64),
    "one file after retention": ([(7 * K64, K64)], K64),
    "empty last file after a crash": ([(0, K64), (K64, K64), (2 * K64, 0)], K64),
    "cut last file does not fit the names": ([(0, K64), (K64, 4096)], K64),
    "cut first file: both fit, the longer wins": ([(0, 4096), (K64, K64)], K64),
    "cut middle file": ([(0, K64), (K64, 100), (2 * K64, K64)], K64),
    "grown middle file": ([(0, K64), (K64, 3 * K64), (2 * K64, K64)], K64),
    "only an empty file: the default": ([(0, 0)], 777),
}


def test_length_of_files_is_inferred():
    with every_row() as row:
        for name, (files, size) in FILES.items():
            with row(name):
                assert infer_file_size(files, 777) == size


def test_length_that_cuts_a_unit_in_two_is_damage():
    assert infer_file_size([(0, 1999)], 6_000_000, multiple_of=20) == 6_000_000


@pytest.mark.parametrize("segment", [4096, 65536, 1 << 30, 2**31 - 1])
def test_lengths_that_both_engines_can_map_pass(segment):
    assert check_geometry(StoreGeometry(segment, 20)).segment_size_bytes == segment


def test_segment_length_out_of_range_is_refused():
    with every_row() as row:
        for segment in (-1, 0, 1, 4095, 2**31, 10**12):
            with row(segment), pytest.raises(InvalidArgumentError, match="segment_size_bytes"):
                check_geometry(StoreGeometry(segment))


@pytest.mark.parametrize("size", [-20, 0, 19, 21, 2**31 + 20])
def test_queue_file_length_must_hold_whole_units(size):
    with pytest.raises(InvalidArgumentError, match="queue_file_size_bytes"):
        check_geometry(StoreGeometry(queue_file_size_bytes=size))


def test_units_per_file_follow_from_the_length():
    assert StoreGeometry().units_per_file == 300_000

"""A file that is read as a whole is what was written to it, wherever it has holes."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from seglog.storage.files.files import RealFiles, read_part

MIB = 1 << 20


@pytest.mark.parametrize(
    "places",
    [
        [],
        [0],
        [MIB - 1],
        [MIB],
        [3 * MIB - 5],
        [5 * MIB - 1],
        [0, 2 * MIB + 7, 4 * MIB],
        list(range(0, 5 * MIB, 4096)),
    ],
    ids=[
        "no data",
        "first",
        "end of a step",
        "second step",
        "over two steps",
        "last",
        "between holes",
        "all",
    ],
)
@pytest.mark.parametrize(
    ("start", "size_bytes"), [(0, 5 * MIB), (0, 9 * MIB), (4097, 3 * MIB), (5 * MIB, MIB)]
)
def test_a_part_of_a_file_with_holes_is_what_was_written(places, start, size_bytes, tmp_path: Path):
    path = tmp_path / "f"
    wanted = bytearray(5 * MIB)
    with path.open("wb") as file:
        os.truncate(file.fileno(), len(wanted))
        for place in places:
            data = b"%09d" % place
            data = data[: len(wanted) - place]
            os.pwrite(file.fileno(), data, place)
            wanted[place : place + len(data)] = data
    with closing(RealFiles().open(path, writable=False)) as handle:
        assert read_part(handle, start, size_bytes) == wanted[start : start + size_bytes]
    assert RealFiles().read_file(path) == wanted

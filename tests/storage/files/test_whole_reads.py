"""A file that is read as a whole is what was written to it, wherever it has holes."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from seglog.errors import CorruptError, FileKindError
from seglog.storage.files.files import RealFiles, read_part
from tests.support.rows import every_row

MIB = 1 << 20


PLACES = {
    "no data": [],
    "first": [0],
    "end of a step": [MIB - 1],
    "second step": [MIB],
    "over two steps": [3 * MIB - 5],
    "last": [5 * MIB - 1],
    "between holes": [0, 2 * MIB + 7, 4 * MIB],
    "all": list(range(0, 5 * MIB, 4096)),
}
PARTS = ((0, 5 * MIB), (0, 9 * MIB), (4097, 3 * MIB), (5 * MIB, MIB))


@pytest.mark.parametrize("where", PLACES)
def test_a_part_of_a_file_with_holes_is_what_was_written(where, tmp_path: Path):
    path = tmp_path / "f"
    wanted = bytearray(5 * MIB)
    with path.open("wb") as file:
        os.truncate(file.fileno(), len(wanted))
        for place in PLACES[where]:
            data = b"%09d" % place
            data = data[: len(wanted) - place]
            os.pwrite(file.fileno(), data, place)
            wanted[place : place + len(data)] = data
    with closing(RealFiles().open(path, writable=False)) as handle, every_row() as row:
        for start, size_bytes in PARTS:
            with row(start, size_bytes):
                assert read_part(handle, start, size_bytes) == wanted[start : start + size_bytes]
    assert RealFiles().read_file(path) == wanted


@pytest.mark.parametrize(
    ("found", "put"),
    [("a pipe", os.mkfifo), ("a device", lambda path: path.symlink_to("/dev/zero"))],
)
def test_what_is_no_file_is_neither_read_nor_written_nor_waited_for(found, put, tmp_path: Path):
    path = tmp_path / "f"
    put(path)
    for use in (RealFiles().read_file, lambda path: RealFiles().write_file(path, b"x")):
        with pytest.raises(FileKindError, match=f"f is {found}, where a file belongs"):
            use(path)
    with pytest.raises(IsADirectoryError):
        RealFiles().read_file(tmp_path)


def test_a_file_is_read_as_a_whole_up_to_its_bound(tmp_path: Path):
    path = tmp_path / "f"
    path.write_bytes(bytes(10))
    assert RealFiles(10).read_file(path) == bytes(10)
    with pytest.raises(CorruptError, match="at most 9 bytes"):
        RealFiles(9).read_file(path)

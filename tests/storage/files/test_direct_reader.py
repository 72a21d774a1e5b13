"""Long files are read from the disk where that can be done, and give the same everywhere."""

from __future__ import annotations

import errno
import fcntl
import os
import random
from contextlib import closing

import pytest
from typing_extensions import override

from seglog.storage.files.direct_reader import DirectReader
from seglog.storage.files.real_file import RealFile
from tests.support.rows import every_row

pytestmark = pytest.mark.on_disk

STEP = 8192
LENGTHS = (0, 1, 4095, 4096, 4097, STEP, STEP + 1, 5 * STEP - 1, 5 * STEP, 5 * STEP + 4096 + 7)


class SeenFile(RealFile):
    """Notes of each read whether it went past the cache."""

    def __init__(self, path):
        super().__init__(path, os.O_RDWR)
        self.direct = []

    @property
    def is_direct(self):
        return bool(fcntl.fcntl(self.descriptor, fcntl.F_GETFL) & os.O_DIRECT)

    @override
    def read_into(self, buffer, position):
        self.direct.append(self.is_direct)
        return super().read_into(buffer, position)


class PickyFile(SeenFile):
    """Of a file system that takes the flag, and no read with it."""

    @override
    def read_into(self, buffer, position):
        if self.is_direct:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return super().read_into(buffer, position)


class NamelessFile(RealFile):
    """Has no descriptor to tell."""

    def __init__(self, path):
        super().__init__(path, os.O_RDWR)

    @property
    @override
    def descriptor(self):
        return -1


class SickFile(SeenFile):
    """On a disk that does not give it."""

    @override
    def read_into(self, buffer, position):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def whole(reader, start, end):
    parts = []
    while found := reader.read(start, end):
        parts.append(bytes(found))
        start += len(found)
    return b"".join(parts)


@pytest.mark.parametrize("kind", [SeenFile, PickyFile, NamelessFile])
def test_any_part_of_a_file_is_what_it_is(tmp_path, kind):
    with every_row() as row:
        for length in LENGTHS:
            data = random.Random(length).randbytes(length)
            (tmp_path / "log").write_bytes(data)
            with row(length), closing(kind(tmp_path / "log")) as file, DirectReader(file, STEP) as reader:
                for start in {0, 1, 4095, 4096, 4097, STEP + 5, length // 2, max(0, length - 1)}:
                    for end in {start, start + 1, 4096, length - 1, length}:
                        assert whole(reader, start, end) == data[start:end], (start, end)
                assert not reader.read(length, length)


def test_whole_blocks_come_past_the_cache_and_the_rest_does_not(tmp_path):
    probe = os.open(tmp_path, os.O_RDWR | os.O_TMPFILE)
    try:
        fcntl.fcntl(probe, fcntl.F_SETFL, fcntl.fcntl(probe, fcntl.F_GETFL) | os.O_DIRECT)
    except OSError:
        pytest.skip("this file system has no O_DIRECT")
    finally:
        os.close(probe)
    (tmp_path / "log").write_bytes(bytes(STEP + 4096 + 9))
    with closing(SeenFile(tmp_path / "log")) as file:
        with DirectReader(file, STEP) as reader:
            whole(reader, 0, STEP + 4096 + 9)
        assert file.direct == [True, True, False, False]  # the last finds the end
        assert not file.is_direct


def test_a_sick_disk_is_said(tmp_path):
    (tmp_path / "log").write_bytes(bytes(STEP))
    with (
        closing(SickFile(tmp_path / "log")) as file,
        DirectReader(file, STEP) as reader,
        pytest.raises(OSError, match="Input/output"),
    ):
        reader.read(0, STEP)


def test_a_file_that_became_shorter_gives_what_is_left(tmp_path):
    (tmp_path / "log").write_bytes(bytes(4 * STEP))
    with closing(SeenFile(tmp_path / "log")) as file, DirectReader(file, STEP) as reader:
        file.set_size(STEP)
        assert len(whole(reader, 0, 4 * STEP)) == STEP

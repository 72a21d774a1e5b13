"""Long files are written past the system's cache where that can be done, and are the same everywhere."""

from __future__ import annotations

import errno
import fcntl
import os
import random
from contextlib import closing

import pytest
from typing_extensions import override

from seglog.errors import FullError
from seglog.storage.files.direct_writer import DirectWriter
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from tests.support.rows import every_row

pytestmark = pytest.mark.on_disk

STEP = 8192
PARTS = {
    "nothing": [],
    "less than a block": [100],
    "a block": [4096],
    "a step": [STEP],
    "a step and a byte": [STEP, 1],
    "many parts of odd lengths": [1 + 37 * number % 5000 for number in range(300)],
    "longer than all memory": [3, 10 * STEP + 5, 0, 7 * STEP, 11],
}


class SeenFile(RealFile):
    """Notes of each write whether it went past the cache."""

    def __init__(self, path):
        super().__init__(path, os.O_RDWR)
        self.direct = []

    @override
    def write_at(self, data, position):
        is_direct = bool(fcntl.fcntl(self.descriptor, fcntl.F_GETFL) & os.O_DIRECT)
        self.direct += [is_direct] if len(data) else []
        super().write_at(data, position)


class PickyFile(SeenFile):
    """Of a file system that takes the flag, and no write with it."""

    @override
    def write_at(self, data, position):
        super().write_at(b"", position)
        if fcntl.fcntl(self.descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        super().write_at(data, position)


class NamelessFile(SeenFile):
    """Has no descriptor to tell."""

    @property
    @override
    def descriptor(self):
        return -1

    @override
    def write_at(self, data, position):
        RealFile.write_at(self, data, position)


class FullFile(SeenFile):
    """On a full disk."""

    @override
    def write_at(self, data, position):
        raise FullError("no space")


def written(path, kind, parts):
    numbers = random.Random(3)
    whole = [numbers.randbytes(size) for size in parts]
    RealFiles().create(path, sum(parts) + 5000).close()
    with closing(kind(path)) as file:
        with DirectWriter(file, STEP) as writer:
            for data in whole:
                writer.room(len(data))[:] = list(data)
            assert writer.end == sum(parts)
            writer.finish()
        file.write_at(b"end", sum(parts))
    return b"".join(whole) + b"end" + bytes(4997), file


@pytest.mark.parametrize("kind", [SeenFile, PickyFile, NamelessFile])
def test_a_file_holds_what_was_put_into_it(tmp_path, kind):
    with every_row() as row:
        for name, parts in PARTS.items():
            with row(name):
                expected, _file = written(tmp_path / name, kind, parts)
                assert (tmp_path / name).read_bytes() == expected


def test_whole_steps_go_past_the_cache_and_the_rest_does_not(tmp_path):
    probe = os.open(tmp_path, os.O_RDWR | os.O_TMPFILE)
    try:
        fcntl.fcntl(probe, fcntl.F_SETFL, fcntl.fcntl(probe, fcntl.F_GETFL) | os.O_DIRECT)
        os.close(os.dup(probe))
    except OSError:
        pytest.skip("this file system has no O_DIRECT")
    finally:
        os.close(probe)
    _expected, file = written(tmp_path / "log", SeenFile, [STEP - 5, STEP, STEP, 700])
    assert file.direct == [True, True, False, False]


def test_a_full_disk_is_said_by_the_next_call_or_the_last(tmp_path):
    with pytest.raises(FullError):
        written(tmp_path / "log", FullFile, [STEP] * 9)

"""Pages made ready ahead: their content stays, and what cannot be made ready is no signal."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import textwrap

import pytest

from seglog.storage.kernels import warm
from tests.support.machine.disks import memory_disk, why_not
from tests.support.machine.kernels import native
from tests.support.machine.patience import patience_s

PAGE = mmap.PAGESIZE
FILE_BYTES = 64 * PAGE


@pytest.fixture
def mapped(tmp_path):
    with (tmp_path / "file").open("w+b") as file:
        file.write(os.urandom(FILE_BYTES))
        file.flush()
        with mmap.mmap(file.fileno(), 0) as made:
            yield made


@pytest.mark.parametrize(
    ("start", "end"), [(0, FILE_BYTES), (1, FILE_BYTES - 1), (PAGE, 2 * PAGE), (5, 9), (7, 7)]
)
def test_content_stays(mapped, start, end):
    before = bytes(mapped)
    with memoryview(mapped) as view, view[start:end] as stretch:
        assert native().populate(stretch)
    assert bytes(mapped) == before


def test_memory_of_a_process_is_no_less_ready():
    data = bytearray(os.urandom(FILE_BYTES))
    before = bytes(data)
    assert native().populate(memoryview(data))
    assert data == before


def test_what_may_not_be_written_is_refused():
    with pytest.raises((BufferError, TypeError)):
        native().populate(memoryview(bytes(FILE_BYTES)))


def test_python_kernels_make_nothing_ready(mapped, monkeypatch):
    monkeypatch.setattr(warm, "native_populate", None)
    with memoryview(mapped) as view:
        assert not warm.populate(view)


def answer_of(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        capture_output=True, text=True, timeout=patience_s(60), check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.strip(), done.stderr


def test_page_behind_the_end_of_a_cut_file_is_an_answer_and_no_signal(tmp_path):
    native()
    program = """
        import mmap, os, sys
        from seglog.storage.kernels import _native
        with open(sys.argv[1], "w+b") as file:
            file.truncate(1 << 20)
            view = memoryview(mmap.mmap(file.fileno(), 0))
            os.truncate(sys.argv[1], 4096)
            print(_native.populate(view[:4096]), _native.populate(view))
    """
    assert answer_of(program, tmp_path / "file") == (0, "True False", "")


def test_hole_of_a_full_file_system_is_an_answer_and_no_signal(tmp_path):
    native()
    if why := why_not("tmpfs"):
        pytest.skip(why)
    program = """
        import mmap, os, sys
        from seglog.storage.kernels import _native
        with open(sys.argv[1], "w+b") as file:
            file.truncate(64 << 20)
            view = memoryview(mmap.mmap(file.fileno(), 0))
            print(_native.populate(view[:1 << 20]), _native.populate(view))
    """
    with memory_disk(tmp_path, 16) as folder:
        assert answer_of(program, folder / "file") == (0, "True False", "")

"""A file that is cut under a native kernel ends the walk with an error, and not the process."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from typing_extensions import override

from seglog.doctor.check.verify import verify_store
from seglog.errors import TruncatedError
from seglog.storage.files.files import RealFiles
from seglog.storage.kernels.parallel_walk import Walkers
from seglog.storage.kernels.walk import QueueTable
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.machine.kernels import native, running
from tests.support.machine.patience import patience_s
from tests.support.material.records import Record, pack_log
from tests.support.narrow import not_none

PAGE = mmap.PAGESIZE
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    "ASAN_OPTIONS": "detect_leaks=0:handle_sigbus=0",  # a sanitizer would end the process in its own way
}
RECORDS = [Record(body=bytes(900))] * 400


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(pack_log(RECORDS))
    return path


def map_of(path, *, writable=False):
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    with path.open("r+b") as stream:
        return memoryview(mmap.mmap(stream.fileno(), 0, access=access))


def cut(path, size):
    """By another process, as it happens."""
    subprocess.run(["truncate", "-s", str(size), str(path)], check=True)


def walk_stretch(view):
    rows = memoryview(bytearray(len(RECORDS) * 44))
    native().walk_stretch(view, 0, 0, len(view), True, False, rows)


def find_behind(view):
    native().find_record(view, 1, 5 * PAGE, len(view))


CALLS = {
    # name: (what is done, the first page behind the cut that it reads)
    "walk": (lambda view: native().walk(view, 0, True, QueueTable().number), 3),
    "walk_stretch": (walk_stretch, 3),
    "find_record": (find_behind, 5),
}


@pytest.mark.parametrize(("call", "first_page"), CALLS.values(), ids=CALLS)
def test_a_cut_file_is_an_error_that_says_where(call, first_page, path):
    view = map_of(path)
    cut(path, 3 * PAGE)
    before = signal.getsignal(signal.SIGBUS)
    for _ in range(3):
        with pytest.raises(TruncatedError, match="cut-by-others") as raised:
            call(view)
        assert raised.value.position_bytes // PAGE == first_page
    assert signal.getsignal(signal.SIGBUS) == before


def test_pieces_side_by_side_end_with_the_error_too(path):
    view = map_of(path)
    cut(path, 3 * PAGE)
    walkers, queues = Walkers(3, 50_000), QueueTable()
    with running("native"):
        walkers._pieces = 4
        with pytest.raises(TruncatedError):
            walkers.walk_ahead(view, 0, 0, queues)
    walkers.close()
    assert queues.names == []


class CutOnceMapped(RealFiles):
    """Another process cuts a file just when it was mapped, and its length looked at."""

    def __init__(self, name, size):
        self._cut = name, size

    @override
    def open(self, path, *, writable):
        name, size = self._cut
        opened = super().open(path, writable=writable)
        if path.name != name:
            return opened
        return _CutOnceMapped(opened, path, size, self)

    def forget(self):
        self._cut = "", 0


class _CutOnceMapped:
    def __init__(self, opened, path, size, files):
        self._opened, self._path, self._size, self._files = opened, path, size, files

    def __getattr__(self, name):
        return getattr(self._opened, name)

    def map(self):
        view = self._opened.map()
        cut(self._path, self._size)
        self._files.forget()  # a file may be opened before, to be looked at
        return view


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store"
    with MessageStore.open(path, segment_size_bytes=1 << 20, queue_file_size_bytes=2000) as made:
        for number in range(2500):
            made.put("T", b"%d" % number + bytes(1000))
    return path


@pytest.mark.parametrize("size", [0, 5 * PAGE, 5 * PAGE + 100])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_surveys_say_what_is_left_of_a_file_that_is_cut_under_them(store, number, size):
    name = f"{number << 20:020d}"
    with running("native"):
        during = survey(store, CutOnceMapped(name, size))
        listed = survey(store, RealFiles())  # the length of the file was another when the first began
    with running("python"):
        expected = survey(store, RealFiles())
    for found in (during, listed):
        assert found.rows.tolist() == expected.rows.tolist()
        assert found.holes == expected.holes
        assert found.max_phy_offset == expected.max_phy_offset
    assert listed.findings == expected.findings


def test_verify_goes_on_behind_a_file_that_is_cut_under_it(store):
    name = f"{1 << 20:020d}"
    with running("native"):
        report = verify_store(store, CutOnceMapped(name, 5 * PAGE))
        expected = verify_store(store)
    assert "log-hole" in [finding.code for finding in report.findings]
    assert report.records == expected.records


def test_a_reader_opens_beside_somebody_who_cuts(store):
    with (
        running("native"),
        MessageStore.open(store, read_only=True, files=CutOnceMapped(f"{2 << 20:020d}", 5 * PAGE)) as reader,
    ):
        assert reader.get("T", 0, 0).messages[0].body.startswith(b"0")
        assert 0 < reader.max_offset("T", 0) <= 2500


# What the process did about the signal before, and does again: outcomes are exit codes.
HANDLERS = """
    import faulthandler, mmap, os, signal, sys, threading
    from seglog.errors import TruncatedError
    from seglog.storage.kernels import _native
    kind, path = sys.argv[1:]
    view = memoryview(mmap.mmap(os.open(path, os.O_RDONLY), 0, access=mmap.ACCESS_READ))
    os.truncate(path, 4096)
    told = []
    if kind == "python":
        signal.signal(signal.SIGBUS, lambda *_: told.append("handled"))
    elif kind == "ignored":
        signal.signal(signal.SIGBUS, signal.SIG_IGN)
    elif kind == "faulthandler":
        faulthandler.enable()
    try:
        _native.find_record(view, 1, 0, len(view))
    except TruncatedError:
        told.append("truncated")
    if kind in ("python", "ignored"):
        os.kill(os.getpid(), signal.SIGBUS)
        print(told)
        sys.exit(0)
    print(told, flush=True)
    view[8192]  # nobody guards this one
"""


@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("python", 0, "['truncated', 'handled']"),
        ("ignored", 0, "['truncated']"),
        ("default", -signal.SIGBUS, "['truncated']"),
        ("faulthandler", -signal.SIGBUS, "['truncated']"),
    ],
)
def test_faults_of_others_end_as_they_did_before(kind, code, told, path):
    native()
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HANDLERS), kind, str(path)],
        cwd=path.parent, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout.strip()) == (code, told), ran.stderr
    assert ("Fatal Python error: Bus error" in ran.stderr) == (kind == "faulthandler")


# Others fault, or are sent the signal, while a guard is up in another thread.
BESIDE = """
    import faulthandler, mmap, os, signal, sys, threading, time
    from seglog.storage.kernels import _native
    kind, path = sys.argv[1:]
    view = memoryview(mmap.mmap(os.open(path, os.O_RDONLY), 0, access=mmap.ACCESS_READ))
    os.truncate(path, 4096)
    if kind == "faulthandler":
        faulthandler.enable()
    zeros = memoryview(bytes(1 << 28))
    def search():
        while True:
            _native.find_record(zeros, 1, 0, len(zeros))
    threading.Thread(target=search, daemon=True).start()
    time.sleep(0.2)
    if kind == "sent":
        os.kill(os.getpid(), signal.SIGBUS)
        time.sleep(10)
    view[8192]
"""


@pytest.mark.parametrize("kind", ["fault", "faulthandler", "sent"])
def test_faults_beside_a_guard_end_the_process(kind, path):
    native()
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BESIDE), kind, str(path)],
        cwd=path.parent, env=ENVIRONMENT, capture_output=True, text=True, check=False,
        timeout=patience_s(60),
    )  # fmt: skip
    assert ran.returncode == -signal.SIGBUS
    assert ("Fatal Python error: Bus error" in ran.stderr) == (kind == "faulthandler")


# A file is cut and made long again, by another process, while walks over it go on.
RACE = """
    import mmap, os, sys, time
    from seglog.errors import TruncatedError
    from seglog.storage.kernels import _native
    from seglog.storage.kernels.walk import QueueTable
    view = memoryview(mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, access=mmap.ACCESS_READ))
    print("walks", flush=True)
    cuts = 0
    deadline = time.monotonic() + 120
    while cuts < 20 and time.monotonic() < deadline:
        try:
            _native.walk(view, 0, True, QueueTable().number)
        except TruncatedError:
            cuts += 1
    print(cuts)
"""


def test_walks_survive_whoever_cuts_the_file_meanwhile(path, start_child):
    native()
    content = path.read_bytes()
    walker = start_child(
        [sys.executable, "-c", textwrap.dedent(RACE), path],
        cwd=path.parent, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with path.open("r+b") as stream:
        assert not_none(walker.stdout).readline() == "walks\n"
        while walker.poll() is None:
            os.ftruncate(stream.fileno(), 7 * PAGE)
            os.pwrite(stream.fileno(), content[7 * PAGE :], 7 * PAGE)
        assert not_none(walker.stdout).read() == "20\n"
    assert walker.returncode == 0

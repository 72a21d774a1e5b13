"""What a run does with its tests: how much, with which draws, what they share, what a failure says."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from seglog.remoting.later import Deferred
from tests.support import scale
from tests.support.machine import memory_folder, shared
from tests.support.machine.children import child
from tests.support.machine.patience import (
    LateError,
    in_time,
    is_late,
    join_thread,
    looks,
    patience_s,
    wait_for_end,
    wait_for_event,
    wait_for_result,
    wait_until,
    wait_until_in_loop,
)
from tests.support.narrow import not_none
from tests.support.rows import each_row, every_row
from tests.support.scale import Size, chance, scaled, seed_number, start

ROOT = Path(__file__).resolve().parents[2]
OF_RUN = ("SEGLOG_TEST_", "HYPOTHESIS_", "PYTEST_")
CONFTEST = """
from tests.conftest import (
    pytest_addoption, pytest_collection_modifyitems, pytest_configure, pytest_report_header,
    pytest_runtest_makereport, pytest_sessionfinish, pytest_terminal_summary,
)
"""
INI = "[pytest]\nmarkers = ['campaign: of the campaign', 'sampled(n): n cases']\n"
MARKED = """
import pytest
from hypothesis import given, strategies
from tests.support.scale import scaled

@pytest.mark.campaign
def test_long(): pass

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(40))
def test_of_many(number): pass

@pytest.mark.campaign
@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(4))
def test_long_of_many(number): pass

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(2))
def test_of_few(number): pass

def test_scaled(): print("scaled", scaled(8, 80))

@given(strategies.integers(0, 1 << 60))
def test_drawn(number): print("drew", number)
"""
FAILING = """
import pytest
from tests.support.machine.shared import once
from tests.support.rows import every_row

def make(folder):
    (folder / "file").write_text("as it was")

def test_shares():
    once("a store", make)

def test_writes_to_what_is_shared():
    (once("a store", make) / "file").write_text("no longer so")

@pytest.mark.parametrize("name", ["it's"])
def test_rows(name):
    with every_row() as row:
        for number in range(3):
            with row("number", number):
                assert number == 1
"""


@pytest.fixture
def sized():
    """Returns what sets the size of this process until the end of the test."""
    before = scale.size()
    yield scale.set_size
    scale.set_size(before)


def run(folder, source, *words, **variables):
    """Runs tests as a process of its own does, with our conftest; returns what it said, and its exit code."""
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.toml").write_text(INI)
    (folder / "test_it.py").write_text(source)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_RUN)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words, "test_it.py"],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"} | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=patience_s(60),
        check=False,
    )
    return done.stdout, done.returncode


def passed(said):
    return re.findall(r"^PASSED test_it\.py::(\S+)", said, re.MULTILINE)


def test_a_gate_does_a_quarter_and_at_least_one_and_takes_steps_that_are_wider(sized):
    rows = [
        ((8, 80), {Size.GATE: 2, Size.USUAL: 8, Size.FULL: 80}),
        ((3, 80), {Size.GATE: 1, Size.USUAL: 3, Size.FULL: 80}),
        ((8, 8), {Size.GATE: 2, Size.USUAL: 8, Size.FULL: 8}),
        ((97, 1), {Size.GATE: 388, Size.USUAL: 97, Size.FULL: 1}),
    ]
    with every_row() as row:
        for (usual, full), wanted in rows:
            for size, count in wanted.items():
                with row(usual, full, size):
                    sized(size)
                    assert scaled(usual, full) == count
                    assert (scale.is_gate(), scale.is_full()) == (size is Size.GATE, size is Size.FULL)


def test_the_seed_is_the_one_that_is_given_or_the_commit_or_fixed(monkeypatch):
    asked = scale.commit_seed.__wrapped__
    monkeypatch.setenv(scale.SEED_VARIABLE, "a given one")
    assert asked() == "a given one"
    monkeypatch.delenv(scale.SEED_VARIABLE)
    git = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    assert asked() == (commit[:12] or "seglog")
    with monkeypatch.context() as without:
        without.setenv("PATH", "")
        assert asked() == "seglog"
    monkeypatch.setattr(scale, "_ROOT", ROOT / "tests")  # the git around it is of another project
    assert asked() == "seglog"


def test_a_seed_of_any_bytes_is_text(monkeypatch):
    monkeypatch.setenv(scale.SEED_VARIABLE, os.fsdecode(b"a\xff"))
    assert scale.commit_seed.__wrapped__() == r"a\xff"
    monkeypatch.setenv(scale.SEED_VARIABLE, r"a\xff")
    assert scale.commit_seed.__wrapped__() == r"a\xff"


def test_a_size_that_there_is_not_is_refused(tmp_path):
    said, code = run(tmp_path, MARKED, SEGLOG_TEST_SIZE="wrong")
    assert (code, said) == (1, "SEGLOG_TEST_SIZE is 'wrong': expected gate, usual or full\n")


def test_draws_follow_from_the_seed_and_from_the_names_of_a_test():
    assert chance("a", 1).random() == chance("a", 1).random()
    assert len({chance(*names).random() for names in (("a", 1), ("a", 2), ("b", 1), ("a",))}) == 4
    assert {start(7, "a", number) for number in range(200)} == set(range(7))
    assert seed_number("a") < 1 << 64


def test_an_error_says_how_to_repeat_it(monkeypatch):
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/a.py::test_b[it's] (call)")
    monkeypatch.setenv("SEGLOG_KERNEL", "python")
    with pytest.raises(ValueError, match="x") as raised, scale.repeatable("a b"):
        raise ValueError("x")
    (note,) = raised.value.__notes__
    assert shlex.split(note) == [
        *("to", "repeat:", "SEGLOG_KERNEL=python", "SEGLOG_TEST_SEED=a b", ".venv/bin/pytest"),
        *("--size", scale.size(), "tests/a.py::test_b[it's]"),
    ]
    monkeypatch.delenv("SEGLOG_KERNEL")
    assert scale.repeating("a", "b") == f"SEGLOG_TEST_SEED=b .venv/bin/pytest --size {scale.size()} a"


def test_the_gate_leaves_the_campaign_out_and_takes_a_sample_of_the_seed(tmp_path):
    said, code = run(tmp_path, MARKED, "-s", SEGLOG_TEST_SEED="one")
    again, _ = run(tmp_path, MARKED, "-s", SEGLOG_TEST_SEED="one")
    other, _ = run(tmp_path, MARKED, "-s", SEGLOG_TEST_SEED="two")
    assert code == 0, said
    assert "size gate, seed one" in said
    assert "scaled 2" in said
    sample = [name for name in passed(said) if name.startswith("test_of_many")]
    assert len(sample) == 3
    assert set(passed(said)) == {*sample, "test_of_few[0]", "test_of_few[1]", "test_scaled", "test_drawn"}
    assert set(passed(said)) == set(passed(again)) != set(passed(other))
    drawn = [re.findall(r"drew \d+", text) for text in (said, again, other)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 50


def test_the_campaign_runs_all(tmp_path):
    said, code = run(tmp_path, MARKED, "-s", "--size", "usual")
    assert (code, len(passed(said))) == (0, 1 + 40 + 4 + 2 + 2), said
    assert "scaled 8" in said
    assert said.count("drew ") == 200


def test_a_failure_has_its_row_and_the_line_to_repeat_it_and_a_write_to_what_is_shared_fails(tmp_path):
    said, code = run(tmp_path, FAILING, SEGLOG_TEST_SEED="one")
    assert code == pytest.ExitCode.INTERNAL_ERROR, "it is more than tests that failed"
    assert "2 of 3 rows failed" in said
    assert "in row number, 0" in said
    assert "in row number, 2" in said
    assert "in row number, 1" not in said
    quoted = shlex.quote("test_it.py::test_rows[it's]")
    assert f"SEGLOG_TEST_SEED=one .venv/bin/pytest --size gate {quoted}" in said
    assert "A test wrote into a folder of once() that other tests read: a-store-" in said
    said, code = run(tmp_path, FAILING, "-k", "shares or writes")
    assert (code, "2 passed" in said) == (pytest.ExitCode.INTERNAL_ERROR, True), said
    said, code = run(tmp_path, FAILING, "-k", "test_shares")
    assert (code, "A test wrote" in said) == (0, False), said


def test_every_row_is_tried_and_a_late_one_ends_the_table():
    tried = []

    def try_all():
        with every_row() as row:
            for number in range(3):
                with row(number):
                    tried.append(number)
                    if number == 1:
                        raise LateError("it was not so")

    with pytest.raises(LateError):
        try_all()
    assert tried == [0, 1]
    with pytest.raises(AssertionError, match="no row"), every_row():
        pass


def test_marks_of_a_row_are_refused():
    with pytest.raises(ValueError, match="have no marks"):
        each_row("number", [pytest.param(1, marks=pytest.mark.skip)])
    each_row("number", [pytest.param(1, id="one")])


def test_what_is_shared_is_made_once_by_processes_that_want_it_at_once(tmp_path, start_child):
    source = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from tests.support.machine.shared import once, value_once\n"
        "def make(folder):\n"
        "    (folder / 'made').write_text(str(os.getpid()))\n"
        "    time.sleep(0.2)\n"
        "    (folder / 'whole').touch()\n"
        "sys.stdin.read()\n"
        "folder = once('any: key/of it', make)\n"
        "assert (folder / 'whole').exists()\n"
        "print((folder / 'made').read_text(), value_once('number', os.getpid))\n"
    )
    variables = os.environ | {"PYTHONPATH": str(ROOT), "SEGLOG_TEST_SHARED": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": variables}
    processes = [start_child([sys.executable, "-c", source], **pipes) for _ in range(3)]
    for process in processes:
        process.stdin.close()
    said = {process.stdout.read() for process in processes}
    assert [wait_for_end(process) for process in processes] == [0, 0, 0]
    (one,) = said
    assert {int(number) for number in one.split()} <= {process.pid for process in processes}


def test_what_a_process_left_half_made_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SEGLOG_TEST_SHARED", str(tmp_path))

    def make_half(folder):
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared.once("a", make_half)
    made = shared.once("a", lambda folder: (folder / "whole").touch())
    assert [path.name for path in made.iterdir()] == ["whole"]
    assert shared.once("a", make_half) == made


def test_a_child_that_is_forked_meanwhile_holds_up_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("SEGLOG_TEST_SHARED", str(tmp_path))
    gate, until_then = os.pipe()

    def fork(_):
        if os.fork() == 0:
            os.close(until_then)
            os.read(gate, 1)
            os._exit(0)

    shared.once("a", fork)
    with next(tmp_path.glob("*.lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(until_then)
    os.wait()
    os.close(gate)


OPENS = "import sys; from tests.support.machine.shared import open_shared; print(open_shared(), flush=True)"


def test_a_folder_that_is_shared_does_not_outlive_its_process_for_long(tmp_path, start_child):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_RUN)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    options = {**pipes, "env": kept | {"PYTHONPATH": str(ROOT)}}
    killed, alive = [
        start_child([sys.executable, "-c", f"{OPENS}; sys.stdin.read()"], **options) for _ in range(2)
    ]
    folders = [Path(process.stdout.readline().strip()) for process in (killed, alive)]
    killed.kill()
    wait_for_end(killed)
    for folder in folders:
        assert folder.is_dir()
        os.utime(folder, (0, 0))
    ended = start_child([sys.executable, "-c", OPENS], **options)
    last = Path(ended.stdout.readline().strip())
    assert wait_for_end(ended) == 0
    assert [folder.exists() for folder in (*folders, last)] == [False, True, False]
    alive.stdin.close()
    assert (wait_for_end(alive), folders[1].exists()) == (0, False)


def test_an_error_of_the_disk_is_no_hole(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "broken")

    (tmp_path / "file").write_text("a")
    monkeypatch.setattr(os, "lseek", fail)
    with pytest.raises(OSError, match="broken"):
        shared.content_digest(tmp_path)


def test_no_folder_in_memory_is_used_that_is_not_there_or_read_only(tmp_path, monkeypatch):
    has_room = memory_folder._has_room.__wrapped__
    monkeypatch.setattr(memory_folder, "_FOLDER", tmp_path / "missing")
    assert not has_room()
    monkeypatch.setattr(memory_folder, "_FOLDER", tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not has_room()


def test_a_copy_of_what_is_shared_is_one_of_its_own(tmp_path):
    (tmp_path / "source").mkdir()
    with (tmp_path / "source" / "file").open("wb") as file:
        file.truncate(8 << 20)
        file.write(b"begin")
    copy = shared.copy_tree(tmp_path / "source", tmp_path / "copy")
    (copy / "file").write_bytes(b"other")
    assert (tmp_path / "source" / "file").stat().st_size == 8 << 20
    assert (tmp_path / "source" / "file").stat().st_nlink == 1


def test_what_does_not_come_in_time_is_late_and_no_other_error():
    ended, never = threading.Event(), Deferred()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    waits = {
        "wait_until": lambda: wait_until(lambda: False, idle_s=0),
        "looks": lambda: list(looks("a file", idle_s=0)),
        "wait_for_event": lambda: wait_for_event(ended, idle_s=0),
        "join_thread": lambda: join_thread(thread, idle_s=0),
        "wait_for_result": lambda: wait_for_result(never, idle_s=0),
        "wait_until_in_loop": lambda: asyncio.run(wait_until_in_loop(lambda: False, idle_s=0)),
        "in_time": lambda: asyncio.run(in_time(asyncio.sleep(60), idle_s=0)),
    }
    with every_row() as row:
        for name, wait in waits.items():
            with row(name), pytest.raises(LateError) as raised:
                wait()
            assert is_late(raised.value)
    ended.set()
    join_thread(thread)


def test_what_comes_is_returned_and_what_is_raised_meanwhile_is_no_lateness():
    answers = [0, "", 3]
    assert wait_until(lambda: answers.pop(0), look_s=0) == 3
    assert next(looks("a file")) < patience_s(5)
    waits = [
        lambda: wait_until(lambda: 1 // 0),
        lambda: asyncio.run(wait_until_in_loop(lambda: 1 // 0)),
        lambda: asyncio.run(in_time(wrong())),
    ]
    for wait in waits:
        with pytest.raises(ZeroDivisionError) as raised:
            wait()
        assert not is_late(raised.value)
    assert not is_late(AssertionError("1 == 2"))
    assert is_late(subprocess.TimeoutExpired("a", 1))


async def wrong():
    raise ZeroDivisionError


def test_patience_is_at_least_twice_what_an_idle_machine_takes():
    assert patience_s(5) >= 10


def test_a_child_is_ended_and_its_pipes_closed_also_if_the_test_fails():
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    started = []

    def fail_beside_it():
        with child([sys.executable, "-c", "input()"], **pipes) as process:
            started.append(process)
            not_none(process.stdin).write(b"not yet a line")
            assert process.poll() is None
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_beside_it()
    (process,) = started
    assert process.poll() == -signal.SIGKILL
    assert all(not_none(pipe).closed for pipe in (process.stdin, process.stdout, process.stderr))
    with child([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        assert wait_for_end(process) == 3


def test_a_child_that_nobody_holds_ends_with_its_process():
    source = (
        "import sys\n"
        "from tests.support.machine.children import start\n"
        "print(start([sys.executable, '-c', 'import time; time.sleep(600)']).pid)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", source],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        timeout=patience_s(60),
        check=True,
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int(ran.stdout), 0)


def test_a_process_that_does_not_end_is_late_and_killed(start_child):
    process = start_child([sys.executable, "-c", "import time; time.sleep(600)"])
    with pytest.raises(LateError, match="runs still"):
        wait_for_end(process, idle_s=0)
    assert process.poll() == -signal.SIGKILL

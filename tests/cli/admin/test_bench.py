"""``seglog bench`` does what it counts, keeps to its bounds, and leaves nothing behind."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import pytest

from seglog.cli.admin.bench_measures import LEAST_SPACE_BYTES, Measure, measures
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.command_line.loaded import loaded
from tests.support.machine.patience import wait_until

NAMES = ["put-async", "put-sync", "fdatasync", "read-in-order", "get-anywhere"]
BODY_BYTES = 256 << 10


def ticking(step_s: float):
    """Returns a clock that goes on by a step each time that it is asked."""
    ticks = itertools.count()
    return lambda: next(ticks) * step_s


def tree(folder):
    """Returns what a folder holds, with the bytes of each file."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_counted_is_in_the_store_and_keeps_to_its_space(tmp_path):
    taken = list(measures(tmp_path, 0.5, LEAST_SPACE_BYTES, BODY_BYTES, ticking(1 / 128)))
    assert [measure.name for measure in taken] == NAMES
    put, synced, pages, read, anywhere = taken
    with MessageStore.open(tmp_path / "store", read_only=True, create=False) as store:
        stored = [message.body for message in store.get("bench", 0, 0, 1000)]
        assert store.max_offset("bench", 0) == put.operations + synced.operations
    assert {len(body) for body in stored} == {BODY_BYTES}
    assert put.size_bytes == put.operations * BODY_BYTES
    assert 0 < put.size_bytes < LEAST_SPACE_BYTES / 2, "room for it was at its end before the time was"
    assert 0 < synced.operations == len(synced.each_s) < 64
    assert pages.operations == 64
    assert (tmp_path / "pages").stat().st_size == 1 << 20
    assert read.size_bytes == read.operations * BODY_BYTES
    assert read.operations > len(stored), "it started over at the end"
    assert anywhere.operations == 63 * 64
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_blocks * 512 for path in files) < LEAST_SPACE_BYTES + (4 << 20)


def test_times_of_a_measure_are_shares_of_what_was_timed():
    measure = Measure("n", "t", 4, 400, 8.0, (1.0, 2.0, 2.0, 3.0))
    assert (measure.per_second, measure.bytes_per_second) == (0.5, 50)
    assert (measure.within_s(0.5), measure.within_s(0.99), measure.within_s(1)) == (2.0, 3.0, 3.0)
    assert Measure("n", "t", 4, 400, 8.0).within_s(0.5) is None


def test_a_store_in_use_is_not_changed_and_programs_get_a_line_a_measure(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s", small=True) as store:
        store.put("T", b"body")
        store.flush()
        before = tree(tmp_path / "s" / "commitlog")
        names = sorted(path.name for path in (tmp_path / "s").iterdir())
        ran = seglog("bench", tmp_path / "s", "--seconds", 0.05, "--space", "256m", "--body", 100, "--json")
        assert sorted(path.name for path in (tmp_path / "s").iterdir()) == names
        assert tree(tmp_path / "s" / "commitlog") == before
    assert ran.exit_code == 0, ran.stderr
    assert [line["name"] for line in ran.lines] == NAMES
    for line in ran.lines:
        assert line["operations"] > 0
        assert line["seconds"] >= 0.05
        assert line["perSecond"] == pytest.approx(line["operations"] / line["seconds"], rel=0.01)
        one_bytes = 4096 if line["name"] == "fdatasync" else 100
        assert line["bytes"] == line["operations"] * one_bytes
        is_timed = line["name"] in ("put-sync", "fdatasync")
        assert (line["p50Us"] is not None, line["p99Us"] is not None) == (is_timed, is_timed)
    assert ran.lines[1]["p50Us"] <= ran.lines[1]["p99Us"]


def test_people_get_a_table_and_nothing_is_left(seglog: Seglog, tmp_path):
    ran = seglog("bench", tmp_path, "--seconds", 0.05, "--space", "256m")
    assert ran.exit_code == 0, ran.stderr
    heading, *rows, note = ran.stdout.splitlines()
    assert heading.split()[:2] == ["what", "times"]
    assert [row.split("  ")[0] for row in rows] == [
        "put, ASYNC",
        "put, SYNC",
        "fdatasync of a page",
        "read in order",
        "get of one anywhere",
    ]
    assert "page cache" in note
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--space", "63m"], "--space: found 63.0 MiB, expected 64.0 MiB or more"),
        (["--space", "900000t"], "free, expected"),
        (["--body", "0"], "--body: found 0 bytes, expected 1 byte to 1.0 MiB"),
        (["--body", "2m"], "--body: found 2.0 MiB, expected 1 byte to 1.0 MiB"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_made(seglog: Seglog, tmp_path, words, said):
    ran = seglog("bench", tmp_path, *words)
    assert ran.exit_code == 24
    assert said in ran.stderr
    assert list(tmp_path.iterdir()) == []
    assert seglog("bench", tmp_path / "none").exit_code == 2


def test_a_time_that_is_no_number_is_refused(seglog: Seglog, tmp_path):
    ran = seglog("bench", tmp_path, "--seconds", "nan")
    assert (ran.exit_code, list(tmp_path.iterdir())) == (24, [])
    assert "--seconds: found no number" in ran.stderr


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", ["store", "pages"])
def test_after_ctrl_c_or_sigterm_nothing_is_left(tmp_path, at, asked):
    """The folder of the measures is gone where it is interrupted while it puts, and while it syncs."""
    folder, said = tmp_path / "measured", tmp_path / "said"
    folder.mkdir()
    seconds = 60 if at == "store" else 0.5
    words = ["bench", folder, "--seconds", seconds, "--space", "256m"]
    with said.open("w+") as errors, Path(os.devnull).open("r+") as nothing:
        files = [nothing.fileno(), nothing.fileno(), errors.fileno()]
        with loaded().running(words, files) as running:
            wait_until(lambda: list(folder.glob(f"seglog-bench-*/{at}*")), f"the file {at}", idle_s=30)
            os.kill(running.pid, asked)
            assert running.wait() == 128 + asked, said.read_text()
    assert list(folder.iterdir()) == []

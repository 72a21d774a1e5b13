"""Peers are measured on the same terms: warm, flushed, with memory made ready. A plan fits into its time."""

from __future__ import annotations

import mmap
import subprocess
import threading
from dataclasses import replace

import pytest
from typing_extensions import override

from perf.__main__ import main
from perf.contestants.python_peer import LMDB, SQLITE
from perf.contestants.warm import warm_up
from perf.figures.aims import SHOWN, cast
from perf.figures.machine import commit_of, interpreter_build
from perf.figures.report import to_markdown
from perf.figures.results import Results
from perf.figures.sample import Sample, SanityError
from perf.plan.budget import Budget
from perf.plan.cases import CASE
from perf.plan.pace import Cost, cost, fitting
from perf.sampling.flusher import Flusher
from perf.sampling.memory import make_ready
from perf.sampling.rounds import _sample
from tests.perf.test_perf import ROUNDS, run_of
from tests.support.machine.patience import patience_s, wait_for_event

FIGURES = Budget(4)


def test_a_jvm_works_five_seconds_before_its_first_sample(tmp_path):
    places = []

    def take(place):
        assert list(place.iterdir()) == []
        places.append(place)
        return Sample(1, 2.0, 0.0)

    assert warm_up(take, FIGURES, tmp_path) == 6.0
    assert len(set(places)) == 3
    assert [place for place in places if place.exists()] == []
    assert warm_up(take, Budget(1), tmp_path) == 0


def test_files_are_synced_again_and_again_also_where_some_vanish(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "log").write_bytes(b"x" * 1000)
    turns, sizes = threading.Event(), []

    class Seen(Flusher):
        @override
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "synced_bytes" and value:
                sizes.append(value)
                (tmp_path / "gone").unlink(missing_ok=True)
                if len(sizes) > 2:
                    turns.set()

    (tmp_path / "gone").write_bytes(b"y" * 500)
    with Seen(tmp_path, 0.01):
        wait_for_event(turns)
    assert sizes[0] == 1500
    assert set(sizes[1:]) == {1000}


def test_who_leaves_nothing_to_flush_where_figures_are_wanted_has_no_figure(tmp_path):
    class Elsewhere:
        key = title = "elsewhere"
        flushes_itself = False

        def knows(self, _case):
            return True

        def get_ready(self, case, budget, directory):
            """Nothing is kept."""

        def sample(self, case, budget, directory):
            return Sample(1, 1.5, 0.0)

        def close(self):
            """Nothing is kept."""

    with pytest.raises(SanityError, match="left nothing in its directory"):
        _sample(Elsewhere(), CASE["put-128"], FIGURES, tmp_path)
    assert _sample(Elsewhere(), CASE["loop-128"], FIGURES, tmp_path).operations == 1


@pytest.mark.parametrize("peer", [SQLITE, pytest.param(LMDB, marks=pytest.mark.campaign)])
def test_a_python_peer_is_flushed_and_measured_as_long_as_was_asked_for(tmp_path, peer):
    sample = _sample(peer, CASE["put-128"], Budget(4, sample_s=1.0), tmp_path)
    assert 1 <= sample.wall_s < patience_s(3)


def test_memory_that_is_made_ready_is_what_log_and_queue_take_in_sample_and_warm_up():
    for body_bytes, stored_bytes in ((128, 224 + 20), (1024, 1120 + 20)):
        messages = FIGURES.max_write_bytes(body_bytes) // body_bytes
        assert 0.99 * FIGURES.max_stored_bytes < messages * stored_bytes <= FIGURES.max_stored_bytes
    assert FIGURES.max_stored_bytes >= 2 << 30
    assert FIGURES.ready_bytes == FIGURES.max_stored_bytes * 5 // 4
    short = Budget(4, sample_s=0.0101)
    assert 0 <= make_ready(CASE["together"], short) - 2 * short.ready_bytes < mmap.PAGESIZE
    assert make_ready(CASE["loop-128"], FIGURES) == 0
    assert Budget(4, sample_s=1.5).ready_bytes == FIGURES.ready_bytes // 2


def test_samples_become_shorter_where_time_is_short_but_not_shorter_than_two_flushes():
    costs = [Cost(10, 20), Cost(20, 30)]
    assert fitting(costs, 30 + 50 * 3, 3.0) == 3.0
    assert fitting(costs, 30 + 50 * 2, 3.0) == 2.0
    assert fitting(costs, 5, 3.0) == 1.0
    assert fitting([Cost(10)], 5, 3.0) == 3.0


def test_a_plan_costs_more_with_a_jvm_and_what_is_shown_fits_into_half_an_hour():
    case = CASE["put-128"]
    alone, both = (cost(case, keys, 7, FIGURES) for keys in (["native"], ["native", "rocketmq"]))
    assert (alone.samples, both.samples) == (7, 14)
    assert both.fixed_s > 2 * alone.fixed_s + FIGURES.first_warm_up_seconds
    whole = sum((cost(CASE[name], who, 7, FIGURES) for name, who in cast(SHOWN).items()), Cost())
    assert fitting([whole], 25 * 60, 3.0) >= 2


def test_rows_that_are_shown_have_whom_their_aims_name_and_nobody_else():
    named = cast(SHOWN)
    assert named["put-128"] == {"native", "python", "rocketmq"}
    assert named["batch-1024-256"] == {"native", "rocketmq", "lmdb", "kafka"}
    assert named["batch-128-4096"] == {"native", "commitlog"}
    assert named["random-loop"] == {"native"}
    assert len(named) == 17


@pytest.mark.parametrize("wrong", [("--sample-s", "0.5"), ("--sample-s", "nan"), ("--minutes", "0")])
def test_times_that_show_nothing_are_refused(wrong, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(wrong)
    assert "--sample-s must be 1 or more" in capsys.readouterr().err


def test_each_row_says_of_which_commit_it_is():
    results = Results({"native": "seglog native", "rocketmq": "RocketMQ"})
    results.put("put-128", run_of(ROUNDS))
    results.put("put-1024", replace(run_of(ROUNDS), commit=""))
    shown = to_markdown(results)
    rows = [line for line in shown.splitlines() if line.startswith("| put, ") and "k messages/s" in line]
    assert [row.split(" | ")[-1] for row in rows[-2:]] == ["abc1234, 2026-01-01 |", "2026-01-01 |"]


def test_commit_of_a_checkout_is_marked_once_its_code_is_changed(tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert commit_of(tmp_path) == ""
    git("init")
    (tmp_path / "perf").mkdir()
    for name in ("RESULTS.json", "__main__.py"):
        (tmp_path / "perf" / name).write_text("1")
    git("add", ".")
    git("commit", "-m", "first")
    commit = commit_of(tmp_path)
    assert len(commit) == 9
    (tmp_path / "perf" / "RESULTS.json").write_text("2")
    assert commit_of(tmp_path) == commit
    (tmp_path / "perf" / "__main__.py").write_text("2")
    assert commit_of(tmp_path) == commit + "+"


def test_interpreter_says_how_it_was_built(monkeypatch):
    monkeypatch.setattr(
        "sysconfig.get_config_var", lambda _name: "'--enable-optimizations' '--with-lto=thin'"
    )
    assert interpreter_build().endswith(", --enable-optimizations, --with-lto")
    monkeypatch.setattr("sysconfig.get_config_var", lambda _name: "'--prefix=/--with-lto-x'")
    assert interpreter_build().endswith(", no --enable-optimizations, no --with-lto")

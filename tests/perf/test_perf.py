"""The benches do what they say, and refuse figures of a log that does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typing_extensions import override

from perf import bench_views
from perf.contestants.process import anonymous_bytes
from perf.figures.aims import AIMS, Aim, Measure
from perf.figures.machine import Machine
from perf.figures.report import to_markdown
from perf.figures.results import Results, Round, Run, load, save
from perf.figures.sample import Sample, SanityError
from perf.figures.spread import Spread, figures, ratios
from perf.logs.seglog_log import SeglogLog
from perf.logs.sqlite_log import SqliteLog
from perf.plan.bodies import bodies_of
from perf.plan.budget import Budget
from perf.plan.cases import CASE, CASES
from perf.plan.columns import COLUMNS
from perf.workloads.reads import read
from perf.workloads.size import count_bytes, write_some
from perf.workloads.writes import write
from tests.support.machine.kernels import native
from tests.support.machine.patience import patience_s

ROOT = Path(__file__).resolve().parents[2]
TINY = Budget(0.2)

# In the second round the machine was half as fast for all.
ROUNDS = [
    {"native": Sample(4000, 1.0, 0.5, {"open_s": 1.0}), "rocketmq": Sample(2000, 1.0, 1.0, {"open_s": 4.0})},
    {"native": Sample(1800, 1.0, 0.5, {"open_s": 2.0}), "rocketmq": Sample(1000, 1.0, 1.0, {"open_s": 6.0})},
]


def perf(*arguments, module="perf"):
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=patience_s(120),
    )  # fmt: skip


def run_of(rounds):
    machine = Machine(2, 24, "6.1", "3.11.7", "")
    known = [Round((0.5, 1.5), samples) for samples in rounds]
    return Run("perf", "2026-01-01", 4, machine, commit="abc1234", sample_s=3, took_s=60, rounds=known)


def test_ratios_are_formed_within_a_round():
    assert ratios(ROUNDS, "native", "rocketmq", "per_s") == Spread(1.9, 1.8, 2.0)
    assert figures(ROUNDS, "native", "per_s", 1e3) == Spread(2.9, 1.8, 4.0)
    assert figures(ROUNDS, "rocketmq", "cpu_us") == Spread(750.0, 500.0, 1000.0)


def test_small_figures_are_better_where_the_column_says_so():
    assert ratios(ROUNDS, "native", "rocketmq", "open_s") == Spread(3.5, 3.0, 4.0)


def test_nothing_as_little_as_nothing_is_the_same():
    nothing = [{key: Sample(1, 1.0, 0.0, {"index_bytes": 0.0}) for key in ("native", "rocketmq")}]
    assert ratios(nothing, "native", "rocketmq", "index_bytes") == Spread(1.0, 1.0, 1.0)


def test_names_of_cases_are_unique_and_their_columns_known():
    assert len(CASE) == len(CASES)
    assert {column for case in CASES for column in case.columns} == set(COLUMNS)


def test_aims_are_of_cases_and_columns_that_there_are():
    assert [aim for aim in AIMS if aim.column not in CASE[aim.case].columns] == []


@pytest.mark.parametrize(
    ("aim", "is_met"),
    [
        (Aim("put-128", "per_s", "native", Measure.TIMES, 1.9), True),
        (Aim("put-128", "per_s", "native", Measure.TIMES, 1.95), False),
        (Aim("put-128", "per_s", "native", Measure.SAME, 1), False),
        (Aim("reopen", "open_s", "native", Measure.AT_MOST, 1.5), True),
        (Aim("reopen", "open_s", "native", Measure.AT_MOST, 1.4), False),
        (Aim("put-128", "per_s", "native", Measure.AT_LEAST, 2.9), True),
    ],
)
def test_an_aim_is_met_by_the_median(aim, is_met):
    assert aim.is_met(aim.found(ROUNDS)) is is_met


def test_report_shows_ratios_aims_and_who_is_missing():
    results = Results(
        {"native": "seglog native", "rocketmq": "RocketMQ", "lmdb": "LMDB"}, {"SQLite": "it is not there"}
    )
    results.put("put-128", run_of(ROUNDS))
    shown = to_markdown(results)
    assert "Left out: SQLite, because it is not there." in shown
    assert (
        "| put, 128 B, bare | k messages/s | 2.90 (1.80–4.00) | 1.90 (1.80–2.00) | 1.50 (1.00–2.00) "
        "| abc1234, 2026-01-01 |"
    ) in shown
    aim = "| put, 128 B, bare | seglog native | ≥ 4 × RocketMQ | 1.90 (1.80–2.00) | **no** |"
    assert f"{aim} abc1234, 2026-01-01 |" in shown
    assert "| put, 128 B, bare | seglog native | ≥ 4,000 k messages/s | 2.90 (1.80–4.00) | **no** |" in shown
    assert "| put, 128 B, bare | python | ≥ 0.5 × RocketMQ | – | not measured |" in shown
    assert "1 cases, 2 rounds, 1.0 minutes; load 1.00 (0.50–1.50)" in shown


def test_results_come_back_as_they_were_saved(tmp_path):
    results = Results({"native": "seglog native"}, {"SQLite": "it is not there"})
    results.put("reopen", run_of(ROUNDS))
    results.put("put-128", run_of(ROUNDS[:1]))
    save(results, tmp_path / "R.json")
    assert load(tmp_path / "R.json") == results
    assert list(results.runs) == ["put-128", "reopen"]


def test_ragged_bodies_are_as_long_as_the_case_says():
    case = CASE["batch-ragged-4096"]
    sizes = [len(body) for body in bodies_of(case, case.batch_size)]
    assert (min(sizes), max(sizes)) == (64, 2048)
    assert sum(sizes) / len(sizes) == pytest.approx(case.body_bytes, rel=0.01)


@pytest.mark.parametrize("kind", [SeglogLog, SqliteLog])
@pytest.mark.parametrize("name", ["put-128", "put-128-usual", "batch-ragged-32", "sync-1"])
def test_log_runs_the_writes(kind, name, tmp_path):
    run_writes(kind, name, tmp_path)


def run_writes(kind, name, folder):
    log = kind(folder, CASE[name], sync=name == "sync-1")
    try:
        assert write(log, CASE[name], TINY).operations > 0
    finally:
        log.close()


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            SeglogLog,
            ["view-1", "pull-1", "view-4", "pull-4", "loop-128", "random-view", "random-copy", "random-loop"],
        ),
        (SqliteLog, ["pull-1", "loop-128", "random-copy", "random-loop"]),
    ],
)
def test_log_runs_the_reads(kind, names, tmp_path):
    run_reads(kind, names, tmp_path)


def run_reads(kind, names, folder):
    for name in names:
        (folder / name).mkdir()
        log = kind(folder / name, CASE[name], sync=False)
        try:
            assert read(log, CASE[name], TINY).operations > 0
        finally:
            log.close()


class Forgetful(SqliteLog):
    """Loses a message, and never finds the last one."""

    @override
    def count(self, queue_id):
        return super().count(queue_id) - 1


class Short(SqliteLog):
    """Gives less than it was asked for."""

    @override
    def copy_some(self, places, count):
        return super().copy_some(places, count) - 1


@pytest.mark.parametrize(
    ("kind", "name", "work"),
    [(Forgetful, "put-128", write), (Forgetful, "batch-128-32", write), (Short, "pull-1", read)],
)
def test_a_log_that_does_not_do_what_was_measured_has_no_figure(kind, name, work, tmp_path):
    log = kind(tmp_path, CASE[name], sync=False)
    try:
        with pytest.raises(SanityError):
            work(log, CASE[name], TINY)
    finally:
        log.close()


def test_bytes_used_are_those_that_say_something(tmp_path):
    case, budget = CASE["size-usual"], Budget(0.1)
    write_some(tmp_path, case, budget)
    used = count_bytes(tmp_path, budget.size_messages)
    # The header, an entry for each of two keys and the tag, and a slot for nearly every key.
    assert used["index_bytes"] == pytest.approx(3 * 20 + 2 * 4, rel=0.01)
    assert (used["log_bytes"], used["queue_bytes"]) == (316, 20)
    with pytest.raises(SanityError):
        count_bytes(tmp_path, budget.size_messages + 1)


def test_anonymous_memory_of_a_process_is_seen(start_child):
    words = [sys.executable, "-c", "held = b'x' * (40 << 20); print(1, flush=True); input()"]
    process = start_child(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    assert 40 << 20 < anonymous_bytes(process.pid) < 80 << 20


def test_unknown_case_is_named_with_those_there_are():
    done = perf("--cases", "nothing")
    assert done.returncode == 1
    assert "put-128" in done.stderr


def test_views_of_a_queue_are_measured_and_checked(tmp_path):
    done = perf(
        "--size", "0.02", "--rounds", "1", "--write", str(tmp_path / "R.md"), module="perf.bench_views"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "2,000 messages, 1 rounds." in done.stdout
    titles = [line.split(" | ")[0] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert "| filter by tag and time in one expression, arrays in memory" in titles
    assert "| verify by seals" in titles
    written = (tmp_path / "R.md").read_text()
    assert written == "# A queue as numpy, and verifying by seals\n" + done.stdout


def test_views_refuse_sizes_that_show_nothing(capsys):
    with pytest.raises(SystemExit, match="2"):
        bench_views.main(["--size", "0.001"])
    assert "--size must be" in capsys.readouterr().err


def test_commits_are_measured_side_by_side_with_sqlite(tmp_path):
    small = ("--jobs", "3", "--rounds", "1", "--threads", "1", "2")
    done = perf(*small, "--dir", str(tmp_path), module="perf.bench_commits")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split(" | ")[:2] for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert rows == [[f"| {count}", who] for count in (1, 2) for who in ("seglog, LitePullConsumer", "SQLite")]


def test_kernels_are_measured_side_by_side(tmp_path):
    native()
    done = perf(
        "--size", "0.02", "--rounds", "1", "--write", str(tmp_path / "R.md"), module="perf.bench_kernels"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("| 1024 B, usual, ") == 2
    assert (tmp_path / "R.md").read_text() == "# Native kernels beside Python\n" + done.stdout

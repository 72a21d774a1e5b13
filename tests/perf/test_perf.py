"""The benches do what they say, and refuse figures of a log that does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perf.cases import CASES, Budget, Sample, SanityError
from perf.logs import FileLog, SqliteLog
from perf.machine import Machine
from perf.report import Results, Spread, cpu_us, rates, ratios, to_json, to_markdown
from perf.workloads import run
from tests.support.kernels import native

ROOT = Path(__file__).resolve().parents[2]
CASE = {case.name: case for case in CASES}
TINY = Budget(0.02)

# In the second round the machine was half as fast for everybody.
ROUNDS = [
    {"seglog": Sample(4000, 1.0, 0.5), "peer": Sample(2000, 1.0, 1.0)},
    {"seglog": Sample(1800, 1.0, 0.5), "peer": Sample(1000, 1.0, 1.0)},
]


def perf(*arguments, module="perf"):
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_ratios_are_formed_within_a_round():
    assert ratios(ROUNDS, "seglog", "peer") == Spread(1.9, 1.8, 2.0)
    assert rates(ROUNDS, "seglog", 1e3) == Spread(2.9, 1.8, 4.0)
    assert cpu_us(ROUNDS, "peer", 1) == Spread(750.0, 500.0, 1000.0)


def test_a_contestant_that_took_no_part_has_no_figure():
    results = Results("perf", "2026-01-01", ["seglog", "peer", "absent"], {"absent": "it is not there"})
    results.machine = Machine(2, 24, "6.1", "3.11.7", "", (0.0, 0.0))
    results.rounds.append((CASE["put-128"], ROUNDS))
    shown = to_markdown(results)
    assert "Left out: absent, because it is not there." in shown
    assert (
        "| put, 128 B | k messages | 2.90 (1.80–4.00) | 1.50 (1.00–2.00) | 1.90 (1.80–2.00) | – | – |"
        in shown
    )
    assert json.loads(to_json(results))["cases"][0]["rounds"][1]["peer"]["operations"] == 1000


def test_names_of_cases_are_unique():
    assert len(CASE) == len(CASES)


@pytest.mark.parametrize("kind", [FileLog, SqliteLog])
@pytest.mark.parametrize("name", ["put-128", "put-128-usual", "batch-128-32", "sync-1", "pull-32", "random"])
def test_peer_in_python_runs_the_workload(kind, name, tmp_path):
    log = kind(tmp_path, CASE[name], sync=name == "sync-1")
    try:
        assert run(log, CASE[name], TINY).operations > 0
    finally:
        log.close()


class Forgetful(FileLog):
    """Loses a message, and never finds the last one."""

    def count(self):
        return super().count() - 1


class Short(FileLog):
    """Gives less than it was asked for."""

    def read(self, first, count):
        return super().read(first, count) - 1


@pytest.mark.parametrize(
    ("kind", "name"), [(Forgetful, "put-128"), (Forgetful, "batch-128-32"), (Short, "pull-32")]
)
def test_a_log_that_does_not_do_what_was_measured_has_no_figure(kind, name, tmp_path):
    log = kind(tmp_path, CASE[name], sync=False)
    try:
        with pytest.raises(SanityError):
            run(log, CASE[name], TINY)
    finally:
        log.close()


def test_command_measures_prints_and_writes(tmp_path):
    done = perf("--size", "0.02", "--only", "put-128", "--only", "reopen", "--json", str(tmp_path / "R.json"))
    assert (done.returncode, done.stderr.count("1/1")) == (0, 3)
    names = [case["name"] for case in json.loads((tmp_path / "R.json").read_text())["cases"]]
    assert names == ["put-128", "put-128-usual", "reopen"]
    assert (tmp_path / "R.md").read_text().removeprefix("# Results\n").strip() == done.stdout.strip()


def test_unknown_case_is_named_with_those_there_are():
    done = perf("--only", "nothing")
    assert done.returncode == 1
    assert "put-128" in done.stderr


def test_views_of_a_queue_are_measured_and_checked(tmp_path):
    done = perf(
        "--size", "0.02", "--rounds", "1", "--write", str(tmp_path / "R.md"), module="perf.bench_views"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "2,000 messages, 1 rounds." in done.stdout
    titles = [line.split(" | ")[0] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert "| filter by tag and time in one expression, arrays at hand" in titles
    assert "| verify by seals" in titles
    written = (tmp_path / "R.md").read_text()
    assert written == "# A queue as numpy, and verifying by seals\n" + done.stdout


def test_views_refuse_sizes_that_show_nothing():
    refused = perf("--size", "0.001", module="perf.bench_views")
    assert (refused.returncode, "--size must be" in refused.stderr) == (2, True)


def test_kernels_are_measured_side_by_side(tmp_path):
    native()
    done = perf(
        "--size", "0.02", "--rounds", "1", "--write", str(tmp_path / "R.md"), module="perf.bench_kernels"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("| 1024 B, usual, ") == 2
    assert (tmp_path / "R.md").read_text() == "# Native kernels beside Python\n" + done.stdout


def test_bench_of_puts_measures_both_tables():
    done = subprocess.run(
        [sys.executable, "-m", "perf.bench_puts", "--size", "0.5", "--rounds", "1"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| seglog")]
    assert [row.count("|") for row in rows] == [8, 5, 5, 5]
    assert "16 in flight" in rows[2]

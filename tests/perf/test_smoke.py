"""The commands measure what they say, at the smallest size, beside peers that the extra ``perf`` installs.

All of it runs in the campaign: a plot needs matplotlib, a peer its package, and Java takes long to start.
"""

from __future__ import annotations

import json

import pytest

from perf.figures.sample import Sample
from perf.plan.cases import CASE
from tests.perf.test_perf import perf, run_reads, run_writes
from tests.support.machine.kernels import native
from tests.support.machine.spark_here import need_spark

pytestmark = pytest.mark.campaign


@pytest.mark.parametrize("name", ["put-128", "put-128-usual", "batch-ragged-32", "sync-1"])
def test_lmdb_runs_the_writes(name, tmp_path):
    from perf.logs.lmdb_log import LmdbLog

    run_writes(LmdbLog, name, tmp_path)


def test_lmdb_runs_the_reads(tmp_path):
    from perf.logs.lmdb_log import LmdbLog

    names = ["view-1", "pull-1", "loop-128", "random-view", "random-copy", "random-loop"]
    run_reads(LmdbLog, names, tmp_path)


def test_command_measures_writes_and_goes_on_where_it_stopped(tmp_path):
    file = tmp_path / "R.json"
    ours = ["--size", "0.1", "--only", "python", "lmdb", "--json", str(file)]
    done = perf(*ours, "--cases", "put-128", "sur*")
    assert (done.returncode, done.stderr.count("1/1")) == (0, 2)
    found = json.loads(file.read_text())["runs"]
    assert list(found) == ["put-128", "survey"]
    assert set(found["put-128"]["rounds"][0]["samples"]) == {"python", "lmdb"}
    assert len(found["put-128"]["rounds"][0]["load"]) == 2
    again = perf(*ours, "--cases", "put-128", "latency", "--missing")
    assert (again.returncode, again.stderr.count("1/1")) == (0, 1)
    assert list(json.loads(file.read_text())["runs"]) == ["put-128", "latency", "survey"]
    assert "](R.svg)" in (tmp_path / "R.md").read_text()
    assert ">put, 128 B, bare</text>" in (tmp_path / "R.svg").read_text()
    tables = (tmp_path / "R.md").read_text()
    assert perf("--report", "--json", str(file)).returncode == 0
    assert (tmp_path / "R.md").read_text() == tables


@pytest.mark.parametrize("name", ["together", "flight-512", "memory", "reopen", "size-bare"])
def test_what_only_a_store_can_do_is_measured(name, tmp_path):
    done = perf("--size", "0.1", "--only", "python", "--cases", name, "--json", str(tmp_path / "R.json"))
    assert done.returncode == 0, done.stderr
    (taken,) = json.loads((tmp_path / "R.json").read_text())["runs"][name]["rounds"]
    sample = Sample(**taken["samples"]["python"])
    assert [column for column in CASE[name].columns if sample.figure(column) is None] == []


def test_starts_are_measured(tmp_path):
    native()
    done = perf("--size", "0.1", "--only", "native", "--cases", "start", "--json", str(tmp_path / "R.json"))
    assert done.returncode == 0, done.stderr
    (taken,) = json.loads((tmp_path / "R.json").read_text())["runs"]["start"]["rounds"]
    assert taken["samples"]["native"]["figures"]["help_ms"] > 0


@pytest.mark.spark
def test_spark_jobs_are_measured_beside_the_kernel(tmp_path):
    need_spark()
    done = perf(
        "--size", "0.01", "--rounds", "1", "--folder", str(tmp_path), "--write", str(tmp_path / "R.md"),
        "--jobs", "audit", "read", "compact", module="perf.bench_spark",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split(" | ")[0] for line in done.stdout.splitlines() if line.startswith("| ")]
    assert {"| kernel", "| audit", "| read", "| compact", "| binaryFile"} <= set(rows)
    assert [path.name for path in tmp_path.iterdir()] == ["R.md"]


@pytest.mark.spark
def test_memory_of_spark_jobs_is_measured_by_messages(tmp_path):
    need_spark()
    done = perf(
        "--messages", "1000", "--groups", "3", "--folder", str(tmp_path), "--write",
        str(tmp_path / "R.md"), module="perf.bench_spark_driver",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    jobs = ("reconcile", "compact", "archive", "restore")
    assert [row[:2] for row in rows[2:]] == [[job, "1,000"] for job in jobs]
    assert all(10 < int(row[2].removesuffix(" MiB")) < 400 for row in rows[2:])
    assert [path.name for path in tmp_path.iterdir()] == ["R.md"]


def test_a_check_is_measured_beside_the_kernel_and_keeps_below_200_mib(tmp_path):
    native()
    sizes = ("--size", "0.02", "--rounds", "1", "--directory", str(tmp_path))
    done = perf(*sizes, "--write", str(tmp_path / "R.md"), module="perf.bench_check")
    assert (done.returncode, done.stderr) == (0, "")
    *_, keyed, plain = done.stdout.splitlines()
    assert keyed.startswith("| three keys, ")
    assert plain.startswith("| no keys, ")
    assert all(float(row.split(" | ")[-1].split(" ")[0]) < 200 for row in (keyed, plain))
    assert [path.name for path in tmp_path.iterdir()] == ["R.md"]
    assert (tmp_path / "R.md").read_text() == "# A check beside the bare verify kernel\n" + done.stdout


def test_waiting_for_a_message_is_measured_with_and_without_a_broker(tmp_path):
    files = ("--dir", str(tmp_path), "--write", str(tmp_path / "R.md"), "--json", str(tmp_path / "R.json"))
    done = perf("--rounds", "100", *files, module="perf.bench_pull_latency")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "R.md").read_text() == "# How soon a held pull has its message\n" + done.stdout
    ways = json.loads((tmp_path / "R.json").read_text())["ways"]
    assert len(ways) == 7
    assert all(0 < way["p50_us"] <= way["p90_us"] <= way["p99_us"] <= way["max_us"] for way in ways)


def test_command_takes_the_rows_that_are_shown_with_those_whom_they_name(tmp_path):
    file = tmp_path / "R.json"
    done = perf("--shown", "--size", "0.1", "--only", "python", "lmdb", "--cases", "put-128", "batch-*",
                "--json", str(file))  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "1/1" in line]
    assert [line.split(":")[0] for line in lines] == [
        "put-128 1/1",
        "batch-128-256 1/1",
        "batch-1024-256 1/1",
    ]
    assert [("python" in line, "lmdb" in line) for line in lines] == [(True, False)] + [(False, True)] * 2


def test_command_says_how_long_it_takes_before_it_starts(tmp_path):
    native()
    done = perf("--shown", "--only", "native", "--cases", "random-loop", "--rounds", "1", "--minutes", "0.1",
                "--json", str(tmp_path / "R.json"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()[0]
    assert said.startswith("1 cases, 1 rounds, samples of ")
    assert said.endswith(": this takes about 0 minutes")
    assert "A sample of reads or writes is " in (tmp_path / "R.md").read_text()


def test_harness_leaves_no_directory(tmp_path):
    done = perf("--size", "0.1", "--only", "sqlite", "--cases", "put-128", "--dir", str(tmp_path))
    assert (done.returncode, list(tmp_path.iterdir())) == (0, [])

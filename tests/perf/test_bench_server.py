"""The benches of the server do what they say."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perf.bench_server import Case, table
from perf.bench_sync_sends import table as table_of_sends
from perf.clients.peer import ROOT
from perf.clients.work import Kind
from perf.contestants import rocketmq
from perf.figures.sample import Sample
from tests.support.machine.patience import patience_s

OURS, THEIRS = "seglog serve", "RocketMQ 5.4.0"


def bench(name, *arguments):
    return subprocess.run(
        [sys.executable, "-m", f"perf.{name}", "--rounds", "1", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=patience_s(400),
    )  # fmt: skip


def rows_of(done):
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    return [line for line in lines if not line[0].startswith("---")]


@pytest.mark.interop
@pytest.mark.campaign
def test_the_server_is_measured_beside_the_real_broker(tmp_path):
    missing = rocketmq.why_missing()
    if missing is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    works = "send", "batch", "paced"
    options = "--messages", "200", "--dir", str(tmp_path), "--write", str(tmp_path / "R.md")
    done = bench("bench_server", *options, "--works", *works)
    assert (done.returncode, done.stderr) == (0, "round 1 of 1\n")
    head, *rows = rows_of(done)
    assert head[0] == "work"
    assert [row[1] for row in rows[:6]] == [OURS, THEIRS] * len(works)
    assert all(float(row[2].split(" ×")[0].replace(",", "")) > 0 for row in rows[:6])
    assert [row[0] for row in rows[7:]] == [OURS, THEIRS]
    assert (tmp_path / "R.md").read_text() == "# The server beside RocketMQ's broker\n" + done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["R.md"]


def test_our_server_is_measured_without_its_peers_too(tmp_path):
    done = bench("bench_sync_sends", "--messages", "50", "--dir", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "round 1 of 1\n")
    _head, ours, *_peers = rows_of(done)
    assert ours[0] == OURS
    assert all(float(cell.replace(",", "")) > 0 for cell in ours[1:4])
    assert list(tmp_path.iterdir()) == []


def test_a_multiple_is_formed_within_a_round():
    case = Case(Kind.SEND)
    rounds = [
        {
            (case, OURS): Sample(10, 1.0, 0.1, {"p50_us": ours, "broker_cpu_us": 7.0}),
            (case, THEIRS): Sample(10, 2.0, 0.1, {"p50_us": theirs, "broker_cpu_us": 6.0}),
        }
        for ours, theirs in ((10.0, 10.0), (40.0, 20.0), (90.0, 30.0))
    ]
    assert table(rounds, [case]) == [
        "| send, one by one | seglog serve | 10.0 ×2.00 | 40.0 (10.0–90.0) ×2.00 (1.00–3.00) | – | 7.00 |",
        "| send, one by one | RocketMQ 5.4.0 | 5.00 | 20.0 (10.0–30.0) | – | 6.00 |",
    ]
    sends = [{OURS: Sample(10, 2.0, 0.1), "other": Sample(10, wall_s, 0.1)} for wall_s in (1.0, 4.0, 2.0)]
    assert table_of_sends(sends)[1].endswith("| 1.00 (0.50–2.00) |")

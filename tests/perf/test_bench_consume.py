"""The bench of consumers measures what it says, and compares within a round."""

from __future__ import annotations

import subprocess
import sys

import pytest

from perf.bench_consume import CASES, Case, main, reference, table
from perf.clients.peer import ROOT, python_peer
from perf.clients.work import Kind, Work, body_of, check_seen
from perf.figures.sample import Sample, SanityError
from tests.support.machine.patience import patience_s


def bench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "perf.bench_consume", "--rounds", "1", "--in-process", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=patience_s(400),
    )  # fmt: skip


def test_consumers_are_measured_in_process(tmp_path):
    done = bench("--messages", "200", "--dir", str(tmp_path), "--write", str(tmp_path / "R.md"))
    assert (done.returncode, done.stderr) == (0, "round 1 of 1\n")
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [row[0] for row in lines[2:]] == [
        "side by side, 1 at a time",
        "side by side, 32 at a time",
        "in order, 1 at a time",
        "in order, 32 at a time",
    ]
    assert all(row[1:3] == ["seglog", "in process"] for row in lines[2:])
    assert all(float(row[3].replace(",", "")) > 0 for row in lines[2:])
    assert "Left out: RocketMQ, its client, and servers: it was not asked for." in done.stdout
    assert (tmp_path / "R.md").read_text() == "# What a consumer takes for a message\n" + done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["R.md"]


def test_sizes_that_show_nothing_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--messages", "1"])
    assert "--messages must be" in capsys.readouterr().err


@pytest.mark.parametrize("batch", [1, 32])
def test_a_piece_of_work_has_its_bodies_and_batches(tmp_path, batch):
    peer = python_peer("ours", "in-process")
    work = Work(Kind.CONSUME, str(tmp_path), "Topic", "name", 100, body_bytes=33, batch=batch)
    assert peer.sample(work, None).operations == 100
    peer.close()
    assert len(body_of(7, 33)) == 33
    check_seen([body_of(1, 33), body_of(0, 33)], 2, 33)
    with pytest.raises(SanityError):
        check_seen([body_of(1, 32), body_of(0, 32)], 2, 33)


def test_each_row_is_compared_with_java_at_its_broker_in_the_same_round():
    ours = Case(Kind.CONSUME, 32, "seglog", "seglog serve")
    assert reference(ours) in CASES
    rounds = [
        {ours: Sample(100, 0.5, of_ours), reference(ours): Sample(100, 0.5, of_java)}
        for of_ours, of_java in ((0.01, 0.02), (0.02, 0.02), (0.02, 0.1))
    ]
    work = "side by side, 32 at a time"
    assert table(rounds) == [
        f"| {work} | seglog | seglog serve | 5,000 (5,000–10,000) | 2.00 (1.00–5.00) | 200 | – |",
        f"| {work} | Java 5.4.0 | RocketMQ 5.4.0 | 5,000 (1,000–5,000) | – | 200 | – |",
    ]

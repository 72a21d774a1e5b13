"""The bench of clients does what it says, and refuses figures of a client that does not."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from perf.bench_client import table
from perf.clients.cpu_clock import cpu_s
from perf.clients.peer import ROOT, Peer, why_missing
from perf.clients.seen import Seen
from perf.clients.work import Kind, Work, body_of, check_seen
from perf.contestants import rocketmq
from perf.figures.sample import Sample, SanityError
from tests.support.machine.children import end
from tests.support.machine.patience import patience_s

MESSAGES = 200
WORK = Work(Kind.SEND, "127.0.0.1:1", "Topic", "name", MESSAGES)


def bench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "perf.bench_client", "--messages", str(MESSAGES), "--rounds", "1", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=patience_s(400),
    )  # fmt: skip


def rows_of(done):
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    return lines[2:]


def test_clients_are_measured_in_process(tmp_path):
    done = bench("--in-process", "--dir", str(tmp_path), "--write", str(tmp_path / "R.md"))
    assert (done.returncode, done.stderr) == (0, "round 1 of 1\n")
    rows = rows_of(done)
    assert [row[0] for row in rows] == ["send, one by one", "consume side by side", "consume in order"]
    assert all(row[1].startswith("seglog, in process") and float(row[2]) > 0 for row in rows)
    assert "Left out: RocketMQ, and what is measured at it: it was not asked for." in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["R.md"]
    assert (tmp_path / "R.md").read_text() == "# What a client takes for a message\n" + done.stdout


@pytest.mark.interop
@pytest.mark.campaign
def test_clients_are_measured_beside_each_other_at_the_real_broker(tmp_path):
    missing = rocketmq.why_missing()
    if missing is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    done = bench("--dir", str(tmp_path))
    assert done.returncode == 0, done.stderr
    measured = {(row[0], row[1]) for row in rows_of(done)}
    works = {work for work, _client in measured}
    assert len(works) == 5
    assert {(work, client) for work in works for client in ("seglog", "Java 5.4.0")} <= measured
    figures = [row for row in rows_of(done) if row[1] in ("seglog", "Java 5.4.0", "PyPI rocketmq 0.4.4")]
    assert all(float(row[column].replace(",", "")) > 0 for row in figures for column in (2, 4, 5))
    is_pypi_here = why_missing("rocketmq.client") is None
    assert is_pypi_here == any("PyPI" in client for _work, client in measured)
    assert list(tmp_path.iterdir()) == []


def test_sizes_that_show_nothing_are_refused():
    refused = bench("--messages", "1")
    assert (refused.returncode, "--messages must be" in refused.stderr) == (2, True)


def test_shares_are_formed_within_a_round():
    rounds = [
        {
            (Kind.SEND, "remote"): Sample(10, 1.0, ours, {"broker_cpu_us": 7.0}),
            (Kind.SEND, "java"): Sample(10, 1.0, java, {"broker_cpu_us": 6.0}),
        }
        for ours, java in ((0.003, 0.001), (0.004, 0.002), (0.008, 0.004))
    ]
    assert table(rounds) == [
        "| send, one by one | seglog | 400 (300–800) | 2.00 (2.00–3.00) | 10.0 | 7.00 |",
        "| send, one by one | Java 5.4.0 | 200 (100–400) | – | 10.0 | 6.00 |",
    ]


@pytest.mark.parametrize(
    "bodies",
    [
        [body_of(0)],
        [body_of(0), body_of(0)],
        [body_of(0), body_of(1), body_of(1)],
        [body_of(0), body_of(1)[:-1]],
    ],
)
def test_messages_that_are_lost_doubled_or_other_have_no_figure(bodies):
    check_seen([body_of(1), body_of(0)], 2)
    with pytest.raises(SanityError):
        check_seen(bodies, 2)


def test_time_of_a_consumer_goes_from_its_first_message_to_its_last():
    seen = Seen(2)
    seen.take(b"first")
    time.sleep(0.01)
    seen.take(b"last")
    assert 0.01 <= seen.wait() < patience_s(5)


def test_cpu_time_of_another_process_is_that_which_it_says_itself(start_child):
    code = (
        "import time\nwhile time.process_time() < 0.2: pass\nprint(time.process_time(), flush=True); input()"
    )
    process = start_child(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    said_s = float(process.stdout.readline())
    assert said_s <= cpu_s(process.pid) < said_s + 0.2
    end(process)
    with pytest.raises(OSError, match=r"."):
        cpu_s(process.pid)


def test_a_client_that_ends_is_named_with_what_it_said():
    peer = Peer("the client", [sys.executable, "-c", "raise SystemExit('no library for it')"])
    for _ in range(2):  # the next piece of work has a new process
        with pytest.raises(SanityError, match=r"the client ended at 'kind=send .*: no library for it"):
            peer.sample(WORK, None)
    peer.close()


def test_a_module_that_cannot_be_loaded_is_missing_with_its_reason():
    assert why_missing("json") is None
    assert why_missing("no_such_module") == "ModuleNotFoundError: No module named 'no_such_module'"

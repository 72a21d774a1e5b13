"""``seglog check`` and ``seglog report``: exit codes, and how a stop ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from seglog.doctor.check.check_progress_file import MAX_RESUME_BYTES
from seglog.errors import Ending
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.machine.patience import patience_s
from tests.support.material import golden
from tests.support.material.sealed import flip, sealed_store, segment
from tests.support.narrow import not_none


@pytest.fixture(autouse=True)
def state_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def damaged(tmp_path):
    return golden.extract("d-zeropage-last", tmp_path)


def test_a_clean_store_ends_with_0_and_leaves_nothing_behind(seglog: Seglog, tmp_path):
    root = golden.extract("tx", tmp_path)
    shown = seglog("check", root)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "result   clean" in shown.stdout
    assert "half-pending consumequeue/RMQ_SYS_TRANS_HALF_TOPIC/0, 12 messages" in shown.stdout
    assert list((tmp_path / "state").rglob("*.jsonl")) == []


def test_a_loss_ends_with_5_and_says_what_it_means_and_what_to_type(seglog: Seglog, damaged):
    shown = seglog("check", damaged)
    assert shown.exit_code == Ending.LOSS
    assert "log-hole commitlog/00000000000000262144 +20629" in shown.stdout
    assert "messages: those in the hole are lost" in shown.stdout
    assert shown.stdout.splitlines()[-1] == f"next: seglog repair {damaged}"


def test_json_has_an_object_for_each_finding_and_one_for_all(seglog: Seglog, damaged):
    ran = seglog("check", damaged, "--json")
    *findings, check = ran.lines
    assert ran.exit_code == Ending.LOSS
    assert {line["kind"] for line in findings} == {"finding", "unseen"}
    (hole,) = [line for line in findings if line.get("code") == "log-hole"]
    assert (hole["severity"], hole["pos"], hole["command"]) == ("loss", 20629, "seglog repair STORE")
    assert (check["kind"], check["clean"], check["loss"], check["records"]) == ("check", False, 1, 389)


@pytest.mark.parametrize("duration", ["10", "x", "5y", "-1s", "1.5m"])
def test_a_duration_that_is_none_is_refused(seglog: Seglog, damaged, duration):
    ran = seglog("check", damaged, f"--max-duration={duration}")
    assert ran.exit_code == 2
    assert f"'{duration}' is no duration: expected a whole number and ms, s, m, h or d" in ran.stderr


@pytest.mark.parametrize("unit", ["ms", "s", "m", "h", "d"])
def test_every_unit_that_the_error_names_is_taken(seglog: Seglog, damaged, unit):
    assert seglog("check", damaged, f"--max-duration=90000000{unit}").exit_code == Ending.LOSS


def test_a_check_that_ran_out_of_time_says_how_to_go_on(seglog: Seglog, tmp_path):
    root = tmp_path / "store"
    sealed_store(root)
    flip(segment(root, 0), 100)
    stopped = seglog("check", root, "--max-duration", "0s")
    assert stopped.exit_code == 60
    (kept,) = (tmp_path / "state").rglob("*.jsonl")
    assert f"continue with `seglog check {root} --resume {kept}`" in stopped.stderr
    done = seglog("check", root, "--resume", kept)
    assert done.exit_code == Ending.LOSS
    assert "seal-rot" in done.stdout
    assert not kept.exists()


@pytest.mark.parametrize(
    ("kind", "said"), [("pipe", "is no regular file"), ("large", f"has more than {MAX_RESUME_BYTES} bytes")]
)
def test_a_resume_file_is_a_regular_file_of_bounded_size(seglog: Seglog, damaged, tmp_path, kind, said):
    kept = tmp_path / "kept"
    if kind == "pipe":
        os.mkfifo(kept)
    else:
        with kept.open("wb") as file:
            file.truncate(MAX_RESUME_BYTES + 1)
    ran = seglog("check", damaged, "--resume", kept)
    assert ran.exit_code == 24
    assert said in ran.stderr


SLOW_CHECK = """
import sys, time
from seglog.doctor.check import log_walk
from seglog.cli.main import main
walk = log_walk.LogWalk._walk
def slowly(self, split):
    print("walking", flush=True)
    time.sleep(0.2)
    return walk(self, split)
log_walk.LogWalk._walk = slowly
main()
"""


def test_an_interrupted_check_says_how_to_go_on(seglog: Seglog, tmp_path, start_child):
    root = tmp_path / "store"
    sealed_store(root)
    ran = start_child(
        [sys.executable, "-c", SLOW_CHECK, "check", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    not_none(ran.stdout).readline()
    ran.send_signal(signal.SIGINT)
    _out, err = ran.communicate(timeout=patience_s(60))
    (kept,) = (tmp_path / "state").rglob("*.jsonl")
    said = f"interrupted; continue with `seglog check {root} --resume {kept}`\n"
    assert (err.decode(), ran.returncode) == (said, 130)
    assert seglog("check", root, "--resume", kept).exit_code == 0


def test_nothing_is_an_error_and_a_wrong_option_is_usage(seglog: Seglog, tmp_path):
    assert seglog("check", tmp_path / "nothing").exit_code == 13
    assert seglog("check", tmp_path, "--fast").exit_code == 2
    assert seglog("report", tmp_path).exit_code == 2


def test_a_report_is_one_page_that_loads_nothing(seglog: Seglog, damaged, tmp_path):
    page = tmp_path / "page.html"
    ran = seglog("report", damaged, "--html", page, "--json")
    assert ran.exit_code == Ending.LOSS
    content = page.read_text()
    assert ran.lines == [
        {
            "kind": "report", "path": str(damaged), "html": str(page), "bytes": len(content.encode()),
            "clean": False, "note": 1, "warning": 0, "loss": 1,
        }
    ]  # fmt: skip
    assert "log-hole commitlog/00000000000000262144" in content
    for word in ("src=", "href=", "<script", "@import", "url(http"):
        assert word not in content


def test_a_report_is_not_written_into_the_store(seglog: Seglog, damaged):
    before = golden.tree_digest(damaged)
    ran = seglog("report", damaged, "--html", damaged / "page.html")
    assert (ran.exit_code, golden.tree_digest(damaged)) == (24, before)


def test_a_store_cannot_put_marks_into_the_page(seglog: Seglog, tmp_path):
    root = golden.extract("tx", tmp_path)
    (root / "<script>alert(1)<").mkdir()
    page = tmp_path / "page.html"
    seglog("report", root, "--html", page)
    assert "<script" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()


def test_the_command_with_the_option_that_a_repair_needs_is_the_next_one(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s", segment_size_bytes=1 << 20, queue_file_size_bytes=20_000) as store:
        for queue_id in range(10):
            store.put("T", b"x", queue_id=queue_id)
    for folder in ("consumequeue", "seglog"):
        shutil.rmtree(tmp_path / "s" / folder)
    (log,) = (tmp_path / "s" / "commitlog").iterdir()
    os.truncate(log, 5000)
    shown = seglog("check", tmp_path / "s").stdout
    assert shown.count("queue-missing consumequeue") > 1
    assert shown.splitlines()[-2:] == [
        f"next: seglog repair --segment-bytes BYTES {tmp_path / 's'}",
        "BYTES: mappedFileSizeCommitLog of broker.conf; 1073741824 if it is not set there",
    ]

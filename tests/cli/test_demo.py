"""The demo checks what it claims, and notices when it is not so."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from seglog.cli.demo import demo, demo_recovery, demo_steps, demo_writer
from seglog.cli.demo.demo_steps import Outcome
from seglog.errors import FullError
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.machine.children import end
from tests.support.narrow import not_none

WITHOUT_SPARK = tuple(step for step in demo.STEPS if step.name != "audit")


@pytest.fixture
def quick(monkeypatch):
    """Leaves out Spark, which has tests of its own, and kills the writer early."""
    monkeypatch.setattr(demo, "STEPS", WITHOUT_SPARK)
    monkeypatch.setattr(demo_recovery, "KILL_AFTER_MESSAGES", 20)


def test_every_step_passes_and_reports_numbers(seglog: Seglog, tmp_path, quick):
    ran = seglog("demo", "--messages", 1201, "--dir", tmp_path / "demo", "--json")
    assert ran.exit_code == 0, ran.stdout + ran.stderr
    write, consume, crash, rocketmq, summary = ran.lines
    assert (write["name"], write["messages"]) == ("write", 1201)
    assert sum(consume["shares"]) == consume["messages"] == 1201
    assert consume["outOfOrder"] == 0
    assert consume["allCommitted"]
    assert crash["acknowledged"] >= 20
    assert crash["lost"] == 0
    assert crash["older"] == 1201
    assert crash["recovery"] == "abnormal"
    assert (rocketmq["messages"], rocketmq["unchanged"]) == (400, True)
    assert summary["ok"]
    assert summary["passed"] == 4
    assert not (tmp_path / "demo").exists()


def test_for_people_it_is_numbered_short_and_ends_with_a_verdict(seglog: Seglog, tmp_path, quick):
    ran = seglog("demo", "--messages", 300, "--dir", tmp_path / "demo", "--keep")
    lines = ran.stdout.splitlines()
    assert [line[0] for line in lines if line[:1].isdigit()] == ["1", "2", "3", "4"]
    assert sum("✓" in line for line in lines) == 5
    assert any(line.startswith("✓ 4 steps passed, in ") for line in lines)
    assert max(map(len, lines)) < 120
    assert seglog("info", tmp_path / "demo" / "store").exit_code == 0


def test_a_step_that_fails_or_finds_something_wrong_ends_it_with_1(seglog: Seglog, tmp_path, monkeypatch):
    def full(_root, _count, _tell):
        raise FullError("no space")

    steps = (
        demo.Step("good", "Good", lambda _root, _count, _tell: Outcome(True, "fine")),
        demo.Step("wrong", "Wrong", lambda _root, _count, _tell: Outcome(False, "lost one")),
        demo.Step("full", "Full", full),
        demo.Step("absent", "Absent", lambda _root, _count, _tell: Outcome(None, "left out: no Java")),
    )
    monkeypatch.setattr(demo, "STEPS", steps)
    ran = seglog("demo", "--dir", tmp_path / "demo")
    assert ran.exit_code == 1
    assert "✗ lost one" in ran.stdout
    assert "✗ FullError: no space" in ran.stdout
    assert "– left out: no Java" in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("✗ 2 of 3 steps FAILED, 1 left out")


def test_a_folder_that_is_there_already_is_not_touched(seglog: Seglog, tmp_path):
    (tmp_path / "precious").write_text("x")
    ran = seglog("demo", "--dir", tmp_path)
    assert ran.exit_code == 10
    assert (tmp_path / "precious").read_text() == "x"


def test_order_check_counts_what_is_out_of_order(tmp_path):
    check = demo_steps.OrderCheck()
    with MessageStore.open(tmp_path / "s") as store:
        for number in (0, 1, 3, 2):
            store.put("t", demo_steps.numbered(0, number).body)
        for message in store.get("t", 0, 0):
            check(message)
    assert check.count == 4
    assert check.wrong == 2


def test_the_killed_writer_acknowledges_only_what_is_on_the_disk(
    tmp_path, command_line: list[str], start_child
):
    words = [command_line[0], "-m", "seglog.cli.demo.demo_writer", str(tmp_path / "s")]
    writer = start_child(words, stdout=subprocess.PIPE)
    acknowledged = [int(not_none(writer.stdout).readline()) for _ in range(10)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in not_none(writer.stdout) if line.endswith(b"\n")]
    end(writer)
    assert acknowledged == list(range(len(acknowledged)))
    with MessageStore.open(tmp_path / "s") as store:
        bodies = [message.body for message in demo_recovery.iter_messages(store, demo_writer.TOPIC, 0)]
    assert bodies[: len(acknowledged)] == [demo_writer.body_of(number) for number in acknowledged]


def test_json_of_the_demo_is_one_object_a_line(seglog: Seglog, tmp_path, quick):
    ran = seglog("demo", "--messages", 10, "--dir", tmp_path / "demo", "--json")
    assert all(json.loads(line)["kind"] in ("step", "summary") for line in ran.stdout.splitlines())

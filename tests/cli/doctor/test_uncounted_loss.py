"""A loss that nothing counts: plan, export, doctor, and checks after a repair say that it is not known."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from seglog.doctor.check import check_store
from seglog.errors import Ending
from seglog.spark.reconcile.facts import load_facts
from seglog.storage.files import RealFiles
from seglog.storage.scan import load_holes
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden

UNKNOWN = "lost      not known: no queue says what the log lost"
UNKNOWN_EARLIER = "lost      not known: no queue said what the log lost earlier"
LENGTH = ("--queue-file-bytes", 2000)


def without_queues(folder: Path) -> Path:
    """Returns a store that lost the last two files of its log and all queues: 152 of 400 messages."""
    root = golden.extract("roll", folder)
    for file in sorted((root / "commitlog").iterdir())[-2:]:
        file.unlink()
    shutil.rmtree(root / "consumequeue")
    return root


def without_one_topic(folder: Path) -> Path:
    """Returns a store that lost the end of its log, and the queues of one topic."""
    root = golden.extract("real-conf-5.4.0", folder)
    (log,) = (root / "commitlog").iterdir()
    size = log.stat().st_size
    os.truncate(log, 20_000)
    os.truncate(log, size)
    shutil.rmtree(root / "consumequeue" / "TopicX")
    return root


def verdict(seglog: Seglog, root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(seglog("check", "--json", root).stdout.splitlines()[-1])["verdict"]
    return found


def test_a_loss_without_any_queue_is_not_known_on_every_screen(seglog: Seglog, tmp_path):
    root = without_queues(tmp_path)
    assert UNKNOWN in seglog("check", root).stdout.splitlines()
    found = verdict(seglog, root)
    assert (found["lostForGood"], found["mayBeMore"]) == (None, True)
    assert (
        found["doNot"] == "start RocketMQ on it: it may give the queue offsets of lost messages to new ones"
    )
    plan = seglog("repair", root, *LENGTH)
    assert "248 messages saved; how many are lost for good is not known" in plan.stdout
    assert "new messages may get queue offsets that lost ones had" in plan.stdout
    line = json.loads(seglog("repair", "--json", root, *LENGTH).stdout.splitlines()[-2])
    assert (line["kind"], line["lost"], line["mayBeMore"]) == ("plan", None, True)
    done = seglog("doctor", root, "--yes", *LENGTH)
    assert "0 lost for good" not in done.stdout
    assert "how many messages are lost is still not known" in done.stdout


def test_after_the_repair_it_is_still_not_known_what_was_lost(seglog: Seglog, tmp_path):
    root = without_queues(tmp_path)
    assert seglog("repair", root, "--apply", "--yes", *LENGTH).exit_code == Ending.CLEAN
    for _look in range(2):
        shown = seglog("check", root)
        assert shown.exit_code == Ending.CLEAN
        assert UNKNOWN_EARLIER in shown.stdout.splitlines()
        assert verdict(seglog, root)["lostForGood"] is None
        with MessageStore.open(root) as store:  # new messages take the place of the lost end
            store.put("TopicA", b"later", queue_id=0)


def test_a_log_that_is_put_back_ends_the_doubt(seglog: Seglog, tmp_path):
    root = without_queues(tmp_path)
    seglog("repair", root, "--apply", "--yes", *LENGTH)
    whole = golden.extract("roll", tmp_path / "copy")
    shutil.copytree(root / "seglog", whole / "seglog")
    assert "lost      no message" in seglog("check", whole).stdout.splitlines()


@pytest.mark.parametrize("by", ["repair", "opening"])
def test_at_least_so_many_lost_stays_at_least(seglog: Seglog, tmp_path, by):
    root = without_one_topic(tmp_path)
    assert "lost      at least 24 messages for good: " in seglog("check", root).stdout
    assert "25 messages saved, at least 24 lost for good" in seglog("repair", root).stdout
    if by == "repair":
        seglog("repair", root, "--apply", "--yes")
    else:
        MessageStore.open(root).close()
    assert [hole.queues for hole in load_holes(RealFiles(), root) if hole.is_open] == [(("TopicX", 1),)]
    shown = seglog("check", root)
    # The opening leaves the index and the timer's files, which are no loss.
    assert shown.exit_code == (Ending.CLEAN if by == "repair" else Ending.FINDINGS)
    assert "lost      at least 24 messages for good: " in shown.stdout
    found = verdict(seglog, root)
    assert (found["lostForGood"], found["mayBeMore"]) == (24, True)


@pytest.mark.parametrize(
    ("make", "is_repaired"), [(without_queues, False), (without_queues, True), (without_one_topic, False)]
)
def test_every_face_says_that_more_may_be_lost_than_is_counted(seglog: Seglog, tmp_path, make, is_repaired):
    root = make(tmp_path)
    if is_repaired:
        assert seglog("repair", root, "--apply", "--yes", *LENGTH).exit_code == Ending.CLEAN
    found = verdict(seglog, root)
    assert found["mayBeMore"] is True
    facts = json.loads(seglog("info", "--json", root).stdout)
    assert facts["mayBeMore"] is True
    doubt = f"at least {facts['lostMessages']} lost" if facts["lostMessages"] else "it is not known how many"
    assert doubt in seglog("info", root).stdout
    assert doubt in seglog("check", root).stdout
    if make is without_one_topic:  # else every byte of the log is as it was written
        verified = json.loads(seglog("check", "--records-only", "--json", root).stdout)
        assert (verified["lostForGood"], verified["mayBeMore"]) == (found["lostForGood"], True)
        lost = next(line for line in seglog("check", root).stdout.splitlines() if line.startswith("lost"))
        assert lost.split(None, 1) in [
            line.split(None, 1) for line in seglog("verify", root).stdout.splitlines()
        ]
    report = check_store(root)
    (unseen,) = load_facts(report).unseen
    assert "whose number is not known" in unseen


def test_of_a_log_as_it_was_written_no_face_says_that_more_may_be_lost(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    verified = json.loads(seglog("verify", "--json", root).stdout)
    assert (verified["lostForGood"], verified["mayBeMore"]) == (None, None)
    assert json.loads(seglog("info", "--json", root).stdout)["mayBeMore"] is False
    assert verdict(seglog, root)["mayBeMore"] is False


@pytest.mark.parametrize("is_repaired", [False, True])
def test_an_export_warns_of_queues_that_may_have_lost_more(seglog: Seglog, tmp_path, is_repaired):
    root = without_one_topic(tmp_path)
    if is_repaired:
        seglog("repair", root, "--apply", "--yes")
    shown = seglog("export", root, "--topic", "TopicX", "-o", tmp_path / "x.jsonl")
    assert shown.exit_code == Ending.LOSS
    assert shown.stdout == f"25 messages in {tmp_path / 'x.jsonl'}\n"
    assert "warning: messages of these queues may be lost, and nothing names them" in shown.stderr
    shown = seglog("export", root, "--topic", "TopicX", "--allow-lost", "--json", "-o", tmp_path / "y.jsonl")
    assert shown.exit_code == Ending.CLEAN
    assert json.loads(shown.stdout)["mayBeMore"] is True
    counted = seglog("export", root, "--topic", "rmq_sys_wheel_timer", "-o", tmp_path / "z.jsonl")
    assert "may be lost" not in counted.stderr


def test_a_group_offset_beyond_a_queue_without_files_shows_a_loss(seglog: Seglog, tmp_path):
    root = golden.extract("broker-store", tmp_path)
    (log,) = (root / "commitlog").iterdir()
    size = log.stat().st_size
    os.truncate(log, 100_000)
    os.truncate(log, size)
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)
    (root / "checkpoint").unlink()
    assert UNKNOWN in seglog("check", root).stdout.splitlines()
    assert seglog("repair", root, "--apply", "--yes", "--queue-file-bytes", 6000000).exit_code == Ending.CLEAN
    assert UNKNOWN_EARLIER in seglog("check", root).stdout.splitlines()


def test_a_log_without_its_first_file_lost_nothing_from_its_start_on(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    (root / "commitlog" / f"{0:020}").unlink()
    shown = seglog("check", root)
    assert shown.exit_code == Ending.CLEAN
    assert "lost      no message from 65,536 on, where the log begins" in shown.stdout.splitlines()

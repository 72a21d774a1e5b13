"""What `seglog check` says first: does RocketMQ start, what is lost, what repair saves, what not to do."""

from __future__ import annotations

import errno
import os
import shutil

import pytest

from seglog.doctor.check import check_store, verdict_on
from seglog.doctor.check.broker_start import REFUSED, UNCERTAIN, Start
from seglog.errors import Ending
from seglog.storage.directory import FileSizes
from seglog.storage.files import StoreRoot
from seglog.storage.findings.finding_codes import CODES
from tests.support.command_line import Seglog
from tests.support.damage.queue_damage import older_queues, slow_store
from tests.support.material import golden
from tests.support.rows import every_row

SAYS_NO = ("does not start", "refuses to start", "may not start")


def test_the_verdict_is_what_the_real_store_did_with_the_same_directory():
    with every_row() as row:
        for name in golden.golden_names():
            with row(name):
                check_verdict(name)


def check_verdict(name):
    report = check_store(golden.shared(name))
    start = verdict_on(report).start
    answered = golden.expected(name)
    stores = [line for line in answered if line["kind"] == "store"]
    if any(line["kind"] == "openFailed" for line in answered):
        assert start.start is Start.NO
        return
    if start.is_assumed:
        assert start.start is Start.UNKNOWN
        lengths = report.geometry
        given = FileSizes(lengths.queue_file_size_bytes, segment_bytes=lengths.segment_size_bytes)
        start = verdict_on(check_store(golden.shared(name), given=given)).start
    assert start.start in {Start.YES, Start.LOSES}
    assert stores[0]["maxPhyOffset"] == start.end_phy_offset


def test_an_end_of_the_log_that_no_queue_counts_is_not_called_no_loss(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    last = max((root / "commitlog").iterdir())
    os.truncate(last, 30_000)
    shutil.rmtree(root / "consumequeue" / "TopicA")
    shown = seglog("check", root)
    assert shown.exit_code == Ending.LOSS
    assert "lost      at least 21 messages for good: " in shown.stdout
    shutil.rmtree(root / "consumequeue")
    for words in (["check", root], ["repair", root]):
        shown = seglog(*words)
        assert shown.exit_code == Ending.LOSS
    assert "lost      not known: no queue says what the log lost" in seglog("check", root).stdout


def refused(root, monkeypatch, pattern):
    """Refuses the files of a store under a pattern, as the file system does without rights."""
    opened = StoreRoot.open

    def refusing(self, path, *, writable):
        if path.is_relative_to(root) and path.relative_to(root).match(pattern):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(self, path, writable=writable)

    monkeypatch.setattr(StoreRoot, "open", refusing)


@pytest.mark.parametrize("is_folder", [False, True], ids=["EACCES", "a folder"])
@pytest.mark.parametrize(
    ("name", "known"),
    [("roll", "no message"), ("d-zeropage-last", "at least 11 messages for good: TopicB 4,")],
)
def test_a_queue_that_cannot_be_read_leaves_only_its_own_losses_unknown(
    seglog: Seglog, tmp_path, monkeypatch, name, known, is_folder
):
    root = golden.extract(name, tmp_path)
    file = min((root / "consumequeue/TopicA/0").iterdir())
    if is_folder:
        file.unlink()
        file.mkdir()
    else:
        refused(root, monkeypatch, f"consumequeue/TopicA/0/{file.name}")
    verdict = seglog("check", root, "--json").lines[-1]["verdict"]
    assert (verdict["lostForGood"] or 0, verdict["mayBeMore"]) == (11 if "11" in known else 0, True)
    (lost,) = [line for line in seglog("check", root).stdout.splitlines() if line.startswith("lost ")]
    assert known in lost
    assert lost.endswith("; not known of consumequeue/TopicA/0, which cannot be read")


@pytest.mark.parametrize(
    ("pattern", "lost"),
    [("index/*", 0), ("commitlog/*", None)],
)
def test_only_an_unreadable_log_leaves_all_losses_unknown(
    seglog: Seglog, tmp_path, monkeypatch, pattern, lost
):
    root = golden.extract("roll", tmp_path)
    refused(root, monkeypatch, pattern)
    assert "file-unreadable" in {line.get("code") for line in seglog("check", root, "--json").lines}
    verdict = seglog("check", root, "--json").lines[-1]["verdict"]
    assert verdict["lostForGood"] == lost


@pytest.mark.parametrize(
    "name", ["d-bodyflip-first-halt", "d-bodyflip-last", "d-magic", "d-zeropage-last", "d-zeropage-last-halt"]
)
def test_the_messages_that_rocketmq_cuts_off_are_counted(name, tmp_path):
    report = check_store(golden.extract(name, tmp_path))
    verdict = verdict_on(report)
    served = sum(line["kind"] == "msg" for line in golden.expected(name))
    assert verdict.lost is not None
    assert verdict.start.cut_messages == 400 - verdict.lost - served
    assert verdict.saved == verdict.start.cut_messages


def test_each_code_that_speaks_of_the_start_of_rocketmq_counts_for_the_verdict():
    named = {code for code, one in CODES.items() if any(word in one.for_messages for word in SAYS_NO)}
    assert named <= REFUSED | UNCERTAIN
    assert CODES.keys() >= REFUSED | UNCERTAIN
    assert not REFUSED & UNCERTAIN


def test_check_begins_with_the_verdict(seglog: Seglog, tmp_path):
    root = golden.extract("d-zeropage-last", tmp_path)
    shown = seglog("check", root).stdout
    assert shown.partition("\n\n")[0].splitlines() == [
        "RocketMQ  starts and loses 31 messages: it cuts the log at commitlog/00000000000000262144 +20629",
        "lost      11 messages for good: TopicB 4, order_events 4, TopicA 3",
        "repair    saves 31 messages",
        "do not    start RocketMQ on it: it deletes 31 messages that are whole or can be repaired",
        f"next      seglog repair {root}",
    ]


def test_a_store_without_findings_begins_with_three_lines(seglog: Seglog, tmp_path):
    shown = seglog("check", golden.extract("roll", tmp_path)).stdout
    assert shown.partition("\n\n")[0].splitlines() == [
        "RocketMQ  starts",
        "lost      no message",
        "repair    nothing to do",
    ]


def test_a_lost_end_of_the_log_is_one_loss(seglog: Seglog, tmp_path):
    root = golden.extract("d-trunclast", tmp_path)
    *_lines, check = seglog("check", root, "--json").lines
    assert check["verdict"] == {
        "rocketmqStarts": "no",
        "why": "a commit-log file is not as long as the others: commitlog/00000000000000262144",
        "cutAt": None,
        "cutMessages": 0,
        "lostForGood": 32,
        "lostByTopic": {"TopicA": 11, "order_events": 11, "TopicB": 10},
        "mayBeMore": False,
        "recoveryReads": None,
        "repairSaves": 0,
        "rocketmqMakesAnew": 0,
        "doNot": "",
        "next": f"seglog repair {root}",
    }


@pytest.mark.parametrize(("name", "first", "files"), [("roll", 262144, 1), ("roll-halt", 0, 5)])
def test_what_rocketmqs_recovery_reads_is_stated(seglog: Seglog, tmp_path, name, first, files):
    root = golden.extract(name, tmp_path)
    check = seglog("check", root, "--json").lines[-1]
    reads = check["verdict"]["recoveryReads"]
    assert (reads["fromPhyOffset"], reads["files"]) == (first, files)
    assert reads["bytes"] == check["maxPhyOffset"] - first
    assert f"start    RocketMQ reads {files} of " in seglog("check", root).stdout


@pytest.mark.parametrize(
    ("name", "own"), [("d-nocq", 400), ("d-nocq-halt", 400), ("d-cqqueue-missing-halt", 66)]
)
def test_what_rocketmq_makes_anew_itself_is_said_beside_what_a_repair_saves(
    seglog: Seglog, tmp_path, name, own
):
    root = golden.extract(name, tmp_path)
    verdict = seglog("check", root, "--json").lines[-1]["verdict"]
    assert (verdict["repairSaves"], verdict["rocketmqMakesAnew"]) == (own, own)
    assert f"RocketMQ rebuilds the queues of {own} itself" in seglog("check", root).stdout


@pytest.mark.parametrize("name", ["d-zeropage-first", "d-magic", "d-zeropage-last", "d-cqqueue-missing-halt"])
def test_a_repair_saves_what_a_check_says_that_it_saves(seglog: Seglog, tmp_path, name):
    root = golden.extract(name, tmp_path)
    saves = seglog("check", root, "--json").lines[-1]["verdict"]["repairSaves"]
    assert seglog("repair", root, "--json").lines[-2]["saved"] == saves
    assert seglog("repair", "--apply", "--yes", root, "--json").lines[-1]["saved"] == saves


def test_an_empty_last_file_leaves_open_whether_rocketmq_starts(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    (root / "commitlog" / f"{262144:020d}.bak").write_bytes(b"")
    *_lines, check = seglog("check", root, "--json").lines
    assert check["verdict"]["rocketmqStarts"] == "unknown"


def test_a_store_whose_log_is_gone_says_that_rocketmq_deletes_the_queues(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    for file in (root / "commitlog").iterdir():
        file.unlink()
    first = seglog("check", root).stdout.partition("\n\n")[0].splitlines()
    assert first[0] == (
        "RocketMQ  starts and loses all messages: there is no commit log: it would delete all queue files"
    )
    assert "do not    start RocketMQ on it: it deletes the queues" in first
    assert "lost      not known: the log, or a part of it, cannot be read" in first


def test_what_a_crash_would_cost_counts_as_saved_by_a_repair(seglog: Seglog, tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    verdict = verdict_on(check_store(root))
    assert (verdict.start.start, verdict.start.cut_messages, verdict.saved) == (Start.YES, 352, 352)
    assert "352 messages saved, 10 lost for good; " in seglog("repair", root).stdout


@pytest.mark.parametrize("is_flushed", [False, True])
def test_older_queue_files_of_a_crashed_store_are_a_reason_not_to_start_rocketmq(tmp_path, is_flushed):
    root = slow_store(tmp_path / "store")
    (root / "abort").write_bytes(b"")
    if not is_flushed:
        (root / "checkpoint").unlink()  # RocketMQ then walks the log from its first file on
    older_queues(root, 0.3)
    verdict = verdict_on(check_store(root))
    assert verdict.start.start is Start.YES
    assert ("its queues lack" in verdict.do_not) is is_flushed
    assert verdict.saved is not None
    assert (verdict.made_anew == verdict.saved > 0) is not is_flushed

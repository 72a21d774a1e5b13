"""``seglog repair`` and ``seglog undo`` as a person meets them."""

from __future__ import annotations

import os
import pty
import shutil

import pytest

from seglog.errors import Ending, FileKindError, LengthUnknownError
from seglog.storage.files.files import RealFiles
from tests.support.command_line import Seglog
from tests.support.command_line.loaded import loaded
from tests.support.command_line.screen import on_screen
from tests.support.material import golden
from tests.support.material.golden import tree_digest


@pytest.fixture
def hole(tmp_path):
    return golden.extract("d-zeropage-first", tmp_path)


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(seglog: Seglog, hole):
    before = tree_digest(hole)
    shown = seglog("repair", hole)
    assert shown.exit_code == Ending.LOSS
    assert (
        "  1. fill a hole with tombstones: commitlog/00000000000000000000 +29912, 7,897 bytes" in shown.stdout
    )
    assert "keeps 352 messages after it" in shown.stdout
    assert "lost for good: 10 messages, TopicA/1 3, TopicA/2 3" in shown.stdout
    assert "consumequeue/TopicB/1/00000000000000000000" not in shown.stdout
    assert "consumequeue/TopicB/1/00000000000000000000" in seglog("repair", "-v", hole).stdout
    assert shown.stdout.startswith(
        "352 messages saved, 10 lost for good; 15,543 bytes in 13 files to write\n"
    )
    assert shown.stdout.endswith(f"nothing was changed; to do it:\nnext: seglog repair {hole} --apply\n")
    assert tree_digest(hole) == before


def test_a_repair_is_taken_back_though_segments_were_sealed_since(seglog: Seglog, hole):
    before = tree_digest(hole)
    assert seglog("repair", hole, "--apply", "--yes").exit_code == Ending.CLEAN
    assert seglog("verify", hole, "--seal").exit_code == Ending.CLEAN
    assert list((hole / "seglog" / "seals").iterdir())
    assert seglog("undo", hole).exit_code == Ending.CLEAN
    assert tree_digest(hole) == before


def test_json_names_every_message_and_byte(seglog: Seglog, hole):
    ran = seglog("repair", hole, "--json")
    assert ran.exit_code == Ending.LOSS
    *others, plan, preview = ran.lines
    assert preview["next"] == f"seglog repair {hole} --json --apply --yes"
    (action,) = [line for line in others if line["kind"] == "action"]
    assert (action["action"], action["file"], action["pos"]) == ("hole", f"commitlog/{0:020d}", 29912)
    assert {"topic": "TopicB", "queueId": 1, "firstOffset": 6, "count": 2} in action["lost"]
    changes = [line for line in others if line["kind"] == "change"]
    assert sum(one["size"] for line in changes for one in line["stretches"]) == plan["changedBytes"]
    assert (plan["saved"], plan["lost"], plan["applied"], plan["undo"]) == (352, 10, False, None)
    assert plan["changedFiles"] == 13


def test_a_message_that_several_steps_save_counts_once(seglog: Seglog, tmp_path):
    root = golden.extract("d-zeropage-first", tmp_path)
    shutil.rmtree(root / "consumequeue")
    ran = seglog("repair", root, "--queue-file-bytes", 2000, "--json")
    plan = ran.lines[-2]
    assert sum(line["saved"] for line in ran.lines if line["kind"] == "action") > 400
    assert plan["saved"] == 390


def test_what_is_applied_is_done_although_nobody_reads_what_is_printed(seglog: Seglog, hole):
    reading, writing = os.pipe()
    os.close(reading)
    done = loaded().run("repair", "--apply", "--yes", hole, stdout=writing)
    os.close(writing)
    assert done.returncode == 141
    assert seglog("check", hole).exit_code == 0
    assert seglog("undo", hole).exit_code == 0


def test_what_is_not_applied_because_nobody_can_read_the_question_is_an_error(hole):
    before = tree_digest(hole)
    reading, writing = os.pipe()
    os.close(reading)
    ours, its = pty.openpty()
    os.write(ours, b"d-zeropage-first\n")
    done = loaded().run("repair", "--apply", hole, stdin=its, stdout=writing)
    for descriptor in (writing, ours, its):
        os.close(descriptor)
    assert done.returncode == 141
    assert b"nothing was changed" in done.stderr
    assert tree_digest(hole) == before


def test_a_dry_run_names_what_no_repair_changes(seglog: Seglog, tmp_path):
    root = golden.extract("roll", tmp_path)
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").unlink(missing_ok=True)
    (root / "config" / "topics.json").symlink_to("/etc/hostname")
    assert "file-kind config/topics.json" in seglog("check", root).stdout
    for words in ("", "--apply --yes", "--json"):
        planned = seglog("repair", *words.split(), root)
        assert planned.exit_code == FileKindError.exit_code
        assert "config/topics.json is a link, where a file belongs" in planned.stderr


@pytest.mark.parametrize(("typed", "ending"), [(b"something\n", 1), (b"\n", 1), (b"\x04", 2)])
def test_nothing_is_changed_if_the_name_was_not_typed(hole, typed, ending):
    before = tree_digest(hole)
    shown = on_screen(["repair", "--apply", str(hole)], 200, stdin=typed)
    assert shown.exit_code == ending, shown.text
    assert "nothing was changed" in shown.text
    assert ("standard input has ended; --yes" in shown.text) == (ending == 2)
    assert tree_digest(hole) == before


def test_a_repair_goes_in_with_the_name_and_comes_out_with_undo(seglog: Seglog, hole):
    before = tree_digest(hole)
    done = on_screen(["repair", "--apply", str(hole)], 200, stdin=b"d-zeropage-first\n")
    assert done.exit_code == 0
    assert f"done; `seglog undo {hole}` takes it back (undo pack 1)" in done.text
    again = seglog("repair", "--apply", "--yes", hole)
    assert (again.exit_code, again.stdout) == (0, "nothing to do\n")
    assert "  1  " in seglog("undo", "--list", hole).stdout
    assert "finished, 11 files changed, 3 new" in seglog("undo", "--list", hole).stdout
    undone = seglog("undo", hole)
    assert undone.exit_code == 0
    assert undone.stdout == "repair 1 is taken back: 11 files as before, 3 new files removed\n"
    assert tree_digest(hole) == before
    nothing = seglog("undo", hole)
    assert nothing.exit_code == 13
    assert "has no repair to take back" in nothing.stderr


def test_undo_says_what_was_changed_since(seglog: Seglog, hole):
    assert seglog("repair", "--apply", "--yes", "--json", hole).lines[-1]["undo"] == 1
    (hole / "config").mkdir()
    (hole / "config" / "topics.json").write_text("{}")
    refused = seglog("undo", hole, "1", "--json")
    assert refused.exit_code == 28
    assert "config/topics.json is new" in refused.stderr
    (hole / "config" / "topics.json").unlink()
    (line,) = seglog("undo", hole, "1", "--json").lines
    assert (line["number"], line["finished"]) == (1, True)


def test_a_store_in_use_is_refused(seglog: Seglog, hole):
    lock = RealFiles().lock(hole)
    for arguments in ((), ("--apply", "--yes")):
        ran = seglog("repair", hole, *arguments)
        assert ran.exit_code == 16
        assert "open for writing" in ran.stderr
    assert seglog("undo", hole).exit_code == 16
    lock.release()


@pytest.mark.parametrize("arguments", [("--yes",), ("--apply", "--json")])
def test_options_that_do_not_go_together_are_wrong_usage(seglog: Seglog, hole, arguments):
    assert seglog("repair", hole, *arguments).exit_code == 2


def test_what_no_file_tells_can_be_given(seglog: Seglog, tmp_path):
    root = golden.extract("d-nocq", tmp_path)
    assert "it makes them itself" in seglog("repair", root).stdout
    shown = seglog("repair", root, "--queue-file-bytes", 2000, "--apply", "--yes")
    assert shown.exit_code == 0
    assert "400 messages saved, 0 lost for good" in shown.stdout
    assert (root / "consumequeue" / "TopicA" / "0" / f"{0:020d}").stat().st_size == 2000


def test_length_of_the_only_log_file_can_be_given(seglog: Seglog, tmp_path):
    root = golden.extract("tx", tmp_path)
    (log,) = (root / "commitlog").iterdir()
    size = log.stat().st_size
    os.truncate(log, 9000)
    before = tree_digest(root)
    refused = seglog("repair", root, "--apply", "--yes")
    assert refused.exit_code == LengthUnknownError.exit_code
    assert "--segment-bytes" in refused.stderr
    assert tree_digest(root).keys() == before.keys()
    assert log.stat().st_size == 9000
    shown = seglog("repair", root, "--segment-bytes", size, "--apply", "--yes")
    assert shown.exit_code == 0
    assert log.stat().st_size == size
    assert "lost for good" in shown.stdout
    assert seglog("check", root).exit_code == 0


def test_no_store_is_no_store(seglog: Seglog, tmp_path):
    for command in ("repair", "undo"):
        assert seglog(command, tmp_path / "nothing").exit_code == 13


@pytest.mark.parametrize(
    "words",
    [
        ("--segment-bytes", "0"),
        ("--segment-bytes", "-1"),
        ("--segment-bytes", "4095"),
        ("--segment-bytes", "2147483648"),
        ("--queue-file-bytes", "0"),
        ("--queue-file-bytes", "21"),
        ("--queue-file-bytes", "2001"),
        ("--queue-file-bytes", "-20"),
        ("--queue-file-bytes", "99999999999999999999999"),
        ("--index-division", "0", "0"),
        ("--index-division", "1", "1"),
        ("--index-division", "-5", "100"),
        ("--index-division", "2147483647", "2147483647"),
    ],
    ids=" ".join,
)
def test_lengths_that_no_file_can_have_are_refused_with_those_that_it_can_have(seglog: Seglog, hole, words):
    before = tree_digest(hole)
    can_have = {
        "--segment-bytes": "a log file has a length of 4096 to 2147483647 bytes",
        "--queue-file-bytes": "a queue file has a length of 20 to 2147483640 bytes, a multiple of 20",
        "--index-division": "an index file has 1 slot or more, 2 entries or more, and up to 1073741824 bytes",
    }
    for command in (["repair", hole, "--apply", "--yes"], ["check", hole], ["doctor", hole, "--yes"]):
        ran = seglog(*command, *words)
        assert ran.exit_code == Ending.USAGE
        given = " ".join(words[1:])
        assert f"Invalid value for '{words[0]}': {given}: {can_have[words[0]]}" in ran.stderr
    assert tree_digest(hole) == before


@pytest.mark.parametrize("kind", ["folder", "link"])
@pytest.mark.parametrize(
    "name", ["checkpoint", "index", f"commitlog/{65536:020d}", f"consumequeue/TopicA/0/{0:020d}"]
)
def test_a_dry_run_refuses_what_applying_refuses(seglog: Seglog, hole, tmp_path, name, kind):
    at = hole / name
    if name == "index":
        at = next(at.iterdir())
    at.rename(tmp_path / "aside")
    if kind == "folder":
        at.mkdir()
    else:
        at.symlink_to(tmp_path / "aside")
    dry, done = seglog("repair", hole), seglog("repair", "--apply", "--yes", hole)
    assert (dry.exit_code, dry.stderr) == (done.exit_code, done.stderr)
    assert dry.exit_code == FileKindError.exit_code
    assert f"is a {kind}, where a file belongs" in dry.stderr
    assert "next:" not in seglog("check", hole).stdout


def test_a_torn_write_before_a_lost_end_is_named_where_it_is(seglog: Seglog, tmp_path):
    root = golden.extract("d-zeropage-last", tmp_path)
    assert seglog("repair", "--apply", "--yes", root).exit_code == 0
    (log_end,) = [line["maxPhyOffset"] for line in seglog("info", "--json", root).lines]
    last = max((root / "commitlog").iterdir())
    torn_at = log_end - int(last.name) - 3000
    with last.open("r+b") as file:
        file.seek(torn_at)
        file.write(b"\x5a" * 3000)
    actions = {line.get("action"): line for line in seglog("repair", "--json", root).lines}
    cut, lost = actions["tail-cut"], actions["tail-lost"]
    assert (cut["file"], cut["pos"]) == (lost["file"], lost["pos"])
    assert cut["pos"] <= torn_at

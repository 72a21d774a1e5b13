"""Dump serves what RocketMQ serves, line for line, and changes nothing."""

from __future__ import annotations

import shutil

from seglog.cli.read.dump import iter_holes
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import PLACEHOLDER_FLAG, PLACEHOLDER_MARK
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.rows import every_row

_STORE_FIELDS = ("kind", "minPhyOffset", "maxPhyOffset")


def compared(line, like=None):
    """Returns what counts of a line: RocketMQ's dump says more of the store, and asks its index for keys."""
    if line["kind"] == "store":
        return {name: line[name] for name in _STORE_FIELDS}
    names = like if like is not None and "dumpError" in like else line
    return {name: line[name] for name in names if name not in ("keyFound", "dumpError")}


def test_dump_equals_what_rocketmq_served_after_opening(seglog: Seglog):
    with every_row() as row:
        for name in golden.golden_names(damaged=False):
            with row(name):
                check_dump(seglog, name)


def check_dump(seglog, name):
    store = golden.shared(name)
    before = golden.tree_digest(store)
    ran = seglog("dump", store, "--json", "--log")
    assert ran.exit_code == 0
    assert ran.stderr == ""
    wanted = golden.expected(name)
    assert len(ran.lines) == len(wanted)
    for got, want in zip(ran.lines, wanted, strict=True):
        assert compared(got, like=want) == compared(want)
        if "dumpError" not in want and want["kind"] != "store":
            assert list(got) == [key for key in want if key != "keyFound"]
    assert golden.tree_digest(store) == before


def test_dump_of_a_damaged_store_serves_only_what_was_there_and_changes_nothing(seglog: Seglog):
    with every_row() as row:
        for name in golden.golden_names(damaged=True):
            with row(name):
                check_damaged_dump(seglog, name)


def check_damaged_dump(seglog, name):
    store = golden.shared(name)
    before = golden.tree_digest(store)
    ran = seglog("dump", store, "--json")
    assert ran.exit_code == 0
    assert golden.tree_digest(store) == before
    whole = "propcrc" if "propcrc" in name else "roll-halt" if name.endswith("-halt") else "roll"
    intact = {line["commitLogOffset"]: compared(line) for line in _messages(golden.expected(whole))}
    served = {line["commitLogOffset"]: line for line in _messages(ran.lines)}
    # A flip outside of body and CRC shows nowhere without __CRC32#.
    if name != "d-propflip":
        assert all(intact[at] == line for at, line in served.items())
    by_rocketmq = {line["commitLogOffset"] for line in _messages(golden.expected(name))}
    assert all(_in_a_hole(at, ran.lines) for at in by_rocketmq - served.keys())


def _messages(lines):
    return [line for line in lines if line["kind"] == "msg" and "commitLogOffset" in line]


def _in_a_hole(phy_offset, lines):
    for line in lines:
        if line["kind"] == "hole":
            start = int(line["file"].rpartition("/")[2]) + line["pos"]
            if start <= phy_offset < start + line["size"]:
                return True
    return False


def test_a_damaged_record_is_a_hole_with_file_position_size_and_reason(tmp_path, seglog: Seglog):
    ran = seglog("dump", golden.extract("d-magic", tmp_path), "--json")
    assert [line for line in ran.lines if line["kind"] == "hole"] == [
        {"kind": "hole", "file": "commitlog/00000000000000262144", "pos": 49494, "size": 177, "why": "magic"}
    ]


def test_a_hole_over_several_files_comes_in_one_piece_per_file(tmp_path):
    store = golden.extract("roll", tmp_path)
    for name in ("00000000000000065536", "00000000000000131072"):
        (store / "commitlog" / name).unlink()
    found = survey(store, RealFiles())
    holes = [hole for hole in iter_holes(found) if hole.why == "missing-file"]
    assert [(hole.file, hole.position_bytes, hole.size_bytes) for hole in holes] == [
        ("commitlog/00000000000000065536", 0, 65536),
        ("commitlog/00000000000000131072", 0, 65536),
    ]


def test_without_verify_a_flipped_body_goes_unseen(tmp_path, seglog: Seglog):
    store = golden.extract("d-bodyflip-last", tmp_path)
    assert any(line["kind"] == "hole" for line in seglog("dump", store, "--json").lines)
    assert not any(line["kind"] == "hole" for line in seglog("dump", store, "--json", "--no-verify").lines)


def test_dump_for_people_shows_queues_messages_and_holes(tmp_path, seglog: Seglog):
    ran = seglog("dump", golden.extract("d-magic", tmp_path), "--log")
    assert "queue TopicA/0 0..34, 34 messages" in ran.stdout
    assert "TopicA/0 @1  " in ran.stdout
    assert "hole commitlog/00000000000000262144 +49494, 177 bytes: magic" in ran.stdout
    assert "\x1b" not in ran.stdout


def test_the_log_goes_on_behind_a_damaged_record(tmp_path, seglog: Seglog):
    whole = seglog("dump", golden.extract("roll", tmp_path), "--json", "--log").lines
    ran = seglog("dump", golden.extract("d-magic", tmp_path), "--json", "--log").lines
    walked = [line for line in ran if line["kind"] == "log"]
    assert walked == [line for line in whole if line["kind"] == "log" and line["pos"] != 262144 + 49494]


def test_records_that_vanish_after_the_survey_come_as_holes(tmp_path, seglog: Seglog, monkeypatch):
    store = golden.extract("roll", tmp_path)

    def survey_then_lose(path, *, verify):
        found = survey(path, RealFiles(), verify=verify)
        shutil.rmtree(store / "commitlog")
        return found

    monkeypatch.setattr("seglog.cli.read.dump.survey_store", survey_then_lose)
    ran = seglog("dump", store, "--json")
    assert ran.exit_code == 0
    assert len([line for line in ran.lines if line["kind"] == "hole"]) == 400


def test_dump_names_what_was_lost_before_and_after_recovery(seglog: Seglog, tmp_path):
    path = golden.extract("d-trunclast", tmp_path)
    lines = seglog("dump", path, "--json").lines
    lost = [line for line in lines if line["kind"] == "lost"]
    assert sum(line["count"] for line in lost) == 32
    codes = {line["code"] for line in lines if line["kind"] == "finding"}
    assert {"log-tail-lost", "messages-lost", "checkpoint-ahead"} <= codes
    assert "lost TopicA/0" in seglog("dump", path).stdout
    MessageStore.open(path, create=False).close()
    again = seglog("dump", path, "--json").lines
    assert [line for line in again if line["kind"] == "lost"] == lost
    assert {line["code"] for line in again if line["kind"] == "finding"} == {"tombstones"}
    assert [line for line in again if line["kind"] == "msg"] == [
        line for line in lines if line["kind"] == "msg"
    ]


def test_a_placeholder_of_a_compaction_is_marked_and_an_empty_message_is_not(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s") as store:
        store.append("T", 0, b"", PLACEHOLDER_MARK, 0, flag=PLACEHOLDER_FLAG)
        store.append("T", 0, b"", PLACEHOLDER_MARK, 0)
    lines = seglog("dump", tmp_path / "s").stdout.splitlines()
    first, second = (line for line in lines if line.startswith("T/0 @"))
    assert first.endswith("(placeholder: a compaction dropped the message)")
    assert "placeholder" not in second

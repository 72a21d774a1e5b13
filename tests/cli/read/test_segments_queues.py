"""``seglog inspect segments``, ``queues`` and ``cq show``: the files, held against the log."""

from __future__ import annotations

import json

import pytest

from seglog.errors import InvalidArgumentError, NotFoundError, OffsetRangeError
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.material.sealed import COUNT, flip, sealed_store, segment


def lines_of(ran, kind):
    return [line for line in ran.lines if line["kind"] == kind]


def test_segments_say_what_each_file_holds_and_which_are_sealed(seglog: Seglog, tmp_path):
    sealed_store(tmp_path / "s")
    before = golden.tree_digest(tmp_path / "s")
    lines = lines_of(seglog("segments", tmp_path / "s", "--json"), "segment")
    assert [line["seal"] for line in lines] == ["sealed"] * 4 + ["none"]
    assert [line["state"] for line in lines] == ["full"] * 4 + ["open"]
    assert sum(line["records"] for line in lines) == COUNT
    times = [(line["firstStoreTimestamp"], line["lastStoreTimestamp"]) for line in lines]
    assert times == sorted(times)
    shown = seglog("segments", tmp_path / "s").stdout
    assert "sealed" in shown
    assert "5 files" in shown
    assert golden.tree_digest(tmp_path / "s") == before


def test_segments_tell_a_seal_that_does_not_fit_from_one_that_cannot_be_read(seglog: Seglog, tmp_path):
    sealed_store(tmp_path / "s")
    seals = sorted((tmp_path / "s" / "seglog" / "seals").iterdir())
    flip(seals[1], 5)
    flip(segment(tmp_path / "s", 2), 4)  # its first record is gone, so the seal counts one more
    lines = lines_of(seglog("segments", tmp_path / "s", "--json"), "segment")
    assert [line["seal"] for line in lines] == ["sealed", "unreadable", "differs", "sealed", "none"]
    assert lines[2]["holes"][0]["pos"] == 0


def test_a_missing_file_in_the_middle_of_the_log_has_a_line_of_its_own(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    (path / "commitlog" / f"{1 << 16:020d}").unlink()
    ran = seglog("segments", path, "--json")
    states = [(line["firstOffset"], line["state"]) for line in lines_of(ran, "segment")]
    assert states[1] == (1 << 16, "missing")
    assert [line["code"] for line in lines_of(ran, "finding")] == ["log-file-missing"]
    assert "missing" in seglog("segments", path).stdout


@pytest.mark.parametrize("name", ["roll", "d-nocq", "d-cqgarbage", "delay", "innerbatch"])
def test_queues_agree_or_say_how_not(seglog: Seglog, tmp_path, name):
    path = golden.extract(name, tmp_path)
    before = golden.tree_digest(path)
    lines = seglog("queues", path, "--json").lines
    how = {line["how"].split(" ")[0] for line in lines if not line["agrees"]}
    assert how == {"d-nocq": {"queue-missing"}, "d-cqgarbage": {"queue-beyond-log"}}.get(name, set())
    kinds = {line["queueKind"] for line in lines}
    assert kinds == {"delay": {"plain", "delay"}, "innerbatch": {"batch"}}.get(name, {"plain"})
    shown = seglog("queues", path).stdout
    assert ("all as the log says" in shown) == (not how)
    assert golden.tree_digest(path) == before


def test_queues_of_one_topic_and_of_none(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    lines = seglog("queues", path, "TopicB", "--json").lines
    assert {line["topic"] for line in lines} == {"TopicB"}
    assert seglog("queues", path, "nosuch").exit_code == NotFoundError.exit_code


def test_cq_show_marks_what_differs_and_ends_with_1(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    assert seglog("cq", "show", path, "TopicA", 0).exit_code == 0
    file = path / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    flip(file, 5 * CQ_UNIT.size_bytes + 7)
    before = golden.tree_digest(path)
    ran = seglog("cq", "show", path, "TopicA", 0, "--offset", 4, "--count", 3, "--json")
    assert ran.exit_code == 1
    assert [(line["queueOffset"], line["state"]) for line in ran.lines] == [
        (4, "same"),
        (5, "differs"),
        (6, "same"),
    ]
    assert ran.lines[1]["stored"] != ran.lines[1]["log"]
    shown = seglog("cq", "show", path, "TopicA", 0, "--offset", 5, "--count", 1).stdout
    assert "DIFFERS" in shown
    assert "the log says" in shown
    assert golden.tree_digest(path) == before


def test_cq_show_of_lost_files_shows_what_the_log_says(seglog: Seglog, tmp_path):
    path = golden.extract("d-nocq", tmp_path)
    ran = seglog("cq", "show", path, "TopicA", 0, "--json")
    assert ran.exit_code == 1
    assert {line["state"] for line in ran.lines} == {"only-log"}


def test_cq_show_explains_delivery_times_and_ext_addresses(seglog: Seglog, tmp_path):
    delay = golden.extract("delay", tmp_path)
    assert "due 20" in seglog("cq", "show", delay, "SCHEDULE_TOPIC_XXXX", 0).stdout
    broker = golden.extract("real-conf-5.4.0", tmp_path)
    lines = seglog("cq", "show", broker, "rmq_sys_wheel_timer", 0, "--count", 20, "--json").lines
    assert [line["ext"]["address"] for line in lines][:3] == [0, 20, 40]
    assert all(line["ext"]["storeTimestamp"] for line in lines)
    (broker / "consumequeue_ext" / "rmq_sys_wheel_timer" / "0" / f"{0:020d}").unlink()
    assert "cannot be read" in seglog("cq", "show", broker, "rmq_sys_wheel_timer", 0).stdout


def test_cq_show_shows_batch_queues_with_their_base_offsets(seglog: Seglog, tmp_path):
    path = golden.extract("innerbatch", tmp_path)
    ran = seglog("cq", "show", path, "BCQTopic", 0, "--offset", 2, "--count", 2, "--json")
    assert ran.exit_code == 0
    assert [(line["stored"]["queueOffset"], line["stored"]["messages"]) for line in ran.lines] == [
        (1, 3),
        (4, 1),
    ]
    flip(path / "batchconsumequeue" / "BCQTopic" / "0" / f"{0:020d}", 46 + 11)
    shown = seglog("cq", "show", path, "BCQTopic", 0)
    assert shown.exit_code == 1
    assert "DIFFERS" in shown.stdout
    assert [line["agrees"] for line in seglog("queues", path, "--json").lines] == [False, True]


def test_queues_names_strange_files_of_a_batch_queue(seglog: Seglog, tmp_path):
    path = golden.extract("innerbatch", tmp_path)
    (path / "batchconsumequeue" / "BCQTopic" / "1" / "notes.txt").write_text("mine")
    lines = seglog("queues", path, "--json").lines
    assert [(line["queueKind"], line["how"]) for line in lines] == [
        ("batch", ""),
        ("batch", "queue-file-stray"),
    ]
    (finding,) = lines[1]["findings"]
    assert finding["file"] == "batchconsumequeue/BCQTopic/1/notes.txt"


def test_cq_show_refuses_queues_and_offsets_that_are_not_there(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s") as store:
        store.put("t", b"x")
    for arguments, error in (
        (["t", 1], NotFoundError),
        (["t", 0, "--offset", 1 << 40], OffsetRangeError),
        (["t", 0, "--offset", "-1"], InvalidArgumentError),
        (["t", 0, "--count", "0"], InvalidArgumentError),
    ):
        assert seglog("cq", "show", tmp_path / "s", *arguments).exit_code == error.exit_code


def test_queues_of_compaction_topics_are_those_of_their_own_log(seglog: Seglog, tmp_path):
    (tmp_path / "s" / "config").mkdir(parents=True)
    topic = {"topicName": "Comp", "attributes": {"cleanup.policy": "COMPACTION"}}
    (tmp_path / "s" / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": {"Comp": topic}}))
    with MessageStore.open(tmp_path / "s") as store:
        for number in range(5):
            store.put("Comp", b"x", keys=str(number))
    before = golden.tree_digest(tmp_path / "s")
    lines = seglog("queues", tmp_path / "s", "Comp", "--json").lines
    compaction = [line for line in lines if line["queueKind"] == "compaction"]
    assert [(line["minOffset"], line["maxOffset"], line["agrees"]) for line in compaction] == [(0, 5, True)]
    assert compaction[0]["files"] == 2
    assert golden.tree_digest(tmp_path / "s") == before

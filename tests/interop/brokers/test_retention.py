"""RocketMQ opens what retention leaves, whole or half done, serves the same of it, and continues with it."""

from __future__ import annotations

import json
import shutil

import pytest

from seglog import MessageStore
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, lost_keys, served_lines
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.interop.judging.states import crashed
from tests.interop.judging.writing import store_options

pytestmark = pytest.mark.interop

SEGMENT_BYTES = SMALL_GEOMETRY.segment_size_bytes
COUNT = 600


class KilledHereError(Exception):
    """The process is gone at this point."""


def open_filled(path):
    """Returns a store of a quick topic, a slow one, and one that ends early."""
    store = MessageStore.open(path, **store_options(SMALL_GEOMETRY))
    for number in range(40):
        store.put("Early", b"%d" % number, keys=f"e{number}")
    for number in range(COUNT):
        store.put("Quick", bytes(700), keys=f"q{number}", tags="A")
        if number % 50 == 0:
            store.put("Slow", b"%d" % number, queue_id=number % 3, keys=f"s{number}")
    store.flush()
    return store


def stopped_before(store, monkeypatch, step):
    """Makes a deletion end before a step of it, as a kill would."""

    def killed(*_arguments):
        raise KilledHereError

    trimmer = store._core.trimmer
    monkeypatch.setattr(*((trimmer, step) if step.startswith("_trim") else (trimmer._index, step)), killed)


@pytest.mark.parametrize("step", [None, "_trim_log", "_trim_queues", "remove_expired", "_trim_seals"])
@pytest.mark.parametrize("is_crash", [False, True], ids=["closed", "killed"])
def test_rocketmq_serves_what_stays_and_appends(judge: Judge, tmp_path, monkeypatch, step, is_crash):
    path = tmp_path / "store"
    store = open_filled(tmp_path / "live")
    cut = store.max_phy_offset // 2
    if step is not None:
        stopped_before(store, monkeypatch, step)
    try:
        store.retention.delete_before(cut)
        store.flush()
        assert step is None
    except KilledHereError:
        assert step is not None
    if is_crash:
        shutil.copytree(tmp_path / "live", path)
        crashed(path)
    monkeypatch.undo()
    store.close()
    if not is_crash:
        shutil.move(tmp_path / "live", path)

    seen = path.with_name("seen")
    shutil.copytree(path, seen)
    with MessageStore.open(seen) as ours:
        assert [one.code for one in ours.recovery.findings if one.severity.name == "LOSS"] == []
        expected = served_lines(ours)
        low = ours.min_phy_offset
        early = ours.max_offset("Early", 0)
    if step != "_trim_log":
        assert low == cut - cut % SEGMENT_BYTES
    assert early == 40

    dump = judge.dump(path, SMALL_GEOMETRY)
    assert dump.refusal is None
    # Where queue files are left of messages that are gone, it lists those until its own cleaning comes round.
    there = [line for line in dump.of_kind("msg") if line["cqPos"] >= low]
    assert step == "_trim_queues" or there == dump.of_kind("msg")
    assert differences(expected, there) == []
    if not is_crash:
        assert lost_keys(there) == []
    more = [JavaMessages(topic="Quick", count=5), JavaMessages(topic="Early", count=3)]
    judge.append(path, more, SMALL_GEOMETRY)
    with MessageStore.open(path) as ours:
        assert ours.max_offset("Quick", 0) == COUNT + 5
        assert ours.max_offset("Early", 0) == 43
        assert [message.queue_offset for message in ours.get("Early", 0, 40)] == [40, 41, 42]


def test_rocketmq_does_not_know_a_deleted_topic_any_more(judge: Judge, tmp_path):
    path = tmp_path / "store"
    with open_filled(path) as store:
        (path / "config").mkdir()
        table = {name: {"topicName": name} for name in ("Quick", "Slow")}
        (path / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
        store.retention.delete_topic("Early")
        expected = served_lines(store)
    dump = judge.dump(path, SMALL_GEOMETRY)
    assert {line["topic"] for line in dump.of_kind("msg")} == {"Quick", "Slow"}
    assert differences(expected, dump.of_kind("msg")) == []
    judge.append(path, [JavaMessages(topic="Early", count=2)], SMALL_GEOMETRY)
    with MessageStore.open(path) as store:
        assert [message.queue_offset for message in store.get("Early", 0, 0)] == [0, 1]

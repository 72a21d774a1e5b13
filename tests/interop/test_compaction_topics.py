"""Compaction topics go back and forth between both engines, and both read them from their own log alike."""

from __future__ import annotations

import json
import shutil

import pytest

from seglog import MessageStore
from tests.interop.judge import SMALL_GEOMETRY, JavaMessages, Probe
from tests.interop.lines import message_line

pytestmark = pytest.mark.interop

TOPICS = {"Comp": {"cleanup.policy": "COMPACTION"}}
CONFIG = {"topics": TOPICS, "compactionMappedFileSize": 10_000, "compactionCqMappedFileSize": 1_000}
DEFAULT_SIZES = {"topics": TOPICS}
JAVA = [
    JavaMessages(topic="Comp", queue_id=number % 2, count=60, keys="k", tags="T", body_bytes=40 + number)
    for number in range(3)
]
PROBES = [
    Probe(topic="Comp", queue_id=queue_id, queue_offset=at, max_count=count)
    for queue_id in (0, 1, 5)
    for at in [-1, *range(0, 200, 7), 119, 120, 121, 180, 1000]
    for count in (1, 3, 32)
]


def declare(root):
    (root / "config").mkdir(parents=True)
    table = {name: {"topicName": name, "attributes": attributes} for name, attributes in TOPICS.items()}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    return root


def answers(store):
    found = []
    for probe in PROBES:
        result = store.get(probe.topic, probe.queue_id, probe.queue_offset, probe.max_count)
        places = [message.phy_offset for message in result]
        found.append(
            (result.status.value, result.next_offset, result.min_offset, result.max_offset, len(places))
        )
    return found


def java_answers(judge, root, config):
    return [
        (
            line["status"],
            line["nextOffset"],
            line["minOffset"],
            line["maxOffset"],
            len(line["phyOffsets"]),
        )
        for line in judge.probe(root, PROBES, SMALL_GEOMETRY, **config)
    ]


def compaction_files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes().rstrip(b"\0")
        for path in (root / "compaction").rglob("*")
        if path.is_file() and "position" not in path.name
    }


def assert_same_answers(ours, theirs):
    for probe, mine, other in zip(PROBES, ours, theirs, strict=True):
        # Of a queue that was never written the real store says the ordinary queue's emptiness or none.
        assert mine == other, probe


@pytest.mark.parametrize("keep", ["compaction log", "abort and no compaction log"])
def test_topic_written_here_is_served_by_rocketmq(judge, tmp_path, keep):
    root = declare(tmp_path / "store")
    with MessageStore.open(root, segment_size_bytes=65_536, queue_file_size_bytes=2_000) as store:
        for number in range(250):
            store.put("Comp", b"%d" % number, queue_id=number % 2, keys=f"k{number % 9}", tags="T")
        ours = answers(store)
        lines = [message_line(m) for m in store.get("Comp", 0, 0, 1000)]
    before = compaction_files(root)
    if keep != "compaction log":
        shutil.rmtree(root / "compaction")
        (root / "abort").write_text("1")
        (root / "checkpoint").unlink()  # or RocketMQ scans the log from near its end only
    assert_same_answers(ours, java_answers(judge, root, DEFAULT_SIZES))
    assert compaction_files(root) == before
    judge.append(root, JAVA, SMALL_GEOMETRY, **DEFAULT_SIZES)
    with MessageStore.open(root, create=False) as store:
        store.put("Comp", b"again", keys="k")
        ours = answers(store)
        again = [message_line(m) for m in store.get("Comp", 0, 0, 1000)]
        assert again[: len(lines)] == lines
        assert len(again) == 125 + 120 + 1
    assert_same_answers(ours, java_answers(judge, root, DEFAULT_SIZES))


# Not after a halt: RocketMQ fills compaction logs in a thread of its own, which nothing waits for, so files
# may be missing, and with them the lengths that its configuration knows and the files alone tell us.
def test_topic_of_rocketmq_is_served_here_and_goes_on(judge, tmp_path, copied):
    root = declare(tmp_path / "store")
    judge.write(root, JAVA, SMALL_GEOMETRY, **CONFIG)
    theirs = java_answers(judge, copied(root), CONFIG)
    for read_only in (True, False):
        with MessageStore.open(root, create=False, read_only=read_only) as store:
            assert_same_answers(answers(store), theirs)
    before = compaction_files(root)
    shutil.rmtree(root / "compaction")
    (root / "abort").write_text("1")
    (root / "checkpoint").unlink()
    java_answers(judge, root, CONFIG)
    assert compaction_files(root) == before
    with MessageStore.open(root, create=False) as store:
        for number in range(100):
            store.put("Comp", b"%d" % number, queue_id=1, keys="k")
        ours = answers(store)
    assert_same_answers(ours, java_answers(judge, root, CONFIG))

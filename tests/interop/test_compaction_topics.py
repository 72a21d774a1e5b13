"""Compaction topics go back and forth between both engines, and both read them from their own log alike."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seglog import GetStatus, MessageStore
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import get_line, message_line
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages, Probe
from tests.interop.judging.writing import store_options

pytestmark = pytest.mark.interop

TOPICS = {"Comp": {"cleanup.policy": "COMPACTION"}}
CONFIG: dict[str, Any] = {
    "topics": TOPICS,
    "compactionMappedFileSize": 10_000,
    "compactionCqMappedFileSize": 1_000,
}
DEFAULT_SIZES: dict[str, Any] = {"topics": TOPICS}
SIZES = store_options(SMALL_GEOMETRY)
JAVA = [
    JavaMessages(topic="Comp", queue_id=number % 2, count=60, keys="k", tags="T", body_bytes=40 + number)
    for number in range(3)
]
PROBES = [
    Probe(topic="Comp", queue_id=queue_id, queue_offset=at, max_count=count, decode=True)
    for queue_id in (0, 1, 5)
    for at in [-1, *range(0, 200, 7), 119, 120, 121, 180, 1000]
    for count in (1, 3, 32)
]
COMPACTED = [
    Probe(topic="Comp", queue_id=queue_id, queue_offset=at, max_count=count, decode=True)
    for queue_id in (0, 1)
    for at in [-1, *range(0, 400, 9), 1000]
    for count in (1, 32)
]


def declare(root):
    (root / "config").mkdir(parents=True)
    table = {name: {"topicName": name, "attributes": attributes} for name, attributes in TOPICS.items()}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    return root


def answers(store, probes=PROBES):
    return [
        get_line(store.get(probe.topic, probe.queue_id, probe.queue_offset, probe.max_count))
        for probe in probes
    ]


def compaction_files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes().rstrip(b"\0")
        for path in (root / "compaction").rglob("*")
        if path.is_file() and "position" not in path.name
    }


def assert_same_answers(ours, theirs, probes=PROBES):
    for probe, mine, other in zip(probes, ours, theirs, strict=True):
        # Of a queue that was never written the real store says the ordinary queue's emptiness or none.
        assert mine == other, probe


@pytest.mark.parametrize(
    ("keep", "record_crc"),
    [
        pytest.param("compaction log", True, id="compaction log, crc"),
        pytest.param("compaction log", False, id="compaction log, no crc"),
        pytest.param("abort", True, id="abort and no compaction log, crc"),
    ],
)
def test_topic_written_here_is_served_by_rocketmq(judge: Judge, tmp_path, keep, record_crc):
    root = declare(tmp_path / "store")
    with MessageStore.open(root, record_crc=record_crc, **SIZES) as store:
        for number in range(250):
            store.put("Comp", b"%d" % number, queue_id=number % 2, keys=f"k{number % 9}", tags="T")
        ours = answers(store)
        lines = [message_line(m) for m in store.get("Comp", 0, 0, 1000)]
        assert {"__CRC32#" in line["properties"] for line in lines} == {record_crc}
    before = compaction_files(root)
    if keep != "compaction log":
        shutil.rmtree(root / "compaction")
        (root / "abort").write_text("1")
        (root / "checkpoint").unlink()  # or RocketMQ scans the log from near its end only
    assert_same_answers(ours, judge.probe(root, PROBES, SMALL_GEOMETRY, **DEFAULT_SIZES))
    assert compaction_files(root) == before
    judge.append(root, JAVA, SMALL_GEOMETRY, **DEFAULT_SIZES)
    with MessageStore.open(root, create=False) as store:
        store.put("Comp", b"again", keys="k")
        ours = answers(store)
        again = [message_line(m) for m in store.get("Comp", 0, 0, 1000)]
        assert again[: len(lines)] == lines
        assert len(again) == 125 + 120 + 1
    assert_same_answers(ours, judge.probe(root, PROBES, SMALL_GEOMETRY, **DEFAULT_SIZES))


# Not after a halt: RocketMQ fills compaction logs in a thread of its own, which nothing waits for, so files
# may be missing, and with them the lengths that its configuration knows and the files alone tell us.
def test_topic_of_rocketmq_is_served_here_and_goes_on(judge: Judge, tmp_path, copied: Callable[[Path], Path]):
    root = declare(tmp_path / "store")
    judge.write(root, JAVA, SMALL_GEOMETRY, **CONFIG)
    theirs = judge.probe(copied(root), PROBES, SMALL_GEOMETRY, **CONFIG)
    for read_only in (True, False):
        with MessageStore.open(root, create=False, read_only=read_only) as store:
            assert_same_answers(answers(store), theirs)
    before = compaction_files(root)
    shutil.rmtree(root / "compaction")
    (root / "abort").write_text("1")
    (root / "checkpoint").unlink()
    judge.probe(root, PROBES, SMALL_GEOMETRY, **CONFIG)
    assert compaction_files(root) == before
    with MessageStore.open(root, create=False) as store:
        for number in range(100):
            store.put("Comp", b"%d" % number, queue_id=1, keys="k")
        ours = answers(store)
    assert_same_answers(ours, judge.probe(root, PROBES, SMALL_GEOMETRY, **CONFIG))


@pytest.mark.parametrize(
    ("crash", "record_crc"), [pytest.param(False, True, id="closed"), pytest.param(True, False, id="crashed")]
)
def test_topic_compacted_by_rocketmq_is_served_here_and_goes_on(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], crash, record_crc
):
    root = declare(tmp_path / "store")
    # The first record of each queue is RocketMQ's: its configuration alone can make the files so small.
    first = [JavaMessages(topic="Comp", queue_id=queue_id, keys="first") for queue_id in (0, 1)]
    judge.write(root, first, SMALL_GEOMETRY, **CONFIG)
    with MessageStore.open(root, create=False, record_crc=record_crc) as store:
        put_changes(store, 300)
        whole = served_of_both_queues(store)

    for trip in range(2):
        positions, theirs = judge.compact(root, COMPACTED, SMALL_GEOMETRY, halt=crash, **CONFIG)
        assert {line["queue"] for line in positions} == {"Comp_0", "Comp_1"}
        assert all(line["positionAfter"] > (line["positionBefore"] or -1) for line in positions)
        assert all(line["filesAfter"] < line["filesBefore"] for line in positions)
        assert_same_answers(theirs, judge.probe(copied(root), COMPACTED, SMALL_GEOMETRY, **CONFIG), COMPACTED)
        before = compaction_files(root)
        with MessageStore.open(root, create=False, read_only=True) as store:
            assert_same_answers(answers(store, COMPACTED), theirs, COMPACTED)
        with MessageStore.open(root, create=False, record_crc=record_crc) as store:
            assert_same_answers(answers(store, COMPACTED), theirs, COMPACTED)
            compacted = served_of_both_queues(store)
            assert all(whole[place] == line for place, line in compacted.items())
            assert newest_of_each_key(whole) <= compacted.keys() < whole.keys()
            assert compaction_files(root) == before
            put_changes(store, 150)
            # What was compacted away must not come back from the commit log, where it still is.
            whole = served_of_both_queues(store)
            assert {place: whole[place] for place in compacted} == compacted
            assert len(whole) == len(compacted) + 150
            ours = answers(store, COMPACTED)
            root = copied(root) if crash else root
        assert_same_answers(ours, judge.probe(root, COMPACTED, SMALL_GEOMETRY, **CONFIG), COMPACTED)
        judge.append(root, [messages_of(trip)], SMALL_GEOMETRY, **CONFIG)
        with MessageStore.open(root, create=False) as store:
            whole = served_of_both_queues(store)


def test_topic_written_here_in_files_of_default_size_is_compacted_by_rocketmq(judge: Judge, tmp_path):
    root = declare(tmp_path / "store")
    geometry = replace(SMALL_GEOMETRY, segment_size_bytes=16 << 20)
    with MessageStore.open(root, **store_options(geometry)) as store:
        for number in range(110):
            store.put("Comp", bytes([number]) * (1 << 20), keys=f"k{number % 4}")
    probes = [Probe(topic="Comp", queue_offset=at, max_count=3, decode=True) for at in (-1, 0, 50, 105, 109)]
    (position,), theirs = judge.compact(root, probes, geometry, **DEFAULT_SIZES)
    assert (position["filesBefore"], position["filesAfter"]) == (2, 2)
    assert theirs[0]["messages"][0]["queueOffset"] == position["positionAfter"] - 3
    with MessageStore.open(root, create=False) as store:
        assert_same_answers(answers(store, probes), theirs, probes)
        store.put("Comp", b"again", keys="k")
        ours = answers(store, probes)
    assert_same_answers(ours, judge.probe(root, probes, geometry, **DEFAULT_SIZES), probes)


def put_changes(store, count):
    """Puts values of nine keys, and now and then an empty one, which deletes its key."""
    for number in range(count):
        body = b"" if number % 29 == 0 else b"%d " % number * 10
        store.put("Comp", body, queue_id=number % 2, keys=f"k{number // 2 % 9}", tags="T")


def messages_of(trip):
    return JavaMessages(topic="Comp", queue_id=trip % 2, count=70, first=1000 * trip, keys="j", body_bytes=60)


def served_of_both_queues(store):
    """Returns all messages by place, as far as a compaction leaves them alone: it moves them."""
    found = {}
    for queue_id in (0, 1):
        at = -1
        while (result := store.get("Comp", queue_id, at)).status is GetStatus.FOUND:
            for message in result:
                line = message_line(message)
                for moved in ("cqPos", "commitLogOffset"):
                    del line[moved]
                found[queue_id, message.queue_offset] = line
            at = result.next_offset
    return found


def newest_of_each_key(whole):
    newest = {(place[0], line["properties"]["KEYS"]): place for place, line in sorted(whole.items())}
    return {place for place in newest.values() if whole[place]["bodyLen"]}

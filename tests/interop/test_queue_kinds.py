"""Batch queues and LMQ queues go back and forth between both engines, and each serves the other's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog import MessageStore
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from seglog.storage.format.record.sys_flag import INNER_BATCH, NEED_UNWRAP
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import place, served_lines
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages, Probe
from tests.support.material.stores import AllLengths

pytestmark = pytest.mark.interop

TOPICS = {"B": {"queue.type": "BatchCQ"}}
CONFIG: dict[str, Any] = {
    "topics": TOPICS,
    "mapperFileSizeBatchConsumeQueue": 46 * 100,
    "enableLmq": True,
    "enableMultiDispatch": True,
}
SIZES: AllLengths = {
    "segment_size_bytes": 65_536,
    "queue_file_size_bytes": 2_000,
    "index_geometry": IndexGeometry(SMALL_GEOMETRY.index_slots, SMALL_GEOMETRY.index_entries),
}


def declare(root):
    (root / "config").mkdir(parents=True)
    table = {name: {"topicName": name, "attributes": attributes} for name, attributes in TOPICS.items()}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))


def fill(store, count=150, first=0):
    for number in range(first, first + count):
        store.put("Plain", b"plain %d" % number, tags=f"t{number % 3}")
        names = ("%LMQ%a", "%LMQ%a,%LMQ%b", "%LMQ%b")[number % 3]
        store.put(
            "Parent",
            b"multi %d" % number,
            queue_id=number % 2,
            tags="LM",
            keys=f"m{number}",
            properties={"INNER_MULTI_DISPATCH": names},
        )
        if number % 4 == 0:
            store.put("B", b"single %d" % number, queue_id=number % 2, tags="S")
            continue
        body = encode_batch([BatchMessage(b"%d" % part) for part in range(1 + number % 5)])
        raw = props.encode_properties({"TAGS": "IB", "KEYS": f"b{number}"})
        store.append("B", number % 2, body, raw, 2329, sys_flag=INNER_BATCH | NEED_UNWRAP)


def java_fill(count=60):
    batches = [
        JavaMessages(
            topic="B", queue_id=number % 2, count=1 + number % 4, inner_batch=True, tags="IB", keys="b"
        )
        for number in range(count)
    ]
    plain = [JavaMessages(topic="B", count=3), JavaMessages(topic="Plain", count=20)]
    multi = [
        JavaMessages(
            topic="Parent",
            queue_id=number % 2,
            count=20,
            properties={"INNER_MULTI_DISPATCH": names},
            tags="L",
        )
        for number, names in enumerate(("%LMQ%a", "%LMQ%a,%LMQ%b", "%LMQ%c"))
    ]
    return [*batches, *plain, *multi]


def walk(store):
    """Returns place and message of all that a reader is served, queue by queue."""
    found = {place(line): line for line in served_lines(store)}
    sizes = Counter()
    for topic, queue_id, offset in found:
        sizes[topic, queue_id] += int(found[topic, queue_id, offset]["properties"].get("INNER_NUM", "1"))
    assert sizes == {name: high - low for name, (low, high) in ranges(store).items()}
    return found


def java_walk(dump):
    return {place(line): line for line in dump.of_kind("msg")}


def ranges(store):
    return {(queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset) for queue in store.queues()}


def java_ranges(dump):
    return {
        (line["topic"], line["queueId"]): (line["minOffset"], line["maxOffset"])
        for line in dump.of_kind("queue")
    }


def assert_same(store_ranges, found, dump):
    assert java_ranges(dump) == store_ranges
    lines = java_walk(dump)
    assert lines.keys() == found.keys()
    for at, ours in found.items():
        theirs = lines[at]
        for name, value in ours.items():
            if not name.startswith("cq"):
                assert theirs[name] == value, (at, name)
    assert [line for line in lines.values() if min(line.get("keyFound", {"": 1}).values()) < 1] == []


def queue_files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for folder in ("consumequeue", "batchconsumequeue")
        for path in (root / folder).rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("keep", ["queues", "abort and no queues"])
def test_store_written_here_is_served_by_rocketmq_and_comes_back(judge: Judge, tmp_path, keep):
    here = tmp_path / "store"
    declare(here)
    with MessageStore.open(here, **SIZES) as store:
        fill(store)
        ours, found = ranges(store), walk(store)
    before = queue_files(here)
    if keep != "queues":
        for name in before:
            (here / name).unlink()
        (here / "abort").write_text("1")
        (here / "checkpoint").unlink()  # or RocketMQ scans the log from near its end only
    dump = judge.dump(here, SMALL_GEOMETRY, **CONFIG)
    assert_same(ours, found, dump)
    assert {line["cqType"] for line in dump.of_kind("queue") if line["topic"] == "B"} == {"BatchCQ"}
    assert queue_files(here) == before
    judge.append(here, java_fill(), SMALL_GEOMETRY, **CONFIG)
    with MessageStore.open(here, create=False) as store:
        assert {finding.severity.value for finding in store.recovery.findings} <= {"note"}
        fill(store, 20, 1000)
        ours, found = ranges(store), walk(store)
    assert_same(ours, found, judge.dump(here, SMALL_GEOMETRY, **CONFIG))


@pytest.mark.parametrize("halt", [True, False])
def test_store_of_rocketmq_is_served_here(judge: Judge, tmp_path, halt, copied: Callable[[Path], Path]):
    here = tmp_path / "store"
    declare(here)
    answers = judge.write(here, java_fill(), SMALL_GEOMETRY, halt=halt, **CONFIG)
    assert {line["status"] for line in answers} == {"PUT_OK"}
    dump = judge.dump(copied(here), SMALL_GEOMETRY, **CONFIG)
    with MessageStore.open(here, read_only=True) as store:
        assert_same(ranges(store), walk(store), dump)
    # Cut off before it dispatched anything it leaves no queue file, and then only its configuration knows.
    with MessageStore.open(here, create=False, **SIZES) as store:
        assert_same(ranges(store), walk(store), dump)
    judged = judge.dump(here, SMALL_GEOMETRY, **CONFIG)
    assert judged.refusal is None
    assert java_walk(judged).keys() == java_walk(dump).keys()


def test_reads_of_batch_queues_agree(judge: Judge, tmp_path):
    declare(tmp_path / "store")
    judge.write(tmp_path / "store", java_fill(250), SMALL_GEOMETRY, **CONFIG)
    with MessageStore.open(tmp_path / "store", read_only=True) as store:
        high = store.max_offset("B", 0)
        asked = [
            (at, count) for at in [*range(60), *range(high - 30, high + 3)] for count in (1, 2, 5, 32, 400)
        ]
        ours = []
        for at, count in asked:
            found = store.get("B", 0, at, count)
            ours.append((found.status.value, found.next_offset, [m.phy_offset for m in found]))
    probes = [Probe(topic="B", queue_offset=at, max_count=count) for at, count in asked]
    theirs = [
        (line["status"], line["nextOffset"], line["phyOffsets"])
        for line in judge.probe(tmp_path / "store", probes, SMALL_GEOMETRY, **CONFIG)
    ]
    for question, mine, other in zip(asked, ours, theirs, strict=True):
        assert mine == other, question

"""RocketMQ serves a compacted store: kept messages where they were, placeholders between, and it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from seglog.clock import SystemClock, VirtualClock
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import PLACEHOLDER_FLAG, PLACEHOLDER_PROPERTY
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, message_line, place
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages, Probe
from tests.interop.judging.states import as_is, bare, crashed
from tests.interop.judging.writing import store_options
from tests.interop.test_compaction_topics import CONFIG, assert_same_answers, declare, put_changes
from tests.interop.test_compaction_topics import answers as get_answers
from tests.support.local_runner import LocalRunner
from tests.support.material import golden
from tests.support.material.stores import served

pytestmark = pytest.mark.interop

PROBES = [
    Probe(topic="Comp", queue_id=queue_id, queue_offset=at, max_count=count, decode=True)
    for queue_id in (0, 1)
    for at in [-1, *range(0, 200, 9), 1000]
    for count in (1, 32)
]


def lines_of(root):
    with MessageStore.open(root, read_only=True) as store:
        return [message_line(message) for queue in served(store).values() for message in queue]


def compact(root, policies, now_ms=None):
    clock = SystemClock() if now_ms is None else VirtualClock(now_ms)
    job = Compaction(root, policies, split_bytes=20_000, runner=LocalRunner(RealFiles()), clock=clock)
    done = job.apply()
    assert done.is_done
    return done


@pytest.fixture(scope="module", params=[True, False], ids=["crc", "no crc"])
def compacted(request, tmp_path_factory):
    """A store in which keys were compacted, one topic expired but for its end, and one was left alone."""
    root = tmp_path_factory.mktemp("compacted") / "s"
    clock = VirtualClock(1_800_000_000_000)
    with MessageStore.open(
        root, clock=clock, record_crc=request.param, **store_options(SMALL_GEOMETRY)
    ) as store:
        for number in range(900):
            topic = ("Keyed", "Old", "Kept")[number % 3]
            queue_id, keys = number // 3 % 2, f"k{number % 17}"
            store.put(topic, b"%d " % number * 20, queue_id=queue_id, keys=keys, tags="T")
            clock.advance(1000)
        before = {place(line): line for queue in served(store).values() for line in map(message_line, queue)}
    compact(root, {"Keyed": Policy(compact=True), "Old": Policy(retention_ms=0)}, clock.now_ms() + 1)
    return root, before


@pytest.mark.parametrize("state", [as_is, crashed, bare])
def test_rocketmq_serves_what_is_left(judge: Judge, compacted, copied: Callable[[Path], Path], state):
    root, before = compacted
    ours = lines_of(root)
    for_java = copied(root)
    state(for_java)
    dump = judge.dump(for_java, SMALL_GEOMETRY)
    assert dump.refusal is None
    theirs = dump.of_kind("msg")
    assert differences(ours, theirs) == []
    placeholders = [line for line in theirs if line["properties"].get(PLACEHOLDER_PROPERTY) == "1"]
    kept = [line for line in theirs if PLACEHOLDER_PROPERTY not in line["properties"]]
    assert len(kept) == 300 + 34
    assert len(placeholders) > 0
    moved = ("commitLogOffset", "cqPos", "msgId", "offsetMsgId", "storeSize")
    for line in kept:
        old = before[place(line)]
        same = [name for name in line if name not in moved and name in old and name != "properties"]
        assert {name: line[name] for name in same} == {name: old[name] for name in same}
    assert {line["flag"] for line in placeholders} == {PLACEHOLDER_FLAG}
    more = [JavaMessages(topic=topic, queue_id=1, count=3) for topic in ("Keyed", "Old", "Kept")]
    judge.append(for_java, more, SMALL_GEOMETRY)
    with MessageStore.open(for_java, read_only=True) as store:
        assert [store.max_offset(topic, 1) for topic in ("Keyed", "Old", "Kept")] == [153, 153, 153]
        assert store.min_offset("Old", 1) == 149


@pytest.mark.parametrize("state", [as_is, bare])
@pytest.mark.parametrize("name", ["roll", "propcrc", "ipv6", "outerbatch"])
def test_stores_that_rocketmq_wrote(judge: Judge, tmp_path, copied: Callable[[Path], Path], name, state):
    root = golden.extract(name, tmp_path)
    before = {place(line): line for line in lines_of(root)}
    topics = {line["topic"] for line in before.values()}
    topic = max(topics, key=lambda one: sum(line["topic"] == one for line in before.values()))
    half = sorted(line["storeSize"] for line in before.values() if line["topic"] == topic)
    compact(root, {topic: Policy(compact=True, retention_bytes=sum(half) // 4)})
    for_java = copied(root)
    state(for_java)
    dump = judge.dump(for_java, SMALL_GEOMETRY)
    assert dump.refusal is None
    assert differences(lines_of(root), dump.of_kind("msg")) == []
    assert {place(line) for line in dump.of_kind("msg")} < before.keys()


def test_compaction_topic_is_served_from_its_own_log(judge: Judge, tmp_path, copied: Callable[[Path], Path]):
    root = declare(tmp_path / "store")
    first = [JavaMessages(topic="Comp", queue_id=queue_id, keys="first") for queue_id in (0, 1)]
    judge.write(root, first, SMALL_GEOMETRY, **CONFIG)
    with MessageStore.open(root, create=False) as store:
        put_changes(store, 300)
        whole = {
            (queue_id, message.queue_offset): message
            for queue_id in (0, 1)
            for message in read_through(store, queue_id)
        }
    compact(root, None)
    with MessageStore.open(root, read_only=True) as store:
        ours = get_answers(store, PROBES)
        left = {(q, m.queue_offset): m for q in (0, 1) for m in read_through(store, q)}
    last = {}
    for (queue_id, queue_offset), message in sorted(whole.items()):
        last[queue_id, message.properties["KEYS"]] = queue_id, queue_offset
    assert left.keys() == set(last.values())
    assert all(left[at].body == whole[at].body for at in left)
    assert_same_answers(ours, judge.probe(copied(root), PROBES, SMALL_GEOMETRY, **CONFIG), PROBES)
    for_java = copied(root)
    judge.append(
        for_java, [JavaMessages(topic="Comp", count=70, keys="j", body_bytes=60)], SMALL_GEOMETRY, **CONFIG
    )
    positions, theirs = judge.compact(for_java, PROBES, SMALL_GEOMETRY, **CONFIG)
    assert positions
    with MessageStore.open(for_java, create=False) as store:
        assert_same_answers(get_answers(store, PROBES), theirs, PROBES)


def read_through(store, queue_id):
    at, found = -1, []
    while len(result := store.get("Comp", queue_id, at)):
        found += list(result)
        at = result.next_offset
    return found

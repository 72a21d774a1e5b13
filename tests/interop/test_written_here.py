"""A store written by seglog is RocketMQ's: the real one serves all of it, appends, and hands it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, java_lines, lost_keys, served_lines
from tests.interop.judging.questions import DEFAULT_GEOMETRY, SMALL_GEOMETRY, JavaMessages
from tests.interop.judging.writing import write_store

pytestmark = pytest.mark.interop

GEOMETRIES = [
    pytest.param(SMALL_GEOMETRY, id="64 KiB segments"),
    pytest.param(DEFAULT_GEOMETRY, id="1 GiB segments"),
]
ENDINGS = [pytest.param(False, id="closed"), pytest.param(True, id="killed")]
CRCS = [pytest.param(None, id="crc"), pytest.param(False, id="no crc")]
BY_JAVA = [
    JavaMessages(topic="Plain", queue_id=1, count=20, tags="Java", keys="j", properties={"from": "Java ☕"}),
    JavaMessages(topic="Batches", queue_id=1, count=7, batch=True, tags="Batch", body_bytes=100),
    JavaMessages(topic="Small", count=120, body_bytes=700),
    JavaMessages(topic="NewInJava", queue_id=3, count=2, body_bytes=0),
]


@pytest.mark.parametrize("record_crc", CRCS)
@pytest.mark.parametrize("killed", ENDINGS)
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.sampled(4)
def test_real_store_serves_it_appends_and_hands_it_back(judge: Judge, tmp_path, geometry, killed, record_crc):
    written = write_store(tmp_path, geometry, killed=killed, record_crc=record_crc)

    dump = judge.dump(tmp_path, geometry)
    assert dump.refusal is None
    assert dump.store["abortBefore"] is killed
    assert dump.store["maxPhyOffset"] == written.max_phy_offset
    assert differences(written.queued, dump.of_kind("msg")) == []
    assert lost_keys(dump.of_kind("msg")) == []
    intact = {line["pos"]: line["size"] for line in dump.of_kind("log") if line.get("ok")}
    records = [line for line in written.queued + written.logged if "cqPos" in line]
    assert [intact.get(line["cqPos"]) for line in records] == [line["cqSize"] for line in records]

    by_java = append_by_java(judge, tmp_path, geometry)
    with MessageStore.open(tmp_path) as store:
        assert (store.recovery.mode, store.recovery.cut_bytes, store.recovery.findings) == ("normal", 0, ())
        assert differences(written.queued + by_java, served_lines(store), ignoring=["tagsCode"]) == []
        for line in written.logged:
            assert store.message_at(line["cqPos"]).sys_flag == line["sysFlag"]
        by_us = [
            store.put("NewInJava", b"back again %d" % number, queue_id=3, keys=f"own{number}")
            for number in range(5)
        ]
        assert [result.queue_offset for result in by_us] == [2, 3, 4, 5, 6]
        end = store.max_phy_offset

    again = judge.dump(tmp_path, geometry)
    assert lost_keys(again.of_kind("msg")) == []
    assert again.store["maxPhyOffset"] == end
    served = [line for line in again.of_kind("msg") if line["cqPos"] < by_us[0].phy_offset]
    assert differences(written.queued + by_java, served) == []
    assert len(again.of_kind("msg")) == len(served) + len(by_us)


def append_by_java(judge, path, geometry):
    answers = iter(judge.append(path, BY_JAVA, geometry))
    lines = []
    for messages in BY_JAVA:
        calls = 1 if messages.batch else messages.count
        lines += java_lines(messages, [next(answers) for _ in range(calls)])
    return lines


@pytest.mark.parametrize("killed", ENDINGS)
def test_real_store_accepts_every_record_crc_when_it_insists(judge: Judge, tmp_path, killed):
    written = write_store(tmp_path, killed=killed)
    # Without a checkpoint and after a crash every record is checked, not only those of the last files.
    if killed:
        (tmp_path / "checkpoint").unlink(missing_ok=True)
    dump = judge.dump(tmp_path, SMALL_GEOMETRY, enabledAppendPropCRC=True, forceVerifyPropCRC=True)
    assert dump.store["maxPhyOffset"] == written.max_phy_offset
    assert differences(written.queued, dump.of_kind("msg")) == []
    assert all("__CRC32#" in line["properties"] for line in dump.of_kind("msg"))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_real_store_serves_everything_acknowledged_before_a_kill_in_the_middle(
    judge: Judge, tmp_path, geometry
):
    written = write_store(tmp_path, geometry, killed_after=1_000)
    served = units_of_records(judge.dump(tmp_path, geometry))
    by_place = {(line["cqTopic"], line["cqQueueId"], line["cqOffset"]) for line in written.queued}
    acknowledged = [
        line for line in served if (line["cqTopic"], line["cqQueueId"], line["cqOffset"]) in by_place
    ]
    assert differences(written.queued, acknowledged) == []
    # At most one record can be whole in the log without its acknowledgement having left the process.
    assert len(served) - len(acknowledged) <= 1


def test_both_engines_recover_the_same_from_a_kill_in_the_middle(
    judge: Judge, tmp_path, copied: Callable[[Path], Path]
):
    write_store(tmp_path / "store", killed_after=1_000)
    for_java = copied(tmp_path / "store")
    with MessageStore.open(tmp_path / "store") as store:
        ours = served_lines(store)
        end = store.max_phy_offset
    dump = judge.dump(for_java, SMALL_GEOMETRY)
    assert dump.store["maxPhyOffset"] == end
    assert differences(ours, units_of_records(dump)) == []


def units_of_records(dump):
    """Leaves out what RocketMQ takes for a unit at the start of a queue file that has none yet.

    A kill between making a queue file and writing its first unit leaves one, whichever engine was killed.
    """
    return [line for line in dump.of_kind("msg") if line["cqSize"] > 0]


def test_message_ids_are_those_of_the_real_store(judge: Judge, tmp_path):
    with MessageStore.open(tmp_path) as store:
        ours = store.put("T", b"id")
    answer, *_ = judge.write(tmp_path / "java", [JavaMessages(topic="T", count=1)], SMALL_GEOMETRY)
    assert ours.phy_offset == answer["phyOffset"] == 0
    assert ours.message_id == answer["messageId"]


@pytest.mark.parametrize("killed", ENDINGS)
def test_store_without_its_oldest_segments_goes_back_and_forth(judge: Judge, tmp_path, killed):
    write_store(tmp_path, killed=killed)
    for segment in sorted((tmp_path / "commitlog").iterdir())[:2]:
        segment.unlink()
    with MessageStore.open(tmp_path) as store:
        store.put("Plain", b"after the trim")
        ranges = {(each.topic, each.queue_id): (each.min_offset, each.max_offset) for each in store.queues()}
        ours, end = served_lines(store), store.max_phy_offset
    dump = judge.dump(tmp_path, SMALL_GEOMETRY)
    assert dump.store["minPhyOffset"] == 2 * SMALL_GEOMETRY.segment_size_bytes
    assert dump.store["maxPhyOffset"] == end
    for line in dump.of_kind("queue"):
        assert (line["minOffset"], line["maxOffset"]) == ranges[line["topic"], line["queueId"]]
    assert differences(ours, dump.of_kind("msg")) == []

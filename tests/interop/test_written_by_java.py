"""A store that the real RocketMQ left behind opens here, serves the same, and goes back with more in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, lost_keys, served_lines
from tests.interop.judging.questions import DEFAULT_GEOMETRY, SMALL_GEOMETRY, JavaHost, JavaMessages
from tests.interop.judging.writing import store_options

pytestmark = pytest.mark.interop

V6 = JavaHost("1050::5:600:300c:326b", 50_001)
KINDS = [
    JavaMessages(
        topic="Orders", count=150, body_bytes=900, tags="Paid", keys="order-", properties={"city": "杭州 🚀"}
    ),
    JavaMessages(topic="Orders", queue_id=1, count=10, body_bytes=0),
    JavaMessages(topic="t" * 127, count=2),
    JavaMessages(topic="t" * 128, count=2, tags="标签"),
    JavaMessages(topic="%RETRY%" + "g" * 200, count=2, reconsume_times=3),
    JavaMessages(topic="Hosts", born_host=V6),
    JavaMessages(topic="Hosts", store_host=V6),
    JavaMessages(topic="Hosts", born_host=V6, store_host=V6, flag=-1),
    *(
        JavaMessages(topic="Tx", count=3, sys_flag=state, tags="Tx", prepared_transaction_offset=4711)
        for state in (4, 8, 12)
    ),
    JavaMessages(
        topic="SCHEDULE_TOPIC_XXXX", queue_id=2, count=3, properties={"DELAY": "3", "REAL_TOPIC": "Orders"}
    ),
    JavaMessages(topic="Batches", count=30, batch=True, keys="b", body_bytes=200, properties={"n": "ü"}),
    JavaMessages(topic="Odd", count=2, properties={"nul": "a\0\0b", "empty": "", "sep": "x\x01y"}),
    JavaMessages(topic="Big", count=30, body_bytes=9_000),
]


@pytest.mark.parametrize("halt", [pytest.param(False, id="clean stop"), pytest.param(True, id="halted")])
@pytest.mark.parametrize("with_crc", [False, True])
def test_it_opens_here_and_goes_back(judge: Judge, tmp_path, copied: Callable[[Path], Path], halt, with_crc):
    here = tmp_path / "store"
    judge.write(here, KINDS, SMALL_GEOMETRY, halt=halt, enabledAppendPropCRC=with_crc)
    reference = judge.dump(copied(here), SMALL_GEOMETRY, enabledAppendPropCRC=with_crc)

    with MessageStore.open(here) as store:
        assert store.geometry.segment_size_bytes == SMALL_GEOMETRY.segment_size_bytes
        assert store.geometry.queue_file_size_bytes == SMALL_GEOMETRY.queue_file_size_bytes
        assert store.recovery.mode == ("abnormal" if halt else "normal")
        assert store.max_phy_offset == reference.store["maxPhyOffset"]
        assert store.min_phy_offset == reference.store["minPhyOffset"]
        ranges = {(each.topic, each.queue_id): (each.min_offset, each.max_offset) for each in store.queues()}
        assert ranges == {
            (line["topic"], line["queueId"]): (line["minOffset"], line["maxOffset"])
            for line in reference.of_kind("queue")
        }
        ours = served_lines(store)
        assert differences(ours, reference.of_kind("msg")) == []
        results = [
            store.put("Orders", b"from here %d" % number, tags="Ours", keys=f"own{number}")
            for number in range(200)
        ]
        end = store.max_phy_offset

    dump = judge.dump(here, SMALL_GEOMETRY, enabledAppendPropCRC=with_crc)
    assert dump.store["maxPhyOffset"] == end
    assert lost_keys(dump.of_kind("msg")) == []
    old = [line for line in dump.of_kind("msg") if line["cqPos"] < results[0].phy_offset]
    assert differences(reference.of_kind("msg"), old) == []
    assert [line["cqPos"] for line in dump.of_kind("msg") if line["cqPos"] >= results[0].phy_offset] == [
        result.phy_offset for result in results
    ]
    # A store keeps the way it was written in: a record CRC only where the real store wrote one.
    assert {"__CRC32#" in line["properties"] for line in dump.of_kind("msg")} == {with_crc}


def test_default_sizes_are_inferred_from_the_files(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T", count=5)])
    with MessageStore.open(tmp_path) as store:
        assert store.geometry.segment_size_bytes == DEFAULT_GEOMETRY.segment_size_bytes
        assert store.geometry.queue_file_size_bytes == DEFAULT_GEOMETRY.queue_file_size_bytes
        assert store.max_offset("T", 0) == 5
        store.put("T", b"sixth")
    assert judge.dump(tmp_path).of_kind("queue")[0]["maxOffset"] == 6


def test_an_empty_store_of_the_real_one_takes_messages(judge: Judge, tmp_path):
    judge.write(tmp_path, [], SMALL_GEOMETRY)
    with MessageStore.open(tmp_path, **store_options(SMALL_GEOMETRY)) as store:
        store.put("T", b"first")
    assert [line["bodyLen"] for line in judge.dump(tmp_path, SMALL_GEOMETRY).of_kind("msg")] == [5]


@pytest.mark.parametrize("kind", ["damaged", "gone"])
def test_keys_are_found_after_an_opening_that_no_index_file_shows_the_division(judge: Judge, tmp_path, kind):
    here = tmp_path / "store"
    judge.write(here, KINDS, SMALL_GEOMETRY)
    for path in (here / "index").iterdir():
        if kind == "gone":
            path.unlink()
        else:
            path.write_bytes(b"\x5a" * path.stat().st_size)
    with MessageStore.open(here) as store:
        for number in range(90):
            store.put("Orders", b"from here %d" % number, keys=f"own{number}")
    dump = judge.dump(here, SMALL_GEOMETRY)
    assert lost_keys(dump.of_kind("msg")) == []
    asked = [key for line in dump.of_kind("msg") for key in line.get("keyFound", {})]
    assert {f"own{number}" for number in range(90)} <= set(asked)

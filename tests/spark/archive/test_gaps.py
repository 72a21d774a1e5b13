"""A store is restored over what is missing in its archive: every offset stays, placeholders between."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.errors import StoreError, StoreMismatchError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.gap_records import gap_batches, gap_record
from seglog.spark.archive.manifest import EXPIRED, LOST, Interval, Missing, Run, StoreIdentity
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_plan import Inserted, plan_restore
from seglog.spark.compact.swap import discard_old
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import PLACEHOLDER_FLAG, PLACEHOLDER_PROPERTY
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import HEADS, encode_record, head_layout, topic_field
from tests.spark.archive.stores import BEGIN_MS, NEW_SIZES, content, copy, damage, expire, put
from tests.support.material.stores import served
from tests.support.narrow import not_none


def run_of(number, *parts, missing=()):
    identity = StoreIdentity("s", 16384, 0, 1)
    intervals = tuple(Interval("T", 0, *part) for part in parts)
    rows = tuple(Missing("T", 0, first, end, LOST) for first, end in missing)
    return Run(number, 0, (), intervals, 1, 1, identity, (), rows)


def test_placeholders_go_before_the_next_record_and_filled_records_too():
    runs = [
        run_of(1, (5, 10), (12, 20), missing=[(10, 12)]),
        run_of(2, (23, 30), missing=[(20, 23), (30, 33)]),
        run_of(3, (10, 11), (21, 22)),
    ]
    plan = plan_restore(runs, {}, frozenset())
    assert plan.intervals == (Interval("T", 0, 5, 33),)
    assert sorted(one[2:] for one in plan.gaps) == [(11, 12, 12), (20, 21, 23), (22, 23, 23), (30, 33, 29)]
    assert sorted(one[2:] for one in plan.filled) == [(10, 11, 12), (21, 22, 23)]
    plan = plan_restore(runs, {("T", 0): 22}, frozenset())
    assert (plan.intervals, plan.filled) == ((Interval("T", 0, 22, 33),), ())
    assert plan.gaps == (Inserted("T", 0, 22, 23, 23), Inserted("T", 0, 30, 33, 29))
    assert plan_restore(runs, {("T", 0): 30}, frozenset()) == ((), (), ())
    with pytest.raises(StoreError, match="does not have T/0 3, so"):
        plan_restore(runs, {("T", 0): 3}, frozenset())


@pytest.mark.parametrize("bits", HEADS)
@pytest.mark.parametrize("record_crc", [True, False], ids=["crc", "no crc"])
@pytest.mark.parametrize("topic", ["T", "L" * 200])
def test_placeholders_are_records_that_prove_themselves(bits, record_crc, topic):
    head = dict.fromkeys(HEADS[bits].offsets, 7) | {"sys_flag": bits | 1, "phy_offset": 0}
    magic, field = topic_field(topic.encode())
    head |= {"magic": magic} | {name: bytes(size) for name, size in address_sizes(bits).items()}
    own = encode_record(HEADS[bits], head, field, b"body", b"TAGS\x01a\x02", record_crc=record_crc)
    assert head_layout(own) is HEADS[bits]
    made = gap_record(own[: HEADS[bits].size_bytes], topic, record_crc=record_crc)
    first = (1 << 40) - 3
    found = []
    for offsets, records in gap_batches(made, first, first + 20_000):
        for offset, record in zip(offsets.tolist(), records.to_pylist(), strict=True):
            if offset % 997 == 0 or offset < first + 5:
                message = decode_message(record, verify=True)
                assert (message.topic, message.queue_offset, message.body) == (topic, offset, b"")
                assert (message.flag, message.properties[PLACEHOLDER_PROPERTY]) == (PLACEHOLDER_FLAG, "1")
                assert (message.store_timestamp_ms, message.queue_id) == (7, 7)
                assert ("__CRC32#" in message.properties) == record_crc
            found.append(offset)
    assert found == list(range(first, first + 20_000))


def address_sizes(bits):
    layout = HEADS[bits]
    ends = [*layout.offsets.values(), layout.size_bytes][1:]
    sizes = {name: end - start for (name, start), end in zip(layout.offsets.items(), ends, strict=True)}
    return {name: size for name, size in sizes.items() if name.endswith("address")}


def assert_restored(restored, original, missing):
    """Asserts that a store has what the other had, and placeholders at the places that are missing."""
    with MessageStore.open(restored, read_only=True) as store:
        now = {(*key, one.queue_offset): one for key, found in served(store).items() for one in found}
    assert {place for place, one in now.items() if one.flag == PLACEHOLDER_FLAG} == missing
    before = {(*key, one[2]): one for key, found in content(original).items() for one in found}
    after = {(*key, one[2]): one for key, found in content(restored).items() for one in found}
    assert after.keys() == before.keys()
    assert {place: after[place] for place in after.keys() - missing} == {
        place: before[place] for place in before.keys() - missing
    }
    assert {one.code for one in check_store(restored).findings} <= {"seal-missing"}


@pytest.mark.spark
def test_store_is_restored_over_lost_and_expired_messages(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 200), tmp_path / "archive"
    whole = copy(root, tmp_path / "whole")
    damage(root, 0, 40)
    damage(root, 1, 77)
    archive_store(root, folder, spark, allow_loss=True)
    again = tmp_path / "again"
    done = restore_store(folder, again, spark, sizes=NEW_SIZES, apply=True)
    assert (done.messages, done.placeholders) == (198, 2)
    assert_restored(again, whole, {("T", 0, 40), ("T", 1, 77)})
    put(again, 60, begin=200)
    put(whole, 60, begin=200)
    assert not_none(archive_store(again, folder, spark)).messages == 60
    put(again, 260, begin=260)
    put(whole, 260, begin=260)
    expire(again, 5)
    with MessageStore.open(again, read_only=True) as store:
        firsts = [store.min_offset("T", queue_id) for queue_id in (0, 1)]
    run = not_none(archive_store(again, folder, spark, fill_missing=True))
    assert {one.why for one in run.missing} == {EXPIRED}
    filled = not_none(archive_store(whole, folder, spark, fill_missing=True))
    assert filled.messages == 2 + sum(firsts) - 260
    restore_store(folder, tmp_path / "filled", spark, sizes=NEW_SIZES, apply=True)
    assert_restored(tmp_path / "filled", whole, set())


@pytest.mark.spark
def test_store_that_ends_before_a_gap_goes_on_over_it(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 100), tmp_path / "archive"
    older = copy(root, tmp_path / "older")
    put(root, 100, begin=100)
    whole = copy(root, tmp_path / "whole")
    damage(root, 1, 60)
    archive_store(root, folder, spark, allow_loss=True)
    done = restore_store(folder, older, spark, apply=True)
    assert (done.messages, done.placeholders, done.skipped) == (99, 1, 100)
    assert_restored(older, whole, {("T", 1, 60)})
    discard_old(RealFiles(), older)
    other = put(tmp_path / "other", 150, word="other")
    with pytest.raises(StoreMismatchError, match="T/0 at queue offset 74: expected the archived record"):
        restore_store(folder, other, spark, apply=True)


@pytest.mark.spark
def test_lost_end_of_a_queue_keeps_its_offsets(spark: SparkSession, tmp_path):
    folder = tmp_path / "archive"
    archive_store(put(tmp_path / "s", 30), folder, spark)
    manifest = next((folder / "_manifest").iterdir())
    fields = json.loads(manifest.read_text())
    fields["missing"] = [["T", 0, 15, 18, LOST, -1, -1]]
    manifest.write_text(json.dumps(fields))
    restore_store(folder, tmp_path / "again", spark, sizes=NEW_SIZES, apply=True)
    with MessageStore.open(tmp_path / "again", clock=VirtualClock(BEGIN_MS + 10**6)) as store:
        assert store.put("T", b"next").queue_offset == 18

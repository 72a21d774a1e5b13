"""A store is restored over what is missing in its archive: every offset stays, placeholders between."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.errors import StoreError, StoreMismatchError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.gap_records import gap_batches, gap_record, lost_record
from seglog.spark.archive.manifest import EXPIRED, LOST, Interval, Missing, Run, StoreIdentity
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_plan import NOTHING_BESIDE, Inserted, plan_restore
from seglog.spark.archive.store_facts import StoreFacts
from seglog.spark.audit.stores import audit_store
from seglog.spark.compact.swap import discard_old
from seglog.spark.reconcile.messages import message_verdicts
from seglog.spark.reconcile.stores import reconcile_stores
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import PLACEHOLDER_FLAG, PLACEHOLDER_PROPERTY, is_tombstone
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import HEADS, encode_record, head_layout, topic_field
from tests.spark.archive.stores import BEGIN_MS, NEW_SIZES, content, copy, damage, expire, put
from tests.support.narrow import not_none


def run_of(number, *parts, missing=(), why=EXPIRED):
    identity = StoreIdentity("s", 16384, 0, 1)
    intervals = tuple(Interval("T", 0, *part) for part in parts)
    rows = tuple(Missing("T", 0, first, end, why) for first, end in missing)
    return Run(number, 0, (), intervals, 1, 1, identity, (), rows)


def test_placeholders_go_before_the_next_record_and_filled_records_too():
    runs = [
        run_of(1, (5, 10), (12, 20), missing=[(10, 12)]),
        run_of(2, (23, 30), missing=[(20, 23), (30, 33)]),
        run_of(3, (10, 11), (21, 22)),
    ]
    plan = plan_restore(runs, {}, frozenset())
    assert plan.intervals == (Interval("T", 0, 5, 33),)
    assert sorted(one[2:5] for one in plan.gaps) == [(11, 12, 12), (20, 21, 23), (22, 23, 23), (30, 33, 29)]
    assert sorted(one[2:5] for one in plan.filled) == [(10, 11, 12), (21, 22, 23)]
    plan = plan_restore(runs, {("T", 0): 22}, frozenset())
    assert (plan.intervals, plan.filled) == ((Interval("T", 0, 22, 33),), ())
    assert plan.gaps == (Inserted("T", 0, 22, 23, 23), Inserted("T", 0, 30, 33, 29))
    assert plan_restore(runs, {("T", 0): 30}, frozenset()) == ((), (), ())
    with pytest.raises(StoreError, match="does not have T/0 3, so"):
        plan_restore(runs, {("T", 0): 3}, frozenset())


def test_what_is_lost_is_not_forgotten_at_either_end_of_a_queue():
    runs = [
        run_of(1, (5, 10), (12, 20), missing=[(3, 5), (10, 12), (20, 22)], why=LOST),
        run_of(2, (24, 30), missing=[(1, 3), (22, 24)]),
    ]
    plan = plan_restore(runs, {}, frozenset())
    assert plan.intervals == (Interval("T", 0, 3, 30),)
    assert {one[2:] for one in plan.gaps} == {
        (3, 5, 5, True),
        (10, 12, 12, True),
        (20, 22, 24, True),
        (22, 24, 24, False),
    }
    assert (plan.lost, plan.placeholders) == (6, 2)
    assert plan_restore(runs, {("T", 0): 21}, frozenset()).gaps[0][2:] == (21, 22, 24, True)


def test_queue_of_which_all_is_lost_comes_back_as_that():
    runs = [run_of(1, missing=[(0, 4)]), run_of(2, missing=[(4, 7)], why=LOST)]
    plan = plan_restore(runs, {}, frozenset())
    assert plan.intervals == (Interval("T", 0, 4, 7),)
    assert plan.gaps == (Inserted("T", 0, 4, 7, NOTHING_BESIDE, is_lost=True),)
    assert plan_restore(runs, {("T", 0): 7}, frozenset()) == ((), (), ())


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


@pytest.mark.parametrize("bits", HEADS)
@pytest.mark.parametrize("record_crc", [True, False], ids=["crc", "no crc"])
@pytest.mark.parametrize("topic", ["T", "L" * 200])
def test_tombstones_are_those_of_a_repair(bits, record_crc, topic):
    head = dict.fromkeys(HEADS[bits].offsets, 7) | {"sys_flag": bits | 1}
    magic, field = topic_field(topic.encode())
    head |= {"magic": magic} | {name: bytes(size) for name, size in address_sizes(bits).items()}
    own = encode_record(HEADS[bits], head, field, b"body", b"TAGS\x01a\x02", record_crc=record_crc)
    made = lost_record(own[: HEADS[bits].size_bytes], topic, 5, record_crc=record_crc)
    for offsets, records in gap_batches(made, 1000, 1010):
        for offset, record in zip(offsets.tolist(), records.to_pylist(), strict=True):
            message = decode_message(record, verify=True)
            assert is_tombstone(memoryview(record))
            assert (message.topic, message.queue_id, message.queue_offset) == (topic, 5, offset)
            assert (message.properties["SEGLOG_LOST"], message.tags) == ("1", "SEGLOG_LOST")
            assert (message.store_timestamp_ms, "__CRC32#" in message.properties) == (7, record_crc)


def address_sizes(bits):
    layout = HEADS[bits]
    ends = [*layout.offsets.values(), layout.size_bytes][1:]
    sizes = {name: end - start for (name, start), end in zip(layout.offsets.items(), ends, strict=True)}
    return {name: size for name, size in sizes.items() if name.endswith("address")}


def assert_restored(restored, original, missing):
    """Asserts that a store has what the other had, and tombstones at the places that are missing."""
    with StoreFacts(restored) as facts:
        stones = {place for place in missing if not_none(facts.record_of(*place)).message.is_tombstone}
    assert stones == missing
    before = {(*key, one[2]): one for key, found in content(original).items() for one in found}
    after = {(*key, one[2]): one for key, found in content(restored).items() for one in found}
    assert after == {place: before[place] for place in before.keys() - missing}
    report = check_store(restored)
    assert {one.code for one in report.findings} - {"seal-missing"} == ({"tombstones"} if missing else set())
    assert dict(report.messages.lost_of) == Counter((topic, queue_id) for topic, queue_id, _offset in missing)
    assert report.messages.messages == len(before) - len(missing)


@pytest.mark.spark
def test_store_is_restored_over_lost_and_expired_messages(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 200), tmp_path / "archive"
    whole = copy(root, tmp_path / "whole")
    damage(root, 0, 40)
    damage(root, 1, 77)
    archive_store(root, folder, spark, allow_loss=True)
    again = tmp_path / "again"
    done = restore_store(folder, again, spark, sizes=NEW_SIZES, apply=True)
    assert (done.messages, done.placeholders, done.lost) == (198, 0, 2)
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
    assert (done.messages, done.lost, done.skipped) == (99, 1, 100)
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


@pytest.mark.spark
def test_loss_is_known_after_a_restore_wherever_it_was(spark: SparkSession, tmp_path):
    root, folder, again = put(tmp_path / "s", 60), tmp_path / "archive", tmp_path / "again"
    put(root, 4, begin=60, topic="U")
    put(root, 10, begin=64)
    whole = copy(root, tmp_path / "whole")
    lost = {("T", 0, 0), ("T", 0, 1), ("T", 1, 20), ("T", 1, 34), ("U", 0, 0), ("U", 0, 1), ("U", 1, 1)}
    for topic, queue_id, queue_offset in sorted(lost):
        damage(root, queue_id, queue_offset, topic)
    archive_store(root, folder, spark, allow_loss=True)
    done = restore_store(folder, again, spark, sizes=NEW_SIZES, apply=True)
    assert (done.messages, done.placeholders, done.lost) == (67, 0, 7)
    assert_restored(again, whole, lost)
    assert_lost(spark, again, lost)
    archive_store(again, tmp_path / "second", spark)
    thrice = tmp_path / "thrice"
    restore_store(tmp_path / "second", thrice, spark, sizes=NEW_SIZES, apply=True)
    assert_restored(thrice, whole, lost)
    assert archive_store(thrice, tmp_path / "second", spark) is None


@pytest.mark.spark
def test_tombstones_of_a_repair_are_tombstones_after_a_restore(spark: SparkSession, tmp_path):
    root, folder, again = put(tmp_path / "s", 60), tmp_path / "archive", tmp_path / "again"
    whole = copy(root, tmp_path / "whole")
    damage(root, 1, 7)
    damage(root, 1, 8)
    ran = CliRunner().invoke(commands, ["repair", "--apply", "--yes", str(root)])
    assert ran.exit_code == 0, ran.output
    archive_store(root, folder, spark)
    restore_store(folder, again, spark, sizes=NEW_SIZES, apply=True)
    assert_restored(again, whole, {("T", 1, 7), ("T", 1, 8)})
    assert_lost(spark, again, {("T", 1, 7), ("T", 1, 8)})


def assert_lost(spark, root, lost):
    """Asserts that an audit and a reconciliation know of lost messages as the tombstones that they have."""
    report = audit_store(root, spark=spark)
    assert dict(report.messages.lost_of) == Counter((topic, queue_id) for topic, queue_id, _offset in lost)
    facts = reconcile_stores([root], spark=spark).stores
    rows = message_verdicts(spark, facts).where("verdict = 'lost'").collect()
    assert {
        (row["topic"], row["queueId"], offset)
        for row in rows
        for offset in range(row["queueOffset"], row["endOffset"])
    } == lost

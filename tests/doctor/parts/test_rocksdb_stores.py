"""Stores with queues or tables in RocksDB: the log is read and checked, and what is not read is named."""

from __future__ import annotations

import hashlib
import shutil

import pytest

from seglog.clock import SystemClock
from seglog.doctor.check import check_store, ending_of_check, verdict_on
from seglog.doctor.check.broker_start import Start
from seglog.doctor.copies.backup import make_backup
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.errors import Ending, UnsupportedStoreError
from seglog.storage.files import StoreRoot, lock_held
from seglog.storage.findings import findings_fields, next_command
from seglog.storage.store import MessageStore
from tests.support.audits import audit_as_survey
from tests.support.material import rocksdb_stores
from tests.support.material.golden import tree_digest
from tests.support.material.rocksdb_stores import ALONE, BROKERS, NAMES, QUEUE_FOLDERS

IN_ROCKSDB = {"rocks54": 180, "rocks55sep": 180, "double54": 0, "rockslmq55": 125, "migrated54": 60}
"""Messages that no queue file has."""


def codes(report):
    return {finding.code for finding in report.findings}


def of_code(report, code):
    return [finding for finding in report.findings if finding.code == code]


def served(store, queue):
    rows = []
    while (at := queue["min"] + len(rows)) < queue["max"]:
        rows += [
            [one.phy_offset, one.size_bytes, hashlib.sha256(one.body).hexdigest()]
            for one in store.get(queue["topic"], queue["queueId"], at).messages
        ]
    return rows


@pytest.mark.parametrize("name", [name for name in NAMES if name != "migrated54"])
def test_readers_get_the_messages_that_rocketmq_serves(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    before = tree_digest(root)
    with MessageStore.open(root, read_only=True) as store:
        ends = {(one.topic, one.queue_id): (one.min_offset, one.max_offset) for one in store.queues()}
        answers = rocksdb_stores.answers(name)
        assert ends == {(one["topic"], one["queueId"]): (one["min"], one["max"]) for one in answers}
        for one in answers:
            assert served(store, one) == one["messages"]
    assert tree_digest(root) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_healthy_store_is_clean_and_what_was_not_looked_at_is_named(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    before = tree_digest(root)
    report = check_store(root)
    assert report.is_clean
    assert ending_of_check(report) is Ending.CLEAN
    assert codes(report) == {"rocksdb-queues", "stray"}
    assert [one.file for one in of_code(report, "stray")] == ["lab.properties"]
    (note,) = of_code(report, "rocksdb-queues")
    assert (note.file, note.messages) == (QUEUE_FOLDERS[name], IN_ROCKSDB[name])
    (said,) = (text for text in report.not_looked_at if "RocksDB" in text)
    assert f"{QUEUE_FOLDERS[name]} (queues)" in said
    assert "rocksdbstore" in said
    start = verdict_on(report).start
    assert start.start is Start.YES or start.is_assumed  # of an only file nothing states the length
    assert next_command(report.findings, root) == ""
    assert tree_digest(root) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_survey_and_an_audit_find_the_same(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    assert audit_as_survey(root, 16_384, 1 << 20).is_clean


@pytest.mark.parametrize("name", NAMES)
def test_a_repair_is_refused_and_nothing_changes(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    before = tree_digest(root)
    with pytest.raises(UnsupportedStoreError, match="RocksDB"):
        plan_repair(StoreRoot(root), root, SystemClock())
    with pytest.raises(UnsupportedStoreError, match="RocksDB"):
        repair_store(StoreRoot(root), root, SystemClock(), lambda _plan: True)
    with pytest.raises(UnsupportedStoreError, match="RocksDB"):
        MessageStore.open(root)
    assert tree_digest(root) == before


@pytest.mark.parametrize("name", NAMES)
def test_damage_of_the_log_is_a_loss_and_no_repair_is_advised(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    with (root / "commitlog" / ("0" * 20)).open("r+b") as log:
        log.seek(20_000)
        log.write(b"\xa5" * 4_000)
    report = check_store(root)
    assert ending_of_check(report) is Ending.LOSS
    verdict = verdict_on(report)
    assert verdict.start.start is Start.UNKNOWN
    assert verdict.saved == 0
    assert verdict.is_at_least is (IN_ROCKSDB[name] > 0)  # no unit counts the last of a queue
    commands = [str(fields["command"]) for fields in findings_fields(report.findings)]
    assert not [command for command in commands if "repair" in command]
    assert next_command(report.findings, root).startswith("seglog export")


@pytest.mark.parametrize("name", ALONE)
def test_a_lost_end_of_the_log_may_have_held_more_than_is_counted(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    with (root / "commitlog" / "00000000000000065536").open("r+b") as log:
        log.seek(8_000)
        log.write(bytes(57_536))
    report = check_store(root)
    assert report.messages.messages < 180
    assert verdict_on(report).is_at_least


def test_a_queue_without_files_beside_complete_ones_is_a_warning(tmp_path):
    root = rocksdb_stores.extract("double54", tmp_path)
    shutil.rmtree(root / "consumequeue" / "TopicA" / "1")
    report = check_store(root)
    (missing,) = of_code(report, "queue-missing")
    assert (missing.file, missing.messages) == ("consumequeue/TopicA/1", 5)
    assert ending_of_check(report) is Ending.FINDINGS
    assert next_command(report.findings, root).startswith("seglog export")


def test_an_old_table_of_topics_beside_one_in_rocksdb_deletes_no_queue(tmp_path):
    root = rocksdb_stores.with_tables(tmp_path)
    shutil.rmtree(root / "consumequeue")
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{"EqTopic":{"topicName":"EqTopic"}}}')
    with MessageStore.open(root, read_only=True) as store:
        assert "TxTopic" in {queue.topic for queue in store.queues()}
    shutil.rmtree(root / "config" / "rdb")
    with MessageStore.open(root, read_only=True) as store:
        assert "TxTopic" not in {queue.topic for queue in store.queues()}


def test_tables_in_rocksdb_are_named_and_none_is_lost_or_stray(tmp_path):
    root = rocksdb_stores.with_tables(tmp_path)
    (root / "config" / "consumerFilter.json").write_text('{"filterDataByTopic":{}}')
    report = check_store(root)
    assert report.is_clean
    assert [one.file for one in of_code(report, "stray")] == ["lab.properties"]
    (note,) = of_code(report, "rocksdb-tables")
    assert note.file == "config/rdb"
    shutil.rmtree(root / "config" / "rdb")  # without it the same store has lost its topics
    assert "config-lost" in codes(check_store(root))


@pytest.mark.parametrize("name", NAMES)
def test_a_backup_of_a_closed_store_is_the_store(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    done = make_backup(StoreRoot(root), root, tmp_path / "copy")
    assert done.left_out == ["rocksdbstore"]
    report = check_store(tmp_path / "copy")
    assert report.is_clean
    (note,) = of_code(report, "rocksdb-queues")
    assert note.messages == IN_ROCKSDB[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_backup_of_an_open_one_leaves_out_what_would_be_torn(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    with lock_held(StoreRoot(root), root):
        done = make_backup(StoreRoot(root), root, tmp_path / "copy")
    folder = QUEUE_FOLDERS[name]
    assert sorted(done.left_out) == sorted([f"{folder} (RocksDB)", "rocksdbstore"])
    copied = tmp_path / "copy" / folder
    assert not copied.exists() or not [path for path in copied.iterdir() if path.is_file()]
    with MessageStore.open(tmp_path / "copy", read_only=True) as store:
        assert sum(queue.max_offset for queue in store.queues()) >= 180


@pytest.mark.parametrize("name", BROKERS)
def test_the_store_of_a_whole_broker_is_clean_and_its_tables_are_named(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    report = check_store(root)
    assert report.is_clean
    assert {one.file for one in of_code(report, "rocksdb-tables")} == BROKERS[name]
    with_queues = {"rocksdb-queues"} if name == "broker-rocks54" else set()
    assert codes(report) == {"rocksdb-tables", "timer-waiting"} | with_queues
    assert report.messages.messages == 151
    assert report.messages.lost == 0

"""What an archive has not is named: what retention took, what is lost, and what cannot be read."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.doctor.check.check import check_store
from seglog.errors import DataLossError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.folder import ArchiveFolder, still_missing
from seglog.spark.archive.manifest import EXPIRED, LOST, UNREADABLE
from seglog.spark.archive.rows import read_archive
from tests.spark.archive.stores import content, copy, cut_log, damage, expire, named_missing, put
from tests.support.material import golden
from tests.support.narrow import not_none

pytestmark = pytest.mark.spark

ENDS = {("T", 0): 150, ("T", 1): 150}


def test_what_retention_took_before_it_was_archived_is_named(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 100), tmp_path / "archive"
    archive_store(root, folder, spark)
    put(root, 200, begin=100)
    expire(root, 3)
    with MessageStore.open(root, read_only=True) as store:
        firsts = [store.min_offset("T", queue_id) for queue_id in (0, 1)]
    assert min(firsts) > 51
    run = not_none(archive_store(root, folder, spark))
    expected = {("T", queue_id, 50, first, EXPIRED) for queue_id, first in enumerate(firsts)}
    assert named_missing(folder, "s", ENDS) == expected
    assert run.messages + sum(one.end - one.first for one in run.missing) == 200
    rows = pq.read_table(folder / "missing.parquet").to_pylist()
    assert {(row["store"], row["queueId"], row["first"], row["end"], row["why"]) for row in rows} == {
        ("s", queue_id, 50, first, EXPIRED) for queue_id, first in enumerate(firsts)
    }
    assert archive_store(root, folder, spark) is None


def test_a_run_that_comes_after_retention_archives_the_rest_and_ends_with_the_exit_code_of_a_loss(
    spark: SparkSession, tmp_path
):
    def archive(*said):
        return CliRunner().invoke(commands, ["spark", "archive", str(root), str(folder), *said])

    root, folder = put(tmp_path / "s", 200), tmp_path / "archive"
    expire(root, 3)
    assert archive().exit_code == 0
    assert not (folder / "missing.parquet").exists()
    put(root, 200, begin=200)
    expire(root, 99)
    ran = archive("--json")
    (run,) = [run for run in ArchiveFolder(folder).runs() if run.number == 2]
    count = sum(one.end - one.first for one in run.missing)
    assert {one.why for one in run.missing} == {EXPIRED}
    assert ran.exit_code == 36
    assert json.loads(ran.stdout)["messages"] == run.messages > 0
    assert f"will never have {count} messages of 2 queues" in ran.stderr
    assert archive().exit_code == 0
    put(root, 200, begin=400)
    expire(root, 99)
    assert archive("--allow-loss").exit_code == 0
    assert len(ArchiveFolder(folder).runs()) == 3


def test_a_run_that_has_nothing_but_a_loss_to_name_is_committed(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 40), tmp_path / "archive"
    archive_store(root, folder, spark)
    damage(root, 0, 19)
    run = not_none(archive_store(root, folder, spark, allow_loss=True))
    assert (run.files, run.messages) == ((), 0)
    assert [one.why for one in run.missing] == [UNREADABLE]
    assert [one.number for one in ArchiveFolder(folder).runs()] == [1, 2]
    assert archive_store(root, folder, spark, allow_loss=True) is None


def test_damaged_store_is_refused_or_what_is_missing_is_named_and_filled_in(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 300), tmp_path / "archive"
    whole = copy(root, tmp_path / "whole")
    place, size = damage(root, 0, 40)
    ran = CliRunner().invoke(commands, ["spark", "archive", str(root), str(folder)])
    assert ran.exit_code == 36
    assert f"commitlog/{0:020d} +{place}: log-hole" in ran.stderr
    assert "--allow-loss" in ran.stderr
    assert not list(folder.rglob("*.parquet"))
    ran = CliRunner().invoke(commands, ["spark", "archive", str(root), str(folder), "--allow-loss", "--json"])
    said = json.loads(ran.stdout)
    assert (said["messages"], said["store"]) == (299, "s")
    assert said["missing"] == [
        {"physicalOffset": place, "physicalEnd": place + size, "why": UNREADABLE},
        {"topic": "T", "queueId": 0, "first": 40, "end": 41, "why": LOST},
    ]
    assert named_missing(folder, "s", ENDS) == {("T", 0, 40, 41, LOST)}
    assert archive_store(root, folder, spark, allow_loss=True) is None
    shutil.rmtree(root)
    copy(whole, root)
    put(root, 20, begin=300)
    assert not_none(archive_store(root, folder, spark)).messages == 20
    assert named_missing(folder, "s", {("T", 0): 160, ("T", 1): 160}) == {("T", 0, 40, 41, LOST)}
    assert not_none(archive_store(root, folder, spark, fill_missing=True)).messages == 1
    assert named_missing(folder, "s", {("T", 0): 160, ("T", 1): 160}) == set()
    assert not (folder / "missing.parquet").exists()
    rows = not_none(read_archive(spark, folder, "s"))
    assert (rows.count(), rows.where("queueId = 0 AND queueOffset = 40").count()) == (320, 1)


def test_lost_end_of_the_log_is_refused_or_named_and_what_is_written_later_is_archived(
    spark: SparkSession, tmp_path
):
    root, folder = put(tmp_path / "s", 300), tmp_path / "archive"
    cut_log(root, 1, 99)
    with pytest.raises(DataLossError, match=r"log-tail-lost.*lost messages: 50 of T/0, 50 of T/1"):
        archive_store(root, folder, spark)
    archive_store(root, folder, spark, allow_loss=True)
    lost = {("T", queue_id, 100, 150, LOST) for queue_id in (0, 1)}
    assert named_missing(folder, "s", ENDS) == lost
    assert archive_store(root, folder, spark, allow_loss=True) is None
    put(root, 10, begin=400)
    with MessageStore.open(root, read_only=True) as store:
        ends = {("T", queue_id): store.max_offset("T", queue_id) for queue_id in (0, 1)}
    run = not_none(archive_store(root, folder, spark))
    assert run.messages == 10
    for one in run.intervals:
        assert one.end == ends[one.topic, one.queue_id]
    named_missing(folder, "s", {key: max(end, 150) for key, end in ends.items()})


def test_repaired_store_is_archived_without_being_asked(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 300), tmp_path / "archive"
    damage(root, 1, 7)
    done = CliRunner().invoke(commands, ["repair", "--apply", "--yes", str(root)])
    assert done.exit_code == 0, done.output
    assert {finding.code for finding in check_store(root).findings} >= {"tombstones"}
    assert not_none(archive_store(root, folder, spark)).messages == 299
    assert named_missing(folder, "s", ENDS) == {("T", 1, 7, 8, LOST)}
    assert archive_store(root, folder, spark, fill_missing=True) is None


def test_last_archived_record_that_is_damaged_later_is_no_other_store(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 300), tmp_path / "archive"
    archive_store(root, folder, spark)
    put(root, 20, begin=300)
    damage(root, 0, 149)
    with pytest.raises(DataLossError):
        archive_store(root, folder, spark)
    run = not_none(archive_store(root, folder, spark, allow_loss=True))
    assert run.messages == 20
    _ranges, stretches = still_missing(ArchiveFolder(folder).runs())
    assert [one.why for one in stretches] == [UNREADABLE]
    named_missing(folder, "s", {("T", 0): 160, ("T", 1): 160})
    assert content(root).keys() == ENDS.keys()


def test_record_that_a_repair_brings_back_is_refused_with_that_advice(spark: SparkSession, tmp_path):
    root, folder = golden.extract("d-magic", tmp_path), tmp_path / "archive"
    with pytest.raises(DataLossError, match=r"is damaged: commitlog/\d+ \+\d+: record-repairable") as refused:
        archive_store(root, folder, spark)
    assert "seglog repair" in refused.value.help
    assert "--allow-loss" in refused.value.help
    assert not_none(archive_store(root, folder, spark, allow_loss=True)).messages == 399

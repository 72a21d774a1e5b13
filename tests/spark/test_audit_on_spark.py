"""The audit on Spark itself: what a check finds, from worker processes, for many stores in one job."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.spark import __main__ as entry
from seglog.doctor.check.check import check_store
from seglog.errors import NotFoundError, SeglogError
from seglog.spark.audit.job import StoreWalk
from seglog.spark.audit.stores import audit_store, audit_stores
from seglog.spark.audit.tables import findings_frame, queues_frame, stores_frame
from seglog.spark.audit.unread import UnreadStore
from seglog.spark.reconcile.outcome import reconcile_all
from seglog.storage.format.record.record import FILLER
from tests.support.damage.campaign import KINDS
from tests.support.damage.subjects import SUBJECTS, make_subject
from tests.support.machine.patience import patience_s
from tests.support.material import golden
from tests.support.material.log_records import iter_log
from tests.support.material.mixed import fill_mixed
from tests.support.material.sealed import flip, sealed_store, segment
from tests.support.scale import chance, is_gate, scaled

pytestmark = pytest.mark.spark

SMALL_SPLIT_BYTES = 1 << 16
"""As long as a segment of the golden stores."""
DAMAGES = scaled(10, 200)
"""Of each subject."""


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory):
    """Every golden store, intact and damaged, and stores of our own with all kinds of queues and seals."""
    folder = tmp_path_factory.mktemp("fixtures")
    roots = [golden.extract(name, folder) for name in [*golden.golden_names(), *golden.config_names()]]
    mixed = folder / "mixed"
    fill_mixed(mixed, 60)
    lost = folder / "lost"
    shutil.copytree(mixed, lost)
    for name in ("batchconsumequeue/B/0", "consumequeue/%LMQ%a"):
        shutil.rmtree(lost / name)
    sealed = folder / "sealed"
    sealed_store(sealed)
    flipped = folder / "flipped"
    shutil.copytree(sealed, flipped)
    flip(segment(flipped, 1), 100_000)
    (flipped / "seglog" / "seals" / f"{0:020d}.seal").write_bytes(b"no seal")
    return [*roots, mixed, lost, sealed, flipped]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """Copies of the stores of the damage campaigns, each hit once at random; those that still are stores."""
    folder = tmp_path_factory.mktemp("damaged")
    found = []
    for number, name in enumerate(SUBJECTS):
        (folder / str(number)).mkdir()
        subject = make_subject(name, folder / str(number))
        for seed in range(DAMAGES):
            copy = folder / f"{number}-{seed}"
            shutil.copytree(subject.root, copy)
            chance = random.Random(seed)
            KINDS[chance.choice(sorted(KINDS))](subject, copy, chance)
            found.append(copy)
    return found


def said(report):
    """A report but for how long it took; findings as a set, as their order follows that of reading."""
    findings = sorted(report.findings, key=repr)
    return replace(report, findings=tuple(findings), elapsed_ms=0)


def assert_finds_what_a_check_finds(spark, roots, **options):
    checked = {}
    for root in roots:
        try:
            checked[root] = said(check_store(root, **options))
        except SeglogError as error:
            with pytest.raises(type(error)):
                audit_stores([root], spark=spark, **options)
    audited = audit_stores(checked, spark=spark, **options)
    assert [report.root for report in audited] == list(checked)
    for report in audited:
        assert said(report) == checked[report.root]
    return audited


def test_audit_finds_what_a_check_finds_in_every_fixture(spark: SparkSession, fixtures):
    reports = assert_finds_what_a_check_finds(spark, fixtures)
    dirty = {report.root.name for report in reports if not report.is_clean}
    assert dirty >= {"d-magic", "d-bodyflip-first", "d-nocq", "d-propflip", "d-zerotail", "lost", "flipped"}
    assert not dirty & {"roll", "tx", "delay", "broker-store", "mixed", "sealed"}


def test_it_finds_the_same_in_splits_that_cut_records(spark: SparkSession, fixtures):
    roots = [root for root in fixtures if root.name != "broker-store"]  # 1 GiB of holes
    if is_gate():  # all of them are audited above, and in small splits without Spark
        roots = chance("splits on Spark").sample(roots, 12)
    assert_finds_what_a_check_finds(spark, roots, split_bytes=SMALL_SPLIT_BYTES)


def test_audit_finds_what_a_check_finds_after_random_damage(spark: SparkSession, damaged):
    reports = assert_finds_what_a_check_finds(spark, damaged, split_bytes=SMALL_SPLIT_BYTES)
    assert sum(not report.is_clean for report in reports) > len(damaged) // 2


def test_a_damaged_length_or_magic_never_passes_for_clean(spark: SparkSession, tmp_path):
    whole = golden.extract("roll", tmp_path)
    chance = random.Random(1)
    copies = []
    for number, record in enumerate(chance.sample(list(iter_log(whole)), scaled(20, 200))):
        for name in ("size_bytes", "magic"):
            copy = tmp_path / f"{name}-{number}"
            shutil.copytree(whole, copy)
            first, at = divmod(record.phy_offset, SMALL_SPLIT_BYTES)
            place = at + FILLER.offsets[name] + chance.randrange(4)
            flip(copy / "commitlog" / f"{first * SMALL_SPLIT_BYTES:020d}", place, 1 << chance.randrange(8))
            copies.append(copy)
    reports = audit_stores([whole, *copies], spark=spark)
    assert [report.is_clean for report in reports] == [True] + [False] * len(copies)
    codes = {"log-hole", "record-repairable"}
    holes = [finding for report in reports for finding in report.findings if finding.code in codes]
    assert len(holes) >= len(copies) - 2  # the last record's damage ends the log


def test_tables_of_findings_and_queues_can_be_asked_with_sql(spark: SparkSession, fixtures):
    roots = [root for root in fixtures if root.name in ("d-magic", "roll")]
    reports = audit_stores(roots, spark=spark)
    findings_frame(reports, spark).createOrReplaceTempView("findings")
    queues_frame(reports, spark).createOrReplaceTempView("queues")
    holes = spark.sql("SELECT store, file, pos FROM findings WHERE code = 'record-repairable'").collect()
    assert [(Path(store).name, file) for store, file, _pos in holes] == [
        ("d-magic", "commitlog/00000000000000262144")
    ]
    counted = spark.sql("SELECT store, sum(records) AS records FROM queues GROUP BY store").collect()
    wanted = {report.root.name: sum(queue.records for queue in report.queues) for report in reports}
    assert {Path(row["store"]).name: row["records"] for row in counted} == wanted


def test_audit_beside_a_writer_reads_what_is_there(spark: SparkSession, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with MessageStore.open("store", segment_size_bytes=65536) as store:
        for _ in range(3):
            store.put_batch("T", [bytes(500)] * 100)
        (report,) = audit_stores(["store"], spark=spark, split_bytes=SMALL_SPLIT_BYTES)
    assert (report.records, report.is_clean, report.state) == (300, True, "open")


def test_active_session_is_used_and_left_running(spark: SparkSession, tmp_path):
    root = golden.extract("comp", tmp_path)
    assert audit_store(root).records == 30
    assert spark.range(1).count() == 1


def test_workers_run_the_python_of_the_driver(spark: SparkSession):
    assert spark.sparkContext.pythonExec == sys.executable
    assert "PYSPARK_PYTHON" not in os.environ


def test_wrong_path_is_said_before_any_job(spark: SparkSession, tmp_path):
    with pytest.raises(NotFoundError, match="no store at"):
        audit_store(tmp_path / "none", spark=spark)


def test_stores_that_cannot_be_read_are_rows_beside_the_others(spark: SparkSession, tmp_path):
    whole, empty, file = golden.extract("d-magic", tmp_path), tmp_path / "empty", tmp_path / "file"
    empty.mkdir()
    file.write_bytes(b"no store")
    gone = tmp_path / "gone"
    odd = [str(gone), str(empty), str(file), "nothing://knows/this"]
    unread: list[UnreadStore] = []
    (report,) = audit_stores([whole, *odd], spark=spark, unread=unread)
    assert report.findings == check_store(whole).findings
    assert [one.named for one in unread] == odd
    assert unread[0].error.exit_code == 13
    rows = {row["store"]: row for row in stores_frame([report], unread, spark).collect()}
    assert (rows[str(whole)]["clean"], rows[str(whole)]["error"]) == (False, None)
    assert (rows[str(whole)]["mayBeMore"], rows[str(gone)]["mayBeMore"]) == (False, None)
    assert (rows[str(gone)]["clean"], rows[str(gone)]["exitCode"]) == (None, 13)
    assert "no store" in rows[str(gone)]["error"]
    found = reconcile_all(spark, [whole, *odd], unread=[], messages=True)
    assert (found.stores, len(found.unread), found.is_clean) == ([str(whole)], 4, False)
    alone: list[UnreadStore] = []
    assert audit_stores([gone], spark=spark, unread=alone) == []
    assert len(alone) == 1


def test_command_starts_a_session_of_its_own_and_prints_nothing_but_the_report(spark: SparkSession, tmp_path):
    command = [
        sys.executable,
        "-m",
        "seglog.cli.spark",
        "audit",
        str(golden.extract("d-magic", tmp_path)),
        "--json",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=patience_s(120), check=False)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert json.loads(ran.stdout.splitlines()[-1])["records"] == 399


@pytest.mark.campaign
def test_spark_submit_runs_the_same_command_on_the_master_it_is_given(spark: SparkSession, tmp_path):
    roots = [golden.extract(name, tmp_path) for name in ("d-magic", "roll")]
    submit = Path(pyspark.__path__[0]) / "bin" / "spark-submit"
    settings = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    settings += ["--driver-java-options", "-XX:TieredStopAtLevel=1"]
    command = [submit, *settings, entry.__file__, "audit", *roots, "--output", tmp_path / "out"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=patience_s(120), check=False, env=environment
    )
    assert ran.returncode == 1, ran.stderr
    found = spark.read.parquet(str(tmp_path / "out" / "findings")).where("severity <> 'note'").collect()
    assert {(Path(row["store"]).name, row["code"]) for row in found} == {("d-magic", "record-repairable")}
    assert spark.read.parquet(str(tmp_path / "out" / "queues")).count() == 20


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_store_that_fails_in_the_middle_is_named_and_the_others_are_told(
    spark: SparkSession, tmp_path, monkeypatch, is_alone
):
    whole, failing = tmp_path / "whole", tmp_path / "failing"
    for root in (whole, failing):
        fill_mixed(root, 20)
    of = StoreWalk.of

    def walk_of(check, store):
        """What tasks know of a store whose files are gone."""
        walk = of(check, store)
        return replace(walk, store="gone://host/store") if store == str(failing) else walk

    monkeypatch.setattr(StoreWalk, "of", walk_of)
    if is_alone:
        with pytest.raises(Exception, match="gone://"):
            audit_stores([failing], spark=spark)
        return
    unread: list[UnreadStore] = []
    (report,) = audit_stores([failing, whole], spark=spark, unread=unread)
    assert (report.store, report.is_clean) == (str(whole), True)
    (one,) = unread
    assert (one.named, one.store) == (str(failing), str(failing))
    assert "gone://" in str(one.error)
    assert one.error.exit_code > 2
    found = reconcile_all(spark, [failing, whole], unread=[])
    assert (found.stores, [each.named for each in found.unread]) == ([str(whole)], [str(failing)])

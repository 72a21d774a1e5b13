"""The audit on Spark itself: the same answer, from worker processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from seglog import MessageStore
from seglog.errors import NotFoundError
from seglog.spark.audit import audit_store
from seglog.spark.job import stretches_frame
from seglog.storage.audit.plan import plan_audit
from seglog.storage.files import RealFiles
from seglog.storage.survey import survey
from tests.support.audits import assert_agrees
from tests.support.golden import extract
from tests.support.mixed import fill_mixed

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("name", "split_bytes"),
    [
        ("roll", 128 << 20),
        ("roll-halt", 10_000),
        ("ipv6", 1024),
        ("empty", 1024),
        ("d-bodyflip-first", 10_000),
        ("d-magic", 65536),
        ("d-zeropage-last-halt", 20_000),
        ("d-trunclast", 30_000),
        ("d-nocq", 128 << 20),
        ("d-cqgarbage", 65536),
        ("innerbatch", 20_000),
    ],
)
def test_audit_agrees_with_the_survey(spark, name, split_bytes, tmp_path):
    root = extract(name, tmp_path)
    assert_agrees(audit_store(root, spark=spark, split_bytes=split_bytes), survey(root, RealFiles()))


def test_batch_queues_and_further_queues_agree_from_worker_processes_too(spark, tmp_path):
    fill_mixed(tmp_path, 60)
    for lost in ("batchconsumequeue/B/0", "consumequeue/%LMQ%a"):
        shutil.rmtree(tmp_path / lost)
    report = audit_store(tmp_path, spark=spark, split_bytes=5000)
    assert [finding.code for finding in report.findings] == ["queue-missing"] * 2
    assert_agrees(report, survey(tmp_path, RealFiles()))


def test_audit_beside_a_writer_reads_what_is_there(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with MessageStore.open("store", segment_size_bytes=65536) as store:
        for _ in range(3):
            store.put_batch("T", [bytes(500)] * 100)
        report = audit_store("store", spark=spark, split_bytes=20_000)
    assert (report.records, report.is_clean, report.mode) == (300, True, "abnormal")


def test_table_of_stretches_can_be_asked_with_sql(spark, tmp_path):
    plan = plan_audit(extract("roll", tmp_path), RealFiles())
    stretches_frame(plan, spark).createOrReplaceTempView("stretches")
    (found,) = spark.sql(
        "SELECT sum(part.records) AS records, count(DISTINCT part.topic, part.queue_id) AS queues"
        " FROM (SELECT explode(intervals) AS part FROM stretches)"
    ).collect()
    assert (found["records"], found["queues"]) == (400, 10)


def test_active_session_is_used_and_left_running(spark, tmp_path):
    root = extract("comp", tmp_path)
    assert audit_store(root).records == 30
    assert spark.range(1).count() == 1


def test_workers_run_the_python_of_the_driver(spark):
    assert spark.sparkContext.pythonExec == sys.executable
    assert "PYSPARK_PYTHON" not in os.environ


def test_wrong_path_is_said_before_any_job(spark, tmp_path):
    with pytest.raises(NotFoundError, match="no store at"):
        audit_store(tmp_path / "none", spark=spark)


def test_command_starts_a_session_of_its_own_and_prints_nothing_but_the_report(spark, tmp_path):
    command = [
        sys.executable,
        "-m",
        "seglog.cli.main",
        "spark",
        "audit",
        extract("d-magic", tmp_path),
        "--json",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "")
    (line,) = ran.stdout.splitlines()
    assert json.loads(line)["records"] == 399

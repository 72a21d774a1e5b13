"""The command over the audit: what it prints, how it ends, and what it says where Spark cannot run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from seglog.cli import demo_recovery
from seglog.cli.spark import COMMANDS
from seglog.cli.spark import audit as job_audit
from seglog.errors import MissingDependencyError
from seglog.storage.audit.report import AuditQueue, AuditReport
from seglog.storage.findings import Finding
from seglog.storage.store import MessageStore


def report(*findings):
    queue = AuditQueue("orders", 2, 0, 7, 7, 1000, 0, 6, 0, 0, 1_700_000_000_000, 1_700_000_000_500)
    return AuditReport(
        Path("/stores/x"), "normal", True, 7, 1000, (queue,), (), 0, 1000, tuple(findings), 3, 0
    )


@pytest.fixture
def found(monkeypatch):
    """Lets the audit find what a test says."""

    def answer(result):
        def audit(_path, **_options):
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(job_audit, "audit_store", audit)
        monkeypatch.setattr(job_audit, "job_session", lambda _cluster, _step: nullcontext())
        monkeypatch.setattr(demo_recovery, "audit_store", audit)

    return answer


def test_a_clean_store_ends_with_0(seglog, found):
    found(report())
    (line,) = seglog("spark", "audit", "x", "--json").lines
    assert line["clean"]
    assert line["records"] == 7
    assert line["queues"][0]["maxOffset"] == 7
    shown = seglog("spark", "audit", "x")
    assert shown.exit_code == 0
    assert "result   clean" in shown.stdout
    assert "read in 3 splits" in shown.stdout


def test_each_queue_says_of_which_kind_it_is(seglog, found):
    whole = report()
    (queue,) = whole.queues
    batch = replace(queue, topic="batches", kind="batch")
    found(replace(whole, queues=(replace(queue, topic="%LMQ%q"), batch, queue)))
    (line,) = seglog("spark", "audit", "x", "--json").lines
    assert [item["queueKind"] for item in line["queues"]] == ["lmq", "batch", "plain"]
    table = [row.split()[:3] for row in seglog("spark", "audit", "x").stdout.splitlines() if " 2 " in row]
    assert table == [["%LMQ%q", "2", "lmq"], ["batches", "2", "batch"], ["orders", "2", "plain"]]


def test_findings_end_with_1(seglog, found):
    found(report(Finding("log-hole", "commitlog/00000000000000000000", 4096, 119)))
    shown = seglog("spark", "audit", "x")
    assert shown.exit_code == 1
    assert "NOT clean" in shown.stdout
    assert "log-hole commitlog/00000000000000000000 +4096, 119 bytes" in shown.stdout
    assert seglog("spark", "audit", "x", "--json").exit_code == 1


def test_stores_are_told_one_by_one_and_the_worst_decides(seglog, found):
    found(report(Finding("log-hole", "commitlog/00000000000000000000", 4096, 119)))
    both = seglog("spark", "audit", "x", "y", "--json")
    assert (both.exit_code, len(both.lines)) == (1, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["x", "--conf", "spark.ui.enabled"],
        ["x", "--format", "parquet"],
        ["x", "--json", "--format", "table"],
        ["x", "--format", "table", "--output", "y"],
    ],
)
def test_wrong_usage_is_said_before_spark_starts(seglog, found, wrong):
    found(AssertionError("it ran"))
    assert seglog("spark", "audit", *wrong).exit_code == 2


def test_every_job_has_help(seglog):
    shown = seglog("spark", "--help").stdout
    for name, summary in COMMANDS.items():
        assert summary.split()[0] in shown
        assert "--master" in seglog("spark", name, "--help").stdout


def test_without_java_or_pyspark_it_says_what_to_install(seglog, found):
    found(MissingDependencyError("no Java 17", help="install a JDK"))
    refused = seglog("spark", "audit", "x")
    assert refused.exit_code == MissingDependencyError.exit_code
    assert "error: no Java 17" in refused.stderr
    assert "help:  install a JDK" in refused.stderr


def test_the_demo_leaves_the_audit_out_where_it_cannot_run(found, tmp_path):
    found(MissingDependencyError("no Java 17", help="install a JDK"))
    outcome = demo_recovery.audit(tmp_path, 0, lambda _done, _total: None)
    assert outcome.ok is None
    assert outcome.text == "left out: no Java 17; install a JDK"


def test_the_demo_holds_the_audit_against_the_survey(found, tmp_path):
    with MessageStore.open(tmp_path / "s") as store:
        store.put_batch("orders", [b"x"] * 7, queue_id=2)
        end = store.max_phy_offset
    right = replace(report(), end_phy_offset=end)
    found(right)
    assert demo_recovery.audit(tmp_path / "s", 0, lambda _done, _total: None).ok is True
    found(replace(right, records=8))
    assert demo_recovery.audit(tmp_path / "s", 0, lambda _done, _total: None).ok is False

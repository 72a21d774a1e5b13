"""The command over the audit: what it prints, how it ends, and what it says where Spark cannot run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from seglog.cli.demo import demo_recovery
from seglog.cli.spark import COMMANDS
from seglog.cli.spark import audit as job_audit
from seglog.doctor.check.check import check_store
from seglog.errors import Ending, MissingDependencyError, NotFoundError
from seglog.spark.audit import stores
from seglog.spark.audit.unread import unread_into
from seglog.storage.findings.findings import Finding
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog

HOLE = Finding("log-hole", "commitlog/00000000000000000000", 4096, 119)


@pytest.fixture
def store(tmp_path):
    """A store of seven messages, and its end."""
    with MessageStore.open(tmp_path / "s") as opened:
        opened.put_batch("orders", [b"x"] * 7, queue_id=2)
    return tmp_path / "s"


@pytest.fixture
def found(monkeypatch, store):
    """Lets the audit find what a test says, in a store that a check has seen."""
    report = check_store(store)

    def answer(change):
        def audit(paths, *, unread=None, **_options):
            if isinstance(change, Exception):
                raise change
            read = []
            for path in paths:
                with unread_into(unread, path, f"/stores/{path}"):
                    if path == "gone":
                        raise NotFoundError("there is no store at /stores/gone", help="check the path")
                    read.append(replace(report, **change))
            return read

        monkeypatch.setattr(stores, "audit_stores", audit)
        monkeypatch.setattr(job_audit, "job_session", lambda *_given: nullcontext())
        monkeypatch.setattr(demo_recovery, "require_spark", lambda: None)
        return report

    return answer


def test_a_clean_store_ends_with_0(seglog: Seglog, found):
    found({})
    (queue, audit) = seglog("spark", "audit", "x", "--json").lines
    assert (queue["kind"], queue["topic"], queue["maxOffset"]) == ("queue-audit", "orders", 7)
    assert (audit["kind"], audit["clean"], audit["records"], audit["verified"]) == ("audit", True, 7, True)
    shown = seglog("spark", "audit", "x")
    assert shown.exit_code == 0
    assert "result   clean" in shown.stdout


def test_each_queue_says_of_which_kind_it_is(seglog: Seglog, found):
    (queue,) = found({}).queues
    batch = replace(queue, topic="batches", kind="batch")
    found({"queues": (replace(queue, topic="%LMQ%q"), batch, queue)})
    lines = seglog("spark", "audit", "x", "--json").lines
    assert [line["queueKind"] for line in lines if line["kind"] == "queue-audit"] == ["lmq", "batch", "plain"]
    table = [row.split()[:3] for row in seglog("spark", "audit", "x").stdout.splitlines() if " 2 " in row]
    assert table == [["%LMQ%q", "2", "lmq"], ["batches", "2", "batch"], ["orders", "2", "plain"]]


def test_losses_end_with_5(seglog: Seglog, found):
    found({"findings": (HOLE,)})
    shown = seglog("spark", "audit", "x")
    assert shown.exit_code == Ending.LOSS
    assert "NOT clean" in shown.stdout
    assert "log-hole commitlog/00000000000000000000 +4096, 119 bytes" in shown.stdout
    as_json = seglog("spark", "audit", "x", "--json")
    assert as_json.exit_code == Ending.LOSS
    assert (as_json.lines[0]["kind"], as_json.lines[0]["code"], as_json.lines[0]["pos"]) == (
        "finding",
        "log-hole",
        4096,
    )


def test_stores_are_told_one_by_one_and_the_worst_decides(seglog: Seglog, found):
    found({"findings": (HOLE,)})
    both = seglog("spark", "audit", "x", "y", "--json")
    assert both.exit_code == Ending.LOSS
    assert [line["kind"] for line in both.lines] == [*["finding", "queue-audit", "audit"] * 2, "audits"]
    assert {line["store"] for line in both.lines[:-1]} == {both.lines[0]["store"]}


def test_an_audit_of_several_stores_ends_with_what_it_comes_to(seglog: Seglog, found):
    report = found({"findings": (HOLE,)})
    shown = seglog("spark", "audit", "x", "y")
    assert shown.stdout.splitlines()[-1] == "2 stores: 0 clean, 2 not: x y"
    last = seglog("spark", "audit", "x", "y", "--json").lines[-1]
    assert (last["clean"], last["notClean"], last["unread"]) == (False, [str(report.root)] * 2, [])
    found({})
    shown = seglog("spark", "audit", "x", "y")
    assert (shown.exit_code, shown.stdout.splitlines()[-1]) == (0, "2 stores: 2 clean")
    assert "stores:" not in seglog("spark", "audit", "x").stdout


def test_a_store_that_is_not_there_is_named_and_the_others_are_told(seglog: Seglog, found):
    found({"findings": (HOLE,)})
    shown = seglog("spark", "audit", "x", "gone")
    assert (shown.exit_code, "log-hole" in shown.stdout) == (13, True)
    assert shown.stdout.splitlines()[-2:] == [
        "not read: gone: there is no store at /stores/gone; check the path",
        "2 stores: 0 clean, 1 not: x, 1 not read: gone",
    ]
    as_json = seglog("spark", "audit", "x", "gone", "--json")
    assert (as_json.exit_code, as_json.lines[-1]["unread"]) == (13, ["/stores/gone"])
    assert as_json.lines[-2] == {
        "kind": "unread",
        "store": "/stores/gone",
        "error": "there is no store at /stores/gone",
        "help": "check the path",
        "exitCode": 13,
    }
    alone = seglog("spark", "audit", "gone")
    assert (alone.exit_code, alone.stdout) == (13, "")
    assert "there is no store at /stores/gone" in alone.stderr


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
def test_wrong_usage_is_said_before_spark_starts(seglog: Seglog, found, wrong):
    found(AssertionError("it ran"))
    assert seglog("spark", "audit", *wrong).exit_code == 2


def test_an_output_that_is_there_already_is_refused_before_spark_starts(seglog: Seglog, found, tmp_path):
    found(AssertionError("it ran"))
    refused = seglog("spark", "audit", "x", "--output", tmp_path)
    assert refused.exit_code == 24
    assert "is there already" in refused.stderr


@pytest.mark.parametrize(
    ("address", "instead"),
    [
        ("s3://bucket/store", "mount it, or copy the folder to this machine"),
        ("file:/data/store", "give the folder, /data/store"),
        ("file:///data/store", "give the folder, /data/store"),
        ("hdfs://name/store", "`seglog spark audit`, `reconcile` and `sql` read addresses"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ("archive", "{}", "/archive"),
        ("archive", "/store", "{}"),
        ("restore", "/archive", "{}"),
        ("restore", "{}", "/store"),
        ("compact", "/store", "{}"),
        ("retain", "{}", "--max-age", "T=7d"),
    ],
)
def test_an_address_is_refused_where_folders_are_taken(seglog: Seglog, address, instead, words):
    ran = seglog("spark", *(word.format(address) for word in words))
    assert ran.exit_code == 2
    told = " ".join(ran.stderr.split())
    assert f"{address} is an address, and `seglog spark {words[0]}` takes folders only: " in told
    assert instead in told


def test_every_job_has_help(seglog: Seglog):
    shown = seglog("spark", "--help").stdout
    for name, summary in COMMANDS.items():
        assert summary.split()[0] in shown
        assert "--master" in seglog("spark", name, "--help").stdout


def test_without_java_or_pyspark_it_says_what_to_install(seglog: Seglog, found):
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


def test_the_demo_holds_the_audit_against_the_survey(found, store):
    found({})
    assert demo_recovery.audit(store, 0, lambda _done, _total: None).ok is True
    found({"records": 8})
    assert demo_recovery.audit(store, 0, lambda _done, _total: None).ok is False


@pytest.mark.parametrize(
    ("option", "length", "can_be"),
    [
        ("--segment-size", "5g", "5368709120: a log file has a length of 4096 to 2147483647 bytes"),
        ("--queue-file-size", "2001", "2001: a queue file has a length of 20 to 2147483640 bytes"),
    ],
)
def test_a_restore_refuses_lengths_that_no_file_can_have(seglog: Seglog, tmp_path, option, length, can_be):
    ran = seglog("spark", "restore", tmp_path / "archive", tmp_path / "new", option, length)
    assert ran.exit_code == Ending.USAGE
    assert f"Invalid value for '{option}': {can_be}" in ran.stderr

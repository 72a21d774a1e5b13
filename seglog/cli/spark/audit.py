"""``seglog spark audit``: what `seglog check` finds, in splits on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from seglog.cli import render
from seglog.cli.findings import finding_fields, show_findings
from seglog.cli.queues import kind_of
from seglog.cli.spark import options as spark_options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.results import Results
from seglog.cli.spark.results import results as to_results
from seglog.cli.spark.session import job_session
from seglog.spark.audit import audit_store
from seglog.storage.audit.report import AuditQueue, AuditReport


@click.command
@spark_options.stores
@click.option(
    "--no-verify", is_flag=True, help="Do not compute checksums; quicker, and blind for flipped bits."
)
@spark_options.cluster
@to_results
def command(*, paths: Sequence[Path], no_verify: bool, cluster: Cluster, results: Results) -> None:
    """Check every record and every queue of each STORE, in splits on Spark.

    Ends with 1 if anything is not as it should be.
    """
    with job_session(cluster, "auditing") as session:
        reports = [audit_store(path, spark=session, verify=not no_verify) for path in paths]
    for report in reports:
        if results.is_json:
            render.emit(_fields(report))
        else:
            _show(report)
    if code := max(report.exit_code for report in reports):
        raise click.exceptions.Exit(code)


def _fields(report: AuditReport) -> dict[str, object]:
    return {
        "kind": "audit",
        "path": str(report.path),
        "clean": report.is_clean,
        "mode": report.mode,
        "verified": report.verified,
        "records": report.records,
        "bytes": report.bytes,
        "minPhyOffset": report.min_phy_offset,
        "maxPhyOffset": report.end_phy_offset,
        "splits": report.splits,
        "queues": [
            {
                "topic": queue.topic,
                "queueId": queue.queue_id,
                "queueKind": _kind(queue),
                "minOffset": queue.min_offset,
                "maxOffset": queue.max_offset,
                "records": queue.records,
                "bytes": queue.bytes,
                "gaps": queue.gaps,
                "backwards": queue.backwards,
                "firstStoreTimestamp": queue.first_store_timestamp_ms,
                "lastStoreTimestamp": queue.last_store_timestamp_ms,
            }
            for queue in report.queues
        ],
        "findings": [finding_fields(finding) for finding in report.findings],
    }


def _show(report: AuditReport) -> None:
    checked = "checksums verified" if report.verified else "checksums not computed"
    render.facts(
        {
            "store": render.printable(str(report.path)),
            "result": "clean" if report.is_clean else "NOT clean, see the findings",
            "log": f"{max(0, report.min_phy_offset)}..{report.end_phy_offset},"
            f" read in {render.count_text(report.splits, 'split')}",
            "records": f"{render.count_text(report.records)}, {render.size_text(report.bytes)}, {checked}",
        }
    )
    if report.queues:
        render.say()
        render.table(
            ("topic", "queue", "kind", "min", "max", "records", "size", "gaps", "last stored"),
            [_cells(queue) for queue in report.queues],
            numbers=("queue", "min", "max", "records", "size", "gaps"),
        )
    if report.findings:
        render.say()
        show_findings(report.findings, report.path)


def _kind(queue: AuditQueue) -> str:
    return kind_of(queue.topic) if queue.kind == "plain" else queue.kind


def _cells(queue: AuditQueue) -> tuple[str, ...]:
    last_ms = queue.last_store_timestamp_ms
    return (
        render.printable(queue.topic),
        str(queue.queue_id),
        _kind(queue),
        str(queue.min_offset),
        str(queue.max_offset),
        str(queue.records),
        render.size_text(queue.bytes),
        str(queue.gaps),
        render.time_text(last_ms) if last_ms else "-",
    )

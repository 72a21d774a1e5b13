"""``seglog spark audit``: the findings of ``seglog check``, for one store or many, in splits on Spark."""

from __future__ import annotations

from collections.abc import Sequence

import click

from seglog.cli.doctor.check_output import check_fields, show_check
from seglog.cli.spark import options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.results import Results, show_unread, to_results
from seglog.cli.spark.session import job_session
from seglog.cli.ui import render
from seglog.doctor.check import CheckReport
from seglog.errors import Ending
from seglog.spark.audit import (
    Unread,
    finding_rows,
    findings_frame,
    queue_kind,
    queue_rows,
    queues_frame,
    stores_frame,
)
from seglog.spark.save import save_table
from seglog.storage.audit import AuditQueue
from seglog.storage.findings import ending_of


@click.command
@options.readable_stores
@click.option(
    "--no-verify", is_flag=True, help="Do not compute checksums; quicker, and blind for flipped bits."
)
@options.cluster
@to_results
def command(*, paths: Sequence[str], no_verify: bool, cluster: Cluster, results: Results) -> None:
    """Look at everything in each STORE, as `seglog check` does, in splits on Spark.

    Finds what `seglog check` finds, with the same codes, files and places. Ends as that does: with 5 if
    messages are lost, with 1 after other findings but notes. Of several stores those that cannot be read
    are named, and the others are looked at; the exit code is then that of the first error. --output writes
    the tables `stores`, `findings` and `queues`.
    """
    unread: Unread = []
    with job_session(cluster, "auditing", paths) as session:
        from seglog.spark.audit import audit_stores

        reports = audit_stores(
            paths, spark=session, verify=not no_verify, unread=unread if len(paths) > 1 else None
        )
        if results.folder is not None:
            stores = stores_frame(reports, unread, session)
            save_table(stores, f"{results.folder}/stores", results.format)
            save_table(findings_frame(reports, session), f"{results.folder}/findings", results.format)
            save_table(queues_frame(reports, session), f"{results.folder}/queues", results.format)
    absent = {one.named for one in unread}
    read = [path for path in paths if path not in absent]
    if results.is_json:
        for report in reports:
            _emit(report, verified=not no_verify)
    elif results.folder is None:
        for path, report in zip(read, reports, strict=True):
            _show(report, path)
            if len(paths) > 1:
                render.say()
    else:
        render.say(f"findings and queues of {render.count_text(len(reports), 'store')}: {results.folder}")
    show_unread(unread, as_json=results.is_json)
    if len(paths) > 1:
        _sum_up(list(zip(read, reports, strict=True)), unread, as_json=results.is_json)
    if unread:
        raise click.exceptions.Exit(unread[0].error.exit_code)
    raise click.exceptions.Exit(max((ending_of(report.findings) for report in reports), default=Ending.CLEAN))


def _emit(report: CheckReport, *, verified: bool) -> None:
    for finding in finding_rows(report):
        render.emit({"kind": "finding", **finding})
    for queue in queue_rows(report):
        render.emit({"kind": "queue-audit", **queue})
    render.emit({"kind": "audit", "store": report.store, **check_fields(report), "verified": verified})


def _sum_up(reports: Sequence[tuple[str, CheckReport]], unread: Unread, *, as_json: bool) -> None:
    """Prints the sum of an audit of several stores, and the names of the stores that are not clean."""
    if as_json:
        render.emit(
            {
                "kind": "audits",
                "stores": [report.store for _path, report in reports],
                "clean": not unread and all(report.is_clean for _path, report in reports),
                "notClean": [report.store for _path, report in reports if not report.is_clean],
                "unread": [one.store for one in unread],
            }
        )
        return
    wrong = [path for path, report in reports if not report.is_clean]
    text = f"{render.count_text(len(reports) + len(unread), 'store')}:"
    text += f" {render.count_text(len(reports) - len(wrong))} clean"
    if wrong:
        text += f", {render.count_text(len(wrong))} not: {' '.join(wrong)}"
    if unread:
        text += f", {render.count_text(len(unread))} not read: {' '.join(one.named for one in unread)}"
    render.say(text)


def _show(report: CheckReport, path: str) -> None:
    if report.queues:
        render.table(
            ("topic", "queue", "kind", "min", "max", "records", "size", "gaps", "last stored"),
            [_cells(queue) for queue in report.queues],
            numbers=("queue", "min", "max", "records", "size", "gaps"),
        )
        render.say()
    show_check(report, path)


def _cells(queue: AuditQueue) -> tuple[str, ...]:
    last_ms = queue.last_store_timestamp_ms
    return (
        render.printable(queue.topic),
        str(queue.queue_id),
        queue_kind(queue),
        str(queue.min_offset),
        str(queue.max_offset),
        str(queue.records),
        render.size_text(queue.bytes),
        str(queue.gaps),
        render.time_text(last_ms) if last_ms else "-",
    )

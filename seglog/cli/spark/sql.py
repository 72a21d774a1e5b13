"""``seglog spark sql``: SQL queries over stores."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from seglog.cli.spark import options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.results import Results, to_results
from seglog.cli.spark.session import job_session
from seglog.cli.ui import render
from seglog.errors import DataLossError, NotFoundError
from seglog.spark.audit import Unread, unread_into
from seglog.spark.json_rows import json_frame, json_lines
from seglog.spark.questions import doing_of, refused_as, running_of
from seglog.spark.save import save_table
from seglog.spark.session import Session
from seglog.spark.views import make_views
from seglog.storage.directory import check_is_store
from seglog.storage.findings import Finding, Severity

SHOWN_ROWS: Final = 1000
_ASKS_MESSAGES: Final = re.compile(r"\b(messages|kafka)\b", re.IGNORECASE)
_SHOWN_LOSSES: Final = 20


@click.command
@options.readable_stores
@click.argument("query")
@click.option("--allow-loss", is_flag=True, help="Do not look whether messages are left out, and end with 0.")
@options.cluster
@to_results
def command(
    *, paths: Sequence[str], query: str, allow_loss: bool, cluster: Cluster, results: Results
) -> None:
    """Ask QUERY, in Spark's SQL, about all STOREs: the last argument.

    Views: messages, kafka, queues, offsets, index. The column `store` says which store a row is from; kafka
    has the columns of Spark's Kafka source. A table shows the first 1,000 rows; --json prints and --output
    writes all of them, each column under a name of its own. Nothing is changed: QUERY is a query (SELECT,
    WITH, VALUES, TABLE), or SHOW, DESCRIBE or EXPLAIN.

    Messages that cannot be read are left out. After a question about messages the stores are audited, which
    reads them once more: what is lost is said on stderr, and the command ends with 36. --allow-loss leaves
    that out.
    """
    from seglog.spark.remote_files import is_address

    stores = [path if is_address(path) else str(Path(path).absolute()) for path in paths]
    with job_session(cluster, "asking", paths) as session:
        with refused_as(click.UsageError):
            doing = doing_of(session, query)
        if doing is not None:
            raise click.UsageError(
                f"QUERY does something ({doing}), and this only asks: it takes SELECT, WITH, VALUES, TABLE,"
                " SHOW, DESCRIBE, and EXPLAIN of a query; nothing was run"
            )
        _demand_stores(stores)
        make_views(session, stores)
        with refused_as(click.UsageError):
            frame = session.sql(query)
        running = running_of(frame)
        if running is not None:
            raise click.UsageError(f"QUERY has {running}, and this only asks; nothing was run")
        if results.folder is not None:
            save_table(frame, results.folder, results.format)
            render.say(f"written to {results.folder}")
        elif results.is_json:
            for line in json_lines(frame):
                render.emit_text(line)
        else:
            places = [str(at) for at in range(len(frame.columns))]  # a table may have a name twice
            rows = json_frame(frame, places).take(SHOWN_ROWS + 1)
            _show(frame.columns, [list(json.loads(row[0]).values()) for row in rows])
        if not allow_loss and _ASKS_MESSAGES.search(query):
            _check_whole(session, stores)


def _demand_stores(stores: Sequence[str]) -> None:
    """Ends the command if stores do not exist, and names them; a single store is named by Spark's error."""
    from seglog.spark.remote_files import locate

    unread: Unread = []
    for store in stores if len(stores) > 1 else ():
        with unread_into(unread, store, store):
            files, root = locate(store)
            if not check_is_store(files, root):
                raise NotFoundError(f"there is no store at {store}", help="check the path, or leave it out")
    for one in unread:
        render.say(f"not read: {one.named}: {one.error}; {one.error.help}", err=True)
    if unread:
        raise click.exceptions.Exit(unread[0].error.exit_code)


def _check_whole(session: Session, stores: Sequence[str]) -> None:
    """Prints which messages the result lacks, and ends the command if there are any."""
    from seglog.spark.audit import audit_stores
    from seglog.spark.remote_files import typed_path

    is_whole = True
    for store, report in zip(stores, audit_stores(stores, spark=session), strict=True):
        losses = [finding for finding in report.findings if _is_left_out(finding)]
        for loss in losses[:_SHOWN_LOSSES]:
            render.say(f"{render.printable(store)}: data loss: {render.printable(str(loss))}", err=True)
        if len(losses) > _SHOWN_LOSSES:
            more = render.count_text(len(losses) - _SHOWN_LOSSES, "loss", "losses")
            render.say(f"and {more} more", err=True)
        if losses:
            is_whole = False
            render.say("the answer is without what was there; --allow-loss takes it so", err=True)
            render.say(f"help: `seglog spark audit {typed_path(store)}` says more of it", err=True)
    if not is_whole:
        raise click.exceptions.Exit(DataLossError.exit_code)


def _is_left_out(finding: Finding) -> bool:
    """Returns whether the rows of a store lack messages because of a finding: lost or repairable."""
    return finding.severity is Severity.LOSS or finding.code == "record-repairable"


def _show(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [tuple(_text(value) for value in row) for row in rows[:SHOWN_ROWS]]
    render.table([render.printable(name) for name in columns], cells)
    if len(rows) > SHOWN_ROWS:
        render.say(f"… and more; the table ends after {render.count_text(SHOWN_ROWS, 'row')}")


def _text(value: object) -> str:
    return "" if value is None else render.printable(str(value))

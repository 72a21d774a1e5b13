"""``seglog spark sql``: questions in SQL about stores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from seglog.cli.spark import options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.results import Results, to_results
from seglog.cli.spark.session import job_session
from seglog.cli.ui import render
from seglog.spark.remote_files import is_address
from seglog.spark.save import save_table
from seglog.spark.views import json_value, make_views

SHOWN_ROWS = 1000


@click.command
@options.readable_stores
@click.argument("query")
@options.cluster
@to_results
def command(*, paths: Sequence[str], query: str, cluster: Cluster, results: Results) -> None:
    """Ask QUERY, in Spark's SQL, about all STOREs: the last argument.

    Views: messages, queues, offsets, index; the column `store` says which store a row is from. Messages that
    cannot be read are left out; `seglog spark audit` says which those are. A table shows the first 1,000
    rows; --json prints and --output writes all of them.
    """
    with job_session(cluster, "asking", paths) as session:
        make_views(session, [path if is_address(path) else str(Path(path).absolute()) for path in paths])
        frame = session.sql(query)
        if results.folder is not None:
            save_table(frame, results.folder, results.format)
            render.say(f"written to {results.folder}")
        elif results.is_json:
            for row in frame.toLocalIterator(prefetchPartitions=True):
                render.emit({name: json_value(value) for name, value in row.asDict(recursive=True).items()})
        else:
            _show(frame.columns, frame.take(SHOWN_ROWS + 1))


def _show(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [tuple(_text(value) for value in row) for row in rows[:SHOWN_ROWS]]
    render.table([render.printable(name) for name in columns], cells)
    if len(rows) > SHOWN_ROWS:
        render.say(f"… and more; the table ends after {render.count_text(SHOWN_ROWS, 'row')}")


def _text(value: object) -> str:
    shown = json_value(value)
    return "" if shown is None else render.printable(str(shown))

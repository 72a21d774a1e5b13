"""``seglog spark archive``: messages of stores go to Parquet, each once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from seglog.cli.spark import options as spark_options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.session import job_session
from seglog.cli.ui import options, render
from seglog.spark.archive import Run, archive_store


@click.command
@options.store_path
@click.argument("folder", metavar="ARCHIVE", type=click.Path(path_type=Path))
@click.option(
    "--topic", "topics", multiple=True, help="A topic; may be repeated.  [default: all but the broker's own]"
)
@click.option("--no-verify", is_flag=True, help="Do not compute checksums of what is archived.")
@spark_options.cluster
@options.as_json
def command(
    *, path: Path, folder: Path, topics: Sequence[str], no_verify: bool, cluster: Cluster, as_json: bool
) -> None:
    """Add to ARCHIVE what it has not yet of STORE, which may be open.

    ARCHIVE/data is Parquet by topic and day (UTC). A message is archived once, however often this is run or
    was interrupted; each store needs an archive of its own.
    """
    with job_session(cluster, "archiving") as session:
        run = archive_store(path, folder, session, topics=topics, verify=not no_verify)
    if as_json:
        render.emit(_fields(path, folder, run))
    else:
        _show(folder, run)


def _fields(path: Path, folder: Path, run: Run | None) -> dict[str, object]:
    intervals = run.intervals if run is not None else ()
    return {
        "kind": "archive",
        "path": str(path),
        "archive": str(folder),
        "run": run.number if run is not None else None,
        "messages": run.messages if run is not None else 0,
        "bytes": run.size_bytes if run is not None else 0,
        "queues": [
            {"topic": one.topic, "queueId": one.queue_id, "first": one.first, "end": one.end}
            for one in intervals
        ],
    }


def _show(folder: Path, run: Run | None) -> None:
    if run is None:
        render.say(f"{render.printable(str(folder))} has everything already")
        return
    render.facts(
        {
            "archive": render.printable(str(folder)),
            "added": f"{render.count_text(run.messages, 'message')}, {render.size_text(run.size_bytes)}",
            "files": render.count_text(len(run.files)),
        }
    )

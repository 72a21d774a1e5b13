"""``seglog spark archive``: copies messages of stores to Parquet, each once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from seglog.cli.spark import options as spark_options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.session import job_session
from seglog.cli.ui import options, render
from seglog.errors import DataLossError
from seglog.spark.archive import EXPIRED, REASONS, Missing, Run


@click.command
@spark_options.store
@spark_options.archive
@click.option(
    "--topic", "topics", multiple=True, help="A topic; may be repeated.  [default: all but the broker's own]"
)
@click.option(
    "--as",
    "name",
    metavar="NAME",
    help="What ARCHIVE calls the store, such as its brokerName.  [default: that of what it continues]",
)
@click.option("--allow-loss", is_flag=True, help="Archive also with losses, and write down what is missing.")
@click.option("--fill-missing", is_flag=True, help="Look again for messages that earlier runs found lost.")
@click.option("--no-verify", is_flag=True, help="Do not compute checksums of what is archived.")
@spark_options.cluster
@options.as_json
def command(
    *,
    path: Path,
    folder: Path,
    topics: Sequence[str],
    name: str | None,
    allow_loss: bool,
    fill_missing: bool,
    no_verify: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Add to ARCHIVE what it has not yet of STORE, which may be open.

    ARCHIVE/data is Parquet by store, topic and day (UTC). A message is archived once, however often this is
    run or was interrupted. A store that does not continue what ARCHIVE has of it, as after a rollback, is
    refused (exit code 37), and so is a damaged one (36). What retention took behind what is archived is
    written down as missing; the rest is archived, and without --allow-loss the exit code is 36.
    """
    from seglog.spark.archive import check_archive

    check_archive(path, folder, name=name)
    with job_session(cluster, "archiving", [path]) as session:
        from seglog.spark.archive import archive_store

        run = archive_store(
            path,
            folder,
            session,
            name=name,
            topics=topics,
            verify=not no_verify,
            allow_loss=allow_loss,
            fill_missing=fill_missing,
        )
    if as_json:
        render.emit(_fields(path, folder, run))
    else:
        _show(folder, run)
    if run is not None and not allow_loss:
        _check_whole(folder, run)


def _check_whole(folder: Path, run: Run) -> None:
    """Checks that a run did not find messages that were removed before the run.

    Raises:
        DataLossError: It found such messages; all others are archived.
    """
    expired = [one for one in run.missing if one.why == EXPIRED]
    if expired:
        count = sum(one.end - one.first for one in expired)
        queues = len({(one.topic, one.queue_id) for one in expired})
        raise DataLossError(
            f"{folder} will never have {render.count_text(count, 'message')} of"
            f" {render.count_text(queues, 'queue')}: retention or a compaction took them first; what there"
            f" was is archived as run {run.number}",
            help="archive more often than retention works; missing.parquet of the archive names them, and"
            " --allow-loss ends with 0 over such a gap",
        )


def _fields(path: Path, folder: Path, run: Run | None) -> dict[str, object]:
    intervals = run.intervals if run is not None else ()
    return {
        "kind": "archive",
        "path": str(path),
        "archive": str(folder),
        "run": run.number if run is not None else None,
        "store": run.name if run is not None else None,
        "messages": run.messages if run is not None else 0,
        "placeholders": run.placeholders if run is not None else 0,
        "bytes": run.size_bytes if run is not None else 0,
        "queues": [
            {"topic": one.topic, "queueId": one.queue_id, "first": one.first, "end": one.end}
            for one in intervals
        ],
        "missing": [_missing_fields(one) for one in (run.missing if run is not None else ())],
    }


def _missing_fields(one: Missing) -> dict[str, object]:
    if one.first >= 0:
        return {
            "topic": one.topic,
            "queueId": one.queue_id,
            "first": one.first,
            "end": one.end,
            "why": one.why,
        }
    queue = {"topic": one.topic, "queueId": one.queue_id} if one.topic else {}
    return queue | {"physicalOffset": one.phy_offset, "physicalEnd": one.phy_end, "why": one.why}


def _show(folder: Path, run: Run | None) -> None:
    if run is None:
        render.say(f"{render.printable(str(folder))} has everything already")
        return
    facts = {
        "archive": render.printable(str(folder)),
        "store": render.printable(run.name or ""),
        "added": f"{render.count_text(run.messages, 'message')}, {render.size_text(run.size_bytes)}",
        "files": render.count_text(len(run.files)),
    }
    if run.placeholders:
        facts["besides"] = f"{render.count_text(run.placeholders, 'placeholder')}, not counted as messages"
    render.facts(facts)
    for one in run.missing:
        render.say(render.printable(f"missing: {_missing_text(one)}"))


def _missing_text(one: Missing) -> str:
    if one.first >= 0:
        what = f"{one.topic}/{one.queue_id} {one.first} to {one.end - 1}"
    else:
        queue = f"{one.topic}/{one.queue_id} in " if one.topic else ""
        what = f"{queue}the log from {one.phy_offset} to {one.phy_end}"
    return f"{what}: {one.why}, {REASONS[one.why]}"

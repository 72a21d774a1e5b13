"""``seglog spark restore``: restores archived messages to a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seglog.cli.admin.amounts import Size
from seglog.cli.spark import options as spark_options
from seglog.cli.spark.options import Cluster
from seglog.cli.spark.session import job_session
from seglog.cli.ui import changing, options, render

if TYPE_CHECKING:
    from seglog.spark.archive import Restored


@click.command
@spark_options.archive
@spark_options.store
@click.option("--store", metavar="NAME", help="Which store of ARCHIVE.  [default: the only one]")
@click.option("--topic", "topics", multiple=True, help="A topic; may be repeated.  [default: all]")
@click.option(
    "--segment-size",
    type=Size(),
    callback=options.segment_length,
    help="Length of the log files of a new store.  [default: 1g]",
)
@click.option(
    "--queue-file-size",
    type=Size(),
    callback=options.queue_file_length,
    help="Length of its queue files.  [default: 6000000]",
)
@changing.changing
@spark_options.cluster
@options.as_json
def command(
    *,
    folder: Path,
    path: Path,
    store: str | None,
    topics: Sequence[str],
    segment_size: int | None,
    queue_file_size: int | None,
    is_applied: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Put the messages of ARCHIVE into STORE, a new one or one whose queues end where the archive continues.

    Topic, queue, queue offset, body, properties, times and hosts are as they were; places in the log, and so
    offsetMsgIds, are new. Queue offsets that ARCHIVE names as missing get a record, so that the others stay:
    a tombstone for what is lost, which audits name, a placeholder for what retention or a compaction took. A
    store that was there stays in STORE.compact/old; tables of topics and groups are not in an archive.
    """
    from seglog.spark.archive import Sizes, check_restore

    sizes = Sizes(segment_size, queue_file_size)
    check_restore(folder, path, store=store, topics=topics, apply=is_applied, sizes=sizes)
    with job_session(cluster, "restoring") as session:
        from seglog.spark.archive import restore_store

        done = restore_store(folder, path, session, store=store, topics=topics, apply=is_applied, sizes=sizes)
    if as_json:
        render.emit(_fields(folder, path, done, applied=is_applied))
    else:
        _show(path, done, applied=is_applied)
    if not is_applied:
        changing.end_preview(as_json=as_json, is_needed=bool(done.messages or done.placeholders or done.lost))


def _fields(folder: Path, path: Path, done: Restored, *, applied: bool) -> dict[str, object]:
    return {
        "kind": "restore",
        "path": str(path),
        "archive": str(folder),
        "applied": applied,
        "new": done.is_new,
        "finished": done.was_finished,
        "messages": done.messages,
        "placeholders": done.placeholders,
        "lost": done.lost,
        "skipped": done.skipped,
        "old": str(done.old) if done.old is not None else None,
        "queues": [
            {"topic": one.topic, "queueId": one.queue_id, "first": one.first, "end": one.end}
            for one in done.intervals
        ],
    }


def _show(path: Path, done: Restored, *, applied: bool) -> None:
    word = "restored" if applied else "would be restored"
    queues = render.count_text(len(done.intervals), "queue")
    is_more = done.messages or done.placeholders or done.lost
    how = "new" if done.is_new else "as it was, and more" if is_more else "as it was"
    begun: dict[str, str] = {}
    if done.was_finished:
        how = "as an earlier run had made it" + (", and more" if is_more else "")
        begun["finished"] = (
            "an earlier restore or compaction, which was interrupted before its store took its place"
        )
    named = (
        {"store": f"{render.printable(str(path))}, {how}"}
        | begun
        | {
            word: f"{render.count_text(done.messages, 'message')} in {queues}",
            "there already": render.count_text(done.skipped, "message"),
        }
    )
    if done.placeholders:
        named["besides"] = f"{render.count_text(done.placeholders, 'placeholder')}, not counted as messages"
    if done.lost:
        named["lost"] = (
            f"{render.count_text(done.lost, 'message')}, each with a tombstone that keeps its queue offset"
        )
    render.facts(named | ({"old store": str(done.old)} if done.old is not None else {}))

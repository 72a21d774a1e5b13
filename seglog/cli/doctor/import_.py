"""``seglog import``: appends the messages of an exported file to a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from seglog.cli.ui import options, render
from seglog.doctor.exchange import Import, check_row, read_parquet
from seglog.errors import InvalidArgumentError, MessageIllegalError, SeglogError
from seglog.storage.directory import configured_kinds
from seglog.storage.format.config import decode_json_object
from seglog.storage.format.names import BATCH_CONSUME_QUEUE
from seglog.storage.format.record import INNER_BATCH
from seglog.storage.reads import MessageRow, from_fields
from seglog.storage.store import MessageStore
from seglog.text import shell_line

_PARQUET_MAGIC: Final = b"PAR1"
_MAX_RUNS_SHOWN: Final = 20


@click.command(name="import")
@options.store
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@options.as_json
def command(*, path: Path, source: Path, as_json: bool) -> None:
    """Append the messages of FILE, which `seglog export` wrote, to STORE.

    Each goes to its topic and queue with a new queue offset; what became of the old ones is printed. The
    whole file is looked at before the first message is stored.
    """
    of_batches: set[str] = set()
    for row in read_rows(source):
        check_row(row)
        if row.sysFlag & INNER_BATCH:
            of_batches.add(row.topic)
    with MessageStore.open(path, follow=options.followed(path)) as store:
        _demand_batch_queues(of_batches, store)
        done = Import(store)
        try:
            for row in read_rows(source):
                done.add(row)
            store.flush()
        except SeglogError:
            if done.count and not as_json:
                render.say(
                    f"note: {render.count_text(done.count, 'message')} stored before the error", err=True
                )
            raise
    if as_json:
        for run in done.moved:
            render.emit(
                {
                    "kind": "import",
                    "topic": run.topic,
                    "queueId": run.queue_id,
                    "from": run.first,
                    "count": run.count,
                    "newFrom": run.new_first,
                }
            )
        return
    render.say(f"{render.count_text(done.count, 'message')} stored in {path}")
    if done.moved:
        render.table(
            ("topic", "queue", "offsets", "are now"),
            [
                (run.topic, run.queue_id, *(_range(start, run.count) for start in (run.first, run.new_first)))
                for run in done.moved[:_MAX_RUNS_SHOWN]
            ],
            numbers=("queue",),
        )
    if len(done.moved) > _MAX_RUNS_SHOWN:
        render.say(f"… and {len(done.moved) - _MAX_RUNS_SHOWN} more runs; --json prints all")


def _range(first: int, count: int) -> str:
    return f"{first}..{first + count - 1}"


def _demand_batch_queues(topics: set[str], store: MessageStore) -> None:
    """Refuses inner batches for topics without batch queues, before anything is stored."""
    has_some = configured_kinds(store.files, store.path).batch
    for topic in sorted(topics - has_some):
        if not store.files.is_dir(store.path / BATCH_CONSUME_QUEUE / topic):
            attributes = "+queue.type=BatchCQ"
            create = shell_line(["seglog", "topic", "create", store.path, topic, "--attributes", attributes])
            raise MessageIllegalError(
                f"inner batches need a topic with queue.type=BatchCQ, and {topic} is none",
                help=f"run `{create}`, then import again",
            )


def read_rows(source: Path) -> Iterator[MessageRow]:
    """Yields the messages of a file; its first bytes decide whether it is JSONL or Parquet.

    Raises:
        InvalidArgumentError: The file is neither, or a line is wrong; the error names the line.
    """
    with source.open("rb") as stream:
        if stream.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC:
            yield from read_parquet(source)
            return
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            try:
                yield from_fields(decode_json_object(line))
            except (ValueError, SeglogError) as error:
                raise InvalidArgumentError(f"{source} line {number}: {error}") from error

"""``seglog export``: writes messages of a store to a JSONL or Parquet file."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import click

from seglog.cli.ui import messages, options, render
from seglog.doctor.exchange import Selection, iter_rows, write_parquet
from seglog.doctor.tables import GroupOffset, OffsetTable, demand_offsets
from seglog.errors import Ending, InvalidArgumentError
from seglog.storage.files import new_file_outside
from seglog.storage.format.index import MAX_TIMESTAMP_MS
from seglog.storage.format.names import check_topic
from seglog.storage.reads import MessageRow, to_fields
from seglog.storage.store import MessageStore
from seglog.text import shell_text

_MAX_LOST_SHOWN: Final = 20
_FORMS: Final = ("jsonl", "parquet")


@click.command
@options.store
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help="Topic; may be given several times.  [default: all but RocketMQ's own]",
)
@click.option("--queue", "queue_id", type=int, help="Only this queue.")
@click.option("--from-offset", type=int, default=0, help="First queue offset.")
@click.option("--to-offset", type=int, help="Last queue offset.")
@click.option("--from", "begin", metavar="MS|ISO", help="Stored at this time or later.")
@click.option("--to", "end", metavar="MS|ISO", help="Stored at this time or earlier.")
@click.option("--tag", "tags", help="Only these tags: 'TagA || TagB'.")
@click.option("--key", help="Only messages that have this key, or unique key.")
@click.option(
    "--group-lag",
    "lag_of",
    metavar="GROUP",
    help="Only what GROUP has not consumed, in all queues of the topics in which it has an offset.",
)
@click.option("--inflate", is_flag=True, help="Inflate zlib bodies; without it bodies are as stored.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMS),
    help="Format of the file.  [default: what its name ends with; jsonl on standard output]",
)
@click.option("--allow-lost", is_flag=True, help="End with 0 although messages are lost.")
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File; - for standard output.",
)
@options.force
@options.as_json
def command(
    *,
    path: Path,
    topics: tuple[str, ...],
    queue_id: int | None,
    from_offset: int,
    to_offset: int | None,
    begin: str | None,
    end: str | None,
    tags: str | None,
    key: str | None,
    lag_of: str | None,
    inflate: bool,
    form: str | None,
    allow_lost: bool,
    target: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Write messages of STORE to a file that `seglog import` reads.

    Nothing is lost on the way: bodies that are no text go as base64, properties, keys, flags, births and
    places go with them. Works beside a process that has STORE open. Messages that are lost are named on
    stderr, and so is that more may be lost; the others are written, and the command ends with 5.
    """
    for topic in topics:
        check_topic(topic)
    wanted = Selection(
        topics,
        queue_id,
        from_offset,
        to_offset,
        options.timestamp_ms("--from", begin, 0),
        options.timestamp_ms("--to", end, MAX_TIMESTAMP_MS),
        tags,
        key,
        lag_of,
        inflate,
    )
    is_stdout = str(target) == "-"
    form = form or ("jsonl" if is_stdout else _form_of(target))
    if is_stdout and form == "parquet":
        raise InvalidArgumentError("a Parquet file cannot go to standard output", help="name a file with -o")
    offsets = [] if lag_of is None else _known_offsets(path)
    lost = _Lost(as_json=as_json)
    with MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store:
        rows = iter_rows(store, wanted, offsets, lost.add, lost.doubt)
        if is_stdout:
            count = write_jsonl(sys.stdout.buffer, rows)
        else:
            files = options.reading(path)
            with new_file_outside(files, target, replace=force, advice=options.EXISTS_ADVICE) as file:
                count = write_parquet(file, rows) if form == "parquet" else write_jsonl(file, rows)
    lost.end(path)
    if as_json and not is_stdout:
        of_kinds = {"lost": lost.counts["lost"], "repairable": lost.counts["repairable"]}
        fields = {"messages": count, **of_kinds, "format": form, "file": str(target)}
        fields["mayBeMore"] = lost.is_at_least
        render.emit({"kind": "export", **fields})
    elif not is_stdout:
        render.say(f"{render.count_text(count, 'message')} in {target}")
    if (lost.counts.total() or lost.is_at_least) and not allow_lost:
        raise click.exceptions.Exit(Ending.LOSS)


def _known_offsets(path: Path) -> list[GroupOffset]:
    """Returns the offsets of all groups.

    Raises:
        ConfigError: Their table is lost.
        UnsupportedStoreError: It is in RocksDB.
    """
    files = options.reading(path)
    demand_offsets(files, path)
    return OffsetTable(files, path).all()


def _form_of(target: Path) -> str:
    """Returns the format that the suffix of a file name selects.

    Raises:
        InvalidArgumentError: The suffix selects no format.
    """
    form = target.suffix.lower().removeprefix(".")
    if form not in _FORMS:
        endings = " or ".join(f".{one}" for one in _FORMS)
        raise InvalidArgumentError(
            f"the name {target.name!r} says no format: expected one that ends with {endings}",
            help=f"name the format with --format {' or --format '.join(_FORMS)}",
        )
    return form


class _Lost:
    """Prints lost and repairable messages on stderr, adjacent ones in one line, and counts them.

    Attributes:
        counts: Number of messages that were printed, by ``lost`` and ``repairable``.
        is_at_least: Whether more messages may be lost than are known.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.counts: Counter[str] = Counter()
        self.is_at_least = False
        self._as_json = as_json
        self._runs = 0
        self._last: tuple[str, int, range, str] | None = None

    def add(self, topic: str, queue_id: int, offsets: range, kind: str) -> None:
        """Adds lost or repairable messages, in the order of their queue."""
        if self._last is not None:
            *key, before, last_kind = self._last
            if (key, before.stop, last_kind) == ([topic, queue_id], offsets.start, kind):
                self._last = topic, queue_id, range(before.start, offsets.stop), kind
                return
        self._tell()
        self._last = topic, queue_id, offsets, kind

    def doubt(self) -> None:
        """Notes that more messages may be lost than are known."""
        self.is_at_least = True

    def end(self, path: Path) -> None:
        """Prints the last range, the total, and whether more may be lost."""
        self._tell()
        if self._as_json:
            return
        if self.counts:
            self._show_total(path)
        if self.is_at_least:
            more = "more " if self.counts["lost"] else ""
            render.say(
                f"warning: {more}messages of these queues may be lost, and nothing names them;"
                f" `seglog check {shell_text(path)}` says more",
                err=True,
            )

    def _show_total(self, path: Path) -> None:
        if self._runs > _MAX_LOST_SHOWN:
            places = render.count_text(self._runs - _MAX_LOST_SHOWN, "place")
            render.say(f"… and in {places} more; --json names all", err=True)
        named = " and ".join(
            f"{render.count_text(count, 'message')} {kind}" for kind, count in sorted(self.counts.items())
        )
        render.say(
            f"warning: {named}, all others are written; `seglog check {shell_text(path)}` says why and what"
            " to do",
            err=True,
        )

    def _tell(self) -> None:
        if self._last is None:
            return
        self.counts[self._last[3]] += len(self._last[2])
        self._runs += 1
        if self._as_json:
            render.say(render.json_text(messages.lost_fields(*self._last)), err=True)
        elif self._runs <= _MAX_LOST_SHOWN:
            render.say(messages.lost_text(*self._last), err=True)
        self._last = None


def write_jsonl(stream: BinaryIO, rows: Iterable[MessageRow]) -> int:
    """Writes a line for each message; returns the number of lines."""
    count = 0
    for count, line in enumerate(_lines(rows), 1):  # noqa: B007 - the last one is the count
        stream.write(line)
    return count


def _lines(rows: Iterable[MessageRow]) -> Iterator[bytes]:
    for row in rows:
        yield json.dumps(to_fields(row), separators=(",", ":")).encode() + b"\n"

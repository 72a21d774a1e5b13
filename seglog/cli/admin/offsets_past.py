"""``seglog offsets log``, ``diff``, ``blame`` and ``restore``: the history of offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from seglog.broker.offsets import OffsetPast
from seglog.cli.admin.moves import show_moves
from seglog.cli.read.reading import check_store
from seglog.cli.ui import changing, options, render
from seglog.clock import SystemClock
from seglog.doctor.groups import restore, without_offset_at
from seglog.storage.format.ours import OffsetChange

_MOST_NAMED: Final = 4
"""Most queues that a warning names."""


@click.command
@options.store
@click.argument("group", required=False)
@click.option("--topic", help="Only in this topic.")
@click.option("--backwards", is_flag=True, help="Only changes that have messages delivered again.")
@click.option("--count", type=click.IntRange(1), default=100, show_default=True, help="The newest N changes.")
@options.as_json
def log(
    *, path: Path, group: str | None, topic: str | None, backwards: bool, count: int, as_json: bool
) -> None:
    """Show how the offsets of groups, or GROUP, in STORE changed, oldest first.

    Told is what was saved; a running broker saves every few seconds.
    """
    changes = _past(path).log(group, topic)
    kept = deque((change for change in changes if change.is_backwards or not backwards), maxlen=count)
    _show(kept, as_json=as_json)


@click.command
@options.store
@click.argument("group", required=False)
@options.as_json
def blame(*, path: Path, group: str | None, as_json: bool) -> None:
    """Show who moved each group, or GROUP, last in each queue of STORE."""
    _show(_past(path).blame(group), as_json=as_json)


@click.command
@options.store
@click.argument("first", metavar="TIME")
@click.argument("second", metavar="TIME", required=False)
@options.as_json
def diff(*, path: Path, first: str, second: str | None, as_json: bool) -> None:
    """Show which groups of STORE had other offsets at the second TIME (now) than at the first."""
    now_ms = SystemClock().now_ms()
    moments = (options.timestamp_ms("TIME", text, now_ms) for text in (first, second))
    columns = ("group", "queue", "before", "after")
    listing = render.Listing(columns, numbers=columns[2:], none="no difference", as_json=as_json)
    for found in _past(path).diff(*moments):
        fields = {
            "kind": "offset-difference",
            "group": found.group,
            "topic": found.topic,
            "queueId": found.queue_id,
            "before": found.before,
            "after": found.after,
        }
        listing.add(fields, found.group, f"{found.topic}/{found.queue_id}", found.before, found.after)
    listing.end()


@click.command(name="restore")
@options.store
@click.argument("group", required=False)
@click.option("--at", required=True, metavar="TIME", help="The moment to go back to.")
@click.option("--topic", help="Only in this topic.")
@changing.changing
@options.as_json
def restore_(
    *, path: Path, group: str | None, at: str, topic: str | None, is_applied: bool, as_json: bool
) -> None:
    """Put groups, or GROUP, back to where they stood at TIME, while no broker has STORE open.

    Offsets beyond the end of a queue become that end. Queues without an offset at TIME stay as they are.
    """
    _past(path)
    moment_ms = options.timestamp_ms("--at", at, 0)
    files = options.writing(path) if is_applied else options.reading(path)
    moves = restore(files, path, SystemClock(), moment_ms, group=group, topic=topic, apply=is_applied)
    show_moves(moves, "offset-restore", is_applied=is_applied, as_json=as_json)
    staying = without_offset_at(files, path, moment_ms, group=group, topic=topic)
    if staying:
        names = ", ".join(f"{one.group} in {one.topic}/{one.queue_id}" for one in staying[:_MOST_NAMED])
        more = f" and {len(staying) - _MOST_NAMED} more" if len(staying) > _MOST_NAMED else ""
        queues = render.count_text(len(staying), "queue")
        render.say(
            f"warning: {queues} had no offset then, and stay: {names}{more};"
            " `seglog offsets reset STORE GROUP TOPIC --queue N --start --apply` moves one",
            err=True,
        )


def _past(path: Path) -> OffsetPast:
    """Returns the history of a store, and prints a warning if part of it cannot be read."""
    check_store(path)
    past = OffsetPast(options.reading(path), path)
    damaged_bytes = past.damaged_bytes()
    if damaged_bytes:
        render.say(
            f"warning: {damaged_bytes} bytes of the history are damaged; the changes in them are not told",
            err=True,
        )
    return past


def _show(changes: Iterable[OffsetChange], *, as_json: bool) -> None:
    columns = ("time", "group", "queue", "before", "after", "change", "client", "")
    listing = render.Listing(columns, numbers=("before", "after"), none="no changes", as_json=as_json)
    for change in changes:
        kind = change.kind.name.lower()
        fields = {
            "kind": "offset-change",
            "change": kind,
            "timestamp": change.timestamp_ms,
            "group": change.group,
            "topic": change.topic,
            "queueId": change.queue_id,
            "before": change.before,
            "after": change.after,
            "client": change.client_id or None,
            "commits": change.commits,
            "backwards": change.is_backwards,
        }
        listing.add(
            fields,
            render.time_text(change.timestamp_ms),
            change.group,
            f"{change.topic}/{change.queue_id}",
            change.before,
            change.after,
            kind if change.commits == 1 else f"{change.commits} {kind}s",
            change.client_id or None,
            "BACKWARDS" if change.is_backwards else "",
        )
    listing.end()

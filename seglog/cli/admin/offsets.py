"""``seglog offsets``: the offsets of groups, their lag, and commands to move them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from seglog.broker.tables import TopicConfig
from seglog.cli.admin import offsets_local, offsets_past
from seglog.cli.admin.moves import show_moves
from seglog.cli.read.reading import check_store, say_not_read
from seglog.cli.ui import changing, options, render
from seglog.cli.ui.lazy_group import CommandGroup
from seglog.clock import SystemClock
from seglog.doctor.groups import Target, read_topics, reset, to_end, to_offset, to_start, to_time
from seglog.doctor.tables import GroupOffset, OffsetTable
from seglog.errors import InvalidArgumentError
from seglog.storage.directory import RocksTable
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.store import MessageStore
from seglog.storage.writes import QueueInfo
from seglog.text import shell_line

_NONE: Final = "no offsets"


@click.group(cls=CommandGroup)
def command() -> None:
    """Show, move and trace the offsets of groups."""


@command.command
@options.store
@click.argument("group", required=False)
@options.as_json
def show(*, path: Path, group: str | None, as_json: bool) -> None:
    """Show where each group, or GROUP, continues in each queue of STORE."""
    columns = ("group", "queue", "next", "queue has", "behind", "state")
    listing = render.Listing(columns, numbers=("next", "behind"), none=_NONE, as_json=as_json)
    topics = read_topics(options.reading(path), path, SystemClock())
    for one, queue in _read(path, group):
        lag = None if queue is None else queue.max_offset - one.queue_offset
        state = _state(one, queue, topics.get(one.topic))
        fields = {
            "kind": "offset",
            "group": one.group,
            "topic": one.topic,
            "queueId": one.queue_id,
            "offset": one.queue_offset,
            "minOffset": None if queue is None else queue.min_offset,
            "maxOffset": None if queue is None else queue.max_offset,
            "lag": lag,
            "broadcast": one.is_broadcast,
            "state": state,
        }
        held = None if queue is None else f"{queue.min_offset}..{queue.max_offset}"
        listing.add(fields, one.group, f"{one.topic}/{one.queue_id}", one.queue_offset, held, lag, state)
    listing.end()
    say_not_read(path, RocksTable.OFFSETS, as_json=as_json)


@command.command
@options.store
@click.argument("group", required=False)
@options.as_json
def lag(*, path: Path, group: str | None, as_json: bool) -> None:
    """Show how many messages each group, or GROUP, is behind in each topic of STORE.

    Counted are queues in which the group has an offset; messages below a queue's minimum are gone.
    """
    sums: dict[tuple[str, str], list[int]] = {}
    for one, queue in _read(path, group):
        if queue is not None and not one.is_broadcast:
            behind = max(0, queue.max_offset - max(one.queue_offset, queue.min_offset))
            lost = max(0, queue.min_offset - one.queue_offset)
            total = sums.setdefault((one.group, one.topic), [0, 0, 0])
            total[:] = [total[0] + 1, total[1] + behind, total[2] + lost]
    columns = ("group", "topic", "queues", "behind", "lost unread")
    listing = render.Listing(columns, numbers=columns[2:], none=_NONE, as_json=as_json)
    for (owner, topic), (queues, behind, lost) in sums.items():
        fields = {"group": owner, "topic": topic, "queues": queues, "lag": behind, "lost": lost}
        listing.add({"kind": "lag", **fields}, owner, topic, queues, behind, lost)
    listing.end()
    say_not_read(path, RocksTable.OFFSETS, as_json=as_json)


@command.command(name="reset")
@options.store
@click.argument("group")
@click.argument("topic")
@click.option("--queue", "queue_id", type=int, help="Only in this queue.  [default: in all]")
@click.option("--to", type=int, help="Queue offset to continue with.")
@click.option("--at", metavar="TIME", help="Go on with what was stored from then on.")
@click.option("--start", is_flag=True, help="Go on with the first message that is there.")
@click.option("--end", is_flag=True, help="Move to the end, after the last message.")
@changing.changing
@options.as_json
def reset_(
    *,
    path: Path,
    group: str,
    topic: str,
    queue_id: int | None,
    to: int | None,
    at: str | None,
    start: bool,
    end: bool,
    is_applied: bool,
    as_json: bool,
) -> None:
    """Move GROUP in TOPIC of STORE, while no broker has STORE open.

    Without --apply the moves are shown, also beside a broker.
    """
    check_store(path)
    targets: list[Target] = []
    if to is not None:
        targets.append(to_offset(to))
    if at is not None:
        targets.append(to_time(options.timestamp_ms("--at", at, 0)))
    targets += [to_start] * start + [to_end] * end
    if len(targets) != 1:
        raise InvalidArgumentError("one of --to, --at, --start and --end says where to")
    files = options.writing(path) if is_applied else options.reading(path)
    moves = reset(files, path, SystemClock(), group, topic, targets[0], queue_id=queue_id, apply=is_applied)
    show_moves(moves, "offset-reset", is_applied=is_applied, as_json=as_json)
    if all(move.before is None for move in moves):  # a mistyped name has no offset, and so has a new group
        name, where = render.printable(group), render.printable(topic)
        click.echo(
            f"warning: group {name} has no offset in {where} yet; `seglog offsets lag` lists groups", err=True
        )
    if is_applied and not as_json:
        render.say(f"what was before: {shell_line(['seglog', 'offsets', 'log', path, group])}")


def _read(path: Path, group: str | None) -> list[tuple[GroupOffset, QueueInfo | None]]:
    check_store(path)
    offsets = OffsetTable(options.reading(path), path).all()
    with MessageStore.open(path, read_only=True, follow=options.followed(path)) as store:
        queues = {(queue.topic, queue.queue_id): queue for queue in store.queues()}
    return [(one, queues.get((one.topic, one.queue_id))) for one in offsets if group in (None, one.group)]


def _state(one: GroupOffset, queue: QueueInfo | None, topic: TopicConfig | None) -> str:
    if queue is None:
        queue_nums = 0 if topic is None else topic.queue_nums
        has_it = one.queue_id < queue_nums or one.topic.startswith(RETRY_PREFIX)
        return "no message yet" if has_it else "no such queue"
    if one.queue_offset > queue.max_offset:
        return "beyond the end"
    if one.queue_offset < queue.min_offset:
        return f"{render.count_text(queue.min_offset - one.queue_offset, 'message')} lost unread"
    return "broadcasting" if one.is_broadcast else ""


command.add_command(offsets_local.local)
command.add_command(offsets_past.log)
command.add_command(offsets_past.diff)
command.add_command(offsets_past.blame)
command.add_command(offsets_past.restore_)

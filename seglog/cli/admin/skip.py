"""``seglog skip``: moves one group past one message."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.ui import changing, options, render
from seglog.clock import SystemClock
from seglog.doctor.groups import Skipped, skip
from seglog.errors import InvalidArgumentError
from seglog.text import shell_line


@click.command
@options.store
@click.argument("group")
@click.argument("topic")
@click.argument("queue_id", metavar="QUEUE", type=int)
@click.option("--to", type=int, help="Queue offset to continue with.  [default: past one message]")
@click.option("--forget", is_flag=True, help="Delete the group's offset in the queue.")
@changing.changing
@options.as_json
def command(
    *,
    path: Path,
    group: str,
    topic: str,
    queue_id: int,
    to: int | None,
    forget: bool,
    is_applied: bool,
    as_json: bool,
) -> None:
    """Move GROUP past the message where it stands in QUEUE of TOPIC, while no broker has STORE open.

    Only config/consumerOffset.json changes; the file before becomes its .bak.
    """
    if forget and to is not None:
        raise InvalidArgumentError("--forget and --to exclude each other")
    files = changing.files_of(path, is_applied=is_applied)
    done = skip(files, path, SystemClock(), group, topic, queue_id, to=to, forget=forget)
    is_moved = done.before != done.after
    if as_json:
        render.emit(
            {
                "kind": "skip",
                "group": done.group,
                "topic": done.topic,
                "queueId": done.queue_id,
                "before": done.before,
                "after": done.after,
                "minOffset": done.min_offset,
                "maxOffset": done.max_offset,
                "applied": is_applied,
            }
        )
    else:
        where = f"{render.printable(topic)}/{queue_id}"
        render.facts({"group": render.printable(group), "queue": where, **_facts(done)})
    if not is_applied:
        changing.end_preview(as_json=as_json, is_needed=is_moved)
    elif is_moved and not as_json:
        render.say(f"way back: {way_back(path, group, topic, queue_id, done.before)}")


def way_back(path: Path, group: str, topic: str, queue_id: int, before: int | None) -> str:
    """Returns the command that moves a group back to its former offset."""
    to = ["--forget"] if before is None else ["--to", str(before)]
    return shell_line(["seglog", "skip", path, group, topic, str(queue_id), *to, changing.APPLY])


def _facts(done: Skipped) -> dict[str, str]:
    before = "none" if done.before is None else str(done.before)
    if done.before == done.after:
        return {"next": f"{before}, as before"}
    after = "none" if done.after is None else str(done.after)
    facts = {"next": f"{after} (was {before}; the queue has {done.min_offset}..{done.max_offset})"}
    if done.before is not None and done.after is not None:
        apart = render.count_text(abs(done.after - done.before), "message")
        facts["change"] = f"{apart} {'skipped' if done.after > done.before else 'delivered again'}"
    return facts

"""``seglog park``: sets one message aside for a group, and moves the group past it."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.admin.skip import way_back
from seglog.cli.ui import changing, messages, options, render
from seglog.clock import SystemClock
from seglog.doctor.groups import park


@click.command
@options.store
@click.argument("wanted", metavar="MSGID")
@click.option("--group", required=True, help="The group that cannot get past it.")
@changing.changing
@options.as_json
def command(*, path: Path, wanted: str, group: str, is_applied: bool, as_json: bool) -> None:
    """Copy the message of MSGID to the topic %PARK%GROUP of STORE, and move GROUP past it.

    The copy keeps properties, keys and birth time, and names its origin. No broker may have STORE open.
    """
    done = park(changing.files_of(path, is_applied=is_applied), path, SystemClock(), wanted, group)
    message = done.message
    if as_json:
        render.emit(
            {
                "kind": "park",
                "group": group,
                "topic": message.topic,
                "queueId": message.queue_id,
                "queueOffset": message.queue_offset,
                "msgId": message.message_id,
                "parkedTopic": done.topic,
                "parkedOffset": done.queue_offset,
                "parkedMsgId": done.message_id,
                "wasParked": done.was_parked,
                "before": done.before,
                "after": done.after,
                "applied": is_applied,
            }
        )
    else:
        again = " (it was there already)" if done.was_parked else ""
        place = messages.place_text(done.topic, 0, done.queue_offset)
        render.facts(
            {
                "message": messages.place_text(message.topic, message.queue_id, message.queue_offset),
                "parked": f"{place}, id {done.message_id}{again}",
                "group": f"{render.printable(group)} continues with {done.after} (was {done.before})",
            }
        )
    if not is_applied:
        changing.end_preview(as_json=as_json)
    elif not as_json:
        render.say(f"way back: {way_back(path, group, message.topic, message.queue_id, done.before)}")

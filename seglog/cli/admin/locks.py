"""``seglog locks``: for each queue, the client of a group that may consume it in order."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.broker.tables import read_picture
from seglog.cli.read.reading import check_store
from seglog.cli.ui import options, render
from seglog.clock import SystemClock
from seglog.text import count_text


@click.command
@options.store
@click.argument("group", required=False)
@options.as_json
def command(*, path: Path, group: str | None, as_json: bool) -> None:
    """Show the queue locks of the broker that has STORE open, or those of GROUP.

    A broker writes them every few seconds; ages are of now, so a lock that was renewed since looks older.
    Without a broker all queues are free, but those of clients of other processes: these have them for 60 s
    more when a broker opens the store.
    """
    check_store(path)
    is_open = options.reading(path).lock_holder() is not None
    known = read_picture(options.reading(path), path, SystemClock().now_ms())
    locks = known if is_open else []
    kept = sum(lock.is_lasting for lock in known)
    free = f"{count_text(kept, 'queue')} kept for the owners of before" if kept else "all queues are free"
    none = "no locks" if is_open else f"no broker has the store open: {free}"
    columns = ("group", "queue", "client", "renewed before", "expires in")
    listing = render.Listing(columns, numbers=columns[3:], none=none, as_json=as_json)
    for lock in locks:
        if group not in (None, lock.group):
            continue
        fields = {
            "kind": "queue-lock",
            "group": lock.group,
            "topic": lock.queue.topic,
            "brokerName": lock.queue.broker_name,
            "queueId": lock.queue.queue_id,
            "client": lock.client_id,
            "ageMs": lock.age_ms,
            "expiresInMs": lock.left_ms,
            "expired": lock.is_expired,
        }
        queue = f"{lock.queue.topic}/{lock.queue.queue_id}"
        left = "expired" if lock.is_expired else f"{lock.left_ms / 1000:.1f} s"
        listing.add(fields, lock.group, queue, lock.client_id, f"{lock.age_ms / 1000:.1f} s", left)
    listing.end()

"""``seglog locks``: which client of a group may consume which queue in order."""

from __future__ import annotations

from pathlib import Path

import click

from seglog.broker.tables import read_picture
from seglog.cli.read.reading import check_store
from seglog.cli.ui import options, render
from seglog.clock import SystemClock


@click.command
@options.store
@click.argument("group", required=False)
@options.as_json
def command(*, path: Path, group: str | None, as_json: bool) -> None:
    """Show the queue locks of the broker that has STORE open, or those of GROUP.

    A broker tells them every few seconds; ages are of now, so a lock that was renewed since looks older.
    Without a broker all queues are free.
    """
    check_store(path)
    is_open = options.reading(path).lock_holder() is not None
    locks = read_picture(options.reading(path), path, SystemClock().now_ms()) if is_open else []
    rows: list[tuple[str, ...]] = []
    for lock in locks:
        if group not in (None, lock.group):
            continue
        if as_json:
            render.emit(
                {
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
            )
        rows.append(
            (
                render.printable(lock.group),
                f"{render.printable(lock.queue.topic)}/{lock.queue.queue_id}",
                render.printable(lock.client_id),
                f"{lock.age_ms / 1000:.1f} s",
                "expired" if lock.is_expired else f"{lock.left_ms / 1000:.1f} s",
            )
        )
    if as_json:
        return
    if rows:
        columns = ("group", "queue", "client", "renewed before", "expires in")
        render.table(columns, rows, numbers=("renewed before", "expires in"))
    else:
        render.say("no locks" if is_open else "no broker has the store open: all queues are free")

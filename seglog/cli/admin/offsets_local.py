"""``seglog offsets local``: the offsets of broadcast clients on this machine, from their own files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from seglog.cli.read.reading import check_store
from seglog.cli.ui import options, render
from seglog.consumer.offsets import MOST_BYTES, ClientOffsets, read_local_offsets
from seglog.errors import NotFoundError
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.files import RealFiles, explained
from seglog.storage.store import MessageStore
from seglog.storage.writes import QueueInfo

_FOLDER: Final = "~/.rocketmq_offsets"
"""Default folder of these files, for clients in Java and for seglog's."""


@click.command
@options.store
@click.argument(
    "folder", metavar="[FOLDER]", required=False, type=click.Path(path_type=Path, file_okay=False)
)
@options.as_json
def local(*, path: Path, folder: Path | None, as_json: bool) -> None:
    """Show where clients that broadcast continue in each queue of STORE, by the files that they keep.

    FOLDER has <client id>/<group>/offsets.json; by default it is ~/.rocketmq_offsets. A broker knows nothing
    of these offsets. STORE says which of them are beyond the end of a queue, or below what it still has.
    """
    check_store(path)
    folder = Path(_FOLDER).expanduser() if folder is None else folder
    files = RealFiles(MOST_BYTES)
    with explained():
        if not files.is_dir(folder):
            raise NotFoundError(
                f"{folder} is no folder with offsets of clients",
                help="type the folder after STORE: rocketmq.client.localOffsetStoreDir of the client,"
                f" or {_FOLDER} of the user that it runs as",
            )
        found = list(read_local_offsets(files, folder))
    with MessageStore.open(path, read_only=True, follow=options.followed(path)) as store:
        queues = {(queue.topic, queue.queue_id): queue for queue in store.queues()}
    _show(found, queues, as_json=as_json)


def _show(found: list[ClientOffsets], queues: dict[tuple[str, int], QueueInfo], *, as_json: bool) -> None:
    columns = ("client", "group", "queue", "next", "queue has", "behind", "state")
    listing = render.Listing(
        columns, numbers=("next", "behind"), none="no client has offsets there", as_json=as_json
    )
    for client in found:
        if client.problem:
            fields = {"kind": "local-offset-damage", "client": client.client_id, "group": client.group}
            fields |= {"file": str(client.path), "problem": client.problem}
            state = f"damaged: the client does not start. {client.problem}"
            listing.add(fields, client.client_id, client.group, None, None, None, None, state)
        for queue, offset in sorted(client.offsets.items()):
            _add(listing, client, queue, offset, queues.get((queue.topic, queue.queue_id)))
    listing.end()


def _add(
    listing: render.Listing,
    client: ClientOffsets,
    queue: MessageQueue,
    offset: int,
    there: QueueInfo | None,
) -> None:
    lag = None if there is None else there.max_offset - offset
    state = _state(offset, there)
    fields = {
        "kind": "local-offset",
        "client": client.client_id,
        "group": client.group,
        "broker": queue.broker_name,
        "topic": queue.topic,
        "queueId": queue.queue_id,
        "offset": offset,
        "minOffset": None if there is None else there.min_offset,
        "maxOffset": None if there is None else there.max_offset,
        "lag": lag,
        "state": state,
    }
    held = None if there is None else f"{there.min_offset}..{there.max_offset}"
    name = f"{queue.topic}/{queue.queue_id}"
    listing.add(fields, client.client_id, client.group, name, offset, held, lag, state)


def _state(offset: int, there: QueueInfo | None) -> str:
    if there is None:
        return "no such queue in this store"
    if offset > there.max_offset:
        return "beyond the end: the broker moves it to an offset that it has"
    if offset < there.min_offset:
        return f"{render.count_text(there.min_offset - offset, 'message')} deleted before it had them"
    return ""

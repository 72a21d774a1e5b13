"""``seglog query``: finds messages by key, by unique key, or by message id.

The index gives candidates, and the messages themselves are compared. Records that the index does not cover
yet are read one by one, so a query of a crashed store finds all messages that can be read.
"""

from __future__ import annotations

from pathlib import Path

import click

from seglog.cli.read.get import check_count
from seglog.cli.ui import messages, options, render
from seglog.cli.ui.lost_note import saying_what_is_lost
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.format.index import DEFAULT_QUERY_LIMIT, MAX_TIMESTAMP_MS
from seglog.storage.format.names import check_topic
from seglog.storage.format.record import Message
from seglog.storage.store import MessageStore


@click.command
@options.store
@click.argument("topic", required=False)
@click.argument("key", required=False)
@click.option("--id", "message_id", help="A message id instead of KEY; a unique key needs its TOPIC.")
@click.option("--count", type=int, help=f"Messages at most, the newest.  [default: {DEFAULT_QUERY_LIMIT}]")
@click.option("--from", "begin", metavar="MS|ISO", help="Stored at this time or later.")
@click.option("--to", "end", metavar="MS|ISO", help="Stored at this time or earlier.")
@click.option(
    "--body",
    "form",
    type=click.Choice([form for form in messages.FORMS if form != "raw"]),
    default="text",
    show_default=True,
    help="Form of the body.",
)
@options.as_json
def command(
    *,
    path: Path,
    topic: str | None,
    key: str | None,
    message_id: str | None,
    count: int | None,
    begin: str | None,
    end: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Find the messages of TOPIC that have KEY, or the message of an id.

    Ends with 13 if there is none.
    """
    wanted = count if count is not None else DEFAULT_QUERY_LIMIT
    check_count("--count", wanted)
    if topic is not None:
        check_topic(topic)
    begin_ms = options.timestamp_ms("--from", begin, 0)
    end_ms = options.timestamp_ms("--to", end, MAX_TIMESTAMP_MS)
    if message_id is not None:
        if key is not None or {count, begin, end} != {None}:
            raise InvalidArgumentError(
                "--id names one message; KEY, --count, --from and --to do not go with it"
            )
    elif topic is None or not key:
        raise InvalidArgumentError("a query needs TOPIC and KEY, or --id", help="see `seglog query --help`")
    with (
        MessageStore.open(path, create=False, read_only=True, follow=options.followed(path)) as store,
        saying_what_is_lost(path, lambda: store.recovery.findings),
    ):
        if message_id is not None:
            found = [by_id(store, topic, message_id)]
        else:
            assert topic is not None
            assert key is not None
            found = store.query(topic, key, wanted, begin_ms=begin_ms, end_ms=end_ms)
        if not found:
            raise NotFoundError(
                f"no message of {topic} has the key {key!r}",
                help="keys are compared as a whole; `seglog info STORE` lists topics,"
                " `seglog get` shows keys",
            )
    if as_json:
        for message in found:
            render.emit(messages.message_fields(message, form))
    elif message_id is not None:
        _show_one(found[0], form)
    else:
        _show(found, form)


def by_id(store: MessageStore, topic: str | None, message_id: str) -> Message:
    """Returns the message with an id.

    Args:
        store: The store.
        topic: Topic in which to search for a unique key; None for ids that hold their place (offsetMsgId)
            only.
        message_id: The id.

    Raises:
        InvalidArgumentError: The id is no offsetMsgId, and there is no topic in which to search for a unique
            key.
        NotFoundError: There is no such message.
    """
    if topic is None:
        try:
            return store.message_by_id(message_id)
        except (InvalidArgumentError, NotFoundError) as error:
            error.help = "a unique key (UNIQ_KEY) needs its topic: `seglog query STORE TOPIC --id ID`"
            raise
    # Both kinds of id have the same length, so the id is tried as a unique key first.
    for message in reversed(store.query(topic, message_id)):
        if message.unique_key == message_id:
            return message
    try:
        message = store.message_by_id(message_id)
    except (InvalidArgumentError, NotFoundError):
        pass
    else:
        if message.topic == topic:
            return message
    raise NotFoundError(f"no message of {topic} has the id {message_id!r}")


def _show(found: list[Message], form: str) -> None:
    columns = ("queue", *messages.COLUMNS)
    render.table(
        columns,
        [(str(message.queue_id), *messages.message_cells(message, form)) for message in found],
        numbers=("queue", "offset"),
    )
    render.say(render.count_text(len(found), "message"))


def _show_one(message: Message, form: str) -> None:
    render.facts(
        {
            "place": messages.place_text(message.topic, message.queue_id, message.queue_offset),
            "record": f"{render.count_text(message.size_bytes, 'byte')} at {message.phy_offset}",
            "id": message.message_id,
            "born": f"{render.time_text(message.born_timestamp_ms)} at {message.born_host}",
            "stored": f"{render.time_text(message.store_timestamp_ms)} at {message.store_host}",
            "tag": render.printable(message.tags or "-"),
            "keys": render.printable(" ".join(message.keys) or "-"),
            "properties": " ".join(
                f"{render.printable(name)}={render.printable(value)}"
                for name, value in message.properties.items()
            )
            or "-",
            "body": messages.read_body_text(message, form),
        }
    )

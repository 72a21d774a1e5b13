"""Formats messages: cells and lines for people, fields for programs, bodies in several forms."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Final

import click

from seglog.cli.ui import render
from seglog.consumer.message_bodies import is_inner_batch, unwrap
from seglog.errors import BodyError
from seglog.storage.format.record import Message

FORMS: Final = ("text", "hex", "base64", "raw")
_BODY_CHARS: Final = 100
_PLACEHOLDER: Final = "(placeholder: a compaction dropped the message)"
_OF_PARTS: Final = ("queueOffset", "flag", "tags", "keys", "properties", "bodyForm", "body")
"""What a message of an inner batch has of its own."""
COLUMNS: Final = ("offset", "stored", "tag", "keys", "body")


def body_text(body: bytes, form: str) -> str:
    """Returns a body for people; in the form ``text``, bytes that are no printable text are escaped."""
    if form == "hex":
        return body.hex()
    if form == "base64":
        return base64.b64encode(body).decode()
    return render.printable(body.decode("utf-8", "backslashreplace"))


def message_cells(message: Message, form: str) -> tuple[str, ...]:
    """Returns the cells of a message in a table; the headings are :data:`COLUMNS`."""
    return (
        str(message.queue_offset),
        render.time_text(message.store_timestamp_ms),
        render.printable(message.tags or "-"),
        render.printable(" ".join(message.keys) or "-"),
        read_body_text(message, form),
    )


def read_body_text(message: Message, form: str) -> str:
    """Returns the body of a message for people; a body that is returned as stored is preceded by the reason.

    An empty record that a compaction left in place of a message is described as such. Of an inner batch the
    bodies of its messages are shown.
    """
    if message.is_placeholder:
        return _PLACEHOLDER
    if (parts := _parts_of(message)) is not None:
        bodies = ", ".join(body_text(part.body, form) for part in parts)
        return f"(batch of {render.count_text(len(parts), 'message')}) {bodies}"
    read = message.read_body()
    shown = body_text(read.payload, form)
    return f"({read.reason}) {shown}" if read.error else shown


def _parts_of(message: Message) -> list[Message] | None:
    """Returns the messages of an inner batch; None of another record, or if the batch is damaged."""
    if not is_inner_batch(message):
        return None
    with suppress(BodyError):
        return unwrap(message)
    return None


def warn_of_body(message: Message) -> None:
    """Warns on standard error that a body is printed as stored, for output that has no other place for it."""
    if message.body_error is not None:
        click.echo(f"warning: {render.printable(message.body_error)}", err=True)


def message_text(message: Message, place: str | None = None) -> str:
    """Returns a message as one line; a long body is cut.

    Args:
        message: The message.
        place: Text at the start of the line; by default queue and queue offset of the message.
    """
    offset, *cells, body = message_cells(message, "text")
    place = place or place_text(message.topic, message.queue_id, int(offset))
    start = body if len(body) <= _BODY_CHARS else body[: _BODY_CHARS - 1] + "…"
    return "  ".join((place, *cells, start))


def place_text(topic: str, queue_id: int, queue_offset: int) -> str:
    """Returns a place in a queue for people."""
    return f"{render.printable(topic)}/{queue_id} @{queue_offset}"


def lost_text(topic: str, queue_id: int, offsets: range, kind: str = "lost") -> str:
    """Returns a line for people about lost, or repairable, messages of a queue."""
    last = f"..{offsets.stop - 1}" if len(offsets) > 1 else ""
    return f"{place_text(topic, queue_id, offsets.start)}{last}  {kind}"


def lost_fields(topic: str, queue_id: int, offsets: range, kind: str = "lost") -> dict[str, object]:
    """Returns the fields for programs about lost, or repairable, messages of a queue."""
    fields = {"topic": topic, "queueId": queue_id, "firstOffset": offsets.start}
    return {"kind": kind, **fields, "count": len(offsets)}


def message_fields(message: Message, form: str) -> dict[str, object]:
    """Returns the fields of a message for programs.

    ``body`` is the body as the producer gave it, in the form that ``bodyForm`` names: a body that is not
    UTF-8 is encoded as base64. A body that cannot be decompressed, or whose compression seglog does not read,
    is returned as stored, and ``bodyError`` gives the reason. An inner batch has its messages in ``batch``.
    """
    parts = _parts_of(message)
    asked = form
    body, _reason, error = message.read_body()
    if form == "text":
        try:
            shown = body.decode()
        except UnicodeDecodeError:
            form = "base64"
            shown = body_text(body, form)
    else:
        shown = body_text(body, form)
    found: dict[str, object] = {
        "kind": "message",
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.phy_offset,
        "storeSize": message.size_bytes,
        "msgId": message.message_id,
        "bornTimestamp": message.born_timestamp_ms,
        "storeTimestamp": message.store_timestamp_ms,
        "bornHost": str(message.born_host),
        "storeHost": str(message.store_host),
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "reconsumeTimes": message.reconsume_times,
        "tags": message.tags,
        "keys": message.keys,
        "properties": message.properties,
        "bodyForm": form,
        "body": shown,
    }
    if parts is not None:
        found["batch"] = [_part_fields(part, asked) for part in parts]
    return found if error is None else found | {"bodyError": error}


def _part_fields(part: Message, form: str) -> dict[str, object]:
    fields = message_fields(part, form)
    return {name: fields[name] for name in _OF_PARTS}

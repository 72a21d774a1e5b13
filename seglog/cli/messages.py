"""How a message is shown: cells and lines for people, fields for programs, bodies in several forms."""

from __future__ import annotations

import base64
import shutil
import sys
from typing import Final

from seglog.cli import render
from seglog.storage.format.message import Message

FORMS: Final = ("text", "hex", "base64", "raw")
COLUMNS: Final = ("offset", "stored", "tag", "keys", "body")


def body_text(body: bytes, form: str) -> str:
    """Returns a body for people; as text, what is no printable text is escaped."""
    if form == "hex":
        return body.hex()
    if form == "base64":
        return base64.b64encode(body).decode()
    return render.printable(body.decode("utf-8", "backslashreplace"))


def message_cells(message: Message, form: str) -> tuple[str, ...]:
    """Returns what a table shows of a message; the headings are :data:`COLUMNS`."""
    return (
        str(message.queue_offset),
        render.time_text(message.store_timestamp_ms),
        render.printable(message.tags or "-"),
        render.printable(" ".join(message.keys) or "-"),
        body_text(message.payload(), form),
    )


def message_text(message: Message, form: str = "text") -> str:
    """Returns a message as one line, which ends at the right border where stdout is a terminal."""
    offset, stored, tags, keys, body = message_cells(message, form)
    line = f"{render.printable(message.topic)}/{message.queue_id} @{offset}  {stored}  {tags}  {keys}  {body}"
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return line if len(line) <= width else line[: width - 1] + "…"


def message_fields(message: Message, form: str) -> dict[str, object]:
    """Returns a message for programs.

    ``body`` is the body as the producer gave it, in the form that ``bodyForm`` names: a text that is not
    UTF-8 comes as base64, and a body whose compression is not read here comes as stored.
    """
    body = message.payload()
    if form == "text":
        try:
            shown = body.decode()
        except UnicodeDecodeError:
            form = "base64"
            shown = body_text(body, form)
    else:
        shown = body_text(body, form)
    return {
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

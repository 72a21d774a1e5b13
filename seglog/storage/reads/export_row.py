"""A message as a row of an export: all fields of its record, so that an import loses nothing.

Bodies and properties are as stored. A body is exported as text if it is UTF-8, otherwise as base64.
Properties are exported as an object, and as base64 beside it if the object does not give the same bytes again
(repeated names, empty values). ``__CRC32#`` is left out: it belongs to the record, not to the message.
"""

# ruff: noqa: N815 - the columns are called as RocketMQ's tools call them

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.storage.format.record import Host, Message
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message of an export; names and order are those of the columns.

    Attributes:
        commitLogOffset: Its place in the exported store, like queueOffset, msgId, storeTimestamp and
            storeHost: an import assigns new ones.
        properties: As stored, without ``__CRC32#``.
        bodyError: The reason why a compressed body could not be inflated and is as stored.
    """

    topic: str
    queueId: int
    queueOffset: int
    commitLogOffset: int
    msgId: str
    bornTimestamp: int
    storeTimestamp: int
    bornHost: str
    storeHost: str
    sysFlag: int
    flag: int
    reconsumeTimes: int
    preparedTransactionOffset: int
    body: bytes
    properties: bytes
    bodyError: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """The properties by name."""
        return props.decode_properties(self.properties)


_TEXTS = ("topic", "msgId", "bornHost", "storeHost")
_BYTES = ("body", "properties")
NUMBERS = tuple(
    field.name for field in fields(MessageRow) if field.name not in (*_TEXTS, *_BYTES, "bodyError")
)
_MAX_NUMBER = 1 << 63


def row_of(message: Message, queue_offset: int) -> MessageRow:
    """Returns the row of a message.

    Args:
        message: The message.
        queue_offset: Its place in the queue that it was read from.
    """
    return MessageRow(
        message.topic,
        message.queue_id,
        queue_offset,
        message.phy_offset,
        message.message_id,
        message.born_timestamp_ms,
        message.store_timestamp_ms,
        str(message.born_host),
        str(message.store_host),
        message.sys_flag,
        message.flag,
        message.reconsume_times,
        message.prepared_transaction_offset,
        message.body,
        props.without_crc_property(message.properties_raw),
    )


def inflated(row: MessageRow, message: Message) -> MessageRow:
    """Returns a row with the inflated body, or with the body as stored and a ``bodyError``."""
    if message.compression is None:
        return row
    read = message.read_body()
    if read.error is not None:
        return replace(row, bodyError=read.error)
    left = row.sysFlag & ~(flags.COMPRESSED | flags.COMPRESSION_MASK)
    return replace(row, body=read.payload, sysFlag=left)


def to_fields(row: MessageRow) -> dict[str, object]:
    """Returns a row as a JSON object."""
    found: dict[str, object] = {"kind": "message"}
    found |= {name: getattr(row, name) for name in ("topic", *NUMBERS, *_TEXTS[1:])}
    named = row.named
    found["tags"] = named.get(props.TAGS)
    found["keys"] = props.split_keys(named.get(props.KEYS, ""))
    found["properties"] = named
    if not _is_whole(named, row.properties):
        found["propertiesBase64"] = base64.b64encode(row.properties).decode()
    try:
        found["body"], found["bodyForm"] = row.body.decode(), "text"
    except UnicodeDecodeError:
        found["body"], found["bodyForm"] = base64.b64encode(row.body).decode(), "base64"
    return found if row.bodyError is None else found | {"bodyError": row.bodyError}


def from_fields(found: Mapping[str, object]) -> MessageRow:
    """Returns the row of a JSON object.

    Raises:
        InvalidArgumentError: A field is missing or has another form.
    """
    numbers = {name: _number(found, name) for name in NUMBERS}
    texts = {name: _text(found, name) for name in _TEXTS}
    for name in ("bornHost", "storeHost"):
        Host.parse(texts[name])
    body, form = _text(found, "body"), _text(found, "bodyForm")
    if form not in ("text", "base64"):
        raise InvalidArgumentError(f"bodyForm {form!r} is neither text nor base64")
    raw = _binary(body, "body") if form == "base64" else _encoded(body, "body")
    return MessageRow(**numbers, **texts, body=raw, properties=_properties(found))  # type: ignore[arg-type]  # by name


def _is_whole(named: Mapping[str, str], raw: bytes) -> bool:
    try:
        return props.encode_properties(named) == raw
    except MessageIllegalError:
        return False


def _properties(found: Mapping[str, object]) -> bytes:
    if "propertiesBase64" in found:
        return _binary(_text(found, "propertiesBase64"), "propertiesBase64")
    named = found.get("properties")
    if not isinstance(named, Mapping) or not all(isinstance(value, str) for value in named.values()):
        raise InvalidArgumentError("properties must be an object of texts")
    return props.encode_properties({str(name): str(value) for name, value in named.items()})


def _number(found: Mapping[str, object], name: str) -> int:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not -_MAX_NUMBER <= value < _MAX_NUMBER:
        raise InvalidArgumentError(f"{name} must be a number of 64 bits, not {value!r}")
    return value


def _text(found: Mapping[str, object], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} must be a text, not {value!r}")
    return value


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"{name} has half of a surrogate pair") from error


def _binary(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise InvalidArgumentError(f"{name} is no base64: {error}") from error

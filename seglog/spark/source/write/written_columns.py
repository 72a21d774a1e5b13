"""Columns from which rows can be written: those of seglog, and of Spark's Kafka sink, cast as that does.

A row needs a topic, from a column or from the option ``topic``, and a body. ``value``, ``key``, ``partition``
and ``headers`` are other names for ``body``, ``keys``, ``queueId`` and ``properties``. A key may contain
blanks: then it is several keys, as in RocketMQ's text of keys. Columns with the old place of a message
(``queueOffset``, ``physicalOffset``, Kafka's ``offset`` …) are ignored: it gets a new place.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.spark.source.values.columns import BY_NAME
from seglog.storage.format.names import MAX_QUEUE_ID

_Is = Callable[[pa.DataType], bool]
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _is_text(kind: pa.DataType) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_binary(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(kinds.is_timestamp(kind) or kinds.is_integer(kind))


def _is_properties(kind: pa.DataType) -> bool:
    return bool(kinds.is_map(kind) or kinds.is_list(kind) or _is_text(kind))


_COLUMNS: Final[dict[str, tuple[_Is, str]]] = {
    "topic": (kinds.is_string, "string"),
    "body": (_is_text, "binary or string"),
    "queueId": (kinds.is_integer, "an integer"),
    "flag": (kinds.is_integer, "an integer"),
    "properties": (
        _is_properties,
        "map<string,string>, array<struct<key:string,value:binary>>, string or binary",
    ),
    "keys": (_is_text, "string or binary"),
    "tags": (_is_text, "string or binary"),
    "bornTimestamp": (_is_time, "timestamp or bigint"),
    "bornHost": (kinds.is_string, "string"),
    "reconsumeTimes": (kinds.is_integer, "an integer"),
    "sysFlag": (kinds.is_integer, "an integer"),
    "preparedTransactionOffset": (kinds.is_integer, "an integer"),
}
_KAFKA: Final = {"value": "body", "key": "keys", "partition": "queueId", "headers": "properties"}
_LEFT_OUT: Final = frozenset({*(name.lower() for name in BY_NAME), "offset", "timestamp", "timestamptype"})
_BY_LOWER: Final = {name.lower(): name for name in _COLUMNS} | _KAFKA
_INTS: Final = {"queueId", "flag", "reconsumeTimes", "sysFlag"}
_TEXTS: Final = {"keys", "tags"}
_WITHOUT: Final = {
    "topic": "leave such rows out",
    "body": "where null deletes a key, as in Kafka, write an empty body, coalesce(value, binary('')), which"
    " deletes the key in a compaction; leave other such rows out",
}


def written_columns(schema: pa.Schema, *, has_topic: bool) -> dict[str, int]:
    """Returns the column of a table for each part of a message.

    Args:
        schema: The schema of the table.
        has_topic: Whether the option ``topic`` gives the topic of all rows; then a topic column is ignored.

    Raises:
        InvalidArgumentError: A column is missing, not known or of another type.
    """
    found: dict[str, int] = {}
    for at, field in enumerate(schema):
        name = _BY_LOWER.get(field.name.lower())
        if name is None:
            if field.name.lower() not in _LEFT_OUT:
                raise _unknown(field.name)
            continue
        if name in found:
            raise InvalidArgumentError(
                f"columns {schema.field(found[name]).name!r} and {field.name!r} are the same of a message",
                help="leave one of them out",
            )
        is_right, wanted = _COLUMNS[name]
        if not (is_right(field.type) or kinds.is_null(field.type)):
            raise InvalidArgumentError(
                f"column {field.name!r} of type {field.type} cannot be written", help=f"it can be {wanted}"
            )
        found[name] = at
    if has_topic:
        found.pop("topic", None)
    elif "topic" not in found:
        raise InvalidArgumentError(
            "there is no column 'topic', and no option topic", help="a message has topic and body"
        )
    if "body" not in found:
        raise InvalidArgumentError(
            "there is no column 'body' or 'value'", help="a message has topic and body"
        )
    return found


def cast_columns(batch: pa.RecordBatch, columns: dict[str, int], topic: str | None) -> pa.RecordBatch:
    """Returns the parts of messages of a batch, each in one type; properties are not changed.

    Raises:
        MessageIllegalError: A row has no topic or no body, or a value that no message can have.
    """
    arrays = {name: batch.column(at) for name, at in columns.items()}
    if topic is not None:
        arrays["topic"] = pa.repeat(pa.scalar(topic), batch.num_rows)
    for name in ("topic", "body"):
        if arrays[name].null_count:
            raise MessageIllegalError(f"a row has no {name}", help=_WITHOUT[name])
    made = {name: _cast(name, array) for name, array in arrays.items()}
    return pa.RecordBatch.from_arrays(list(made.values()), names=list(made))


def _cast(name: str, array: pa.Array) -> pa.Array:
    try:
        if name == "body":
            return array.cast(pa.binary())
        if name in _TEXTS:
            return _cast_text(name, array)
        if name in _INTS:
            return array.cast(pa.int32())
        if name == "bornTimestamp" and kinds.is_timestamp(array.type):
            # Times as numbers, because Arrow's timestamps exceed Python's range.
            return array.cast(pa.timestamp("ms", tz=array.type.tz), safe=False).cast(pa.int64())
        if name in ("bornTimestamp", "preparedTransactionOffset"):
            return array.cast(pa.int64())
        if name == "properties" and kinds.is_list(array.type) and not kinds.is_map(array.type):
            return array.cast(_HEADERS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise MessageIllegalError(f"a row has a {name} that cannot be: {error}", help=_help(name)) from error
    return pc.cast(array, pa.string()) if kinds.is_null(array.type) else array


def _help(name: str) -> str:
    if name == "queueId":
        return f"queues have numbers from 0 to {MAX_QUEUE_ID}"
    return f"{name} is {_COLUMNS[name][1]}" + (" of 32 bits" if name in _INTS else "")


def _cast_text(name: str, array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise MessageIllegalError(
            f"a row has {name} that are not UTF-8",
            help=f"RocketMQ keeps {name} as text: write hex(…) or base64(…) of the column",
        ) from error


def _unknown(name: str) -> InvalidArgumentError:
    close = get_close_matches(name.lower(), _BY_LOWER, 1)
    meant = f"did you mean {_BY_LOWER[close[0]]}? " if close else ""
    return InvalidArgumentError(
        f"a message has no column {name!r}", help=f"{meant}columns are {', '.join([*_COLUMNS, *_KAFKA])}"
    )

"""The columns of the data source: their names, their possible types, and their sources.

The first nine are those of rocketmq-spark, with its types except for ``properties``, which is a map here,
because readers parse it first (``.schema("properties string")`` returns the text nevertheless). Times are
timestamps as in rocketmq-spark; ``.schema("storeTimestamp bigint")`` returns milliseconds.

A column is made only on request, so fewer columns are less work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

import pyarrow as pa

from seglog.errors import InvalidArgumentError

INT: Final = pa.int32()
BIGINT: Final = pa.int64()
STRING: Final = pa.string()
BOOL: Final = pa.bool_()
BINARY: Final = pa.binary()
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
PROPERTY_MAP: Final = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=True))

_SPARK_NAMES: Final = {
    INT: "int",
    BIGINT: "bigint",
    STRING: "string",
    BINARY: "binary",
    BOOL: "boolean",
    TIMESTAMP: "timestamp",
    PROPERTY_MAP: "map<string,string>",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: Its name; users may write it in letters of any case, as in Spark.
        types: The types as which it can be read, the default type first.
        is_usual: Whether a read without a list of columns has it.
        meaning: One line for the docs.
    """

    name: str
    types: tuple[pa.DataType, ...]
    meaning: str
    is_usual: bool = True


COLUMNS: Final = (
    Column("topic", (STRING,), "topic"),
    Column("flag", (INT,), "the application's own number"),
    Column("body", (BINARY,), "body as stored; `decompress` inflates it"),
    Column("properties", (PROPERTY_MAP, STRING, BINARY), "all properties by name"),
    Column("brokerName", (STRING,), "the option `brokerName`, null without"),
    Column("queueId", (INT,), "number of the queue"),
    Column("queueOffset", (BIGINT,), "place in the queue"),
    Column(
        "bornTimestamp",
        (TIMESTAMP, BIGINT),
        "the client's clock; as timestamp null outside of the years 1 to 9999 or within two days of their"
        " ends, which Python's `datetime` does not take in every zone; as bigint always the milliseconds",
    ),
    Column("storeTimestamp", (TIMESTAMP, BIGINT), "the broker's clock; as bornTimestamp"),
    Column("physicalOffset", (BIGINT,), "where the record is in the log"),
    Column("size", (INT,), "length of the record in bytes"),
    Column("keys", (STRING,), "the property KEYS: keys with spaces between them"),
    Column("tags", (STRING,), "the property TAGS"),
    Column("msgId", (STRING,), "the id that clients show: the property UNIQ_KEY, else offsetMsgId"),
    Column("reconsumeTimes", (INT,), "deliveries that failed"),
    Column("sysFlag", (INT,), "compression, transaction, address families, batches"),
    Column("bornHost", (STRING,), "the client's address and port"),
    Column("storeHost", (STRING,), "the broker's address and port"),
    Column("record", (BINARY,), "the whole record as it is in the log", is_usual=False),
    Column("offsetMsgId", (STRING,), "store host and place in the log, in hexadecimal", is_usual=False),
    Column("tagsCode", (BIGINT,), "the tags code that its queue unit must have", is_usual=False),
    Column("bodyCrc", (BIGINT,), "CRC-32 of the stored body as the record says it", is_usual=False),
    Column("preparedTransactionOffset", (BIGINT,), "where the half message of a commit is", is_usual=False),
    Column("store", (STRING,), "the path that it was read from", is_usual=False),
    Column(
        "placeholder", (BOOL,), "whether it stands for a message that a compaction dropped", is_usual=False
    ),
)
"""All columns in order."""

BY_NAME: Final = {column.name: column for column in COLUMNS}
_BY_LOWER: Final = {column.name.lower(): column for column in COLUMNS}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested column, and its type.

    Attributes:
        name: Its name here.
        type: One of its types.
        label: Its name in the request, which may differ in case.
    """

    name: str
    type: pa.DataType
    label: str = ""

    @property
    def asked_as(self) -> str:
        """Its name in results."""
        return self.label or self.name


def usual_columns() -> tuple[Wanted, ...]:
    """Returns the columns of a read that does not name any."""
    return tuple(Wanted(column.name, column.types[0]) for column in COLUMNS if column.is_usual)


def named_columns(names: Iterable[str]) -> tuple[Wanted, ...]:
    """Returns columns by name, each with its default type.

    Raises:
        InvalidArgumentError: There is no column of that name.
    """
    known = [(name, column(name)) for name in names]
    return tuple(Wanted(one.name, one.types[0], name) for name, one in known)


def spark_name(kind: pa.DataType) -> str:
    """Returns Spark's name of a type."""
    return _SPARK_NAMES[kind]


def spark_columns(wanted: Sequence[Wanted]) -> str:
    """Returns columns as a Spark schema."""
    return ", ".join(f"`{one.asked_as}` {_SPARK_NAMES[one.type]}" for one in wanted)


def wanted_columns(schema: pa.Schema) -> tuple[Wanted, ...]:
    """Returns the columns that a schema requests.

    Raises:
        InvalidArgumentError: There is no such column, or it cannot have that type.
    """
    found = []
    for field in schema:
        known = column(field.name)
        if field.type not in known.types:
            raise InvalidArgumentError(
                f"column {field.name!r} cannot be read as {field.type}",
                help=f"it can be {' or '.join(_SPARK_NAMES[one] for one in known.types)}",
            )
        check_nullable(field)
        found.append(Wanted(known.name, field.type, field.name))
    return tuple(found)


def check_nullable(field: pa.Field) -> None:
    """Refuses a column that must not be null: Spark demands the same of the result, which is nullable.

    Raises:
        InvalidArgumentError: The column is not nullable.
    """
    if not field.nullable:
        raise InvalidArgumentError(
            f"column {field.name!r} cannot be read as NOT NULL", help="leave NOT NULL out of the schema"
        )


def column(name: str) -> Column:
    """Returns the column of a name.

    Raises:
        InvalidArgumentError: There is no such column.
    """
    known = _BY_LOWER.get(name.lower())
    if known is None:
        close = get_close_matches(name.lower(), _BY_LOWER, 1)
        meant = f"did you mean {_BY_LOWER[close[0]].name}? " if close else ""
        raise InvalidArgumentError(
            f"there is no column {name!r}", help=f"{meant}columns are {', '.join(BY_NAME)}"
        )
    return known

"""Rows as lines of JSON, written by Spark, because Python has no values for some of its types.

Bytes are text, or Base64 if they are not UTF-8. Times are in ISO 8601, in the zone of the session, which jobs
set to UTC. Decimals, intervals and numbers that JSON does not have (``NaN``) are texts. Keys of maps are
converted like values, and then to text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from seglog.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_NAME: Final = "json"
_TIME: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
_NO_FRACTION: Final = r"\.000000$"
_OTHERS: Final = re.compile(r"[^ -~]")


def json_frame(frame: DataFrame, names: Sequence[str] | None = None) -> DataFrame:
    """Returns rows as objects of JSON, in one column.

    Args:
        frame: The rows.
        names: Names of the columns; None for their own names.

    Raises:
        InvalidArgumentError: Two columns, or two fields of one, have the same name.
    """
    from pyspark.sql import functions as sql

    names = frame.columns if names is None else names
    _refuse_twice(names)
    # Columns get numbers as names: their own names may differ only in case, or contain dots.
    numbered = frame.toDF(*(f"c{at}" for at in range(len(names))))
    values = [
        _said(sql.col(field.name), field.dataType).alias(name)
        for field, name in zip(numbered.schema.fields, names, strict=True)
    ]
    return numbered.select(_as_json(sql.struct(*values)).alias(_NAME))


def json_lines(frame: DataFrame) -> Iterator[str]:
    """Yields rows as lines of JSON, in ASCII, without line ends."""
    from seglog.spark.local_batches import local_batches  # loads pyarrow, which help does not need

    for batch in local_batches(json_frame(frame)):
        for line in batch.column(0).to_pylist():
            yield _OTHERS.sub(_escaped, line)


def _as_json(value: Column) -> Column:
    from pyspark.sql import functions as sql

    return sql.to_json(value, {"ignoreNullFields": "false"})


def _said(value: Column, kind: DataType) -> Column:
    """Returns a value in a type that JSON has."""
    from pyspark.sql import functions as sql
    from pyspark.sql import types

    plain = (types.StringType, types.BooleanType, types.IntegralType, types.FractionalType, types.NullType)
    if isinstance(kind, types.DecimalType):
        return value.cast("string")
    if isinstance(kind, (*plain, types.VariantType)):
        return value
    if isinstance(kind, types.BinaryType):
        text = value.cast("string")
        return sql.when(sql.is_valid_utf8(text), text).otherwise(_base64(value))
    if isinstance(kind, types.TimestampType | types.TimestampNTZType):
        return sql.regexp_replace(sql.date_format(value, _TIME), _NO_FRACTION, "")
    if isinstance(kind, types.ArrayType):
        within = kind.elementType
        return sql.transform(value, lambda one: _said(one, within))
    if isinstance(kind, types.MapType):
        keys, values = kind.keyType, kind.valueType
        return sql.map_from_arrays(
            sql.transform(sql.map_keys(value), lambda one: _key(one, keys)),
            sql.transform(sql.map_values(value), lambda one: _said(one, values)),
        )
    if isinstance(kind, types.StructType):
        _refuse_twice(kind.names)
        fields = [
            _said(value.getField(field.name), field.dataType).alias(field.name) for field in kind.fields
        ]
        return sql.when(value.isNotNull(), sql.struct(*fields))
    return value.cast("string")  # dates, which exceed Python's range; times; intervals


def _base64(value: Column) -> Column:
    from pyspark.sql import functions as sql

    return sql.regexp_replace(sql.base64(value), r"\r\n", "")  # Spark inserts line ends


def _key(value: Column, kind: DataType) -> Column:
    from pyspark.sql import types

    said = _said(value, kind)
    is_nested = isinstance(kind, types.StructType | types.ArrayType | types.MapType)
    return _as_json(said) if is_nested else said.cast("string")


def _refuse_twice(names: Sequence[str]) -> None:
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InvalidArgumentError(
            f"two columns are called {twice!r}: one would hide the other",
            help=f"give one an alias, as in SELECT … AS {twice}2",
        )


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))

"""Small tables that the driver has, as frames that are sent to every task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES: Final = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}


def small_frame(spark: SparkSession, columns: str, rows: Iterable[tuple[object, ...]]) -> DataFrame:
    """Returns rows as a table that joins take along instead of moving the other side.

    Args:
        spark: The session.
        columns: As ``topic string, queueId int``; types are string, int and bigint.
        rows: The rows.
    """
    from pyspark.sql import functions as sql

    named = [column.split() for column in columns.split(", ")]
    rows = list(rows)
    arrays = [pa.array([row[at] for row in rows], _TYPES[kind]) for at, (_name, kind) in enumerate(named)]
    table = pa.Table.from_arrays(arrays, names=[name for name, _kind in named])
    return sql.broadcast(spark.createDataFrame(table, columns))

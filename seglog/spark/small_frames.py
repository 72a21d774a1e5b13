"""Small tables of the driver, as frames that are sent to every task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAX_SMALL_ROWS: Final = 500_000
_TYPES: Final = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}


def small_frame(spark: SparkSession, columns: str, rows: Iterable[tuple[object, ...]]) -> DataFrame:
    """Returns rows as a table that joins broadcast instead of moving the other side.

    Args:
        spark: The session.
        columns: Such as ``topic string, queueId int``; types are string, int and bigint.
        rows: The rows.
    """
    from pyspark.sql import functions as sql

    named = [column.split() for column in columns.split(", ")]
    rows = list(rows)
    arrays = [pa.array([row[at] for row in rows], _TYPES[kind]) for at, (_name, kind) in enumerate(named)]
    table = pa.Table.from_arrays(arrays, names=[name for name, _kind in named])
    return sql.broadcast(spark.createDataFrame(table, columns))


def sent_if_small(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Computes a table that is mostly small; if it is small, returns it as one that is sent to every task.

    A join with it then does not move the other side. A table of more than half a million rows is returned
    unchanged, and is computed again where it is used.
    """
    from pyspark.sql import functions as sql

    rows = frame.limit(_MAX_SMALL_ROWS + 1).toArrow()
    if rows.num_rows > _MAX_SMALL_ROWS:
        return frame
    return sql.broadcast(spark.createDataFrame(rows, frame.schema))

"""Views of stores for SQL, and values of their columns as JSON has them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from seglog.spark import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS: Final = ("messages", "queues", "offsets", "index")


def make_views(spark: SparkSession, paths: Sequence[str]) -> None:
    """Registers the data source and a view for each of its tables: :data:`VIEWS`.

    Args:
        spark: The session.
        paths: The store directories.
    """
    from seglog.spark.source.values.columns import COLUMNS

    register(spark)
    for name in VIEWS:
        reader = spark.read.format("seglog").option("paths", json.dumps(list(paths))).option("table", name)
        reader = reader.option("failOnDataLoss", "false")
        if name == "messages":
            usual = [column.name for column in COLUMNS if column.is_usual]
            reader = reader.option("columns", ",".join([*usual, "store"]))
        reader.load().createOrReplaceTempView(name)


def json_value(value: object) -> object:
    """Returns a value of a row as JSON can say it: bytes as text, or in Base64 where they are none."""
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): json_value(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    return value
